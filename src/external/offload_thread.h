// The thread that runs FarTasks, between the engine's thread and the external scheduler.
//
// The thread calls FarTasks::step() when a step is due. Between two steps it runs at most one
// posted command. So a step and a command never wait for each other longer than one call takes.
// Only this thread waits for the external scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/thread/engine_thread.h"
#include "external/engine_tasks.h"
#include "external/far_tasks.h"

namespace detent {

/// `away`: the number of tasks in the external scheduler after the last successful step. It
/// includes copies that do not count.
struct OffloadStats {
  std::uint64_t away = 0;
  FarTasksStats moves = {};
};

/// Callbacks for the log. The thread calls them.
struct OffloadEvents {
  /// A step failed. Called for the first of several failures in a row, and for a failure with
  /// another error code than the previous one, because the operator must then do something else.
  UniqueFunction<void(const Error&)> on_failed = {};
  /// A step succeeded after a failure.
  UniqueFunction<void()> on_recovered = {};
  /// A record could not be read. The external scheduler has set it aside.
  UniqueFunction<void(const Error&)> on_damaged = {};
  /// The external scheduler has lost changes (FarTasksStats::lost). Called once per loss.
  UniqueFunction<void(const Error&)> on_lost = {};
  /// A loss has ended: the data was restored, or the operator accepted the loss.
  UniqueFunction<void()> on_loss_ended = {};
};

/// Thread-safe.
class OffloadThread {
 public:
  using Command = UniqueFunction<void(FarTasks&)>;
  /// The most commands that can wait. post() refuses more.
  static constexpr std::size_t kMaxCommands = 1'000;

  /// Starts the thread. `engine` and `clock` must outlive this. Requires: validate(options) is ok.
  OffloadThread(EngineThread& engine, std::unique_ptr<ExternalScheduler> external, Clock& clock,
                const FarTasksOptions& options, OffloadEvents events = {});
  /// Calls stop().
  ~OffloadThread();
  OffloadThread(const OffloadThread&) = delete;
  OffloadThread& operator=(const OffloadThread&) = delete;

  /// Runs `command` on this thread. Never blocks. Returns false and drops the command if
  /// kMaxCommands commands wait or the thread is stopping.
  [[nodiscard]] bool post(Command command) DETENT_EXCLUDES(mutex_);
  OffloadStats stats() const DETENT_EXCLUDES(mutex_);

  /// Finishes the current step or command, drops the waiting commands, and joins the thread. Can be
  /// called more than once. Do not call it on the thread itself. Call it before the engine's thread
  /// stops.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  void run();
  bool run_a_command() DETENT_EXCLUDES(mutex_);
  bool is_stopping() const DETENT_EXCLUDES(mutex_);
  MonotonicTime step();
  void tell(const FarTasksStats& before);
  void tell_loss(const std::optional<Error>& lost);
  void note_stats() DETENT_EXCLUDES(mutex_);

  // Constant after construction.
  Clock& clock_;

  // Thread-safe by itself.
  Doorbell bell_;

  // Guarded by mutex_.
  Mutex joining_;  // held while stop() joins the thread, so that only one caller joins
  mutable Mutex mutex_;
  std::deque<Command> commands_ DETENT_GUARDED_BY(mutex_);
  OffloadStats stats_ DETENT_GUARDED_BY(mutex_);
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;

  // Used only by the thread.
  EngineTasks local_;
  std::unique_ptr<ExternalScheduler> external_;
  FarTasks far_;
  OffloadEvents events_;
  bool is_loss_told_ = false;

  Thread thread_;
};

}  // namespace detent

// The thread that FarTasks lives on, between the engine's thread and another system.
//
// It steps when FarTasks wants to, and between two steps runs one command that others posted: so
// neither keeps the other waiting for longer than one answer of the other system takes. Nobody else
// waits for that system.
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
#include "engine/engine_thread.h"
#include "external/engine_tasks.h"
#include "external/far_tasks.h"

namespace detent {

/// `away`: how many tasks were there when it was last asked; also copies that do not count.
struct OffloadStats {
  std::uint64_t away = 0;
  FarTasksStats moves = {};
};

/// What is told, on the thread.
struct OffloadEvents {
  /// A step failed, and the one before it had not, or with another code: other help is needed.
  UniqueFunction<void(const Error&)> on_failed = {};
  /// A step went well again.
  UniqueFunction<void()> on_recovered = {};
  /// A record could not be read; it was set aside there.
  UniqueFunction<void(const Error&)> on_damaged = {};
  /// It has lost changes (FarTasksStats::lost): once, until that ends.
  UniqueFunction<void(const Error&)> on_lost = {};
  /// Its data was restored, or the loss was accepted.
  UniqueFunction<void()> on_loss_ended = {};
};

/// Thread-safe.
class OffloadThread {
 public:
  using Command = UniqueFunction<void(FarTasks&)>;
  /// Most commands that may wait; further ones are refused.
  static constexpr std::size_t kMaxCommands = 1'000;

  /// Starts the thread. `engine` and `clock` must outlive this. Requires: validate(options) is ok.
  OffloadThread(EngineThread& engine, std::unique_ptr<ExternalScheduler> external, Clock& clock,
                const FarTasksOptions& options, OffloadEvents events = {});
  /// Stops, if stop() has not been called.
  ~OffloadThread();
  OffloadThread(const OffloadThread&) = delete;
  OffloadThread& operator=(const OffloadThread&) = delete;

  /// Has `command` run on this thread. Never blocks. Returns false, and drops the command, when too
  /// many wait or the thread is stopping.
  [[nodiscard]] bool post(Command command) DETENT_EXCLUDES(mutex_);
  OffloadStats stats() const DETENT_EXCLUDES(mutex_);

  /// Ends after what is under way, and joins; commands that still wait are dropped. Idempotent; not
  /// from its own thread, and before the engine's thread is stopped.
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

  // Synchronises itself.
  Doorbell bell_;

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  mutable Mutex mutex_;
  std::deque<Command> commands_ DETENT_GUARDED_BY(mutex_);
  OffloadStats stats_ DETENT_GUARDED_BY(mutex_);
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched only by the thread.
  EngineTasks local_;
  std::unique_ptr<ExternalScheduler> external_;
  FarTasks far_;
  OffloadEvents events_;
  bool is_loss_told_ = false;

  Thread thread_;
};

}  // namespace detent

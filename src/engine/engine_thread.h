// The thread an Engine lives on, and the queue through which others reach it.
//
// Commands are run in the order posted; all that gathered while the last turn wrote to the store
// form the next batch, so the number of syncs falls as the load rises and an idle engine answers
// after one.
//
// When the store fails nothing more is acknowledged: what the failed write was for is answered
// `unavailable`, as everything after it. The thread then closes the store and opens it again, once
// a second until it can; the new engine starts from what is on disk, under a new epoch.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/engine.h"

namespace detent {

/// An engine and the store it works on, which may also live elsewhere (null).
struct OpenEngine {
  std::unique_ptr<Store> store;
  std::unique_ptr<Engine> engine;
};

/// What happens to the engine, told on its thread, and how it is opened again.
struct EngineEvents {
  /// The store failed; nothing is acknowledged until on_reopened.
  UniqueFunction<void(const Error&)> on_stopped = {};
  /// An attempt to open it again failed.
  UniqueFunction<void(const Error&)> on_reopen_failed = {};
  UniqueFunction<void()> on_reopened = {};
  /// Opens the store and an engine on it; the old store is closed by then. Without it a failed
  /// engine stays as it is.
  UniqueFunction<Result<OpenEngine>()> reopen = {};
};

class EngineThread {
 public:
  using Command = UniqueFunction<void(Engine&)>;
  /// Most commands that may wait; further ones are refused.
  static constexpr std::size_t kMaxCommands = 100'000;
  /// An idle engine wakes so often to look whether the wall clock was stepped, and a failed one to
  /// open its store again.
  static constexpr std::chrono::seconds kLongestSleep{1};

  /// Starts the thread. `clock` is the engine's and must outlive this.
  EngineThread(OpenEngine opened, Clock& clock, EngineEvents events = {});
  /// Stops, if stop() has not been called.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Has `command` run on the engine's thread, soon, with the engine there is then. Never blocks.
  /// Returns false, and drops the command, when too many wait or the thread is stopping.
  [[nodiscard]] bool post(Command command) DETENT_EXCLUDES(mutex_);
  /// The same for what ends something that was posted before, which must not be lost: never refused
  /// for the number of those that wait, only dropped when the thread is stopping.
  void post_end(Command command) DETENT_EXCLUDES(mutex_);

  /// Answers every wait, runs what was posted before, commits, closes the store, and joins.
  /// Idempotent; not from the engine's own thread.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  enum class Room : std::uint8_t { limited, always };
  bool post(Command command, Room room) DETENT_EXCLUDES(mutex_);
  void run();
  void sleep();
  void note_failure(const Error& error);
  void try_reopen();
  /// Gives what was posted; returns false when the thread is to stop.
  bool take_commands(std::vector<Command>& commands) DETENT_EXCLUDES(mutex_);

  // Constant after construction.
  Clock& clock_;

  // Synchronises itself.
  Doorbell bell_;

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  Mutex mutex_;
  std::vector<Command> commands_ DETENT_GUARDED_BY(mutex_);
  bool stopping_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched only by the engine's thread.
  OpenEngine opened_;
  EngineEvents events_;
  bool has_failed_ = false;
  MonotonicTime next_reopen_{};

  std::thread thread_;
};

}  // namespace detent

// The thread an Engine lives on, and the queue through which others reach it.
//
// Commands are run in the order posted; all that gathered while the last turn wrote to the store
// form the next batch, so the number of syncs falls as the load rises and an idle engine answers
// after one. Thread-safe.
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

class EngineThread {
 public:
  using Command = UniqueFunction<void(Engine&)>;
  /// Most commands that may wait; further ones are refused.
  static constexpr std::size_t kMaxCommands = 100'000;
  /// An idle engine wakes so often to look whether the wall clock was stepped.
  static constexpr std::chrono::seconds kLongestSleep{1};

  /// Starts the thread. `clock` is the engine's and must outlive this. `on_stopped` runs once, on
  /// the engine's thread, if the store fails and the engine stops acknowledging.
  EngineThread(std::unique_ptr<Engine> engine, Clock& clock,
               UniqueFunction<void(const Error&)> on_stopped);
  /// Stops, if stop() has not been called.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Has `command` run on the engine's thread, soon. Never blocks. Returns false, and drops the
  /// command, when too many wait or the thread is stopping.
  [[nodiscard]] bool post(Command command) DETENT_EXCLUDES(mutex_);

  /// Answers every wait, runs what was posted before, commits, and joins. Idempotent; not from the
  /// engine's own thread.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  void run();
  void sleep();
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
  std::unique_ptr<Engine> engine_;
  UniqueFunction<void(const Error&)> on_stopped_;

  std::thread thread_;
};

}  // namespace detent

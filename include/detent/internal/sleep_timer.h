// SleepTimer: one sleep on a Scheduler. It wakes a coroutine (detent/coroutine.h) or an
// asynchronous operation (detent/asio.h).
//
// A timer, a stop token and the end of the scheduler can all end the same sleep. But only the job
// of the timer wakes the sleeper: when it runs, or when the scheduler drops the timer and destroys
// the job. A stop does not wake the sleeper. It moves the timer to now. Each sleeper is therefore
// woken exactly once, on the executor, and never from inside request_stop.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <variant>

#include "detent/clock.h"
#include "detent/scheduler.h"

namespace detent::internal {

/// The end of a sleep: a delay after its start, an instant, or a date.
using WakeTime = std::variant<std::chrono::nanoseconds, MonotonicTime, WallTime>;

/// The object that sleeps.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// Called at the end of the sleep. `slept` is true if the time has come, and false if the sleep
  /// was stopped. Called without a lock, on the scheduler's executor, or on the thread that
  /// destroys the job of a dropped timer. May destroy the sleeper and its SleepTimer.
  virtual void wake(bool slept) = 0;
};

/// The timer of one sleep. Thread-compatible. Cost: one allocation per sleep.
class SleepTimer {
 public:
  SleepTimer() noexcept = default;
  /// Ends the sleep without waking. Requires: the sleeper is not being woken at the same time.
  ~SleepTimer();
  SleepTimer(const SleepTimer&) = delete;
  SleepTimer& operator=(const SleepTimer&) = delete;

  /// Starts a sleep until `until` or a stop. Requires: called once; `sleeper` lives until it is
  /// woken or until this object is destroyed.
  ///
  /// Returns true if `sleeper` will be woken or already was woken; after that this object may no
  /// longer exist. Returns false if the scheduler has stopped or is full; then `sleeper` is not
  /// woken.
  [[nodiscard]] bool start(Scheduler& scheduler, WakeTime until, std::stop_token stop,
                           Sleeper& sleeper) noexcept;

 private:
  class State;
  class WakingJob;
  // Shared with the timer's job, because the job may run and destroy this object while `start` is
  // still running.
  std::shared_ptr<State> state_;
};

}  // namespace detent::internal

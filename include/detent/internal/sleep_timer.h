// SleepTimer: one sleep on a Scheduler, for whoever is woken rather than called back: a coroutine
// (detent/coroutine.h) or an asynchronous operation (detent/asio.h).
//
// A timer, a stop token and the end of the scheduler may all want to end the same sleep. Only one
// thing ever wakes the sleeper: the timer's job, by being run, or by being destroyed unrun when the
// scheduler drops it. A stop does not wake; it moves the timer to now. So exactly one wakes, on the
// executor, and nobody is woken from inside request_stop.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <variant>

#include "detent/clock.h"
#include "detent/scheduler.h"

namespace detent::internal {

/// When a sleep ends: a delay after its start, at an instant, at a date.
using WakeTime = std::variant<std::chrono::nanoseconds, MonotonicTime, WallTime>;

/// Who sleeps.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// `slept`: the time has come; otherwise the sleep was stopped. Called without any lock, on the
  /// scheduler's executor, or on the thread that destroys the job of a timer the scheduler dropped.
  /// May destroy the sleeper and its SleepTimer.
  virtual void wake(bool slept) = 0;
};

/// Thread-compatible. One allocation a sleep.
class SleepTimer {
 public:
  SleepTimer() noexcept = default;
  /// Ends the sleep without waking. Requires: the sleeper is not being woken meanwhile.
  ~SleepTimer();
  SleepTimer(const SleepTimer&) = delete;
  SleepTimer& operator=(const SleepTimer&) = delete;

  /// Falls asleep until `until` or a stop. Requires: called once; `sleeper` lives until it is woken
  /// or this is destroyed.
  /// Returns: true when `sleeper` is, or already was, woken once: this object may be gone then.
  /// False when the scheduler has stopped or is full, and nobody will be woken.
  [[nodiscard]] bool start(Scheduler& scheduler, WakeTime until, std::stop_token stop,
                           Sleeper& sleeper) noexcept;

 private:
  class State;
  class WakingJob;
  // Owned by this and by the timer's job, because the job may run, and end this, while `start` is
  // still at work.
  std::shared_ptr<State> state_;
};

}  // namespace detent::internal

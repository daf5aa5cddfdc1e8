// What schedule_after and its sisters return: the right to cancel or move one timer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "detent/clock.h"
#include "detent/internal/saturate.h"

namespace detent {

namespace internal {

class SchedulerCore;
class SchedulerShard;

/// Names one timer of one shard for ever: the index may be used again, the generation never is.
struct TimerId {
  std::uint32_t index = 0;
  std::uint64_t generation = 0;  // 0: no timer

  friend bool operator==(const TimerId&, const TimerId&) = default;
};

}  // namespace internal

/// What became of a timer that was cancelled; exactly one of these is true.
enum class CancelResult : std::uint8_t {
  cancelled,    // it was pending; its job will not run (again) and is destroyed
  running,      // its job runs right now; that run goes on, and there will be no other
  not_pending,  // it had fired, was cancelled before, or the scheduler has stopped
};

/// Owns one timer: destroying the handle cancels it. Movable, not copyable. Outliving the scheduler
/// is fine: there is nothing to cancel then. Thread-compatible; operations take the scheduler's
/// lock for a short time, and may be called from inside any job, the timer's own included.
class [[nodiscard]] TimerHandle {
 public:
  /// Holds no timer; every operation answers that there is none.
  TimerHandle() noexcept = default;
  /// Cancels, and does not wait for a job that runs (see cancel_and_wait).
  ~TimerHandle();
  TimerHandle(TimerHandle&& other) noexcept;
  /// Cancels what this one held.
  TimerHandle& operator=(TimerHandle&& other) noexcept;

  /// Cancels the timer. When it answers `cancelled`, the job has been destroyed. Unless it answers
  /// `running` the handle is empty after it.
  CancelResult cancel() noexcept;

  /// The same, and when the job is running waits until it has returned and is destroyed: after it
  /// nothing of the job is left. Called from inside the job itself it does not wait.
  /// Two jobs that wait for each other wait for ever.
  CancelResult cancel_and_wait() noexcept;

  /// Moves the timer: it fires `delay` from now (at once when that is not positive), as late as the
  /// clock allows when `delay` is huge. A periodic one goes on from there in its period, a
  /// recurring one by its rule. Moving to later costs no more than a store, the clock and the lock.
  /// Returns: true when it was pending; false when its job runs, or is over.
  template <class Rep, class Period>
  bool expires_after(std::chrono::duration<Rep, Period> delay) noexcept {
    return move_to(internal::saturate_to_nanoseconds(delay));
  }

  /// The same for an instant, and for a date (Scheduler, "Time"), rounded up to milliseconds.
  bool expires_at(MonotonicTime deadline) noexcept;
  bool expires_at(WallTime due) noexcept;
  template <class Duration>
  bool expires_at(std::chrono::sys_time<Duration> due) noexcept {
    return expires_at(internal::ceil_to_wall_time(due));
  }

  /// Whether the timer is still to fire. Another thread may have changed it by the time you look.
  bool is_pending() const noexcept;

  /// Lets the timer go its own way: nothing cancels it any more but the scheduler's stop.
  void release() noexcept;

  /// Whether it holds a timer, pending or over. False for one that the scheduler refused, and after
  /// `cancel` or `release`.
  explicit operator bool() const noexcept { return shard_ != nullptr; }

 private:
  friend class internal::SchedulerCore;
  TimerHandle(std::shared_ptr<internal::SchedulerShard> shard, internal::TimerId id) noexcept;
  bool move_to(std::chrono::nanoseconds delay) noexcept;

  // Owned by the scheduler and by its handles, so that a handle may outlive the scheduler.
  std::shared_ptr<internal::SchedulerShard> shard_;
  internal::TimerId id_;
};

}  // namespace detent

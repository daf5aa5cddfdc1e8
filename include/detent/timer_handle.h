// TimerHandle: the result of schedule_after and similar functions. It can cancel or move one timer.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "detent/clock.h"
#include "detent/internal/saturate.h"

namespace detent {

namespace internal {

class LocalTimers;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it deletes itself
class SchedulerCore;
class TimerOwner;

/// Names one timer of one shard, unambiguously for all time. An index can be reused; a generation
/// is never reused.
struct TimerId {
  std::uint32_t index = 0;
  std::uint64_t generation = 0;  // 0: no timer

  friend bool operator==(const TimerId&, const TimerId&) = default;
};

}  // namespace internal

/// The state in which `cancel` found the timer.
enum class CancelResult : std::uint8_t {
  cancelled,    // it was pending; its job will not run again and is destroyed
  running,      // its job is running; this run continues, and no further run follows
  not_pending,  // it had fired or was cancelled before, or the scheduler has stopped
};

/// Owns one timer: destroying the handle cancels the timer. Movable, not copyable. A handle may
/// outlive its scheduler; its functions then have no effect. Thread-compatible. Its functions take
/// the lock of a Scheduler for a short time. The handle of a LocalScheduler takes no lock, and
/// belongs to the thread of the loop. The functions may be called from inside any job, including
/// the timer's own job.
class [[nodiscard]] TimerHandle {
 public:
  /// Holds no timer. Every function reports that there is no timer.
  TimerHandle() noexcept = default;
  /// Cancels the timer. Does not wait for a running job; see cancel_and_wait.
  ~TimerHandle() {
    if (owner_ != nullptr) give_up();
  }
  TimerHandle(TimerHandle&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), id_(std::exchange(other.id_, {})) {}
  /// Cancels the timer that this handle held.
  TimerHandle& operator=(TimerHandle&& other) noexcept {
    if (this == &other) return *this;
    const TimerHandle old(std::move(*this));
    owner_ = std::exchange(other.owner_, nullptr);
    id_ = std::exchange(other.id_, {});
    return *this;
  }

  /// Cancels the timer. The result `cancelled` means that the job has been destroyed. After any
  /// result except `running`, the handle is empty. O(1).
  CancelResult cancel() noexcept;

  /// Cancels the timer. If the job is running, waits until it has returned and is destroyed. After
  /// the call no part of the job exists. Called from inside the job itself, it does not wait. If
  /// two jobs call it for each other, both wait forever. Returns the result of `cancel`: `running`
  /// if the job was running when the call began. The handle does not become empty, but its timer is
  /// over.
  CancelResult cancel_and_wait() noexcept;

  /// Moves the timer to `delay` from now. A delay of 0 or less is due immediately. A delay beyond
  /// the end of the clock is shortened to its end. A periodic timer continues its period from
  /// there, a recurring timer its rule. Returns true if the timer was pending, false if its job
  /// runs or is over. Cost: moving a timer to later takes one store, one reading of the clock and
  /// the lock.
  template <class Rep, class Period>
  bool expires_after(std::chrono::duration<Rep, Period> delay) noexcept {
    return move_to(internal::saturate_to_nanoseconds(delay));
  }

  /// Moves the timer to an instant, or to a date rounded up to milliseconds (see "Time" in
  /// scheduler.h). Otherwise as expires_after.
  bool expires_at(MonotonicTime deadline) noexcept;
  bool expires_at(WallTime due) noexcept;
  template <class Duration>
  bool expires_at(std::chrono::sys_time<Duration> due) noexcept {
    return expires_at(internal::ceil_to_wall_time(due));
  }

  /// Returns true if the timer waits for its deadline, or if its job is due but has not begun.
  /// Returns false while the job runs (also for a periodic timer), and after the timer has ended.
  /// Another thread can change this before the caller uses the result.
  bool is_pending() const noexcept;

  /// Gives up ownership: the handle becomes empty and the timer continues. After that, no handle
  /// can cancel the timer. It ends by itself (a periodic timer: by its `count` or
  /// TimerContext::stop), or when the scheduler stops.
  void release() noexcept;

  /// Returns true if the handle holds a timer, pending, running or over. Returns false if the
  /// scheduler refused the timer, after `release`, and after `cancel` with another result than
  /// `running`.
  explicit operator bool() const noexcept { return owner_ != nullptr; }

 private:
  friend class internal::LocalTimers;
  friend class internal::SchedulerCore;
  /// Takes a share of `owner` that the caller has counted.
  TimerHandle(internal::TimerOwner& owner, internal::TimerId id) noexcept
      : owner_(&owner), id_(id) {}
  void give_up() noexcept;
  bool move_to(std::chrono::nanoseconds delay) noexcept;

  // The scheduler and its handles own the owner together, so that a handle may outlive the
  // scheduler. The owner counts its handles.
  internal::TimerOwner* owner_ = nullptr;
  internal::TimerId id_;
};

}  // namespace detent

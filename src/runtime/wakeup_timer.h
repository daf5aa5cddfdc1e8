// Wakes its owner in time: the one scheduler timer behind a structure that keeps thousands of
// deadlines itself.
//
// A DelayMap or an IdleTimeouts has its entries in a wheel of its own and needs of the scheduler
// only to be called when the next one is due. It asks for that with `wake_by`; asking for an
// earlier time moves the timer, asking for a later one changes nothing. When it was woken it says
// when it wants to be next.
//
// The scheduler is called without any lock held but this class's own, and `schedule_at` without
// even that, because a scheduler that is full may make its caller wait for room.
//
// The owner is not woken when the scheduler has stopped, nor after it refused a timer until the
// owner asks the next time.
#pragma once

#include <memory>
#include <optional>

#include "detent/clock.h"
#include "detent/scheduler.h"

namespace detent::internal {

/// Thread-safe. The scheduler and the owner must outlive it.
class WakeupTimer {
 public:
  /// Whom it wakes.
  class Owner {
   public:
    virtual ~Owner() = default;

    /// Called on the scheduler's executor, one call at a time. Returns: when it is to be called
    /// again, if it is, as seen in a critical section of the owner's lock after the work was done.
    virtual std::optional<MonotonicTime> on_wakeup() noexcept = 0;
  };

  WakeupTimer(Scheduler& scheduler, Owner& owner);
  /// Closes.
  ~WakeupTimer();
  WakeupTimer(const WakeupTimer&) = delete;
  WakeupTimer& operator=(const WakeupTimer&) = delete;

  /// Whether `wake_by(time)` may be left out. One load. It is right for what the owner changed in
  /// the critical section of its lock in which it asks this: a wake-up whose last critical section
  /// came before has declared itself here, and one that comes after will see the change.
  bool is_set_by(MonotonicTime time) const noexcept;

  /// Sees to it that the owner is woken by `time`, or as soon as it does not run any more.
  /// Requires: the owner's lock is not held.
  void wake_by(MonotonicTime time);

  /// Waits until `on_wakeup` does not run, and calls it no more. What it calls may still use this,
  /// for nothing. Requires: not called from inside `on_wakeup`; no other thread is inside
  /// `wake_by`.
  void close() noexcept;

  /// Whether this is a child process of fork() that the scheduler's thread is not in. Then nothing
  /// wakes the owner, any lock may be held for ever, and `close` does nothing.
  bool was_left() const noexcept;

 private:
  class State;
  // Owned by this and by the job at the scheduler, whose last steps may come after the end of this.
  std::shared_ptr<State> state_;
};

}  // namespace detent::internal

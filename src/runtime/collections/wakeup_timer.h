// Wakes its owner in time. It is the only scheduler timer of a structure that keeps thousands of
// deadlines itself.
//
// A DelayMap or an IdleTimeouts has its entries in its own wheel. From the scheduler it needs one
// call when the next entry is due. It requests the call with `wake_by`: an earlier time moves the
// timer, a later time changes nothing. After a wake-up, the owner returns the time of the next
// wake-up.
//
// The scheduler is called with no lock except the lock of this class. `schedule_at` is called
// without any lock, because a full scheduler may make its caller wait for room.
//
// The owner is not woken after the scheduler has stopped. If the scheduler refuses a timer, the
// owner is not woken until it asks again.
#pragma once

#include <memory>
#include <optional>

#include "detent/clock.h"
#include "detent/scheduler.h"

namespace detent::internal {

/// Thread-safe. The scheduler and the owner must outlive it.
class WakeupTimer {
 public:
  /// The object that is woken.
  class Owner {
   public:
    virtual ~Owner() = default;

    /// Called on the scheduler's executor, one call at a time. Returns when to call it again;
    /// empty: not again. The owner reads this time under its lock, after the work is done.
    virtual std::optional<MonotonicTime> on_wakeup() noexcept = 0;
  };

  WakeupTimer(Scheduler& scheduler, Owner& owner);
  /// Closes.
  ~WakeupTimer();
  WakeupTimer(const WakeupTimer&) = delete;
  WakeupTimer& operator=(const WakeupTimer&) = delete;

  /// Whether the owner can leave out `wake_by(time)`. The cost is one load. The answer is correct
  /// if the owner asks and makes its change in the same critical section. If the last critical
  /// section of a wake-up came before, this object already shows the time of the next wake-up. If
  /// it comes later, the wake-up will see the change.
  bool is_set_by(MonotonicTime time) const noexcept;

  /// Makes sure that the owner is woken by `time`, or as soon as its present wake-up has ended.
  /// Requires: the owner's lock is not held.
  void wake_by(MonotonicTime time);

  /// Waits until `on_wakeup` does not run, and prevents further calls. A running `on_wakeup` may
  /// still use this object, without effect. Requires: not called from inside `on_wakeup`, and no
  /// other thread is inside `wake_by`.
  void close() noexcept;

  /// Whether this is a child process of fork(), which has no scheduler thread. In such a process
  /// the owner is never woken, any lock may stay locked forever, and `close` does nothing.
  bool was_left() const noexcept;

 private:
  class State;
  // Also owned by the job at the scheduler. The last steps of the job may come after the end of
  // this object.
  std::shared_ptr<State> state_;
};

}  // namespace detent::internal

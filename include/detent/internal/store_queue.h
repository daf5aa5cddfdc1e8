// StoreQueue: a TimerQueue made of a store and its passes. It is the public interface that the
// classic queues share.
//
// The store keeps the timers in order (sorted_store.h, slot_store.h). QueuePasses decides when to
// take timers out of the store. This file documents the operations of every queue built on it; each
// queue documents its own costs. TimerWheel and DenseWheel are built for speed and have interfaces
// of their own.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent::internal {

/// A PassStore that also lets a queue add and remove timers. Its timers point to it, so a timer's
/// destructor can cancel the timer without the queue.
///
///     accepts(now, d)        returns true if the store takes the deadline `d` at time `now`
///     schedule(timer, d, e)  schedules or moves a timer; if it is due at or before `e`, it waits
///                            for the next pass
///     cancel(timer)          returns true if the timer was pending
///     next_wakeup()          returns the start of the next batch. Requires: a timer is pending,
///                            and no timer waits
///     nothing_waits()        returns true if no timer was scheduled for the next call
template <class S>
concept QueueStore = PassStore<S> &&
    requires(S& store, const S& unchanged, typename S::Timer& timer, Tick tick) {
  { unchanged.accepts(tick, tick) } -> std::same_as<bool>;
  { unchanged.next_wakeup() } -> std::same_as<Tick>;
  { unchanged.nothing_waits() } -> std::same_as<bool>;
  { unchanged.size() } -> std::same_as<std::size_t>;
  { store.cancel(timer) } -> std::same_as<bool>;
  store.schedule(timer, tick, tick);
  unchanged.check_invariants();
  unchanged.check_waiting(tick);
  unchanged.check_no_pass();
};

/// Base class of the classic queues. Thread-compatible. Neither copyable nor movable, because its
/// timers point to it. A callback must not destroy or advance its own queue.
template <QueueStore Store>
class StoreQueue {
 public:
  using Timer = typename Store::Timer;

  /// No limit for one call of `advance`.
  static constexpr std::size_t npos = kNoLimit;

  StoreQueue(const StoreQueue&) = delete;
  StoreQueue& operator=(const StoreQueue&) = delete;

  /// Schedules `timer`, or moves it if it is pending. A deadline at or before now() fires at the
  /// next `advance`. The same is true for a deadline at or before the tick of an unfinished pass:
  /// it never fires in the running pass. Requires: `timer` is not pending on another queue. Returns
  /// false if the queue does not accept the deadline; the timer then stays unchanged.
  bool schedule(Timer& timer, Tick deadline) noexcept {
    if (!store_.accepts(passes_.now(), deadline)) return false;
    store_.schedule(timer, deadline, passes_.end());
    return true;
  }

  /// As `schedule`: these queues have no cheaper way to move a timer to later.
  bool postpone(Timer& timer, Tick deadline) noexcept { return schedule(timer, deadline); }

  /// Cancels `timer`. Requires: `timer` is not pending on another queue. Returns true if the timer
  /// was pending; it will not fire. Returns false if it was not pending.
  bool cancel(Timer& timer) noexcept { return store_.cancel(timer); }

  /// Returns the next tick that can have work; std::nullopt if no timer is pending. The tick is
  /// never later than the earliest deadline (rounded up to a slot, if slots are wider than a tick).
  /// It is now() if a timer waits for the next `advance`.
  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }

  /// Moves time forward to `now` and calls `on_fire(Timer&)` for every due timer, in the order of
  /// deadlines. Time never moves backward: an earlier `now` counts as now(). The callback must not
  /// throw. It may schedule, postpone, cancel and destroy any timer, including its own. At most
  /// `limit` timers are fired or moved; `more` is true if work is left. timer_wheel.h has the full
  /// contract.
  template <std::invocable<Timer&> OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  /// Returns the last finished tick; inside a callback, the target tick of the pass.
  Tick now() const noexcept { return passes_.now(); }

  /// Returns the number of pending timers. O(1).
  std::size_t size() const noexcept { return store_.size(); }
  /// Returns size() == 0.
  bool empty() const noexcept { return size() == 0; }

  /// For tests: stops the process if an invariant is broken. O(timers + slots).
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 protected:
  template <class... Arguments>
  explicit StoreQueue(Tick now, Arguments&&... for_store)
      : passes_(now), store_(now, std::forward<Arguments>(for_store)...) {}

  /// Cancels every timer. O(size()); a queue with slots adds O(slots).
  ~StoreQueue() { DETENT_CHECK(!passes_.advancing()); }

  Store& store() noexcept { return store_; }
  const Store& store() const noexcept { return store_; }

 private:
  QueuePasses passes_;
  Store store_;
};

}  // namespace detent::internal

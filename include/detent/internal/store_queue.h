// A TimerQueue made of a store and its passes: the public face that the classic queues share.
//
// The store keeps the timers in order (sorted_store.h, slot_store.h); QueuePasses decides when they
// are taken out of it. What is said here of an operation holds for every queue built on this; what
// it costs is said by the queue. TimerWheel and DenseWheel, which are built for speed, have faces
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

/// A PassStore to which timers can be added and out of which they can be taken. Its timers point at
/// it, so a timer's destructor can cancel it without the queue.
///
///   accepts(now, d)        whether it takes the deadline `d` when it is `now`
///   schedule(timer, d, e)  arms or moves it; a timer due at or before `e` waits for the next pass
///   cancel(timer)          whether it was pending
///   next_wakeup()          when the next batch starts. Requires: a timer is pending, none waits
///   nothing_waits()        whether nothing was scheduled for the next call
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
  unchanged.check_no_pass();
};

/// Base class of the classic queues. Thread-compatible. Neither copyable nor movable: its timers
/// point at it. It must not be destroyed, nor advanced, from inside a callback of its own.
template <QueueStore Store>
class StoreQueue {
 public:
  using Timer = typename Store::Timer;

  /// No limit to what one `advance` does.
  static constexpr std::size_t npos = kNoLimit;

  StoreQueue(const StoreQueue&) = delete;
  StoreQueue& operator=(const StoreQueue&) = delete;

  /// Arms `timer`, or moves it if it is pending. A deadline at or before now(), or at or before the
  /// tick that an unfinished pass goes to, belongs to the next pass: it fires at the next
  /// `advance`, never in the one that is running. Requires: `timer` is not pending on another
  /// queue. Returns: false when the queue does not take that deadline; the timer then is as it was.
  bool schedule(Timer& timer, Tick deadline) noexcept {
    if (!store_.accepts(passes_.now(), deadline)) return false;
    store_.schedule(timer, deadline, passes_.end());
    return true;
  }

  /// The same as `schedule`: these queues have no cheaper way to move a timer to later.
  bool postpone(Timer& timer, Tick deadline) noexcept { return schedule(timer, deadline); }

  /// Disarms `timer`. Requires: it is not pending on another queue.
  /// Returns: true when it was pending and so will not fire; false when there was nothing to do.
  bool cancel(Timer& timer) noexcept { return store_.cancel(timer); }

  /// Returns: the tick until which nothing needs doing; empty when no timer is pending. It is never
  /// later than the earliest deadline (rounded up to a slot, where slots are wider than a tick),
  /// and now() when something waits for the next `advance`.
  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }

  /// Moves time forward to `now` (not backward: an earlier `now` counts as now()) and calls
  /// `on_fire(Timer&)` for every timer due, in the order of their deadlines. It must not throw. It
  /// may schedule, postpone, cancel and destroy any timer, its own included. At most `limit` timers
  /// are fired or moved; `more` says that this was not enough. timer_wheel.h tells all of it.
  template <std::invocable<Timer&> OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  /// Returns: the last tick that is finished; inside a callback the tick the pass goes to.
  Tick now() const noexcept { return passes_.now(); }

  /// Returns: how many timers are pending.
  std::size_t size() const noexcept { return store_.size(); }
  bool empty() const noexcept { return size() == 0; }

  /// Stops the process unless every invariant of its parts holds. For tests: it visits everything.
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 protected:
  template <class... Arguments>
  explicit StoreQueue(Tick now, Arguments&&... for_store)
      : passes_(now), store_(now, std::forward<Arguments>(for_store)...) {}

  /// Cancels every timer. O(size()), and O(slots) where there are slots.
  ~StoreQueue() { DETENT_CHECK(!passes_.advancing()); }

  Store& store() noexcept { return store_; }
  const Store& store() const noexcept { return store_; }

 private:
  QueuePasses passes_;
  Store store_;
};

}  // namespace detent::internal

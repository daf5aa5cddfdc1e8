// FifoTimerWheel: a TimerWheel that keeps equal deadlines in the order of scheduling.
//
// Timers with the same deadline fire in the order in which they were scheduled. Moving or
// postponing a timer counts as scheduling it again. Slots are linked lists, so timers keep their
// order when they cascade. A timer that is scheduled while a slot cascades is put behind the timers
// of this slot. In all other respects it is a TimerWheel.
//
//     detent::FifoTimerWheel wheel;
//     detent::FifoTimerWheel::Timer first, second;
//     wheel.schedule(first, 100);
//     wheel.schedule(second, 100);
//     wheel.advance(100, on_fire);    // first, then second
//
// Cost: schedule, cancel and postpone are O(1) and never allocate. advance is O(1) per timer fired
// or moved, and a timer moves at most 11 times. next_wakeup is O(1) and may be early: a timer's
// deadline is reached after at most 11 wake-ups. Memory: 32 bytes per timer, in the caller's
// object; 23 KB per wheel. Up to some ten thousand timers this is the fastest wheel. With more
// timers, walking over the lists waits for memory (docs/internals/wheel.md).
//
// Source: scheme 7 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN
// 1997). Read first: detent/timer_wheel.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/check.h"
#include "detent/internal/level_store.h"
#include "detent/internal/link_list.h"
#include "detent/internal/linked_timer.h"
#include "detent/internal/store_queue.h"
#include "detent/tick.h"

namespace detent {

namespace internal {

class FifoStore;

/// `kListCount` lists of timers, for a LevelStore. Owns no timer. Not movable. Thread-compatible.
/// Each operation is O(1) unless its comment says otherwise.
template <unsigned kListCount>
class LinkLists {
 public:
  using Timer = LinkedTimer<FifoStore, LinkLists>;
  using Name = Timer*;
  using Place = Timer*;
  using List = unsigned;
  static constexpr bool kKeepsOrder = true;

  /// A timer that was removed, or that will be added.
  struct Entry {
    Tick deadline;
    Timer* name;
  };

  bool empty(List list) const noexcept { return lists_[list].empty(); }

  /// Adds a timer at the end of a list that is not empty. Returns false if the list is empty.
  bool try_push(List list, const Entry& entry) noexcept {
    if (empty(list)) return false;
    push(list, entry);
    return true;
  }

  /// Adds a timer at the end. Returns true if the list was empty. The parameter for the start of
  /// the slot is not used.
  bool push(List list, const Entry& entry, Tick = 0) noexcept {
    const bool was_empty = empty(list);
    lists_[list].push_back(entry.name->link_);
    return was_empty;
  }

  /// Removes a timer. Returns true if the caller must call `settle(timer)` now.
  bool remove(Timer* timer) noexcept { return unlink(timer->link_) != nullptr; }

  /// Returns the list that `remove` left empty.
  List settle(const Timer* timer) const noexcept {
    return static_cast<List>(reinterpret_cast<const LinkList*>(timer->link_.prev) - lists_.data());
  }

  /// Removes at most `limit` timers from the front, one by one, and calls visit(const Entry&) with
  /// each. `visit` may add and remove timers. Returns the number of removed timers.
  template <class Visit>
  std::size_t drain(List list, std::size_t limit, Visit&& visit) {
    std::size_t left = limit;
    for (; left != 0 && !empty(list); --left) {
      Timer& timer = Timer::of(lists_[list].pop_front());
      __builtin_prefetch(lists_[list].sentinel().next->next, /*for writing:*/ 1);
      visit(Entry{timer.deadline_, &timer});
    }
    return limit - left;
  }

  /// As drain, for a `visit` that only adds timers to other lists.
  template <class Visit>
  std::size_t pour(List list, std::size_t limit, Visit&& visit) {
    return drain(list, limit, visit);
  }

  /// Marks a removed timer as not pending, because it fires.
  Timer& release(const Entry& entry) noexcept {
    entry.name->queue_ = nullptr;
    return *entry.name;
  }

  void prefetch(List) const noexcept {}

  /// Moves all timers of `from` to the end of `into`.
  void append(List into, List from) noexcept { lists_[into].append(lists_[from]); }

  /// Returns the deadline of the only timer of a list; std::nullopt if the list has no timer or
  /// several.
  std::optional<Tick> only_deadline(List list) const noexcept {
    const Link& sentinel = lists_[list].sentinel();
    if (sentinel.next == &sentinel || sentinel.next != sentinel.prev) return std::nullopt;
    return Timer::of(*sentinel.next).deadline_;
  }

  /// Calls visit(list, Timer*, const Entry&) for each timer. O(lists + timers).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (List list = 0; list < kListCount; ++list) {
      for_each_link(lists_[list], [&](Link& link) {
        Timer& timer = Timer::of(link);
        visit(list, &timer, Entry{timer.deadline_, &timer});
      });
    }
  }

  /// Stops the process if the links of a list are inconsistent. O(lists + timers).
  void check_invariants() const noexcept {
    for (const LinkList& list : lists_) {
      for_each_link(list, [](const Link& link) {
        DETENT_CHECK(link.next->prev == &link && link.prev->next == &link);
      });
    }
  }

 private:
  std::array<LinkList, kListCount> lists_;
};

/// The store of a FifoTimerWheel. Owns no timer; its destructor cancels the remaining timers.
class FifoStore : public LevelStore<LinkLists, 6> {
 public:
  using Timer = Lists::Timer;

  explicit FifoStore(Tick now) noexcept : LevelStore(now) {}
  ~FifoStore() {
    lists().for_each([](unsigned, Timer* timer, const Entry&) { timer->queue_ = nullptr; });
  }

  bool accepts(Tick, Tick) const noexcept { return true; }

  void schedule(Timer& timer, Tick deadline, Tick pass_end) noexcept {
    cancel(timer);
    timer.queue_ = this;
    timer.deadline_ = deadline;
    add({deadline, &timer}, pass_end);
  }

  bool cancel(Timer& timer) noexcept {
    if (timer.queue_ == nullptr) return false;
    DETENT_CHECK(timer.queue_ == this);
    timer.queue_ = nullptr;
    return remove(&timer);
  }
};

}  // namespace internal

/// A hierarchical timing wheel that fires equal deadlines in the order of scheduling.
/// Thread-compatible. Accepts every deadline. The base class documents each operation.
class FifoTimerWheel : public internal::StoreQueue<internal::FifoStore> {
 public:
  /// Makes an empty wheel whose time is `now`.
  explicit FifoTimerWheel(Tick now = 0) noexcept : internal::StoreQueue<internal::FifoStore>(now) {}
};

}  // namespace detent

// FifoTimerWheel: TimerWheel that keeps the order of equal deadlines.
//
// Timers that are due at the same tick fire in the order in which they were scheduled; a timer that
// is moved, postponed too, counts as scheduled then. Slots are linked lists, so that a timer stays
// behind those it came after: they cascade in order, and what is scheduled while a slot cascades
// waits behind it. Everything else is as TimerWheel says.
//
//     detent::FifoTimerWheel wheel;
//     detent::FifoTimerWheel::Timer first, second;
//     wheel.schedule(first, 100);
//     wheel.schedule(second, 100);
//     wheel.advance(100, on_fire);    // first, then second
//
// Cost: schedule, cancel and postpone O(1), no allocation; advance O(1) a timer fired or moved, at
// most 11 moves. 32 bytes a timer, in the user's object; 23 KB a wheel. Up to some ten thousand
// timers it is the quickest wheel; beyond, walking lists waits for memory
// (docs/internals/wheel.md).
//
// Varghese and Lauck, scheme 7. Read first: detent/timer_wheel.h.
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
/// Every operation is O(1) unless it says otherwise.
template <unsigned kListCount>
class LinkLists {
 public:
  using Timer = LinkedTimer<FifoStore, LinkLists>;
  using Name = Timer*;
  using Place = Timer*;
  using List = unsigned;
  static constexpr bool kKeepsOrder = true;

  /// A timer taken out, or to be put in.
  struct Entry {
    Tick deadline;
    Timer* name;
  };

  bool empty(List list) const noexcept { return lists_[list].empty(); }

  /// Adds a timer at the end, if the list has others. Returns: false when it is empty.
  bool try_push(List list, const Entry& entry) noexcept {
    if (empty(list)) return false;
    push(list, entry);
    return true;
  }

  /// Adds a timer at the end. Returns: whether the list was empty. (The start of a slot's list is
  /// not needed here.)
  bool push(List list, const Entry& entry, Tick = 0) noexcept {
    const bool was_empty = empty(list);
    lists_[list].push_back(entry.name->link_);
    return was_empty;
  }

  /// Takes a timer out. Returns: whether `settle(timer)` must be called now.
  bool remove(Timer* timer) noexcept { return unlink(timer->link_) != nullptr; }

  /// Returns: the list that `remove` left empty.
  List settle(const Timer* timer) const noexcept {
    return static_cast<List>(reinterpret_cast<const LinkList*>(timer->link_.prev) - lists_.data());
  }

  /// Takes out at most `limit` timers from the front, one by one, and calls visit(const Entry&)
  /// with each. It may add and remove timers. Returns: how many.
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

  /// The same for a `visit` that only puts timers into other lists.
  template <class Visit>
  std::size_t pour(List list, std::size_t limit, Visit&& visit) {
    return drain(list, limit, visit);
  }

  /// Says that the timer that was taken out fires.
  Timer& release(const Entry& entry) noexcept {
    entry.name->queue_ = nullptr;
    return *entry.name;
  }

  void prefetch(List) const noexcept {}

  /// Moves all of `from` to the end of `into`.
  void append(List into, List from) noexcept { lists_[into].append(lists_[from]); }

  /// Returns: the deadline of the list's only timer; empty when it has none or several.
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

  /// Stops the process unless the links agree with each other. O(lists + timers).
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

/// What a FifoTimerWheel is made of. Owns no timer: it cancels what is left when it ends.
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

/// A hierarchical timing wheel that fires equal deadlines in the order in which they were
/// scheduled. What the base class says of each operation holds; no deadline is refused.
class FifoTimerWheel : public internal::StoreQueue<internal::FifoStore> {
 public:
  explicit FifoTimerWheel(Tick now = 0) noexcept : internal::StoreQueue<internal::FifoStore>(now) {}
};

}  // namespace detent

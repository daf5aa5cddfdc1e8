// ListQueue: timers in one sorted list. It is the simplest correct queue, and the baseline for
// comparisons.
//
// The idea. The list is sorted by deadline. Due timers are at the front, so firing and the next
// wake-up are fast. The place of a new timer is searched from the back. This is fast if only a few
// timers are pending, or if all delays are equal (then its place is at the back). Otherwise it is
// slow.
//
//     struct Session : detent::ListQueue::Timer { int socket; };
//
//     detent::ListQueue queue;
//     Session session;
//     queue.schedule(session, queue.now() + 30'000);
//     queue.advance(30'000, [](detent::ListQueue::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// Cost:
//
//     schedule            O(n): one step for each pending timer with a later deadline
//     cancel              O(1)
//     next_wakeup         O(1), exact
//     advance             O(1) per timer fired; O(waiting) to sort each timer that was already due
//                         when it was scheduled
//     memory              32 bytes per timer, inside the caller's object; no allocation
//     equal deadlines     in the order of scheduling
//
// Source: scheme 2 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN
// 1997). The first UNIX kernels kept their callouts in such a list. Read next:
// internal/sorted_store.h (how timers leave the list).
#pragma once

#include "detent/check.h"
#include "detent/internal/link_list.h"
#include "detent/internal/link_pile.h"
#include "detent/internal/linked_timer.h"
#include "detent/internal/sorted_store.h"
#include "detent/internal/store_queue.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

namespace internal {

/// The order of a SortedStore that makes it a list.
struct ListOrder {
  using Timer = LinkedTimer<SortedStore<ListOrder>, ListOrder>;
  using Pile = LinkPile<ListOrder>;

  // A link is removed from every list in the same way, so places are not stored.
  static SortedPlace place_of(const Timer&) noexcept { return SortedPlace::future; }
  static void set_place(Timer&, SortedPlace) noexcept {}
  static void set_deadline(Timer& timer, Tick deadline) noexcept { timer.deadline_ = deadline; }

  static Timer& timer_of(Link& link) noexcept { return Timer::of(link); }
  static Link& link_of(Timer& timer) noexcept { return timer.link_; }

  class Sorted {
   public:
    bool empty() const noexcept { return list_.empty(); }
    Timer* first() const noexcept { return &timer_of(*list_.sentinel().next); }
    Tick first_deadline() const noexcept { return first()->deadline(); }

    // Inserts behind the last timer that is not later.
    void insert(Timer& timer) noexcept {
      Link* before = list_.sentinel().prev;
      while (before != &list_.sentinel() && timer_of(*before).deadline() > timer.deadline()) {
        before = before->prev;
      }
      insert_behind(*before, link_of(timer));
    }
    void erase(Timer& timer) noexcept { unlink(link_of(timer)); }
    template <class Visit>
    void for_each(const Visit& visit) const {
      for_each_link(list_, [&visit](Link& link) { visit(timer_of(link)); });
    }
    void check_invariants() const noexcept {
      Tick latest = 0;
      for_each([&latest](const Timer& timer) {
        DETENT_CHECK(timer.deadline() >= latest);
        latest = timer.deadline();
      });
    }

   private:
    LinkList list_;
  };
};

}  // namespace internal

/// A priority queue of timers in a list. Thread-compatible. internal/store_queue.h documents the
/// operations.
class ListQueue : public internal::StoreQueue<internal::SortedStore<internal::ListOrder>> {
 public:
  /// Makes an empty queue whose time is `now`.
  explicit ListQueue(Tick now = 0) noexcept : StoreQueue(now) {}
};

static_assert(TimerQueue<ListQueue>);

}  // namespace detent

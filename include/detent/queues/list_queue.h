// ListQueue: timers in one sorted list, the simplest queue that is right, and the yardstick.
//
// The idea. The list is kept in the order of deadlines. What is due is at the front, so firing and
// the next wake-up cost nothing; a new timer walks from the back to its place. That is quick when
// few timers are pending, or when delays are all alike (then the back is the place), and hopeless
// otherwise.
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
//     advance             O(1) a timer fired; O(waiting) for one that waited, to sort it
//     memory              32 bytes a timer, inside the user's object; no allocation
//     equal deadlines     in the order of scheduling
//
// Scheme 2 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN 1997);
// the first UNIX kernels kept their callouts so. Read next: internal/sorted_store.h (how it is
// emptied).
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

/// How a SortedStore becomes a list.
struct ListOrder {
  using Timer = LinkedTimer<SortedStore<ListOrder>, ListOrder>;
  using Pile = LinkPile<ListOrder>;

  // A link is taken out of any list alike, so nobody need know which.
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

    // Behind the last timer that is not later.
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

/// A priority queue of timers. Thread-compatible. internal/store_queue.h documents the operations.
class ListQueue : public internal::StoreQueue<internal::SortedStore<internal::ListOrder>> {
 public:
  explicit ListQueue(Tick now = 0) noexcept : StoreQueue(now) {}
};

static_assert(TimerQueue<ListQueue>);

}  // namespace detent

// HeapQueue: timers in an indexed 4-ary heap, the classic choice of event loops.
//
// The idea. A heap sorts only as much as is needed to know the first element. The array holds the
// deadlines, so comparing two timers does not touch them; each timer knows its place in the array,
// so it can be cancelled or moved at once instead of being left behind as a tombstone. It knows no
// slots: it is exact at any resolution, and the next wake-up is simply its first element.
//
//     struct Session : detent::HeapQueue::Timer { int socket; };
//
//     detent::HeapQueue queue;
//     queue.reserve(10'000);                            // optional: no allocation up to there
//     Session session;
//     queue.schedule(session, queue.now() + 30'000);
//     queue.advance(30'000, [](detent::HeapQueue::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// Cost:
//
//     schedule, cancel    O(log n); moving a pending timer is one sift, not two
//     next_wakeup         O(1), exact
//     advance             O(log n) a timer fired; a call that goes on with an unfinished pass also
//                         moves what was scheduled for at once since, O(1) each
//     memory              24 bytes a timer, inside the user's object, and 16 to 64 in the array,
//                         which doubles when full and halves when a quarter full
//     equal deadlines     in an order that is unspecified but the same in every run
//
// d-ary heaps: LaMarca and Ladner, "The influence of caches on the performance of heaps" (1996).
// Read next: internal/indexed_heap.h (the heap), internal/sorted_store.h (how it is emptied).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "detent/check.h"
#include "detent/internal/indexed_heap.h"
#include "detent/internal/sorted_store.h"
#include "detent/internal/store_queue.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

namespace internal {
struct HeapOrder;
}

/// A timer of a HeapQueue: 24 bytes. The user owns it; destroying it cancels it. Neither copyable
/// nor movable. Belongs to the queue on which it is pending, and to the thread that uses it.
class HeapTimer {
 public:
  HeapTimer() noexcept = default;
  ~HeapTimer();
  HeapTimer(const HeapTimer&) = delete;
  HeapTimer& operator=(const HeapTimer&) = delete;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending() const noexcept { return queue_ != nullptr; }

  /// Returns: the deadline it was last given; 0 before the first.
  Tick deadline() const noexcept { return deadline_; }

 private:
  friend struct internal::HeapOrder;
  friend class internal::SortedStore<internal::HeapOrder>;

  Tick deadline_ = 0;
  internal::SortedStore<internal::HeapOrder>* queue_ = nullptr;  // null: it is not pending
  std::uint32_t index_ = 0;                                      // in the array it is in
  internal::SortedPlace place_{};                                // which array that is
};

static_assert(sizeof(HeapTimer) == 24, "a timer is a deadline, its queue and its place there");

namespace internal {

/// How a SortedStore becomes a heap.
struct HeapOrder {
  using Timer = HeapTimer;

  static SortedPlace place_of(const Timer& timer) noexcept { return timer.place_; }
  static void set_place(Timer& timer, SortedPlace place) noexcept { timer.place_ = place; }
  static void set_deadline(Timer& timer, Tick deadline) noexcept { timer.deadline_ = deadline; }
  static void set_index(Timer& timer, std::size_t index) noexcept {
    DETENT_CHECK(index <= std::numeric_limits<std::uint32_t>::max());
    timer.index_ = static_cast<std::uint32_t>(index);
  }

  struct Element {
    Tick deadline;
    Timer* timer;

    bool is_before(const Element& other) const noexcept { return deadline < other.deadline; }
    void moved_to(std::size_t index) const noexcept { set_index(*timer, index); }
  };

  class Sorted {
   public:
    bool empty() const noexcept { return heap_.empty(); }
    Timer* first() const noexcept { return heap_.top().timer; }
    Tick first_deadline() const noexcept { return heap_.top().deadline; }
    void insert(Timer& timer) noexcept { heap_.push({timer.deadline_, &timer}); }
    void erase(Timer& timer) noexcept { heap_.erase(timer.index_); }
    void move(Timer& timer, Tick deadline) noexcept {
      timer.deadline_ = deadline;
      heap_.replace(timer.index_, {deadline, &timer});
    }
    void reserve(std::size_t size) { heap_.reserve(size); }
    std::size_t capacity() const noexcept { return heap_.capacity(); }

    template <class Visit>
    void for_each(const Visit& visit) const {
      for (const Element& element : heap_.elements()) visit(*element.timer);
    }
    void check_invariants() const noexcept {
      heap_.check_invariants();
      for (std::size_t i = 0; i < heap_.size(); ++i) {
        const Element& element = heap_.elements()[i];
        DETENT_CHECK(element.timer->index_ == i);
        DETENT_CHECK(element.timer->deadline_ == element.deadline);
      }
    }

   private:
    IndexedHeap<Element> heap_;
  };

  class Pile {
   public:
    bool empty() const noexcept { return timers_.empty(); }
    void push(Timer& timer) noexcept {
      set_index(timer, timers_.size());
      timers_.push_back(&timer);
    }
    Timer& pop() noexcept {
      Timer& timer = *timers_.back();
      drop_last();
      return timer;
    }
    void remove(Timer& timer) noexcept {
      timers_[timer.index_] = timers_.back();
      timers_[timer.index_]->index_ = timer.index_;
      drop_last();
    }
    void append(Pile& other, SortedPlace place) noexcept {
      for (Timer* const timer : other.timers_) {
        timer->place_ = place;
        push(*timer);
      }
      other.timers_ = std::vector<Timer*>();
    }
    template <class Visit>
    void for_each(const Visit& visit) const {
      for (Timer* const timer : timers_) visit(*timer);
    }

   private:
    // An array that is used up keeps no memory but a little.
    void drop_last() noexcept {
      constexpr std::size_t kKept = 64;
      timers_.pop_back();
      if (timers_.empty() && timers_.capacity() > kKept) timers_ = std::vector<Timer*>();
    }

    std::vector<Timer*> timers_;
  };
};

}  // namespace internal

inline HeapTimer::~HeapTimer() {
  if (queue_ != nullptr) queue_->cancel(*this);
}

/// A priority queue of timers. Thread-compatible. Scheduling may allocate; running out of memory
/// ends the process. At most 2^32 timers. internal/store_queue.h documents the operations.
class HeapQueue : public internal::StoreQueue<internal::SortedStore<internal::HeapOrder>> {
 public:
  explicit HeapQueue(Tick now = 0) noexcept : StoreQueue(now) {}

  /// Makes room for `size` timers with deadlines after now(), which is kept from then on: up to
  /// there `schedule` does not allocate for them.
  void reserve(std::size_t size) { store().future().reserve(size); }

  /// Returns: for how many such timers there is room now.
  std::size_t capacity() const noexcept { return store().future().capacity(); }
};

static_assert(TimerQueue<HeapQueue>);

}  // namespace detent

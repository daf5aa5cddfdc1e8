// HeapQueue: timers in an indexed 4-ary heap, the usual timer queue of event loops.
//
// The idea. A heap sorts only as much as it needs to know the first element. Its array holds the
// deadlines, so comparing two timers does not read the timers. Each timer knows its index in the
// array. A cancelled timer can therefore be removed immediately, instead of staying in the heap as
// a tombstone. The queue has no slots: it is exact at any resolution, and the next wake-up is the
// first element.
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
//     advance             O(log n) per timer fired; a call that continues an unfinished pass also
//                         moves timers that were scheduled as already due since then, O(1) each
//     memory              24 bytes per timer, inside the caller's object, and 16 to 64 bytes in the
//                         array, which doubles when full and halves when a quarter full
//     equal deadlines     in an unspecified order, which is the same in every run
//
// Source: d-ary heaps, LaMarca and Ladner, "The influence of caches on the performance of heaps"
// (1996). Read next: internal/indexed_heap.h (the heap), internal/sorted_store.h (how timers leave
// it).
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

/// A timer of a HeapQueue: 24 bytes. The caller owns it, and destroying it cancels it. Neither
/// copyable nor movable. Thread safety: while it is pending, only the thread that uses its queue
/// may use it.
class HeapTimer {
 public:
  HeapTimer() noexcept = default;
  ~HeapTimer();
  HeapTimer(const HeapTimer&) = delete;
  HeapTimer& operator=(const HeapTimer&) = delete;

  /// Returns true from `schedule` until the timer fires or is cancelled. Inside its own callback a
  /// timer is not pending, unless the callback scheduled it again.
  bool is_pending() const noexcept { return queue_ != nullptr; }

  /// Returns the last deadline of the timer, or 0 if it was never scheduled.
  Tick deadline() const noexcept { return deadline_; }

 private:
  friend struct internal::HeapOrder;
  friend class internal::SortedStore<internal::HeapOrder>;

  Tick deadline_ = 0;
  internal::SortedStore<internal::HeapOrder>* queue_ = nullptr;  // null: not pending
  std::uint32_t index_ = 0;                                      // index in its array
  internal::SortedPlace place_{};                                // its array
};

static_assert(sizeof(void*) != 8 || sizeof(HeapTimer) == 24,
              "a timer is a deadline, its queue and its place there");

namespace internal {

/// The order of a SortedStore that makes it a heap.
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
    // Frees a large array when it becomes empty; a small array is kept.
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

/// A priority queue of timers in a heap. Thread-compatible. Holds at most 2^32 timers. `schedule`
/// may allocate; if an allocation fails, the process ends. internal/store_queue.h documents the
/// operations.
class HeapQueue : public internal::StoreQueue<internal::SortedStore<internal::HeapOrder>> {
 public:
  /// Makes an empty queue whose time is `now`.
  explicit HeapQueue(Tick now = 0) noexcept : StoreQueue(now) {}

  /// Reserves and keeps memory for `size` timers with deadlines after now(). Scheduling them then
  /// does not allocate. O(size).
  void reserve(std::size_t size) { store().future().reserve(size); }

  /// Returns the number of such timers that fit without an allocation.
  std::size_t capacity() const noexcept { return store().future().capacity(); }
};

static_assert(TimerQueue<HeapQueue>);

}  // namespace detent

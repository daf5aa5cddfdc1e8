// TreeQueue: timers in a red-black tree, always completely sorted, without allocation.
//
// The idea. A balanced search tree always keeps all timers sorted. Therefore equal deadlines fire
// in the order of scheduling, which a heap cannot do, and the work is never done in bulk. The price
// is a longer path for each insertion, and each step reads a node elsewhere in memory.
//
//     struct Session : detent::TreeQueue::Timer { int socket; };
//
//     detent::TreeQueue queue;
//     Session session;
//     queue.schedule(session, queue.now() + 30'000);
//     queue.advance(30'000, [](detent::TreeQueue::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// Cost:
//
//     schedule            O(log n), no allocation
//     cancel              O(log n) in the worst case, O(1) on average
//     next_wakeup         O(1), exact
//     advance             O(1) on average per timer fired; O(log n) per timer that was already due
//                         when it was scheduled
//     memory              48 bytes per timer, inside the caller's object
//     equal deadlines     in the order of scheduling
//
// Source: red-black trees, Guibas and Sedgewick (1978); Cormen et al., chapter 13. Linux keeps its
// hrtimers in such a tree. Read next: internal/red_black_tree.h (the tree), internal/sorted_store.h
// (how timers leave it).
#pragma once

#include "detent/internal/link_list.h"
#include "detent/internal/link_pile.h"
#include "detent/internal/red_black_tree.h"
#include "detent/internal/sorted_store.h"
#include "detent/internal/store_queue.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

namespace internal {
struct TreeOrder;
}

/// A timer of a TreeQueue: 48 bytes. The caller owns it, and destroying it cancels it. Neither
/// copyable nor movable. Thread safety: while it is pending, only the thread that uses its queue
/// may use it.
class TreeTimer : private internal::TreeNode {
 public:
  TreeTimer() noexcept = default;
  ~TreeTimer();
  TreeTimer(const TreeTimer&) = delete;
  TreeTimer& operator=(const TreeTimer&) = delete;

  /// Returns true from `schedule` until the timer fires or is cancelled. Inside its own callback a
  /// timer is not pending, unless the callback scheduled it again.
  bool is_pending() const noexcept { return queue_ != nullptr; }

  /// Returns the last deadline of the timer, or 0 if it was never scheduled.
  Tick deadline() const noexcept { return TreeNode::deadline; }

 private:
  friend struct internal::TreeOrder;
  friend class internal::SortedStore<internal::TreeOrder>;

  internal::SortedPlace place_{};
  internal::SortedStore<internal::TreeOrder>* queue_ = nullptr;  // null: not pending
};

static_assert(sizeof(void*) != 8 || sizeof(TreeTimer) == 48,
              "a timer is three links, a deadline, two bytes, its queue");

namespace internal {

/// The order of a SortedStore that makes it a tree.
struct TreeOrder {
  using Timer = TreeTimer;
  using Pile = LinkPile<TreeOrder>;

  static SortedPlace place_of(const Timer& timer) noexcept { return timer.place_; }
  static void set_place(Timer& timer, SortedPlace place) noexcept { timer.place_ = place; }
  static void set_deadline(Timer& timer, Tick deadline) noexcept {
    node_of(timer).deadline = deadline;
  }

  static TreeNode& node_of(Timer& timer) noexcept { return timer; }
  static Timer& timer_of(Link& link) noexcept {
    return static_cast<Timer&>(static_cast<TreeNode&>(link));
  }
  static Link& link_of(Timer& timer) noexcept { return timer; }

  class Sorted {
   public:
    bool empty() const noexcept { return tree_.empty(); }
    Timer* first() const noexcept { return &timer_of(*tree_.first()); }
    Tick first_deadline() const noexcept { return tree_.first()->deadline; }
    void insert(Timer& timer) noexcept { tree_.insert(node_of(timer)); }
    void erase(Timer& timer) noexcept { tree_.erase(node_of(timer)); }
    template <class Visit>
    void for_each(const Visit& visit) const {
      tree_.for_each([&visit](TreeNode& node) { visit(timer_of(node)); });
    }
    void check_invariants() const noexcept { tree_.check_invariants(); }

   private:
    RedBlackTree tree_;
  };
};

}  // namespace internal

inline TreeTimer::~TreeTimer() {
  if (queue_ != nullptr) queue_->cancel(*this);
}

/// A priority queue of timers in a tree. Thread-compatible. internal/store_queue.h documents the
/// operations.
class TreeQueue : public internal::StoreQueue<internal::SortedStore<internal::TreeOrder>> {
 public:
  /// Makes an empty queue whose time is `now`.
  explicit TreeQueue(Tick now = 0) noexcept : StoreQueue(now) {}
};

static_assert(TimerQueue<TreeQueue>);

}  // namespace detent

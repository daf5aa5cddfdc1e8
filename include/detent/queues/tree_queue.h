// TreeQueue: timers in a red-black tree, sorted to the last one, no allocation.
//
// The idea. A balanced search tree keeps all timers in order at all times, so it can do what a heap
// can't: equal deadlines fire in the order of scheduling, and nothing is ever done in bulk. It pays
// with a longer path for each insertion, each step a node somewhere else in memory.
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
//     cancel              O(log n) at worst, O(1) on average
//     next_wakeup         O(1), exact
//     advance             O(1) on average a timer fired, O(log n) for one that waited
//     memory              48 bytes a timer, inside the user's object
//     equal deadlines     in the order of scheduling
//
// Red-black trees: Guibas and Sedgewick (1978), Cormen et al., chapter 13. Linux keeps its hrtimers
// so. Read next: internal/red_black_tree.h (the tree), internal/sorted_store.h (how it is emptied).
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

/// A timer of a TreeQueue: 48 bytes. The user owns it; destroying it cancels it. Neither copyable
/// nor movable. Belongs to the queue on which it is pending, and to the thread that uses it.
class TreeTimer : private internal::TreeNode {
 public:
  TreeTimer() noexcept = default;
  ~TreeTimer();
  TreeTimer(const TreeTimer&) = delete;
  TreeTimer& operator=(const TreeTimer&) = delete;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending() const noexcept { return queue_ != nullptr; }

  /// Returns: the deadline it was last given; 0 before the first.
  Tick deadline() const noexcept { return TreeNode::deadline; }

 private:
  friend struct internal::TreeOrder;
  friend class internal::SortedStore<internal::TreeOrder>;

  internal::SortedPlace place_{};
  internal::SortedStore<internal::TreeOrder>* queue_ = nullptr;  // null: it is not pending
};

static_assert(sizeof(TreeTimer) == 48, "a timer is three links, a deadline, two bytes, its queue");

namespace internal {

/// How a SortedStore becomes a tree.
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

/// A priority queue of timers. Thread-compatible. internal/store_queue.h documents the operations.
class TreeQueue : public internal::StoreQueue<internal::SortedStore<internal::TreeOrder>> {
 public:
  explicit TreeQueue(Tick now = 0) noexcept : StoreQueue(now) {}
};

static_assert(TimerQueue<TreeQueue>);

}  // namespace detent

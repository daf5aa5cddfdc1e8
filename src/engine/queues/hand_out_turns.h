// Decides which queue is served next, so that the backlog of one queue does not delay the others.
// There are two rings: queues with ready tasks and waiting workers, and queues with tasks for the
// deliverer.
//
// A task with its own webhook, or in a queue with a webhook, goes to the **deliverer** and never to
// workers. All other tasks go to workers. If workers and the deliverer share a limit, the side that
// took the last task is served second.
//
// A queue that is held back by a limit leaves its ring, and returns when the limit may have ended.
// A queue whose webhook does not accept messages is **held**: it leaves the deliverer's ring until
// a call says that the webhook accepts again. The cost of a release depends on the released queues,
// not on the queues that stay held.
//
// Invariants, tested by check():
//  1. A queue is in the ring of the workers if it is marked so (Queue::to_serve), and in the ring
//     of the deliverer if it is marked so (to_deliver). A queue with a held_turn is held. A limit
//     holds a queue back until its instant (serve_at). Each of these lists has a queue at most
//     once. A queue is never both in the ring of the deliverer and held.
//  2. A held queue has no task with its own webhook, and it is held under the webhook of its
//     settings.
//  3. A queue with tasks to deliver is in the ring, is held, or is held back by a limit.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "detent/tick.h"
#include "engine/queues/queue.h"

namespace detent {

class HandOutTurns {
 public:
  /// A task of the queue became ready, or a limit may have ended. Puts the queue at the end of the
  /// rings in which it can be served, unless it is already there.
  void want_serving(Queue& queue);
  /// The same for the deliverer only.
  void want_delivery(Queue& queue);

  // The workers' ring.

  bool has_to_serve() const noexcept { return !to_serve_.empty(); }
  std::size_t to_serve() const noexcept { return to_serve_.size(); }
  /// Takes the next queue out. Requires: has_to_serve().
  Queue& take_to_serve();
  /// Takes the queue out of the ring. Requires: it is in the ring.
  void take_to_serve(Queue& queue);

  // The deliverer's ring.

  std::size_t to_deliver() const noexcept { return to_deliver_.size(); }
  /// Takes the next queue out. Requires: to_deliver() > 0.
  Queue& take_to_deliver();
  /// Holds a queue that was just taken out. Requires: it has a webhook, and no task with one of its
  /// own.
  void hold(Queue& queue);
  /// Puts the held queues back at the end of the ring, except those whose webhook is in
  /// `still_held`. O(released queues + webhooks with held queues).
  void release_held(std::span<const std::string> still_held);
  /// Releases one queue, because its webhook is about to change. O(log of the held queues).
  void release(Queue& queue);

  // Queues that a limit holds back.

  /// The queue returns to its rings at `at`. Does nothing if another time is already set.
  void serve_later(Queue& queue, Tick at);
  /// Removes the time of serve_later(). The queue then returns only by a call of want_serving().
  void forget_time(Queue& queue);
  std::optional<Tick> next_time() const;
  /// Returns the queues whose time is `now` or earlier to their rings.
  void want_serving_due(Tick now);

  /// The record of the queue will be removed. The queue has no tasks to deliver.
  void forget_deliveries(Queue& queue);

  /// Stops the process if an invariant is broken for this queue, between two turns. O(queues in the
  /// rings).
  void check(const Queue& queue) const;

 private:
  using Held = std::map<std::uint64_t, Queue*>;  // by Queue::held_turn

  void let_go(Queue& queue);

  std::deque<Queue*> to_serve_;
  std::deque<Queue*> to_deliver_;
  std::map<std::string, Held> held_;  // by webhook; no entry is empty
  std::uint64_t last_held_turn_ = 0;
  std::set<std::pair<Tick, Queue*>> serve_at_;
};

}  // namespace detent

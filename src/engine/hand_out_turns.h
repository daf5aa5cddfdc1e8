// Whose turn it is to be served: queues with ready tasks and workers that wait, and queues with
// something for the deliverer, in a ring each, so that no queue's backlog holds up the others.
//
// Which of the two takes a task: one with a webhook of its own, or in a queue that has one, is for
// the **deliverer** and never for workers; any other is for workers. Under a limit that both share,
// whoever took last is served second.
//
// A queue that a limit holds back leaves its ring and comes again when the limit may have gone. One
// whose webhook takes nothing now is **held**: it leaves the deliverer's ring until somebody says
// that its webhook takes again, which costs what is released and nothing for those that stay held.
//
// Invariants, tested by check():
//  1. A queue is in the ring of the workers when it is marked so (Queue::to_serve), in that of the
//     deliverer when it is marked so (to_deliver), held when it has a number (held_turn), held back
//     by a limit until its instant (serve_at); once each, and never both in the ring of the
//     deliverer and held.
//  2. A queue that is held has no task with a webhook of its own, and is held under the webhook
//     that its settings have.
//  3. A queue with something to deliver has its turn, is held, or a limit holds it back.
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
#include "engine/queue.h"

namespace detent {

class HandOutTurns {
 public:
  /// A task of the queue is ready, or a limit may be gone: its turn comes, behind those of others
  /// that are in a ring already, as far as it has somebody to serve.
  void want_serving(Queue& queue);
  /// The same for the deliverer only.
  void want_delivery(Queue& queue);

  // The workers' ring.

  bool has_to_serve() const noexcept { return !to_serve_.empty(); }
  std::size_t to_serve() const noexcept { return to_serve_.size(); }
  /// Takes the next queue out. Requires: has_to_serve().
  Queue& take_to_serve();
  /// Takes this one out, which is in the ring.
  void take_to_serve(Queue& queue);

  // The deliverer's ring.

  std::size_t to_deliver() const noexcept { return to_deliver_.size(); }
  /// Takes the next queue out. Requires: to_deliver() > 0.
  Queue& take_to_deliver();
  /// Holds a queue that was just taken out. Requires: it has a webhook, and no task with one of its
  /// own.
  void hold(Queue& queue);
  /// Queues that are held under other webhooks than these take turns again, behind the others.
  /// O(released + webhooks under which any is held).
  void release_held(std::span<const std::string> still_held);
  /// The webhook of a queue is about to change: it is not held any more. O(log held).
  void release(Queue& queue);

  // What a limit holds back.

  /// The queue comes again at `at`, unless it does at another time already.
  void serve_later(Queue& queue, Tick at);
  /// Not at a time, but when somebody wants it.
  void forget_time(Queue& queue);
  std::optional<Tick> next_time() const;
  void want_serving_due(Tick now);

  /// The queue is about to have no record: it has nothing to deliver.
  void forget_deliveries(Queue& queue);

  /// Stops the process if an invariant is broken for this queue, between two turns. O(queues in the
  /// rings).
  void check(const Queue& queue) const;

 private:
  using Held = std::map<std::uint64_t, Queue*>;  // by Queue::held_turn

  void let_go(Queue& queue);

  std::deque<Queue*> to_serve_;
  std::deque<Queue*> to_deliver_;
  std::map<std::string, Held> held_;  // by webhook; none is empty
  std::uint64_t last_held_turn_ = 0;
  std::set<std::pair<Tick, Queue*>> serve_at_;
};

}  // namespace detent

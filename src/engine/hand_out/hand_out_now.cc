// Hand-outs without waiting for a commit, also while a commit is being written.
//
// A task can be handed out before the next commit if its stored record is current: no staged or
// in-flight write may touch it. A crash then cannot undo the task. The code uses only the functions
// of the store that are allowed during a write, so the next task must be in memory and its record
// must be readable: it chooses tasks as the turn does, but with Source::memory. All other hand-outs
// wait for the turn, and their answers wait for the commit. Only waiting workers are served here. A
// caller never gets its answer within its own call.
#include <algorithm>
#include <utility>

#include "engine/hand_out/hand_out.h"

namespace detent {

/// The queues take turns as in serve_waits().
std::size_t HandOut::serve_now(TaskTimers::Wheels have_fired) {
  if (have_fired.all()) served_at_ = parts_.time.now();
  // The tasks of a queue with its own wheel may still be in the common wheel.
  if (parts_.window.holds_hand_outs() || !have_fired[TaskTimers::kCommon]) return 0;
  std::size_t served = 0;
  for (std::size_t left = parts_.turns.to_serve(); left > 0 && served < kServeLimit; --left) {
    Queue& queue = parts_.turns.take_to_serve();
    std::size_t share = 0;
    for (std::size_t answer = 1; answer > 0 && share < kShare; share += answer) {
      answer = serve_now(queue, have_fired);
    }
    served += share;
    if (!queue.waits.empty() && queue.has_work()) {
      parts_.turns.want_serving(queue);
    } else {
      parts_.queues.forget_if_unused(queue);
    }
  }
  return served;
}

/// Serves the worker that has waited longest for a task of this queue. Exception: if the worker may
/// take all that a limit allows, and it is the deliverer's turn, the worker waits for the turn of
/// the engine, which serves the deliverer. Returns the number of tasks handed out, where a KiB of
/// payload counts as one more task.
std::size_t HandOut::serve_now(Queue& queue, TaskTimers::Wheels have_fired) {
  if (queue.waits.empty() || !queue.has_work()) return 0;
  WorkerWait& wait = *queue.waits.begin()->second;
  DETENT_CHECK(!wait.queues.empty());
  const auto has_fired = [have_fired](const Queue* of) { return have_fired[of->wheel]; };
  if (!std::ranges::all_of(wait.queues, has_fired)) return 0;
  const Result<Queue*> next = most_urgent(wait.queues, &wait, Source::memory);
  if (!next || *next == nullptr) return 0;
  Queue& from = **next;
  const bool may_take_all = parts_.tasks.allowance(from) <= wait.request.max;
  const bool is_deliverer_next =
      is_deliverers_turn_ && delivery_wait_ != nullptr && parts_.turns.to_deliver() > 0;
  if (may_take_all && is_deliverer_next) return 0;
  Result<std::vector<LeasedTask>> tasks =
      take_ready(from, from.ready, wait.request, {.source = Source::memory});
  if (!tasks || tasks->empty()) return 0;
  is_deliverers_turn_ = true;
  std::size_t served = 0;
  for (const LeasedTask& task : *tasks) {
    served += 1 + task.task.payload.data.size() / 1024;
    parts_.tasks.note_told(task.lease.number);
  }
  end_wait(wait)(std::move(tasks));
  return served;
}

}  // namespace detent

// Hand-outs without waiting for a commit, also while a commit is being written.
//
// A task can be handed out before the next commit if its stored record is current: no staged or
// in-flight write may touch it. A crash then cannot undo the task. The code uses only the functions
// of the store that are allowed during a write, so the next task must be in memory and its record
// must be readable. All other hand-outs wait for the turn, and their answers wait for the commit.
// Only waiting workers are served here. A caller never gets its answer within its own call.
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
  const auto has_fired = [have_fired](const Queue* of) { return have_fired[of->wheel]; };
  if (!std::ranges::all_of(wait.queues, has_fired)) return 0;
  Queue* const from = next_for(wait);
  if (from == nullptr) return 0;
  const bool may_take_all = parts_.tasks.allowance(*from) <= wait.request.max;
  const bool is_deliverer_next =
      is_deliverers_turn_ && delivery_wait_ != nullptr && parts_.turns.to_deliver() > 0;
  if (may_take_all && is_deliverer_next) return 0;
  std::vector<LeasedTask> tasks = take_now(*from, wait.request);
  if (tasks.empty()) return 0;
  is_deliverers_turn_ = true;
  std::size_t served = 0;
  for (const LeasedTask& task : tasks) {
    served += 1 + task.task.payload.data.size() / 1024;
    parts_.tasks.note_told(task.lease.number);
  }
  end_wait(wait)(std::move(tasks));
  return served;
}

/// The queue with the most urgent task for this worker. Null if there is no such task, or if the
/// most urgent task may be on disk.
Queue* HandOut::next_for(const WorkerWait& wait) const {
  Queue* best = nullptr;
  const LoadedTask* best_head = nullptr;
  for (Queue* const queue : wait.queues) {
    const bool is_first = queue->waits.begin()->second == &wait;
    if (!is_first || !queue->has_work() || parts_.tasks.allowance(*queue) == 0) continue;
    const ReadyTasks& ready = queue->ready;
    if (ready.in_memory.empty() || !ready.is_at_head(**ready.in_memory.begin())) return nullptr;
    const LoadedTask* const head = *ready.in_memory.begin();
    if (best_head != nullptr && !ReadyOrder()(head, best_head)) continue;
    best = queue;
    best_head = head;
  }
  return best;
}

/// Leases the first tasks in the order of the queue, up to a task with a pending change. Empty if a
/// record cannot be read: the turn sets it aside.
std::vector<LeasedTask> HandOut::take_now(Queue& queue, const LeaseRequest& request) {
  const std::size_t most = std::min({request.max, parts_.tasks.allowance(queue), share_of(queue)});
  std::vector<LoadedTask*> picked;
  for (LoadedTask* const task : queue.ready.in_memory) {
    const bool is_free = queue.ready.is_at_head(*task) && !parts_.records.is_changing(task->id());
    if (picked.size() == most || !is_free) break;
    picked.push_back(task);
  }
  if (picked.empty()) return {};
  Result<std::vector<Result<Task>>> records = parts_.records.read_all(picked);
  const auto is_sound = [](const Result<Task>& record) { return record.has_value(); };
  if (!records || !std::ranges::all_of(*records, is_sound)) return {};
  return hand_out_all(queue, picked, *std::move(records), request);
}

}  // namespace detent

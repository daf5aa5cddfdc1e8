// Leases that choose: the most urgent task of several queues, or one task by its id. And the pause
// of a queue for a time.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"

namespace detent {

using std::chrono::milliseconds;

// ---- several queues ----

/// Those that there are.
std::vector<Engine::Queue*> Engine::queues_of(const LeaseRequest& request) const {
  std::vector<Queue*> queues;
  queues.reserve(request.other_queues.size() + 1);
  const auto add = [&](const std::string& name) {
    if (const auto it = queues_.find(name); it != queues_.end()) queues.push_back(it->second.get());
  };
  add(request.queue);
  for (const std::string& name : request.other_queues) add(name);
  return queues;
}

Result<std::optional<ReadyHead>> Engine::next_ready(const LeaseRequest& request) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(request));
  serve_waits();  // who waits came first
  ASSIGN_OR_RETURN(Queue* const queue, most_urgent(queues_of(request), nullptr));
  if (queue == nullptr) return std::optional<ReadyHead>();
  ASSIGN_OR_RETURN(const LoadedTask* const head, head_of(*queue, queue->ready));
  const Place place = head->ready_place();
  return std::optional(ReadyHead{.priority = place.priority, .due_at = place.at, .id = place.id});
}

Result<std::vector<LeasedTask>> Engine::lease_most_urgent(const LeaseRequest& request) {
  const std::vector<Queue*> queues = queues_of(request);
  while (true) {
    ASSIGN_OR_RETURN(Queue* const queue, most_urgent(queues, nullptr));
    if (queue == nullptr) return std::vector<LeasedTask>{};
    Result<std::vector<LeasedTask>> tasks = take_ready(*queue, queue->ready, request);
    // Empty: what could not be read is set aside now, and what is behind it may be sound.
    if (!tasks || !tasks->empty()) return tasks;
  }
}

/// The queue with the most urgent task that may be handed out, of those where `wait` is the first
/// in line, or, for who does not wait, where nobody is; null when there is none.
Result<Engine::Queue*> Engine::most_urgent(const std::vector<Queue*>& queues, const Wait* wait) {
  Queue* best = nullptr;
  const LoadedTask* best_head = nullptr;
  for (Queue* const queue : queues) {
    const bool is_first = wait == nullptr ? !queue->to_serve : queue->waits.begin()->second == wait;
    if (!is_first || !queue->has_work() || allowance(*queue) == 0) continue;
    ASSIGN_OR_RETURN(const LoadedTask* const head, head_of(*queue, queue->ready));
    if (head == nullptr) continue;
    if (best_head == nullptr || ReadyOrder()(head, best_head)) {
      best = queue;
      best_head = head;
    }
  }
  return best;
}

/// The next of these ready tasks, in memory; null when there is none.
Result<Engine::LoadedTask*> Engine::head_of(Queue& queue, ReadyTasks& ready) {
  while (true) {
    if (!ready.in_memory.empty() && is_at_head(ready, **ready.in_memory.begin())) {
      return *ready.in_memory.begin();
    }
    if (!ready.is_spilled()) return static_cast<LoadedTask*>(nullptr);
    TRY(load_head(queue, ready));
  }
}

// ---- one task ----

Result<LeasedTask> Engine::lease_task(TaskId id, const LeaseRequest& request) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(LoadedTask* const loaded, bring_in(id));
  ASSIGN_OR_RETURN(Task task, read(*loaded));
  return hand_out(*loaded, std::move(task), request);
}

/// The task, ready and in memory.
Result<Engine::LoadedTask*> Engine::bring_in(TaskId id) {
  ASSIGN_OR_RETURN(Found found, find(id));
  if (!next_state(found.state, TaskVerb::run_now)) return not_allowed(id, found.state);
  Queue& queue = queue_of(found.stored.task.queue);
  if (queue.record.settings.webhook || !found.stored.task.webhook.empty()) {
    return Error{ErrorCode::conflict,
                 "task " + to_string(id) + " goes to a webhook: no worker takes it", "id"};
  }
  const std::optional<std::uint32_t>& concurrency = queue.record.settings.concurrency;
  if (leases_.size() >= most_leased() || (concurrency && queue.leased >= *concurrency)) {
    return Error{ErrorCode::resource_exhausted, "as many tasks are leased as may be", "queue"};
  }
  if (found.state != TaskState::ready) {
    put_now(std::move(found));
    ASSIGN_OR_RETURN(found, find(id));
  }
  return load_ready(found);
}

Engine::LoadedTask* Engine::load_ready(const Found& found) {
  if (found.loaded != nullptr) return found.loaded;
  const Place from = found.stored.place;
  const Task& task = found.stored.task;
  Queue& queue = queue_of(task.queue);
  const Place to{.lane = Lane::ready,
                 .queue = queue.ready.lane,
                 .priority = task.rules.priority,
                 .at = task.due_at,
                 .id = from.id};
  load(task, to, dated(task.due_at));
  if (from.lane != Lane::ready) stage_put(queue, from, {.place = to, .task = task});
  return find_loaded(from.id);
}

// ---- a pause ----

Result<void> Engine::pause_for(const std::string& name, milliseconds length) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(ScheduleRequest{.queue = name, .due = length}));
  Queue& queue = queue_of(name);
  if (queue.record.number == 0) note_change(queue);
  queue.pause = length;
  queue.paused_until = length > milliseconds{0} ? time_.tick_after(length) : 0;
  note_limits(queue);
  if (queue.serve_at != 0) {
    serve_at_.erase({queue.serve_at, &queue});
    queue.serve_at = 0;
  }
  want_serving(queue);
  return ok();
}

}  // namespace detent

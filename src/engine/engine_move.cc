// Verbs that give tasks another due time, or life: move, run now, redrive; and those over a whole
// queue, redrive and purge, which go through the due order in steps.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Records read, and tasks changed, in one step of a verb over a whole queue.
constexpr std::size_t kStepTasks = 1'000;
/// Before every dead task and after every live one.
constexpr DueKey kBeforeDead{kNeverDue - milliseconds{1}, TaskId{~std::uint64_t{0}}};

}  // namespace

Result<void> validate_due(const Due& due) {
  return validate(ScheduleRequest{.queue = "any", .payload = {}, .rules = {}, .due = due});
}

Error is_leased(TaskId id) {
  return Error{ErrorCode::conflict,
               "task " + to_string(id) + " is leased: complete it, or wait for its lease to end",
               "id"};
}

// ---- one task ----

Result<TaskView> Engine::move(TaskId id, const Due& due) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate_due(due));
  ASSIGN_OR_RETURN(Found found, find(id));
  if (!next_state(found.state, TaskVerb::move)) return is_leased(id);
  return put_at(std::move(found), deadline_of(due));
}

Result<TaskView> Engine::run_now(TaskId id) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Found found, find(id));
  if (!next_state(found.state, TaskVerb::run_now)) return is_leased(id);
  if (found.state == TaskState::ready) {
    return TaskView{.task = std::move(found.stored.task), .state = found.state};
  }
  return put_at(std::move(found), deadline_of(milliseconds{0}));
}

Result<TaskView> Engine::redrive(TaskId id) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Found found, find(id));
  if (!next_state(found.state, TaskVerb::redrive)) {
    return Error{ErrorCode::conflict, "task " + to_string(id) + " is not dead", "id"};
  }
  return put_at(std::move(found), deadline_of(milliseconds{0}));
}

TaskView Engine::put_at(Found found, Deadline deadline) {
  Task& task = found.stored.task;
  if (found.loaded != nullptr) unload(*found.loaded);
  if (task.dead) {
    task.dead = false;
    task.attempts = 0;
    Queue& queue = queue_of(task.queue);
    --queue.counts.dead;
    ++queue.counts.waiting;
    note_counts(queue);
  }
  task.due_at = deadline.due_at;
  TaskView view{.task = task, .state = state_on_disk(task)};
  place(std::move(task), found.stored.place, deadline);
  if (const LoadedTask* loaded = find_loaded(view.task.id)) view.state = loaded->state;
  return view;
}

// ---- a whole queue ----

Result<QueueStep> Engine::redrive(const std::string& name, std::size_t limit, QueueCursor from) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Queue* const queue, known_queue(name));
  if (queue->counts.dead == 0) return QueueStep{};
  from.after = std::max(from.after, kBeforeDead);
  const auto visit = [this](const StoredTask& stored) {
    if (!next_state(state_on_disk(stored.task), TaskVerb::redrive)) return false;
    put_at({.stored = stored, .state = TaskState::dead}, deadline_of(milliseconds{0}));
    return true;
  };
  ASSIGN_OR_RETURN(QueueStep step, sweep(*queue, limit, from, visit));
  if (queue->counts.dead == 0) step.next.reset();
  return step;
}

Result<QueueStep> Engine::purge(const std::string& name, std::size_t limit, QueueCursor from) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Queue* const queue, known_queue(name));
  const auto is_done = [queue] {
    return queue->counts.waiting == queue->leased && queue->counts.dead == 0;
  };
  if (is_done()) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) {
    LoadedTask* const loaded = find_loaded(stored.place.id);
    const TaskState state = loaded != nullptr ? loaded->state : state_on_disk(stored.task);
    if (!next_state(state, TaskVerb::purge)) return false;
    loaded != nullptr ? remove(*loaded) : remove(stored);
    ++counters_.cancelled;
    return true;
  };
  ASSIGN_OR_RETURN(QueueStep step, sweep(*queue, limit, from, visit));
  if (is_done()) step.next.reset();
  return step;
}

/// Calls `visit` with tasks of the queue after `from`, until it has changed `limit` of them or the
/// page is at its end. It returns whether it has changed the task.
template <class Visit>
Result<QueueStep> Engine::sweep(Queue& queue, std::size_t limit, QueueCursor from, Visit visit) {
  limit = std::min(limit, kStepTasks);
  if (from.last_id == TaskId{}) from.last_id = last_id_;
  ASSIGN_OR_RETURN(const DuePage page, store_.read_due(from.after, kNeverDue, kStepTasks));
  QueueStep step;
  // The page shows what this turn has changed as it was before, or not at all: that goes first.
  for (const TaskId id : staging_.tasks_of(queue.counts.queue)) {
    if (step.count == limit) {
      step.next = from;
      return step;
    }
    if (id <= from.last_id && visit(*staging_.find(id)->to)) ++step.count;
  }
  for (const StoredTask& stored : page.tasks) {
    if (step.count == limit) {
      step.next = from;
      return step;
    }
    from.after = stored.place;
    if (stored.task.queue != queue.counts.queue || stored.place.id > from.last_id) continue;
    if (staging_.find(stored.place.id) == nullptr && visit(stored)) ++step.count;
  }
  if (page.more) step.next = from;
  return step;
}

Result<Engine::Queue*> Engine::known_queue(const std::string& name) {
  const auto it = queues_.find(name);
  if (it == queues_.end() || !it->second->had_tasks) {
    return Error{ErrorCode::not_found, "there is no such queue", "queue"};
  }
  return it->second.get();
}

}  // namespace detent

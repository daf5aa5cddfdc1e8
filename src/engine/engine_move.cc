// Verbs that change the due time or other fields of tasks, or make dead tasks live: move, edit, run
// now, redrive. Also the verbs over a whole queue: redrive, purge and run now. They go through the
// lanes of the queue and the due order in steps.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// One step of a verb over a whole queue reads at most so many records, and changes at most so many
/// tasks.
constexpr std::size_t kStepTasks = 1'000;

}  // namespace

// ---- one task ----

Result<TaskSnapshot> Engine::move(TaskId id, const Due& due) { return edit(id, {.due = due}); }

Result<TaskSnapshot> Engine::edit(TaskId id, const TaskEdit& edit) {
  if (stopped_by()) return *stopped_by();
  TRY(validate(edit));
  ASSIGN_OR_RETURN(FoundTask found, tasks_.find(id));
  if (!next_state(found.state, TaskVerb::move)) return not_allowed(id, found.state);
  Task& task = found.stored.task;
  if (edit.payload) {
    Queue& queue = queues_.queue_of(task.queue);
    const std::size_t before = task.payload.data.size();
    const std::size_t after = edit.payload->data.size();
    if (after > before) TRY(check_bytes(queue, after - before));
    queue.record.bytes += after;
    queue.record.bytes -= before;
    task.payload = *edit.payload;
  }
  task.rules.priority = edit.priority.value_or(task.rules.priority);
  if (edit.webhook) task.webhook = *edit.webhook;
  if (edit.headers) task.headers = *edit.headers;
  if (edit.due) return put_at(std::move(found), time_.deadline_of(*edit.due));
  return put_changed(std::move(found));
}

Result<TaskSnapshot> Engine::run_now(TaskId id) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(FoundTask found, tasks_.find(id));
  if (!next_state(found.state, TaskVerb::run_now)) return not_allowed(id, found.state);
  if (found.state == TaskState::ready) {
    return TaskSnapshot{.task = std::move(found.stored.task), .state = found.state};
  }
  return put_now(std::move(found));
}

Result<TaskSnapshot> Engine::redrive(TaskId id) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(FoundTask found, tasks_.find(id));
  if (!next_state(found.state, TaskVerb::redrive)) {
    return Error{ErrorCode::conflict, "task " + to_string(id) + " is not dead", "id"};
  }
  return put_now(std::move(found));
}

TaskSnapshot Engine::put_now(FoundTask found) {
  ++found.stored.task.tally.redrives;
  found.stored.task.tally.delay = milliseconds{0};
  return put_at(std::move(found), time_.deadline_of(milliseconds{0}));
}

TaskSnapshot Engine::put_at(FoundTask found, Deadline deadline) {
  Task& task = found.stored.task;
  Queue& queue = queues_.queue_of(task.queue);
  if (found.loaded != nullptr) tasks_.unload(*found.loaded);
  const bool is_dead = task.standing == Standing::dead;
  news_.tell(task.id, queue, is_dead ? TaskEvent::redriven : TaskEvent::moved,
             time_.state_at(deadline));
  if (is_dead) {
    task.standing = Standing::live;
    task.attempts = 0;
    --queue.record.dead;
    ++queue.record.waiting;
  } else {
    records_.due_counts().add(task.due_at, task.created_at, -1);
  }
  task.due_at = deadline.due_at;
  const Place from = found.stored.place;
  TaskSnapshot view{.task = task};
  place(queue, std::move(task), from, deadline);
  view.state = tasks_.state_of(view.task);
  return view;
}

TaskSnapshot Engine::put_changed(FoundTask found) {
  StoredTask& stored = found.stored;
  LoadedTask* const loaded = found.loaded;
  if (stored.place.lane == Lane::ready) {
    // Priority and webhook decide the ready lane of a task and its place there. So the task goes
    // back to the due order.
    const Deadline as_before = loaded == nullptr ? time_.dated(stored.task.due_at)
                                                 : Deadline{.due_at = loaded->due_at,
                                                            .tick = time_.now(),
                                                            .follows_wall = loaded->follows_wall};
    return put_at(std::move(found), as_before);
  }
  if (loaded != nullptr) {
    const bool is_ready = loaded->state == TaskState::ready;
    if (is_ready) tasks_.leave_ready(*loaded);
    loaded->priority = stored.task.rules.priority;
    loaded->has_webhook = !stored.task.webhook.empty();
    loaded->payload_bytes = static_cast<std::uint32_t>(stored.task.payload.data.size());
    if (is_ready) tasks_.enter_ready(*loaded);
  }
  TaskSnapshot view{.task = stored.task, .state = found.state};
  const Place place = stored.place;
  Queue& queue = queues_.queue_of(stored.task.queue);
  news_.tell(stored.task.id, queue, TaskEvent::edited, found.state);
  records_.put(queue, place, std::move(stored));
  return view;
}

// ---- a whole queue ----

Result<QueueStep> Engine::redrive(const std::string& name, std::size_t limit, QueueCursor from) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  if (queue->record.dead == 0) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) -> Result<bool> {
    if (!next_state(tasks_.state_of(stored.task), TaskVerb::redrive)) return false;
    put_now({.stored = stored, .state = TaskState::dead});
    return true;
  };
  from.after = std::max(from.after, begin_of(Lane::dead, queue->record.number));
  ASSIGN_OR_RETURN(QueueStep step,
                   sweep(*queue, limit, from, end_of(Lane::dead, queue->record.number), visit));
  if (queue->record.dead == 0) step.next.reset();
  return step;
}

Result<QueueStep> Engine::purge(const std::string& name, std::size_t limit, QueueCursor from) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  const QueueRecord& record = queue->record;
  const auto is_done = [&] { return record.waiting == queue->leased && record.dead == 0; };
  if (is_done()) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) -> Result<bool> {
    LoadedTask* const loaded = tasks_.find_loaded(stored.place.id);
    const TaskState state = tasks_.state_of(stored.task);
    if (!next_state(state, TaskVerb::purge)) return false;
    TRY(loaded != nullptr ? remove(*loaded, TaskVerb::purge)
                          : remove({.stored = stored, .state = state}, TaskVerb::purge));
    ++news_.counters().cancelled;
    return true;
  };
  // First the dead lane, then the due order, then the ready lanes. A task may spill from the due
  // order to a ready lane during the purge, so the ready lanes are last.
  if (from.last_id == TaskId{}) {
    from.last_id = records_.last_id();
    from.after = begin_of(Lane::dead, record.number);
  }
  if (from.after.lane == Lane::dead && record.dead == 0) from.after = begin_of(Lane::due);
  if (from.after.lane == Lane::due &&
      record.waiting == record.in_ready_lane + record.in_webhook_lane) {
    from.after = begin_of(Lane::ready, queue->ready.lane);
  }
  const Place lane = from.after;
  ASSIGN_OR_RETURN(QueueStep step,
                   sweep(*queue, limit, from, end_of(lane.lane, lane.queue), visit));
  const auto go_on_in = [&](Lane next, std::uint32_t number = 0) {
    step.next = QueueCursor{.after = begin_of(next, number), .last_id = from.last_id};
  };
  if (!step.next && lane.lane == Lane::dead) {
    go_on_in(Lane::due);
  } else if (!step.next && lane.lane == Lane::due && record.in_ready_lane > 0) {
    go_on_in(Lane::ready, queue->ready.lane);
  } else if (!step.next && lane.queue != queue->webhooks.lane && record.in_webhook_lane > 0) {
    go_on_in(Lane::ready, queue->webhooks.lane);
  }
  if (is_done()) step.next.reset();
  return step;
}

Result<QueueStep> Engine::run_now(const std::string& name, std::size_t limit, QueueCursor from) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  if (stats_of(*queue).scheduled == 0) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) -> Result<bool> {
    if (tasks_.state_of(stored.task) != TaskState::scheduled) return false;
    put_now({.stored = stored,
             .state = TaskState::scheduled,
             .loaded = tasks_.find_loaded(stored.task.id)});
    return true;
  };
  ASSIGN_OR_RETURN(QueueStep step, sweep(*queue, limit, from, end_of(Lane::due), visit));
  if (stats_of(*queue).scheduled == 0) step.next.reset();
  return step;
}

/// Calls `visit` for tasks of the queue in one lane, at places after `from` up to `until`. Stops
/// when `visit` has changed `limit` tasks or at the end of the page. `visit` returns whether it has
/// changed the task.
template <class Visit>
Result<QueueStep> Engine::sweep(Queue& queue, std::size_t limit, QueueCursor from, Place until,
                                Visit visit) {
  limit = std::min(limit, kStepTasks);
  if (from.last_id == TaskId{}) from.last_id = records_.last_id();
  ASSIGN_OR_RETURN(const TaskPage page, store_.read(from.after, until, kStepTasks));
  tasks_.set_aside(page.damaged, until.lane == Lane::due ? nullptr : &queue);
  if (stopped_by()) return *stopped_by();
  QueueStep step;
  // The page does not show the changes of this turn, so the changed tasks are visited first.
  for (const TaskId id : records_.staged().tasks_of(queue.record.queue)) {
    if (step.count == limit) {
      step.next = from;
      return step;
    }
    if (id > from.last_id) continue;
    ASSIGN_OR_RETURN(const bool is_changed, visit(StoredTask(*records_.staged().find(id)->to)));
    if (is_changed) ++step.count;
  }
  for (const StoredTask& stored : page.tasks) {
    if (step.count == limit) {
      step.next = from;
      return step;
    }
    from.after = stored.place;
    if (stored.task.queue != queue.record.queue || stored.place.id > from.last_id) continue;
    if (records_.is_staged(stored.place.id)) continue;
    ASSIGN_OR_RETURN(const bool is_changed, visit(stored));
    if (is_changed) ++step.count;
  }
  if (page.read_to) {
    from.after = *page.read_to;
    step.next = from;
  }
  return step;
}

}  // namespace detent

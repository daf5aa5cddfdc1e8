// Calls that read tasks and change no task: lists, the first task of a queue in each state, and the
// time that a task still needs.
#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queues/queue_registry.h"
#include "engine/window/task_lister.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Records read at a time, to find the first dead task of a queue or its next task in the due
/// order.
constexpr std::size_t kFewTasks = 16;
constexpr std::size_t kStepTasks = 1'000;

Error none_in_state() {
  return Error{ErrorCode::not_found, "the queue has no task in this state", "queue"};
}

}  // namespace

Result<TaskList> Engine::list(const TaskFilter& filter, Place after, std::size_t limit) {
  if (stopped_by()) return *stopped_by();
  return TaskLister({.store = store_,
                     .time = time_,
                     .queues = queues_,
                     .records = records_,
                     .tasks = tasks_})
      .list(filter, after, limit);
}

Result<QueueDetail> Engine::queue_detail(const std::string& name) const {
  if (stopped_by()) return *stopped_by();
  const Queue* const known = queues_.find(name);
  if (known == nullptr) return no_queue(name);
  const Queue& queue = *known;
  QueueDetail detail{.accepted = queue.accepted, .urgent = queue.urgent};
  if (const Tick now = time_.now(); now < queue.paused_until) {
    detail.pause = queue.pause;
    detail.pause_left = milliseconds{queue.paused_until - now};
  }
  return detail;
}

Result<TaskSnapshot> Engine::first_ready(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  ASSIGN_OR_RETURN(LoadedTask * head, window_.head_of(*queue, queue->ready));
  ASSIGN_OR_RETURN(LoadedTask* const delivery, window_.head_of(*queue, queue->webhooks));
  if (delivery != nullptr && (head == nullptr || ReadyOrder()(delivery, head))) head = delivery;
  if (head == nullptr) return none_in_state();
  ASSIGN_OR_RETURN(Task task, tasks_.read(*head));
  return TaskSnapshot{.task = std::move(task), .state = TaskState::ready};
}

Result<TaskSnapshot> Engine::first_dead(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  if (queue->record.dead == 0) return none_in_state();
  std::optional<StoredTask> first;
  for (const TaskId id : records_.staged().tasks_of(name)) {
    const StoredTask& staged = *records_.staged().find(id)->to;
    if (staged.place.lane != Lane::dead) continue;
    if (!first || staged.place < first->place) first = staged;
  }
  const Place end = end_of(Lane::dead, queue->record.number);
  std::optional<Place> after = begin_of(Lane::dead, queue->record.number);
  while (after) {
    ASSIGN_OR_RETURN(TaskPage page, store_.read(*after, end, kFewTasks));
    after = page.read_to;
    for (StoredTask& stored : page.tasks) {
      if (records_.is_staged(stored.place.id)) continue;
      if (!first || stored.place < first->place) first = std::move(stored);
      after.reset();
      break;
    }
  }
  if (!first) return none_in_state();
  return TaskSnapshot{.task = std::move(first->task), .state = TaskState::dead};
}

Result<ScheduledStep> Engine::first_scheduled(const std::string& name, Place from) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  if (stats_of(*queue).scheduled == 0) return none_in_state();
  std::optional<StoredTask> first;
  for (const TaskId id : records_.staged().tasks_of(name)) {
    const StoredTask& staged = *records_.staged().find(id)->to;
    if (tasks_.state_of(staged.task) == TaskState::scheduled &&
        (!first || staged.place < first->place))
      first = staged;
  }
  ASSIGN_OR_RETURN(TaskPage page, store_.read(from, end_of(Lane::due), kStepTasks));
  const auto found = std::ranges::find_if(page.tasks, [&](const StoredTask& stored) {
    return stored.task.queue == name && !records_.is_staged(stored.place.id) &&
           tasks_.state_of(stored.task) == TaskState::scheduled;
  });
  const bool is_in_page = found != page.tasks.end();
  if (is_in_page && (!first || found->place < first->place)) first = std::move(*found);
  ScheduledStep step;
  if (!is_in_page && page.read_to) {
    step.next = *page.read_to;
    // A staged task within the page must be found in this step, because the next step begins behind
    // it. A staged task after the page may not be the first task of the queue.
    if (!first || first->place > step.next) return step;
  }
  if (!first) return none_in_state();
  step.found = TaskSnapshot{.task = std::move(first->task), .state = TaskState::scheduled};
  return step;
}

Result<milliseconds> Engine::time_left(TaskId id) {
  if (stopped_by()) return *stopped_by();
  if (const LoadedTask* const loaded = tasks_.find_loaded(id)) {
    if (loaded->state == TaskState::ready) return milliseconds{0};
    const Tick now = time_.now();
    return milliseconds{std::max(tasks_.timers().tick_of(*loaded), now) - now};
  }
  ASSIGN_OR_RETURN(const FoundTask found, tasks_.find(id));
  if (found.state != TaskState::scheduled) return milliseconds{0};
  return found.stored.task.due_at - time_.wall_now();
}

}  // namespace detent

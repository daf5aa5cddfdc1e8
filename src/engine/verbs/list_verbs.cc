#include "engine/verbs/list_verbs.h"

#include <algorithm>
#include <optional>
#include <utility>

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

Result<TaskList> ListVerbs::list(const TaskFilter& filter, Place after, std::size_t limit) {
  TRY(parts_.expect_working());
  return TaskLister({.store = parts_.store,
                     .time = parts_.time,
                     .queues = parts_.queues,
                     .records = parts_.records,
                     .tasks = parts_.tasks})
      .list(filter, after, limit);
}

Result<TaskPage> ListVerbs::tasks_after(TaskId after, std::size_t limit) {
  TRY(parts_.expect_working());
  return parts_.store.read_by_id(after, limit);
}

Result<TaskSnapshot> ListVerbs::first_ready(const std::string& name) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  ASSIGN_OR_RETURN(LoadedTask * head, parts_.window.head_of(*queue, queue->ready));
  ASSIGN_OR_RETURN(LoadedTask* const delivery, parts_.window.head_of(*queue, queue->webhooks));
  if (delivery != nullptr && (head == nullptr || ReadyOrder()(delivery, head))) head = delivery;
  if (head == nullptr) return none_in_state();
  ASSIGN_OR_RETURN(Task task, parts_.tasks.read(*head));
  return TaskSnapshot{.task = std::move(task), .state = TaskState::ready};
}

Result<TaskSnapshot> ListVerbs::first_dead(const std::string& name) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  if (queue->record.dead == 0) return none_in_state();
  std::optional<StoredTask> first;
  for (const TaskId id : parts_.records.staged().tasks_of(name)) {
    const StoredTask& staged = *parts_.records.staged().find(id)->to;
    if (staged.place.lane != Lane::dead) continue;
    if (!first || staged.place < first->place) first = staged;
  }
  const Place end = end_of(Lane::dead, queue->record.number);
  std::optional<Place> after = begin_of(Lane::dead, queue->record.number);
  while (after) {
    ASSIGN_OR_RETURN(TaskPage page, parts_.store.read(*after, end, kFewTasks));
    after = page.read_to;
    for (StoredTask& stored : page.tasks) {
      if (parts_.records.is_staged(stored.place.id)) continue;
      if (!first || stored.place < first->place) first = std::move(stored);
      after.reset();
      break;
    }
  }
  if (!first) return none_in_state();
  return TaskSnapshot{.task = std::move(first->task), .state = TaskState::dead};
}

Result<ScheduledStep> ListVerbs::first_scheduled(const std::string& name, Place from) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  if (queue->scheduled_count() == 0) return none_in_state();
  std::optional<StoredTask> first;
  for (const TaskId id : parts_.records.staged().tasks_of(name)) {
    const StoredTask& staged = *parts_.records.staged().find(id)->to;
    if (parts_.tasks.state_of(staged.task) == TaskState::scheduled &&
        (!first || staged.place < first->place))
      first = staged;
  }
  ASSIGN_OR_RETURN(TaskPage page, parts_.store.read(from, end_of(Lane::due), kStepTasks));
  const auto found = std::ranges::find_if(page.tasks, [&](const StoredTask& stored) {
    return stored.task.queue == name && !parts_.records.is_staged(stored.place.id) &&
           parts_.tasks.state_of(stored.task) == TaskState::scheduled;
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

Result<milliseconds> ListVerbs::time_left(TaskId id) {
  TRY(parts_.expect_working());
  if (const LoadedTask* const loaded = parts_.tasks.find_loaded(id)) {
    if (loaded->state == TaskState::ready) return milliseconds{0};
    const Tick now = parts_.time.now();
    return milliseconds{std::max(parts_.tasks.timers().tick_of(*loaded), now) - now};
  }
  ASSIGN_OR_RETURN(const FoundTask found, parts_.tasks.find(id));
  if (found.state != TaskState::scheduled) return milliseconds{0};
  return found.stored.task.due_at - parts_.time.wall_now();
}

}  // namespace detent

#include "engine/verbs/queue_verbs.h"

#include <algorithm>
#include <utility>

#include "task/lifecycle.h"
#include "task/request.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// One step of a verb over a whole queue reads at most so many records, and changes at most so many
/// tasks.
constexpr std::size_t kSweepTasks = 1'000;

}  // namespace

// ---- settings ----

Result<void> QueueVerbs::set_queue(const std::string& name, const QueueSettings& settings) {
  TRY(parts_.expect_working());
  TRY(validate(ScheduleRequest{.queue = name}));
  TRY(validate(settings));
  TRY(parts_.expect_here(name, settings.partitions, ""));
  const std::uint32_t partitions = parts_.partitions_of(name);
  if (partitions != settings.partitions && parts_.queues.known(name)) {
    return Error{
        ErrorCode::conflict,
        "the queue was created with " + std::to_string(partitions) +
            (partitions == 1 ? " partition" : " partitions") +
            ": to change the number, wait until the queue is empty, remove it and create it again",
        "partitions"};
  }
  Queue& queue = parts_.queues.queue_of(name);
  parts_.turns.release(queue);  // its webhook may have changed
  queue.record.settings = settings;
  parts_.queues.note_change(queue);
  parts_.tasks.note_limits(queue);
  parts_.turns.want_serving(queue);  // a limit may have been removed
  return ok();
}

Result<void> QueueVerbs::remove_queue(const std::string& name) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  if (queue->record.waiting + queue->record.dead > 0) {
    return Error{ErrorCode::conflict,
                 "the queue has tasks: purge it, or wait until its tasks have ended", "queue"};
  }
  parts_.turns.forget_deliveries(*queue);
  parts_.window.forget_cut(*queue);
  queue->paused_until = 0;
  parts_.turns.forget_time(*queue);
  parts_.queues.remove(*queue);
  parts_.tasks.note_limits(*queue);
  parts_.queues.forget_if_unused(*queue);
  return ok();
}

Result<void> QueueVerbs::pause_for(const std::string& name, milliseconds length) {
  TRY(parts_.expect_working());
  TRY(validate(ScheduleRequest{.queue = name, .due = length}));
  TRY(parts_.expect_here(name, ""));
  Queue& queue = parts_.queues.queue_of(name);
  if (queue.record.number == 0) parts_.queues.note_change(queue);
  queue.pause = length;
  queue.paused_until = length > milliseconds{0} ? parts_.time.tick_after(length) : 0;
  parts_.tasks.note_limits(queue);
  parts_.turns.forget_time(queue);
  parts_.turns.want_serving(queue);
  return ok();
}

// ---- all tasks of the queue ----

Result<QueueStep> QueueVerbs::redrive(const std::string& name, std::size_t limit,
                                      QueueCursor from) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  if (queue->record.dead == 0) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) -> Result<bool> {
    const TaskState state = parts_.tasks.state_of(stored.task);
    if (!next_state(state, TaskVerb::redrive)) return false;
    parts_.transitions.make_due({.stored = stored, .state = state}, TaskVerb::redrive);
    return true;
  };
  from.after = std::max(from.after, begin_of(Lane::dead, queue->record.number));
  ASSIGN_OR_RETURN(QueueStep step,
                   sweep(*queue, limit, from, end_of(Lane::dead, queue->record.number), visit));
  if (queue->record.dead == 0) step.next.reset();
  return step;
}

Result<QueueStep> QueueVerbs::purge(const std::string& name, std::size_t limit, QueueCursor from) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  const QueueRecord& record = queue->record;
  const auto is_done = [&] { return record.waiting == queue->leased && record.dead == 0; };
  if (is_done()) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) -> Result<bool> {
    LoadedTask* const loaded = parts_.tasks.find_loaded(stored.place.id);
    const TaskState state = parts_.tasks.state_of(stored.task);
    if (!next_state(state, TaskVerb::purge)) return false;
    TRY(loaded != nullptr
            ? parts_.transitions.remove(*loaded, TaskVerb::purge)
            : parts_.transitions.remove({.stored = stored, .state = state}, TaskVerb::purge));
    return true;
  };
  // First the dead lane, then the due order, then the ready lanes. A task may spill from the due
  // order to a ready lane during the purge, so the ready lanes are last.
  if (from.last_id == TaskId{}) {
    from.last_id = parts_.records.last_id();
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

Result<QueueStep> QueueVerbs::run_now(const std::string& name, std::size_t limit,
                                      QueueCursor from) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  if (queue->scheduled_count() == 0) return QueueStep{};
  const auto visit = [this](const StoredTask& stored) -> Result<bool> {
    const TaskState state = parts_.tasks.state_of(stored.task);
    if (!next_state(state, TaskVerb::run_scheduled)) return false;
    parts_.transitions.make_due(
        {.stored = stored, .state = state, .loaded = parts_.tasks.find_loaded(stored.task.id)},
        TaskVerb::run_scheduled);
    return true;
  };
  ASSIGN_OR_RETURN(QueueStep step, sweep(*queue, limit, from, end_of(Lane::due), visit));
  if (queue->scheduled_count() == 0) step.next.reset();
  return step;
}

/// Calls `visit` for tasks of the queue in one lane, at places after `from` up to `until`. Stops
/// when `visit` has changed `limit` tasks or at the end of the page. `visit` returns whether it has
/// changed the task.
template <class Visit>
Result<QueueStep> QueueVerbs::sweep(Queue& queue, std::size_t limit, QueueCursor from, Place until,
                                    Visit visit) {
  limit = std::min(limit, kSweepTasks);
  if (from.last_id == TaskId{}) from.last_id = parts_.records.last_id();
  ASSIGN_OR_RETURN(const TaskPage page, parts_.store.read(from.after, until, kSweepTasks));
  parts_.tasks.set_aside(page.damaged, until.lane == Lane::due ? nullptr : &queue);
  TRY(parts_.expect_working());
  QueueStep step;
  // The page does not show the changes of this turn, so the changed tasks are visited first.
  for (const TaskId id : parts_.records.staged().tasks_of(queue.record.queue)) {
    if (step.count == limit) {
      step.next = from;
      return step;
    }
    if (id > from.last_id) continue;
    ASSIGN_OR_RETURN(const bool is_changed,
                     visit(StoredTask(*parts_.records.staged().find(id)->to)));
    if (is_changed) ++step.count;
  }
  for (const StoredTask& stored : page.tasks) {
    if (step.count == limit) {
      step.next = from;
      return step;
    }
    from.after = stored.place;
    if (stored.task.queue != queue.record.queue || stored.place.id > from.last_id) continue;
    if (parts_.records.is_staged(stored.place.id)) continue;
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

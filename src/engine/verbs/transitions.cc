#include "engine/verbs/transitions.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "task/limits.h"
#include "task/retry.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// At most kMaxErrorBytes of `text`, not cut within a UTF-8 character.
std::string cut_error(std::string text) {
  if (text.size() <= kMaxErrorBytes) return text;
  std::size_t end = kMaxErrorBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  text.resize(end);
  return text;
}

/// What a watcher is told about the end of a lease that leaves the task live.
TaskEvent event_of(TaskVerb verb) {
  if (verb == TaskVerb::fail) return TaskEvent::failed;
  const bool is_release = verb == TaskVerb::release || verb == TaskVerb::release_later;
  return is_release ? TaskEvent::released : TaskEvent::expired;
}

}  // namespace

// ---- places ----

/// Stages a live task at its place in the due order. The task is also in memory if the place is
/// within the window. `from` is the place that it leaves (empty for a new task).
void Transitions::place(Queue& queue, Task&& task, std::optional<Place> from, Deadline deadline) {
  DETENT_CHECK(task.standing == Standing::live && task.id.value != 0);
  task.due_at = deadline.due_at;
  parts_.records.due_counts().add(task.due_at, task.created_at, +1);
  queue.had_webhooks |= !task.webhook.empty();
  const Place place{.lane = Lane::due, .at = deadline.due_at, .id = task.id};
  using enum LoadWindow::Home;
  switch (parts_.window.home_of(queue, place, task, deadline)) {
    case ready_lane:
      return parts_.window.put_in_lane(queue, from, std::move(task), deadline.tick);
    case memory:
      parts_.tasks.load(task, place, deadline);
      break;
    case due_order:
      DETENT_DCHECK(parts_.tasks.find_loaded(task.id) == nullptr);
      break;
  }
  parts_.records.put(queue, from, {.place = place, .task = std::move(task)});
}

/// Stages a dead task at its place in the dead lane of its queue.
/// A restored task died with its last attempt, not now.
void Transitions::put_dead(Queue& queue, Task&& task, std::optional<Place> from) {
  task.standing = Standing::dead;
  const WallTime died_at =
      task.history.empty() ? parts_.time.wall_now() : task.history.back().ended_at;
  const Place rest{.lane = Lane::dead, .queue = queue.record.number, .at = died_at, .id = task.id};
  ++queue.record.dead;
  parts_.records.put(queue, from, {.place = rest, .task = std::move(task)});
}

/// The state of a task with this deadline that is scheduled or ready after its verb.
TaskState Transitions::due_state(TaskState next, const Deadline& deadline) const {
  if (next == TaskState::ready || !parts_.time.has_come(deadline)) return next;
  return state_after(next, TaskVerb::become_due);
}

// ---- a new task ----

void Transitions::add(Queue& queue, Task&& task, TaskVerb verb, Deadline deadline) {
  DETENT_CHECK(queue.record.number != 0);
  const TaskState next = state_after(std::nullopt, verb);
  if (next == TaskState::dead) {
    parts_.news.tell(task.id, queue, TaskEvent::scheduled, next);
    return put_dead(queue, std::move(task), std::nullopt);
  }
  ++queue.record.waiting;
  parts_.news.tell(task.id, queue, TaskEvent::scheduled, due_state(next, deadline));
  place(queue, std::move(task), std::nullopt, deadline);
}

// ---- without a lease ----

TaskSnapshot Transitions::make_due(FoundTask found, TaskVerb verb) {
  ++found.stored.task.tally.redrives;
  found.stored.task.tally.delay = milliseconds{0};
  return reschedule(std::move(found), verb, parts_.time.deadline_of(milliseconds{0}));
}

TaskSnapshot Transitions::reschedule(FoundTask found, TaskVerb verb, Deadline deadline) {
  const TaskState next = state_after(found.state, verb);
  DETENT_CHECK(next == TaskState::scheduled || next == TaskState::ready);
  Task& task = found.stored.task;
  Queue& queue = parts_.queues.queue_of(task.queue);
  if (found.loaded != nullptr) parts_.tasks.unload(*found.loaded);
  const bool was_dead = found.state == TaskState::dead;
  parts_.news.tell(task.id, queue, was_dead ? TaskEvent::redriven : TaskEvent::moved,
                   due_state(next, deadline));
  if (was_dead) {
    DETENT_CHECK(found.loaded == nullptr && queue.record.dead > 0);
    task.standing = Standing::live;
    task.attempts = 0;
    --queue.record.dead;
    ++queue.record.waiting;
  } else {
    parts_.records.due_counts().add(task.due_at, task.created_at, -1);
  }
  task.due_at = deadline.due_at;
  const Place from = found.stored.place;
  TaskSnapshot view{.task = task};
  place(queue, std::move(task), from, deadline);
  view.state = parts_.tasks.state_of(view.task);
  return view;
}

TaskSnapshot Transitions::edit(FoundTask found) {
  const TaskState next = state_after(found.state, TaskVerb::edit);
  DETENT_CHECK(next == found.state);
  StoredTask& stored = found.stored;
  LoadedTask* const loaded = found.loaded;
  if (stored.place.lane == Lane::ready) {
    // Priority and webhook decide the ready lane of a task and its place there. So the task goes
    // back to the due order.
    const Deadline as_before = loaded == nullptr ? parts_.time.dated(stored.task.due_at)
                                                 : Deadline{.due_at = loaded->due_at,
                                                            .tick = parts_.time.now(),
                                                            .follows_wall = loaded->follows_wall};
    return reschedule(std::move(found), TaskVerb::edit, as_before);
  }
  if (loaded != nullptr) {
    const bool is_ready = loaded->state == TaskState::ready;
    if (is_ready) parts_.tasks.leave_ready(*loaded);
    loaded->priority = stored.task.rules.priority;
    loaded->has_webhook = !stored.task.webhook.empty();
    loaded->payload_bytes = static_cast<std::uint32_t>(stored.task.payload.data.size());
    if (is_ready) parts_.tasks.enter_ready(*loaded);
  }
  TaskSnapshot view{.task = stored.task, .state = next};
  const Place place = stored.place;
  Queue& queue = parts_.queues.queue_of(stored.task.queue);
  parts_.news.tell(stored.task.id, queue, TaskEvent::edited, next);
  parts_.records.put(queue, place, std::move(stored));
  return view;
}

LoadedTask* Transitions::load_ready(const FoundTask& found) {
  DETENT_CHECK(found.state == TaskState::ready);
  if (found.loaded != nullptr) return found.loaded;
  const auto& [from, task] = found.stored;
  Queue& queue = parts_.queues.queue_of(task.queue);
  const Place to = queue.ready_of(task).place_of(task, {.at = task.due_at, .id = task.id});
  parts_.tasks.load(task, to, parts_.time.dated(task.due_at));
  if (from.lane != Lane::ready) parts_.records.put(queue, from, {.place = to, .task = task});
  return parts_.tasks.find_loaded(from.id);
}

// ---- from leased ----

void Transitions::note_attempt(const Lease& lease, Task& task, std::string error) {
  ++task.attempts;
  ++task.tally.leases;
  add_attempt(task, {.started_at = lease.since,
                     .ended_at = parts_.time.wall_now(),
                     .worker = lease.worker,
                     .error = cut_error(std::move(error)),
                     .late = lease.late});
}

LeaseOutcome Transitions::fail_attempt(const Lease& lease, Task task, AttemptEnd end,
                                       const FailRequest& how) {
  LoadedTask& loaded = *lease.task;
  const QueueSettings& settings = loaded.queue->record.settings;
  note_attempt(lease, task, how.error);
  const std::uint32_t max_attempts =
      task.rules.max_attempts.value_or(settings.max_attempts.value_or(kDefaultMaxAttempts));
  if (task.attempts >= max_attempts) {
    end_lease(loaded, std::move(task), end.last);
    return LeaseOutcome::dead;
  }
  std::optional<milliseconds> delay = how.delay;
  if (!delay) {
    const Backoff backoff = task.rules.backoff.value_or(settings.backoff.value_or(Backoff{}));
    delay = std::max(retry_delay(backoff, task.attempts, rng_), how.least_delay);
  }
  end_lease(loaded, std::move(task), end.verb, *delay);
  return LeaseOutcome::done;
}

void Transitions::run_out(const Lease& lease, Task task) {
  constexpr const char* kWhy = "the lease expired";
  ++task.tally.run_outs;
  if (lease.run_out == RunOut::fails) {
    fail_attempt(lease, std::move(task), kRanOut, {.lease = {}, .delay = {}, .error = kWhy});
    return;
  }
  note_attempt(lease, task, kWhy);
  end_lease(*lease.task, std::move(task), TaskVerb::run_out_ready);
}

void Transitions::end_lease(LoadedTask& loaded, Task task, TaskVerb verb, milliseconds delay) {
  const TaskState next = state_after(loaded.state, verb);
  DETENT_CHECK(task.id == loaded.id());
  Queue& queue = *loaded.queue;
  const Place from = loaded.place;
  const Deadline as_it_was{
      .due_at = loaded.due_at, .tick = parts_.time.now(), .follows_wall = loaded.follows_wall};
  parts_.records.due_counts().add(task.due_at, task.created_at, -1);
  parts_.tasks.unload(loaded);
  if (next == TaskState::dead) {
    parts_.records.schedules().task_ended(from.id);
    DETENT_CHECK(queue.record.waiting > 0);
    --queue.record.waiting;
    parts_.news.count(queue, &TaskCounters::dead);
    parts_.news.tell(from.id, queue, TaskEvent::dead, next);
    return put_dead(queue, std::move(task), from);
  }
  DETENT_CHECK(next == TaskState::scheduled || next == TaskState::ready);
  parts_.news.tell(from.id, queue, event_of(verb), next);
  place(queue, std::move(task), from,
        next == TaskState::ready ? as_it_was : parts_.time.deadline_of(delay));
}

// ---- to completed or cancelled ----

Result<void> Transitions::remove(LoadedTask& loaded, TaskVerb verb) {
  Queue& queue = *loaded.queue;
  if (loaded.has_key || queue.record.settings.retention > milliseconds{0}) {
    ASSIGN_OR_RETURN(Task task, parts_.tasks.read(loaded));
    return remove(
        {.stored = {loaded.place, std::move(task)}, .state = loaded.state, .loaded = &loaded},
        verb);
  }
  parts_.records.uncount(queue, loaded.id(), loaded.due_at, loaded.created_at,
                         loaded.payload_bytes);
  parts_.records.erase(queue, loaded.place);
  note_end(loaded.id(), queue, state_after(loaded.state, verb));
  parts_.tasks.unload(loaded);
  return ok();
}

Result<void> Transitions::remove(FoundTask found, TaskVerb verb) {
  const TaskState end = state_after(found.state, verb);
  DETENT_CHECK(end == TaskState::completed || end == TaskState::cancelled);
  Task& task = found.stored.task;
  Queue& queue = parts_.queues.queue_of(task.queue);
  const QueueSettings& settings = queue.record.settings;
  const WallTime now = parts_.time.wall_now();
  if (!task.key.empty()) {
    TRY(parts_.records.keys().expire(queue.record.number, task.key, task.id,
                                     now + settings.key_retention));
  }
  note_end(task.id, queue, end);
  if (found.state == TaskState::dead) {
    DETENT_CHECK(queue.record.dead > 0);
    --queue.record.dead;
    DETENT_CHECK(queue.record.bytes >= task.payload.data.size());
    queue.record.bytes -= task.payload.data.size();
  } else {
    parts_.records.uncount(queue, task.id, task.due_at, task.created_at, task.payload.data.size());
  }
  if (settings.retention > milliseconds{0}) {
    task.standing = end == TaskState::completed ? Standing::completed : Standing::cancelled;
    const Place kept{.lane = Lane::ended, .at = now + settings.retention, .id = task.id};
    parts_.records.put(queue, found.stored.place, {.place = kept, .task = std::move(task)});
  } else {
    parts_.records.erase(queue, found.stored.place);
  }
  if (found.loaded != nullptr) parts_.tasks.unload(*found.loaded);
  return ok();
}

void Transitions::note_end(TaskId id, Queue& queue, TaskState end) {
  const bool is_completed = end == TaskState::completed;
  parts_.news.count(queue, is_completed ? &TaskCounters::completed : &TaskCounters::cancelled);
  parts_.news.tell(id, queue, is_completed ? TaskEvent::completed : TaskEvent::cancelled, end);
}

}  // namespace detent

#include "engine/verbs/task_verbs.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Whether a restored task is new although its id is taken. It is the same task if the fields that
/// never change are equal. A server that began with an empty store uses the same ids for other
/// tasks.
Result<bool> is_new_beside(const std::string& queue, WallTime created_at, const Task& task) {
  if (queue == task.queue && created_at == task.created_at) return false;
  return Error{ErrorCode::conflict,
               "id " + to_string(task.id) + " already belongs to another task of queue " + queue +
                   ": restore into an empty server",
               "id"};
}

Error over_quota(std::string_view what, std::uint64_t most) {
  return Error{ErrorCode::resource_exhausted,
               "the queue is full: its limit is " + std::to_string(most) + " " + std::string(what),
               "queue"};
}

}  // namespace

// ---- schedule and restore ----

Result<TaskSnapshot> TaskVerbs::schedule(ScheduleRequest request) {
  TRY(parts_.expect_working());
  TRY(validate(request));
  TRY(parts_.expect_here(request.queue, request.key));
  return accept(std::move(request));
}

Result<TaskSnapshot> TaskVerbs::accept(ScheduleRequest request) {
  Queue& queue = parts_.queues.queue_of(request.queue);
  std::optional<FoundTask> holder;  // of the key, if the request is to change it
  if (!request.key.empty() && request.on_key == OnKey::keep) {
    ASSIGN_OR_RETURN(std::optional<TaskSnapshot> first, find_by_key(request, queue));
    if (first) return *std::move(first);
  } else if (!request.key.empty()) {
    ASSIGN_OR_RETURN(holder, holder_of_key(request, queue));
    if (holder && next_state(holder->state, TaskVerb::move)) {
      return change_holder(*std::move(holder), std::move(request), queue);
    }
  }
  Result<void> allowed = expect_intake();
  if (allowed) allowed = check_quota(queue, request.payload.data.size());
  if (!allowed) {
    parts_.queues.forget_if_unused(queue);
    return std::move(allowed).error();
  }
  if (parts_.records.last_id().next().value >= TaskId::kEnd) {
    return Error{ErrorCode::resource_exhausted, "no task ids are left", ""};
  }
  parts_.records.note_id(parts_.records.last_id().next());
  parts_.queues.note_change(queue);
  if (holder) take_key_from(*std::move(holder), queue);
  queue.record.bytes += request.payload.data.size();
  ++queue.accepted;
  parts_.news.count(queue, &TaskCounters::scheduled);
  if (!request.key.empty()) {
    parts_.records.keys().put({.queue = queue.record.number,
                               .key = request.key,
                               .id = parts_.records.last_id(),
                               .content = content_hash(request),
                               .expires_at = std::nullopt});
  }
  const Deadline deadline = deadline_of(request, parts_.time.wall_now());
  Task task{.id = parts_.records.last_id(),
            .queue = std::move(request.queue),
            .payload = {},
            .rules = request.rules,
            .due_at = deadline.due_at,
            .created_at = parts_.time.wall_now(),
            .key = std::move(request.key),
            .webhook = std::move(request.webhook),
            .headers = std::move(request.headers)};
  TaskSnapshot view{.task = task};  // without the payload
  task.payload = std::move(request.payload);
  parts_.transitions.add(queue, std::move(task), TaskVerb::schedule, deadline);
  view.state = parts_.tasks.state_of(view.task);
  return view;
}

/// The record of a key that has not expired. No value if the queue is new.
Result<std::optional<KeyRecord>> TaskVerbs::record_of_key(const Queue& queue,
                                                          std::string_view key) {
  if (queue.record.number == 0) return std::optional<KeyRecord>();
  return parts_.records.keys().find(queue.record.number, key, parts_.time.wall_now());
}

Result<std::optional<TaskSnapshot>> TaskVerbs::find_by_key(const ScheduleRequest& request,
                                                           Queue& queue) {
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record, record_of_key(queue, request.key));
  if (!record) return std::optional<TaskSnapshot>();
  Result<FoundTask> found = parts_.tasks.find(record->id);
  const bool is_gone = !found && found.error().code == ErrorCode::not_found;
  // A task that was set aside as damaged leaves its key free.
  if (is_gone && !record->expires_at) return std::optional<TaskSnapshot>();
  // The key of a restored task may have no content hash.
  if (record->content != 0 && record->content != content_hash(request)) {
    return Error{ErrorCode::conflict,
                 "the key stands for task " + to_string(record->id) +
                     ", which was scheduled with other content",
                 "key"};
  }
  TaskSnapshot first{.state = TaskState::completed, .was_there = true};
  if (found) {
    first.task = std::move(found->stored.task);
    first.task.payload = {};
    first.state = found->state;
  } else if (is_gone) {
    // The task has ended and was removed, but the key still stands for it.
    first.task = {.id = record->id,
                  .queue = request.queue,
                  .payload = {},
                  .rules = request.rules,
                  .due_at = parts_.time.deadline_of(request.due).due_at,
                  .standing = Standing::completed,
                  .key = request.key};
  } else {
    return std::move(found).error();
  }
  return std::optional<TaskSnapshot>(std::move(first));
}

/// The live or dead task of the key. No value: the request makes a new task.
Result<std::optional<FoundTask>> TaskVerbs::holder_of_key(const ScheduleRequest& request,
                                                          const Queue& queue) {
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record, record_of_key(queue, request.key));
  if (!record || record->expires_at) return std::optional<FoundTask>();
  Result<FoundTask> found = parts_.tasks.find(record->id);
  // If the task is gone, it was set aside as damaged.
  if (!found && found.error().code == ErrorCode::not_found) return std::optional<FoundTask>();
  if (!found) return std::move(found).error();
  return std::optional(*std::move(found));
}

/// Replaces or postpones a task that is not leased.
Result<TaskSnapshot> TaskVerbs::change_holder(FoundTask found, ScheduleRequest request,
                                              Queue& queue) {
  Task& task = found.stored.task;
  const Deadline deadline = deadline_of(request, task.created_at);
  if (request.on_key == OnKey::replace) {
    const std::uint64_t content = content_hash(request);
    TRY(replace_payload(queue, task, std::move(request.payload)));
    task.rules = request.rules;
    task.webhook = std::move(request.webhook);
    task.headers = std::move(request.headers);
    task.attempts = 0;
    parts_.records.keys().put({.queue = queue.record.number,
                               .key = task.key,
                               .id = task.id,
                               .content = content,
                               .expires_at = std::nullopt});
  }
  TaskSnapshot view = parts_.transitions.reschedule(std::move(found), TaskVerb::move, deadline);
  view.task.payload = {};
  view.was_there = true;
  return view;
}

/// The leased task goes on without its key, which is free for a new task.
void TaskVerbs::take_key_from(FoundTask found, Queue& queue) {
  DETENT_CHECK(found.state == TaskState::leased && found.loaded != nullptr);
  found.loaded->has_key = false;
  found.stored.task.key.clear();
  const Place place = found.stored.place;
  parts_.records.put(queue, place, std::move(found.stored));
}

/// The due time that the request asks for, but at most its `max_wait` after the task was created.
Deadline TaskVerbs::deadline_of(const ScheduleRequest& request, WallTime created_at) const {
  const Deadline asked = parts_.time.deadline_of(request.due);
  if (!request.max_wait || asked.due_at <= created_at + *request.max_wait) return asked;
  return parts_.time.dated(created_at + *request.max_wait);
}

Result<void> TaskVerbs::replace_payload(Queue& queue, Task& task, Payload payload) {
  const std::size_t before = task.payload.data.size();
  const std::size_t after = payload.data.size();
  if (after > before) TRY(check_bytes(queue, after - before));
  DETENT_CHECK(queue.record.bytes >= before);
  queue.record.bytes += after;
  queue.record.bytes -= before;
  task.payload = std::move(payload);
  return ok();
}

Result<bool> TaskVerbs::restore(Task task) {
  TRY(parts_.expect_working());
  TRY(validate(task));
  if (task.standing != Standing::live && task.standing != Standing::dead) {
    return Error{ErrorCode::invalid_argument, "a task that has ended cannot be restored", "state"};
  }
  // The key is not checked, because the task of an occurrence stays on the shard of its schedule.
  if (!parts_.expect_here(task.queue, "")) {
    return wrong_shard("the id does not belong to a shard of queue " + task.queue, "id");
  }
  if (const LoadedTask* const loaded = parts_.tasks.find_loaded(task.id)) {
    return is_new_beside(loaded->queue->record.queue, loaded->created_at, task);
  }
  ASSIGN_OR_RETURN(const std::optional<StoredTask> there, parts_.records.find(task.id));
  if (there) return is_new_beside(there->task.queue, there->task.created_at, task);
  Queue& queue = parts_.queues.queue_of(task.queue);
  ASSIGN_OR_RETURN(const std::uint64_t content, claim_key(queue, task));
  parts_.queues.note_change(queue);
  queue.record.bytes += task.payload.data.size();
  if (!task.key.empty()) {
    parts_.records.keys().put({.queue = queue.record.number,
                               .key = task.key,
                               .id = task.id,
                               .content = content,
                               .expires_at = std::nullopt});
  }
  parts_.records.note_id(
      std::max(parts_.records.last_id(), task.id.on_shard(parts_.options.shard)));
  const bool is_dead = task.standing == Standing::dead;
  const Deadline deadline = parts_.time.dated(task.due_at);
  parts_.transitions.add(queue, std::move(task),
                         is_dead ? TaskVerb::restore_dead : TaskVerb::restore, deadline);
  return true;
}

/// Removes the key from a restored task if the key stands for another task. Returns the content
/// hash of the key; 0 if the original request is no longer known.
Result<std::uint64_t> TaskVerbs::claim_key(const Queue& queue, Task& task) {
  if (task.key.empty()) return std::uint64_t{0};
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> taken, record_of_key(queue, task.key));
  if (!taken) return std::uint64_t{0};
  if (taken->id == task.id) return taken->content;  // the task was set aside, and the key is left
  ASSIGN_OR_RETURN(const bool is_there, parts_.tasks.has(taken->id));
  if (is_there || taken->expires_at) task.key.clear();
  return std::uint64_t{0};
}

Result<void> TaskVerbs::expect_intake() const {
  return parts_.options.intake == nullptr ? ok() : parts_.options.intake->check();
}

Result<void> TaskVerbs::check_quota(const Queue& queue, std::size_t payload_bytes) const {
  const QueueRecord& record = queue.record;
  const std::optional<std::uint64_t>& max_tasks = record.settings.max_tasks;
  if (max_tasks && record.waiting + record.dead >= *max_tasks) {
    return over_quota("tasks", *max_tasks);
  }
  return check_bytes(queue, payload_bytes);
}

Result<void> TaskVerbs::check_bytes(const Queue& queue, std::size_t more) const {
  const std::optional<std::uint64_t>& max_bytes = queue.record.settings.max_bytes;
  if (!max_bytes || queue.record.bytes + more <= *max_bytes) return ok();
  return over_quota("bytes", *max_bytes);
}

// ---- read ----

Result<TaskSnapshot> TaskVerbs::get(TaskId id) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(FoundTask found, parts_.tasks.find(id));
  return parts_.tasks.snapshot(std::move(found.stored.task), found.stored.place, found.state);
}

Result<TaskId> TaskVerbs::id_of_key(const std::string& queue, std::string_view key) {
  TRY(parts_.expect_working());
  TRY(parts_.expect_here(queue, key));  // on another shard the key may stand for a task
  ASSIGN_OR_RETURN(const Queue* const known, parts_.queues.known(queue));
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record, record_of_key(*known, key));
  const Error no_key{ErrorCode::not_found, "no task of queue " + queue + " has this key", "key"};
  if (!record || record->expires_at) return no_key;
  const bool is_loaded = parts_.tasks.find_loaded(record->id) != nullptr;
  // If the task is gone, it was set aside as damaged.
  if (!is_loaded && !parts_.records.is_there(record->id)) return no_key;
  return record->id;
}

void TaskVerbs::read_ahead(std::span<const TaskId> ids) {
  if (!parts_.writer.stopped_by()) parts_.records.read_ahead(ids);
}

void TaskVerbs::read_ahead(const std::string& queue, std::span<const std::string> keys) {
  if (parts_.writer.stopped_by()) return;
  const Result<Queue*> known = parts_.queues.known(queue);
  if (!known) return;
  KeyIndex& index = parts_.records.keys();
  index.read_ahead((*known)->record.number, keys);
  parts_.records.read_ahead(index.tasks_ahead());
}

// ---- change and cancel ----

Result<TaskSnapshot> TaskVerbs::move(TaskId id, const Due& due) { return edit(id, {.due = due}); }

Result<TaskSnapshot> TaskVerbs::edit(TaskId id, const TaskEdit& edit) {
  TRY(parts_.expect_working());
  TRY(validate(edit));
  ASSIGN_OR_RETURN(FoundTask found, parts_.tasks.find(id));
  const TaskVerb verb = edit.due ? TaskVerb::move : TaskVerb::edit;
  if (!next_state(found.state, verb)) return not_allowed(id, found.state);
  Task& task = found.stored.task;
  if (edit.payload) {
    TRY(replace_payload(parts_.queues.queue_of(task.queue), task, *edit.payload));
  }
  task.rules.priority = edit.priority.value_or(task.rules.priority);
  if (edit.webhook) task.webhook = *edit.webhook;
  if (edit.headers) task.headers = *edit.headers;
  if (!edit.due) return parts_.transitions.edit(std::move(found));
  return parts_.transitions.reschedule(std::move(found), verb, parts_.time.deadline_of(*edit.due));
}

Result<TaskSnapshot> TaskVerbs::run_now(TaskId id) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(FoundTask found, parts_.tasks.find(id));
  const std::optional<TaskState> next = next_state(found.state, TaskVerb::run_now);
  if (!next) return not_allowed(id, found.state);
  if (*next == found.state)
    return TaskSnapshot{.task = std::move(found.stored.task), .state = *next};
  return parts_.transitions.make_due(std::move(found), TaskVerb::run_now);
}

Result<TaskSnapshot> TaskVerbs::redrive(TaskId id) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(FoundTask found, parts_.tasks.find(id));
  if (!next_state(found.state, TaskVerb::redrive)) {
    return Error{ErrorCode::conflict, "task " + to_string(id) + " is not dead", "id"};
  }
  return parts_.transitions.make_due(std::move(found), TaskVerb::redrive);
}

Result<void> TaskVerbs::cancel(TaskId id) {
  TRY(parts_.expect_working());
  if (LoadedTask* loaded = parts_.tasks.find_loaded(id)) {
    if (!next_state(loaded->state, TaskVerb::cancel)) return not_allowed(id, loaded->state);
    TRY(parts_.transitions.remove(*loaded, TaskVerb::cancel));
  } else {
    ASSIGN_OR_RETURN(FoundTask found, parts_.tasks.find(id));
    if (!next_state(found.state, TaskVerb::cancel)) return not_allowed(id, found.state);
    TRY(parts_.transitions.remove(std::move(found), TaskVerb::cancel));
  }
  return ok();
}

}  // namespace detent

// Opening an engine, and the verbs that schedule, restore, read and cancel tasks. hand_out.cc
// chooses the worker of each task. engine_turn.cc has the steps of a turn. Each of the other
// engine_*.cc has the verbs of one theme.
#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "task/lifecycle.h"
#include "task/request.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// The ids skipped at a start, if commits are not synced immediately. This is more than the ids
/// used between two syncs. So if a power cut undoes the creation of tasks, their ids are not used
/// again.
constexpr std::uint64_t kIdsUnsynced = std::uint64_t{1} << 26;

/// The most tasks that may be leased at a time, if memory holds `max_loaded` tasks.
constexpr std::size_t most_leased(std::size_t max_loaded) noexcept {
  return std::max<std::size_t>(1, max_loaded * kLeasedParts / kMemoryParts);
}
/// A queue is a crowd if it has at least this number of tasks in memory. A wheel moves so many
/// timers in less than 0.1 ms. If the memory is small, the number is an eighth of its tasks.
constexpr std::size_t crowd_of(std::size_t max_loaded) noexcept {
  return std::clamp<std::size_t>(max_loaded / kMemoryParts, 1, 8'192);
}

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

}  // namespace

// ---- open ----

Engine::Engine(Store& store, Clock& clock, EngineOptions options)
    : store_(store),
      clock_(clock),
      options_(options),
      time_(clock),
      queues_(store.last_queue_number()),
      news_(time_, options.changes),
      lateness_(clock, time_),
      writer_(store, clock, options.sync_interval),
      records_(store, queues_, news_, writer_, store.last_id().on_shard(options.shard)),
      tasks_({.clock = clock,
              .time = time_,
              .queues = queues_,
              .turns = turns_,
              .news = news_,
              .lateness = lateness_,
              .records = records_},
             most_leased(options.max_loaded), crowd_of(options.max_loaded)),
      window_({.clock = clock,
               .time = time_,
               .store = store,
               .writer = writer_,
               .queues = queues_,
               .turns = turns_,
               .records = records_,
               .tasks = tasks_},
              options.window, options.max_loaded),
      hand_out_({.time = time_,
                 .writer = writer_,
                 .queues = queues_,
                 .turns = turns_,
                 .news = news_,
                 .lateness = lateness_,
                 .records = records_,
                 .tasks = tasks_,
                 .window = window_,
                 .answers = answers_},
                options.shard),
      rng_(options.seed) {
  DETENT_CHECK(options.max_loaded > 0);
  writer_.write_beside([this] { return has_waits() && is_due_soon(); },
                       [this](Doorbell& written) { hand_out_until(written); });
  DETENT_CHECK(options.shard < std::uint64_t{1} << TaskId::kShardBits);
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(Store& store, Clock& clock, EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(store, clock, options));
  TRY(engine->recover());
  return engine;
}

Result<void> Engine::recover() {
  ASSIGN_OR_RETURN(epoch_, store_.begin_epoch());
  hand_out_.begin(epoch_);
  if (options_.sync_interval > milliseconds{0}) {
    records_.note_id(TaskId{records_.last_id().value + (kIdsUnsynced << TaskId::kShardBits)});
    // This is stored before an id is used, because a power cut may come before the first sync.
    TRY(store_.write({.last_id = records_.last_id()}, Durability::synced));
  }
  ASSIGN_OR_RETURN(const std::vector<QueueRecord> records, store_.queues());
  for (const QueueRecord& record : records) {
    Queue& queue = queues_.restore(record);
    tasks_.note_limits(queue);
    turns_.want_delivery(queue);
  }
  ASSIGN_OR_RETURN(const std::vector<DueCount> due_counts, store_.due_counts());
  records_.due_counts().restore(due_counts);
  ASSIGN_OR_RETURN(std::vector<ScheduleRecord> schedules, store_.schedules());
  records_.schedules().restore(std::move(schedules));
  records_.schedules().clock_stepped(time_.wall_now());
  next_refresh_ = time_.now() + kRefreshTicks;
  next_forget_ = time_.now() + kForgetTicks;
  TRY(window_.open());
  if (options_.keep_leases) TRY(take_up_leases());
  return ok();
}

// ---- schedule, get, cancel ----

Result<TaskSnapshot> Engine::schedule(ScheduleRequest request) {
  if (stopped_by()) return *stopped_by();
  TRY(validate(request));
  TRY(expect_here(request.queue, request.key));
  return accept(std::move(request));
}

Result<TaskSnapshot> Engine::accept(ScheduleRequest request) {
  Queue& queue = queues_.queue_of(request.queue);
  if (!request.key.empty()) {
    ASSIGN_OR_RETURN(std::optional<TaskSnapshot> first, find_by_key(request, queue));
    if (first) return *std::move(first);
  }
  if (Result<void> allowed = check_quota(queue, request.payload.data.size()); !allowed) {
    queues_.forget_if_unused(queue);
    return std::move(allowed).error();
  }
  if (records_.last_id().next().value >= TaskId::kEnd) {
    return Error{ErrorCode::resource_exhausted, "no task ids are left", ""};
  }
  records_.note_id(records_.last_id().next());
  queues_.note_change(queue);
  ++queue.record.waiting;
  queue.record.bytes += request.payload.data.size();
  ++queue.accepted;
  ++news_.counters().scheduled;
  if (!request.key.empty()) {
    records_.keys().put({.queue = queue.record.number,
                         .key = request.key,
                         .id = records_.last_id(),
                         .content = content_hash(request),
                         .expires_at = std::nullopt});
  }
  const Deadline deadline = time_.deadline_of(request.due);
  Task task{.id = records_.last_id(),
            .queue = std::move(request.queue),
            .payload = {},
            .rules = request.rules,
            .due_at = deadline.due_at,
            .created_at = time_.wall_now(),
            .key = std::move(request.key),
            .webhook = std::move(request.webhook),
            .headers = std::move(request.headers)};
  TaskSnapshot view{.task = task};  // without the payload
  task.payload = std::move(request.payload);
  news_.tell(view.task.id, queue, TaskEvent::scheduled, time_.state_at(deadline));
  place(queue, std::move(task), std::nullopt, deadline);
  view.state = tasks_.state_of(view.task);
  return view;
}

Result<std::optional<TaskSnapshot>> Engine::find_by_key(const ScheduleRequest& request,
                                                        Queue& queue) {
  if (queue.record.number == 0) return std::optional<TaskSnapshot>();
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record,
                   records_.keys().find(queue.record.number, request.key, time_.wall_now()));
  if (!record) return std::optional<TaskSnapshot>();
  Result<FoundTask> found = tasks_.find(record->id);
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
                  .due_at = time_.deadline_of(request.due).due_at,
                  .standing = Standing::completed,
                  .key = request.key};
  } else {
    return std::move(found).error();
  }
  return std::optional<TaskSnapshot>(std::move(first));
}

Result<bool> Engine::restore(Task task) {
  if (stopped_by()) return *stopped_by();
  TRY(validate(task));
  if (task.standing != Standing::live && task.standing != Standing::dead) {
    return Error{ErrorCode::invalid_argument, "a task that has ended cannot be restored", "state"};
  }
  // The key is not checked, because the task of an occurrence stays on the shard of its schedule.
  if (!expect_here(task.queue, "")) {
    return wrong_shard("the id does not belong to a shard of queue " + task.queue, "id");
  }
  if (const LoadedTask* const loaded = tasks_.find_loaded(task.id)) {
    return is_new_beside(loaded->queue->record.queue, loaded->created_at, task);
  }
  ASSIGN_OR_RETURN(const std::optional<StoredTask> there, records_.find(task.id));
  if (there) return is_new_beside(there->task.queue, there->task.created_at, task);
  Queue& queue = queues_.queue_of(task.queue);
  ASSIGN_OR_RETURN(const std::uint64_t content, claim_key(queue, task));
  queues_.note_change(queue);
  queue.record.bytes += task.payload.data.size();
  if (!task.key.empty()) {
    records_.keys().put({.queue = queue.record.number,
                         .key = task.key,
                         .id = task.id,
                         .content = content,
                         .expires_at = std::nullopt});
  }
  records_.note_id(std::max(records_.last_id(), task.id.on_shard(options_.shard)));
  if (task.standing == Standing::dead) {
    ++queue.record.dead;
    const Place rest{
        .lane = Lane::dead, .queue = queue.record.number, .at = time_.wall_now(), .id = task.id};
    news_.tell(task.id, queue, TaskEvent::scheduled, TaskState::dead);
    records_.put(queue, std::nullopt, {.place = rest, .task = std::move(task)});
  } else {
    ++queue.record.waiting;
    const Deadline deadline = time_.dated(task.due_at);
    news_.tell(task.id, queue, TaskEvent::scheduled, time_.state_at(deadline));
    place(queue, std::move(task), std::nullopt, deadline);
  }
  return true;
}

/// Removes the key from a restored task if the key stands for another task. Returns the content
/// hash of the key; 0 if the original request is no longer known.
Result<std::uint64_t> Engine::claim_key(const Queue& queue, Task& task) {
  if (task.key.empty() || queue.record.number == 0) return std::uint64_t{0};
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> taken,
                   records_.keys().find(queue.record.number, task.key, time_.wall_now()));
  if (!taken) return std::uint64_t{0};
  if (taken->id == task.id) return taken->content;  // the task was set aside, and the key is left
  ASSIGN_OR_RETURN(const bool is_there, is_here(taken->id));
  if (is_there || taken->expires_at) task.key.clear();
  return std::uint64_t{0};
}

Result<TaskSnapshot> Engine::get(TaskId id) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(FoundTask found, tasks_.find(id));
  TaskSnapshot view{.task = std::move(found.stored.task), .state = found.state};
  if (found.state == TaskState::leased) {
    const Lease& lease = tasks_.leases().at(found.loaded->lease);
    view.holder = LeaseHolder{.since = lease.since, .worker = lease.worker, .late = lease.late};
  }
  return view;
}

Result<TaskId> Engine::id_of_key(const std::string& queue, std::string_view key) {
  if (stopped_by()) return *stopped_by();
  TRY(expect_here(queue, key));  // on another shard the key may stand for a task
  ASSIGN_OR_RETURN(const Queue* const known, queues_.known(queue));
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record,
                   records_.keys().find(known->record.number, key, time_.wall_now()));
  const Error no_key{ErrorCode::not_found, "no task of queue " + queue + " has this key", "key"};
  if (!record || record->expires_at) return no_key;
  const bool is_loaded = tasks_.find_loaded(record->id) != nullptr;
  // If the task is gone, it was set aside as damaged.
  if (!is_loaded && !records_.is_there(record->id)) return no_key;
  return record->id;
}

void Engine::read_ahead(std::span<const TaskId> ids) {
  if (!stopped_by()) records_.read_ahead(ids);
}

void Engine::read_ahead(const std::string& queue, std::span<const std::string> keys) {
  if (stopped_by()) return;
  const Result<Queue*> known = queues_.known(queue);
  if (!known) return;
  KeyIndex& index = records_.keys();
  index.read_ahead((*known)->record.number, keys);
  records_.read_ahead(index.tasks_ahead());
}

Result<void> Engine::cancel(TaskId id) {
  if (stopped_by()) return *stopped_by();
  if (LoadedTask* loaded = tasks_.find_loaded(id)) {
    if (!next_state(loaded->state, TaskVerb::cancel)) return not_allowed(id, loaded->state);
    TRY(remove(*loaded, TaskVerb::cancel));
  } else {
    ASSIGN_OR_RETURN(FoundTask found, tasks_.find(id));
    if (!next_state(found.state, TaskVerb::cancel)) return not_allowed(id, found.state);
    TRY(remove(std::move(found), TaskVerb::cancel));
  }
  ++news_.counters().cancelled;
  return ok();
}

// ---- steps of the verbs ----

void Engine::place(Queue& queue, Task task, std::optional<Place> from, Deadline deadline) {
  task.due_at = deadline.due_at;
  records_.due_counts().add(task.due_at, task.created_at, +1);
  queue.had_webhooks |= !task.webhook.empty();
  const Place place{.lane = Lane::due, .at = deadline.due_at, .id = task.id};
  using enum LoadWindow::Home;
  switch (window_.home_of(queue, place, task, deadline)) {
    case ready_lane:
      return window_.put_in_lane(queue, from, std::move(task), deadline.tick);
    case memory:
      tasks_.load(task, place, deadline);
      break;
    case due_order:
      break;
  }
  records_.put(queue, from, {.place = place, .task = std::move(task)});
}

Result<void> Engine::remove(LoadedTask& loaded, TaskVerb verb) {
  Queue& queue = *loaded.queue;
  if (loaded.has_key || queue.record.settings.retention > milliseconds{0}) {
    ASSIGN_OR_RETURN(Task task, tasks_.read(loaded));
    return remove(
        {.stored = {loaded.place, std::move(task)}, .state = loaded.state, .loaded = &loaded},
        verb);
  }
  records_.uncount(queue, loaded.id(), loaded.due_at, loaded.created_at, loaded.payload_bytes);
  records_.erase(queue, loaded.place);
  tell_end(loaded.id(), queue, state_after(loaded.state, verb));
  tasks_.unload(loaded);
  return ok();
}

Result<void> Engine::remove(FoundTask found, TaskVerb verb) {
  const TaskState end = state_after(found.state, verb);
  Task& task = found.stored.task;
  Queue& queue = queues_.queue_of(task.queue);
  const QueueSettings& settings = queue.record.settings;
  const WallTime now = time_.wall_now();
  if (!task.key.empty()) {
    TRY(records_.keys().expire(queue.record.number, task.key, task.id,
                               now + settings.key_retention));
  }
  tell_end(task.id, queue, end);
  if (task.standing == Standing::dead) {
    --queue.record.dead;
    queue.record.bytes -= task.payload.data.size();
  } else {
    records_.uncount(queue, task.id, task.due_at, task.created_at, task.payload.data.size());
  }
  if (settings.retention > milliseconds{0}) {
    task.standing = end == TaskState::completed ? Standing::completed : Standing::cancelled;
    const Place kept{.lane = Lane::ended, .at = now + settings.retention, .id = task.id};
    records_.put(queue, found.stored.place, {.place = kept, .task = std::move(task)});
  } else {
    records_.erase(queue, found.stored.place);
  }
  if (found.loaded != nullptr) tasks_.unload(*found.loaded);
  return ok();
}

void Engine::tell_end(TaskId id, const Queue& queue, TaskState end) {
  const bool is_completed = end == TaskState::completed;
  news_.tell(id, queue, is_completed ? TaskEvent::completed : TaskEvent::cancelled, end);
}

// ---- lease ----

Result<std::vector<LeasedTask>> Engine::lease(const LeaseRequest& request) {
  return hand_out_.lease(request);
}

Result<std::optional<ReadyHead>> Engine::next_ready(const LeaseRequest& request) {
  return hand_out_.next_ready(request);
}

WaitId Engine::lease_or_wait(const LeaseRequest& request, milliseconds wait, LeaseDone done) {
  return hand_out_.lease_or_wait(request, wait, std::move(done));
}

void Engine::abandon_wait(WaitId id) { hand_out_.abandon_wait(id); }

void Engine::end_waits() { hand_out_.end_waits(); }

Result<void> Engine::expect_going_on() const {
  if (!hand_out_.have_waits_ended()) return ok();
  return Error{ErrorCode::unavailable, "the server is stopping", ""};
}

Result<std::vector<Delivery>> Engine::lease_deliveries(const DeliveryRequest& request,
                                                       const HeldWebhooks& held) {
  return hand_out_.lease_deliveries(request, held);
}

void Engine::lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                      DeliveriesDone done) {
  hand_out_.lease_deliveries_or_wait(request, held, std::move(done));
}

}  // namespace detent

// Scheduling, reading, cancelling and leasing. The other verbs are in engine_lease.cc,
// engine_move.cc and engine_queue.cc; how tasks lie in memory and in the store is in
// engine_tasks.cc, what happens by itself as time passes in engine_turn.cc and engine_window.cc.
#include "engine/engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "detent/check.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"
#include "task/retry.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Most payload bytes in one answer to a lease, so that an answer stays within a few HTTP buffers.
constexpr std::size_t kMaxLeaseBytes = 16 * 1024 * 1024;

}  // namespace

// ---- schedule, get, cancel ----

Result<TaskSnapshot> Engine::schedule(ScheduleRequest request) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(request));
  Queue& queue = queue_of(request.queue);
  if (!request.key.empty()) {
    ASSIGN_OR_RETURN(std::optional<TaskSnapshot> first, find_by_key(request, queue));
    if (first) return *std::move(first);
  }
  if (Result<void> allowed = check_quota(queue, request.payload.data.size()); !allowed) {
    forget_if_unused(queue);
    return std::move(allowed).error();
  }
  if (last_id_.next().value >= TaskId::kEnd) {
    return Error{ErrorCode::resource_exhausted, "every id has been given out", ""};
  }
  last_id_ = last_id_.next();
  note_change(queue);
  ++queue.record.waiting;
  queue.record.bytes += request.payload.data.size();
  ++queue.accepted;
  ++counters_.scheduled;
  if (!request.key.empty()) {
    keys_.put({.queue = queue.record.number,
               .key = request.key,
               .id = last_id_,
               .content = content_hash(request),
               .expires_at = std::nullopt});
  }
  const Deadline deadline = deadline_of(request.due);
  Task task{.id = last_id_,
            .queue = std::move(request.queue),
            .payload = std::move(request.payload),
            .rules = request.rules,
            .due_at = deadline.due_at,
            .created_at = time_.wall_now(),
            .key = std::move(request.key),
            .webhook = std::move(request.webhook),
            .headers = std::move(request.headers)};
  TaskSnapshot view{.task = {.id = task.id,
                             .queue = task.queue,
                             .payload = {},
                             .rules = task.rules,
                             .due_at = task.due_at,
                             .created_at = task.created_at,
                             .key = task.key,
                             .webhook = task.webhook,
                             .headers = task.headers}};
  tell(view.task.id, queue, TaskEvent::scheduled, state_at(deadline));
  place(queue, std::move(task), std::nullopt, deadline);
  const LoadedTask* const loaded = find_loaded(view.task.id);
  view.state = loaded != nullptr ? loaded->state : state_on_disk(view.task);
  return view;
}

Result<std::optional<TaskSnapshot>> Engine::find_by_key(const ScheduleRequest& request,
                                                        Queue& queue) {
  if (queue.record.number == 0) return std::optional<TaskSnapshot>();
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record,
                   keys_.find(queue.record.number, request.key, time_.wall_now()));
  if (!record) return std::optional<TaskSnapshot>();
  Result<Found> found = find(record->id);
  const bool is_gone = !found && found.error().code == ErrorCode::not_found;
  // One that was set aside as damaged leaves its key free.
  if (is_gone && !record->expires_at) return std::optional<TaskSnapshot>();
  // A restored task's key has no content: nobody knows any more what was asked.
  if (record->content != 0 && record->content != content_hash(request)) {
    return Error{ErrorCode::conflict,
                 "the key stands for task " + to_string(record->id) +
                     ", which was scheduled with another content",
                 "key"};
  }
  TaskSnapshot first{.state = TaskState::completed, .was_there = true};
  if (found) {
    first.task = std::move(found->stored.task);
    first.task.payload = {};
    first.state = found->state;
  } else if (is_gone) {
    // It has ended and was not kept; the key still stands for it.
    first.task = {.id = record->id,
                  .queue = request.queue,
                  .payload = {},
                  .rules = request.rules,
                  .due_at = deadline_of(request.due).due_at,
                  .standing = Standing::completed,
                  .key = request.key};
  } else {
    return std::move(found).error();
  }
  return std::optional<TaskSnapshot>(std::move(first));
}

Result<bool> Engine::restore(Task task) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(task));
  if (task.standing != Standing::live && task.standing != Standing::dead) {
    return Error{ErrorCode::invalid_argument, "a task that has ended is not restored", "state"};
  }
  if (find_loaded(task.id) != nullptr) return false;
  ASSIGN_OR_RETURN(const std::optional<StoredTask> there, find_stored(task.id));
  if (there) return false;
  Queue& queue = queue_of(task.queue);
  if (!task.key.empty() && queue.record.number != 0) {
    ASSIGN_OR_RETURN(const std::optional<KeyRecord> taken,
                     keys_.find(queue.record.number, task.key, time_.wall_now()));
    if (taken) task.key.clear();
  }
  note_change(queue);
  queue.record.bytes += task.payload.data.size();
  if (!task.key.empty()) {
    keys_.put({.queue = queue.record.number,
               .key = task.key,
               .id = task.id,
               .content = 0,
               .expires_at = std::nullopt});
  }
  last_id_ = std::max(last_id_, task.id.on_shard(options_.shard));
  if (task.standing == Standing::dead) {
    ++queue.record.dead;
    const Place rest{
        .lane = Lane::dead, .queue = queue.record.number, .at = time_.wall_now(), .id = task.id};
    tell(task.id, queue, TaskEvent::scheduled, TaskState::dead);
    stage_put(queue, std::nullopt, {.place = rest, .task = std::move(task)});
  } else {
    ++queue.record.waiting;
    const Deadline deadline = dated(task.due_at);
    tell(task.id, queue, TaskEvent::scheduled, state_at(deadline));
    place(queue, std::move(task), std::nullopt, deadline);
  }
  return true;
}

Result<TaskSnapshot> Engine::get(TaskId id) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Found found, find(id));
  TaskSnapshot view{.task = std::move(found.stored.task), .state = found.state};
  if (found.state == TaskState::leased) {
    const Lease& lease = leases_.at(found.loaded->lease);
    view.holder = LeaseHolder{.since = lease.since, .worker = lease.worker, .late = lease.late};
  }
  return view;
}

Result<TaskId> Engine::id_of_key(const std::string& queue, std::string_view key) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(const Queue* const known, known_queue(queue));
  ASSIGN_OR_RETURN(const std::optional<KeyRecord> record,
                   keys_.find(known->record.number, key, time_.wall_now()));
  const Error no_key{ErrorCode::not_found, "the key stands for no task of this queue", "key"};
  if (!record || record->expires_at) return no_key;
  const Result<Found> found = find(record->id);  // it may have been set aside as damaged
  if (!found && found.error().code == ErrorCode::not_found) return no_key;
  return record->id;
}

Result<void> Engine::cancel(TaskId id) {
  if (stopped_by_) return *stopped_by_;
  if (LoadedTask* loaded = find_loaded(id)) {
    if (!next_state(loaded->state, TaskVerb::cancel)) return not_allowed(id, loaded->state);
    TRY(remove(*loaded, End::cancelled));
  } else {
    ASSIGN_OR_RETURN(Found found, find(id));
    if (!next_state(found.state, TaskVerb::cancel)) return not_allowed(id, found.state);
    TRY(remove(std::move(found), End::cancelled));
  }
  ++counters_.cancelled;
  return ok();
}

// ---- lease ----

Result<std::vector<LeasedTask>> Engine::lease(const LeaseRequest& request) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(request));
  serve_waits_before(request);
  if (!request.other_queues.empty()) return lease_most_urgent(request);
  return lease_from(request.queue, request);
}

Result<std::vector<LeasedTask>> Engine::lease_from(const std::string& name,
                                                   const LeaseRequest& request) {
  const auto it = queues_.find(name);
  if (it == queues_.end()) return std::vector<LeasedTask>{};
  Queue& queue = *it->second;
  if (queue.to_serve) return std::vector<LeasedTask>{};  // and comes first in the next turn, too
  if (!queue.has_work()) return std::vector<LeasedTask>{};
  Result<std::vector<LeasedTask>> tasks = take_ready(queue, queue.ready, request);
  // What could not be read is set aside now: what is behind it may be sound.
  while (tasks && tasks->empty() && allowance(queue) > 0 && queue.has_work()) {
    tasks = take_ready(queue, queue.ready, request);
  }
  return tasks;
}

Engine::WaitId Engine::lease_or_wait(const LeaseRequest& request, milliseconds wait,
                                     LeaseDone done) {
  const WaitId id = ++last_wait_;
  Result<std::vector<LeasedTask>> ready = lease(request);
  if (!ready || !ready->empty() || wait <= milliseconds{0} || waits_ended_) {
    answer_after_commit(std::move(done), std::move(ready));
    return id;
  }
  Wait& parked = waits_.emplace();
  parked.id = id;
  parked.queues.push_back(&queue_of(request.queue));
  for (const std::string& name : request.other_queues) parked.queues.push_back(&queue_of(name));
  parked.request = request;
  parked.done = std::move(done);
  waits_by_id_.emplace(id, &parked);
  wait_wheel_.schedule(parked.index, time_.tick_after(wait));
  for (Queue* const queue : parked.queues) {
    queue->waits.emplace(id, &parked);
    want_serving(*queue);  // what is ready may be held back by a limit
  }
  return id;
}

void Engine::abandon_wait(WaitId id) {
  const auto it = waits_by_id_.find(id);
  if (it == waits_by_id_.end()) return;
  finish_wait(*it->second, std::vector<LeasedTask>{});
}

void Engine::end_waits() {
  waits_ended_ = true;
  end_delivery_wait(std::vector<Delivery>{});
  waits_.for_each([this](Wait& wait) { finish_wait(wait, std::vector<LeasedTask>{}); });
}

/// Hands out some of these, and none that comes after `until` if that is given.
Result<std::vector<LeasedTask>> Engine::take_ready(Queue& queue, ReadyTasks& ready,
                                                   const LeaseRequest& request,
                                                   const LoadedTask* until) {
  const std::size_t most = std::min({request.max, allowance(queue), share_of(queue)});
  std::vector<LoadedTask*> picked;
  auto it = ready.in_memory.begin();
  while (picked.size() < most) {
    if (it != ready.in_memory.end() && is_at_head(ready, **it)) {
      if (until != nullptr && ReadyOrder()(until, *it)) break;
      picked.push_back(*it++);
      continue;
    }
    if (!ready.is_spilled()) break;
    TRY(load_head(queue, ready));  // what it loads may come before `it`
    it = picked.empty() ? ready.in_memory.begin() : std::next(ready.in_memory.find(picked.back()));
  }
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, read_all(picked));
  std::vector<LeasedTask> leased;
  leased.reserve(picked.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    if (!records[i]) {
      set_aside(*picked[i]);
      continue;
    }
    bytes += records[i]->payload.data.size();
    if (bytes > kMaxLeaseBytes && !leased.empty()) break;
    leased.push_back(hand_out(*picked[i], *std::move(records[i]), request));
  }
  queue.rate.note(leased.size(), time_.now());
  note_limits(queue);
  return leased;
}

void Engine::open_lease(std::uint64_t number, Lease lease, Tick until) {
  LoadedTask& loaded = *lease.task;
  leave_ready(loaded);
  loaded.state = TaskState::leased;
  loaded.lease = number;
  ++loaded.queue->leased;
  due_wheel_.schedule(loaded.index, until);
  const bool is_new = leases_.emplace(number, std::move(lease)).second;
  DETENT_CHECK(is_new);
  note_limits(*loaded.queue);
}

void Engine::drop_lease(const LoadedTask& loaded) {
  leases_.erase(loaded.lease);
  --loaded.queue->leased;
  note_limits(*loaded.queue);
}

LeasedTask Engine::hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request) {
  DETENT_CHECK(next_state(loaded.state, TaskVerb::lease) == TaskState::leased);
  const WallTime now = time_.wall_now();
  ++counters_.leased;
  tell(loaded.id(), *loaded.queue, TaskEvent::leased, TaskState::leased);
  const milliseconds timeout =
      request.visibility_timeout.value_or(task.rules.visibility_timeout.value_or(
          loaded.queue->record.settings.visibility_timeout.value_or(kDefaultVisibilityTimeout)));
  last_lease_ = TaskId{last_lease_}.on_shard(options_.shard).next().value;
  open_lease(last_lease_,
             {.task = &loaded,
              .epoch = epoch_,
              .since = now,
              .worker = request.worker,
              .run_out = request.run_out,
              .late = note_hand_out(loaded)},
             time_.tick_after(timeout));
  return LeasedTask{.task = std::move(task),
                    .lease = {.epoch = epoch_, .number = loaded.lease},
                    .attempt = loaded.attempts + 1,
                    .lease_until = time_.wall_after(timeout),
                    .lateness = std::max(now - loaded.due_at, milliseconds{0})};
}

}  // namespace detent

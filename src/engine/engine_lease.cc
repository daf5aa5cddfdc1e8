// Leases: leasing a task by its id, and the verbs of the holder: complete, fail, extend, release,
// bury.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "task/lifecycle.h"
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

}  // namespace

// ---- one task ----

Result<LeasedTask> Engine::lease_task(TaskId id, const LeaseRequest& request) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(LoadedTask* const loaded, bring_in(id));
  ASSIGN_OR_RETURN(Task task, tasks_.read(*loaded));
  return hand_out_.hand_out(*loaded, std::move(task), request);
}

/// Makes the task ready and loads it into memory. Errors: there is no such task; its state does not
/// allow a lease; it goes to a webhook; a limit allows no more leases.
Result<LoadedTask*> Engine::bring_in(TaskId id) {
  ASSIGN_OR_RETURN(FoundTask found, tasks_.find(id));
  if (!next_state(found.state, TaskVerb::run_now)) return not_allowed(id, found.state);
  Queue& queue = queues_.queue_of(found.stored.task.queue);
  if (queue.record.settings.webhook || !found.stored.task.webhook.empty()) {
    return Error{ErrorCode::conflict,
                 "task " + to_string(id) + " has a webhook, so workers cannot lease it", "id"};
  }
  if (tasks_.is_full_of_leases() || queue.awaits_a_lease()) {
    return Error{ErrorCode::resource_exhausted, "lease limit reached: wait until a lease ends",
                 "queue"};
  }
  if (found.state != TaskState::ready) {
    // Not put_now(), because the request of a worker is not a redrive.
    put_at(std::move(found), time_.deadline_of(std::chrono::milliseconds{0}));
    ASSIGN_OR_RETURN(found, tasks_.find(id));
  }
  return load_ready(found);
}

LoadedTask* Engine::load_ready(const FoundTask& found) {
  if (found.loaded != nullptr) return found.loaded;
  const auto& [from, task] = found.stored;
  Queue& queue = queues_.queue_of(task.queue);
  const Place to = queue.ready_of(task).place_of(task, {.at = task.due_at, .id = task.id});
  tasks_.load(task, to, time_.dated(task.due_at));
  if (from.lane != Lane::ready) records_.put(queue, from, {.place = to, .task = task});
  return tasks_.find_loaded(from.id);
}

// ---- the verbs of the holder of a lease ----

std::string_view Engine::queue_of(LeaseToken token) const noexcept {
  const Lease* const lease = tasks_.find_lease(token);
  if (lease == nullptr) return {};
  return lease->task->queue->record.queue;
}

Result<LeaseOutcome> Engine::complete(LeaseToken token) {
  if (stopped_by()) return *stopped_by();
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  if (loaded.queue->record.settings.retention > milliseconds{0}) {
    ASSIGN_OR_RETURN(Task task, tasks_.read(loaded));
    note_attempt(*lease, task, "");
    TRY(remove(
        {.stored = {loaded.place, std::move(task)}, .state = loaded.state, .loaded = &loaded},
        TaskVerb::complete));
  } else {
    TRY(remove(loaded, TaskVerb::complete));
  }
  ++news_.counters().completed;
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::fail(const FailRequest& request) {
  if (stopped_by()) return *stopped_by();
  if (request.delay) TRY(validate(Due{*request.delay}));
  TRY(validate(Due{request.least_delay}));
  const Lease* const lease = holder_of(request.lease);
  if (lease == nullptr) return LeaseOutcome::conflict;
  ASSIGN_OR_RETURN(Task task, tasks_.read(*lease->task));
  ++news_.counters().failed;
  return end_attempt(*lease, std::move(task), TaskVerb::fail, request);
}

Result<LeaseOutcome> Engine::extend(LeaseToken token, milliseconds by) {
  if (stopped_by()) return *stopped_by();
  if (by < milliseconds{1} || by > kMaxVisibilityTimeout) {
    return Error{
        ErrorCode::invalid_argument,
        "a lease can be extended by 1 ms to 30 days, got " + std::to_string(by.count()) + " ms",
        "by"};
  }
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& task = *lease->task;
  task.state = state_after(task.state, TaskVerb::extend);
  tasks_.timers().set(task, std::max(tasks_.timers().tick_of(task), time_.tick_after(by)));
  news_.tell(task.id(), *task.queue, TaskEvent::extended, task.state);
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::release(LeaseToken token, std::optional<milliseconds> delay,
                                     std::optional<std::uint32_t> priority, ReleaseCount count) {
  if (stopped_by()) return *stopped_by();
  if (delay) TRY(validate(Due{*delay}));
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  const bool is_later = delay && *delay > milliseconds{0};
  const bool is_other_priority = priority && *priority != loaded.priority;
  const TaskState next =
      state_after(loaded.state, is_later ? TaskVerb::release_later : TaskVerb::release);
  news_.tell(loaded.id(), *loaded.queue, TaskEvent::released, next);
  if (!is_later && !is_other_priority && count == ReleaseCount::none) {
    tasks_.give_back(loaded);
    return LeaseOutcome::done;
  }
  ASSIGN_OR_RETURN(Task task, tasks_.read(loaded));
  if (priority) task.rules.priority = *priority;
  if (count != ReleaseCount::none) ++task.tally.leases;
  if (count == ReleaseCount::release) {
    ++task.tally.releases;
    task.tally.delay = delay.value_or(milliseconds{0});
  }
  put_record_back(loaded, std::move(task),
                  is_later ? std::optional<Deadline>(time_.deadline_of(*delay)) : std::nullopt);
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::bury(LeaseToken token, std::string error,
                                  std::optional<std::uint32_t> priority) {
  if (stopped_by()) return *stopped_by();
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  ASSIGN_OR_RETURN(Task task, tasks_.read(loaded));
  ++news_.counters().failed;
  note_attempt(*lease, task, std::move(error));
  ++task.tally.burials;
  if (priority) task.rules.priority = *priority;
  rest_dead(loaded, std::move(task), TaskVerb::bury);
  return LeaseOutcome::dead;
}

const Lease* Engine::holder_of(LeaseToken token) noexcept {
  const Lease* const lease = tasks_.find_lease(token);
  if (lease == nullptr) ++news_.counters().conflicts;
  return lease;
}

void Engine::note_attempt(const Lease& lease, Task& task, std::string error) {
  ++task.attempts;
  ++task.tally.leases;
  add_attempt(task, {.started_at = lease.since,
                     .ended_at = time_.wall_now(),
                     .worker = lease.worker,
                     .error = cut_error(std::move(error)),
                     .late = lease.late});
}

LeaseOutcome Engine::end_attempt(const Lease& lease, Task task, TaskVerb verb,
                                 const FailRequest& how) {
  LoadedTask& loaded = *lease.task;
  Queue& queue = *loaded.queue;
  const QueueSettings& settings = queue.record.settings;
  note_attempt(lease, task, how.error);
  const std::uint32_t max_attempts =
      task.rules.max_attempts.value_or(settings.max_attempts.value_or(kDefaultMaxAttempts));
  if (task.attempts >= max_attempts) {
    rest_dead(loaded, std::move(task),
              verb == TaskVerb::fail ? TaskVerb::fail_last : TaskVerb::run_out_last);
    return LeaseOutcome::dead;
  }
  std::optional<milliseconds> delay = how.delay;
  if (!delay) {
    const Backoff backoff = task.rules.backoff.value_or(settings.backoff.value_or(Backoff{}));
    delay = std::max(retry_delay(backoff, task.attempts, rng_), how.least_delay);
  }
  const Place from = loaded.place;
  news_.tell(from.id, queue, verb == TaskVerb::fail ? TaskEvent::failed : TaskEvent::expired,
             state_after(loaded.state, verb));
  records_.due_counts().add(task.due_at, task.created_at, -1);
  tasks_.unload(loaded);
  place(queue, std::move(task), from, time_.deadline_of(*delay));
  return LeaseOutcome::done;
}

void Engine::rest_dead(LoadedTask& loaded, Task task, TaskVerb verb) {
  const TaskState next = state_after(loaded.state, verb);
  const Place from = loaded.place;
  Queue& queue = *loaded.queue;
  records_.due_counts().add(task.due_at, task.created_at, -1);
  records_.schedules().task_ended(from.id);
  tasks_.unload(loaded);
  task.standing = Standing::dead;
  const Place rest{
      .lane = Lane::dead, .queue = queue.record.number, .at = time_.wall_now(), .id = from.id};
  --queue.record.waiting;
  ++queue.record.dead;
  ++news_.counters().dead;
  news_.tell(from.id, queue, TaskEvent::dead, next);
  records_.put(queue, from, {.place = rest, .task = std::move(task)});
}

/// The lease expired before its holder ended it.
void Engine::run_out(const Lease& lease, Task task) {
  constexpr const char* kWhy = "the lease expired";
  ++task.tally.run_outs;
  if (lease.run_out == RunOut::fails) {
    end_attempt(lease, std::move(task), TaskVerb::run_out,
                {.lease = {}, .delay = {}, .error = kWhy});
    return;
  }
  note_attempt(lease, task, kWhy);
  news_.tell(task.id, *lease.task->queue, TaskEvent::expired,
             state_after(lease.task->state, TaskVerb::release));
  put_record_back(*lease.task, std::move(task), std::nullopt);
}

/// Ends the lease of a task whose record has changed. The task becomes ready at `deadline`. Without
/// a deadline, it is ready immediately and keeps its due time.
void Engine::put_record_back(LoadedTask& loaded, Task task, std::optional<Deadline> deadline) {
  Queue& queue = *loaded.queue;
  const Place from = loaded.place;
  const Deadline as_it_was{
      .due_at = loaded.due_at, .tick = time_.now(), .follows_wall = loaded.follows_wall};
  records_.due_counts().add(task.due_at, task.created_at, -1);
  tasks_.unload(loaded);
  place(queue, std::move(task), from, deadline.value_or(as_it_was));
}

}  // namespace detent

// The verbs of who holds a lease: complete, fail, extend, release, bury.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
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

std::string_view Engine::queue_of(LeaseToken token) const noexcept {
  const auto it = leases_.find(token.number);
  if (it == leases_.end() || it->second.epoch != token.epoch) return {};
  return it->second.task->queue->record.queue;
}

Result<LeaseOutcome> Engine::complete(LeaseToken token) {
  if (stopped_by_) return *stopped_by_;
  Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  DETENT_CHECK(next_state(loaded.state, TaskVerb::complete) == TaskState::completed);
  if (loaded.queue->record.settings.retention > milliseconds{0}) {
    ASSIGN_OR_RETURN(Task task, read(loaded));
    note_attempt(*lease, task, "");
    TRY(remove(
        {.stored = {loaded.place, std::move(task)}, .state = loaded.state, .loaded = &loaded},
        End::completed));
  } else {
    TRY(remove(loaded, End::completed));
  }
  ++counters_.completed;
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::fail(const FailRequest& request) {
  if (stopped_by_) return *stopped_by_;
  if (request.delay) TRY(validate(Due{*request.delay}));
  Lease* const lease = holder_of(request.lease);
  if (lease == nullptr) return LeaseOutcome::conflict;
  ASSIGN_OR_RETURN(Task task, read(*lease->task));
  ++counters_.failed;
  return end_attempt(*lease, std::move(task), TaskVerb::fail, request.delay, request.error);
}

Result<LeaseOutcome> Engine::extend(LeaseToken token, milliseconds by) {
  if (stopped_by_) return *stopped_by_;
  if (by < milliseconds{1} || by > kMaxVisibilityTimeout) {
    return Error{ErrorCode::invalid_argument, "a lease is extended by 1 ms to 30 days", "by"};
  }
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  const LoadedTask& task = *lease->task;
  DETENT_CHECK(next_state(task.state, TaskVerb::extend) == TaskState::leased);
  due_wheel_.schedule(task.index,
                      std::max(due_wheel_.deadline_of(task.index), time_.tick_after(by)));
  tell(task.id(), *task.queue, TaskEvent::extended, TaskState::leased);
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::release(LeaseToken token, std::optional<milliseconds> delay,
                                     std::optional<std::uint32_t> priority, ReleaseCount count) {
  if (stopped_by_) return *stopped_by_;
  if (delay) TRY(validate(Due{*delay}));
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  const bool is_later = delay && *delay > milliseconds{0};
  const bool is_other_priority = priority && *priority != loaded.priority;
  if (!is_later && !is_other_priority && count == ReleaseCount::none) {
    tell(loaded.id(), *loaded.queue, TaskEvent::released, TaskState::ready);
    give_back(loaded);
    return LeaseOutcome::done;
  }
  ASSIGN_OR_RETURN(Task task, read(loaded));
  if (priority) task.rules.priority = *priority;
  if (count != ReleaseCount::none) ++task.tally.leases;
  if (count == ReleaseCount::release) {
    ++task.tally.releases;
    task.tally.delay = delay.value_or(milliseconds{0});
  }
  DETENT_CHECK(next_state(loaded.state, TaskVerb::release_later) == TaskState::scheduled);
  tell(loaded.id(), *loaded.queue, TaskEvent::released,
       is_later ? TaskState::scheduled : TaskState::ready);
  put_record_back(loaded, std::move(task),
                  is_later ? std::optional<Deadline>(deadline_of(*delay)) : std::nullopt);
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::bury(LeaseToken token, std::string error,
                                  std::optional<std::uint32_t> priority) {
  if (stopped_by_) return *stopped_by_;
  Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  ASSIGN_OR_RETURN(Task task, read(loaded));
  DETENT_CHECK(next_state(loaded.state, TaskVerb::bury) == TaskState::dead);
  ++counters_.failed;
  note_attempt(*lease, task, std::move(error));
  ++task.tally.burials;
  if (priority) task.rules.priority = *priority;
  rest_dead(loaded, std::move(task));
  return LeaseOutcome::dead;
}

Engine::Lease* Engine::holder_of(LeaseToken token) noexcept {
  const auto it = leases_.find(token.number);
  if (it == leases_.end() || it->second.epoch != token.epoch) {
    ++counters_.conflicts;
    return nullptr;
  }
  return &it->second;
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

LeaseOutcome Engine::end_attempt(Lease& lease, Task task, TaskVerb verb,
                                 std::optional<milliseconds> delay, std::string error) {
  LoadedTask& loaded = *lease.task;
  Queue& queue = *loaded.queue;
  const QueueSettings& settings = queue.record.settings;
  note_attempt(lease, task, std::move(error));
  const std::uint32_t max_attempts =
      task.rules.max_attempts.value_or(settings.max_attempts.value_or(kDefaultMaxAttempts));
  if (task.attempts >= max_attempts) {
    const TaskVerb last = verb == TaskVerb::fail ? TaskVerb::fail_last : TaskVerb::run_out_last;
    DETENT_CHECK(next_state(loaded.state, last) == TaskState::dead);
    rest_dead(loaded, std::move(task));
    return LeaseOutcome::dead;
  }
  DETENT_CHECK(next_state(loaded.state, verb) == TaskState::scheduled);
  if (!delay) {
    const Backoff backoff = task.rules.backoff.value_or(settings.backoff.value_or(Backoff{}));
    delay = retry_delay(backoff, task.attempts, rng_);
  }
  const Place from = loaded.place;
  tell(from.id, queue, verb == TaskVerb::fail ? TaskEvent::failed : TaskEvent::expired,
       TaskState::scheduled);
  due_counts_.add(task.due_at, task.created_at, -1);
  unload(loaded);
  place(queue, std::move(task), from, deadline_of(*delay));
  return LeaseOutcome::done;
}

void Engine::rest_dead(LoadedTask& loaded, Task task) {
  const Place from = loaded.place;
  Queue& queue = *loaded.queue;
  due_counts_.add(task.due_at, task.created_at, -1);
  schedules_.task_ended(from.id);
  unload(loaded);
  task.standing = Standing::dead;
  const Place rest{
      .lane = Lane::dead, .queue = queue.record.number, .at = time_.wall_now(), .id = from.id};
  --queue.record.waiting;
  ++queue.record.dead;
  ++counters_.dead;
  tell(from.id, queue, TaskEvent::dead, TaskState::dead);
  stage_put(queue, from, {.place = rest, .task = std::move(task)});
}

/// A lease that nobody ended.
void Engine::run_out(Lease& lease, Task task) {
  constexpr const char* kWhy = "the lease ran out";
  ++task.tally.run_outs;
  if (lease.run_out == RunOut::fails) {
    end_attempt(lease, std::move(task), TaskVerb::run_out, std::nullopt, kWhy);
    return;
  }
  DETENT_CHECK(next_state(lease.task->state, TaskVerb::release) == TaskState::ready);
  note_attempt(lease, task, kWhy);
  tell(task.id, *lease.task->queue, TaskEvent::expired, TaskState::ready);
  put_record_back(*lease.task, std::move(task), std::nullopt);
}

/// A leased task goes back with another record: to the deadline, or to its old place in its queue's
/// order.
void Engine::put_record_back(LoadedTask& loaded, Task task, std::optional<Deadline> deadline) {
  Queue& queue = *loaded.queue;
  const Place from = loaded.place;
  const Deadline as_it_was{
      .due_at = loaded.due_at, .tick = time_.now(), .follows_wall = loaded.follows_wall};
  due_counts_.add(task.due_at, task.created_at, -1);
  unload(loaded);
  place(queue, std::move(task), from, deadline.value_or(as_it_was));
}

void Engine::give_back(LoadedTask& loaded) {
  DETENT_CHECK(next_state(loaded.state, TaskVerb::release) == TaskState::ready);
  due_wheel_.cancel(loaded.index);
  drop_lease(loaded);
  loaded.tick = time_.now();
  loaded.ready_since = clock_.now();
  loaded.held_before_ready = held_total(*loaded.queue, loaded.ready_since);
  enter_ready(loaded);
}

}  // namespace detent

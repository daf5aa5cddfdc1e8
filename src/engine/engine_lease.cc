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

Result<LeaseOutcome> Engine::complete(LeaseToken lease) {
  if (stopped_by_) return *stopped_by_;
  LoadedTask* task = holder_of(lease);
  if (task == nullptr) return LeaseOutcome::conflict;
  DETENT_CHECK(next_state(task->state, TaskVerb::complete) == TaskState::completed);
  remove(*task);
  ++counters_.completed;
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::fail(const FailRequest& request) {
  if (stopped_by_) return *stopped_by_;
  LoadedTask* loaded = holder_of(request.lease);
  if (loaded == nullptr) return LeaseOutcome::conflict;
  ASSIGN_OR_RETURN(Task task, read(*loaded));
  ++counters_.failed;
  task.last_error = cut_error(request.error);
  return end_attempt(*loaded, std::move(task), TaskVerb::fail, request.delay);
}

Result<LeaseOutcome> Engine::extend(LeaseToken lease, milliseconds by) {
  if (stopped_by_) return *stopped_by_;
  if (by < milliseconds{1} || by > kMaxVisibilityTimeout) {
    return Error{ErrorCode::invalid_argument, "a lease is extended by 1 ms to 30 days", "by"};
  }
  LoadedTask* task = holder_of(lease);
  if (task == nullptr) return LeaseOutcome::conflict;
  DETENT_CHECK(next_state(task->state, TaskVerb::extend) == TaskState::leased);
  due_wheel_.schedule(task->index,
                      std::max(due_wheel_.deadline_of(task->index), time_.tick_after(by)));
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::release(LeaseToken lease, std::optional<milliseconds> delay,
                                     std::optional<std::uint32_t> priority) {
  if (stopped_by_) return *stopped_by_;
  if (delay) TRY(validate_due(*delay));
  LoadedTask* loaded = holder_of(lease);
  if (loaded == nullptr) return LeaseOutcome::conflict;
  const bool is_later = delay && *delay > milliseconds{0};
  const bool is_other_priority = priority && *priority != loaded->priority;
  if (!is_later && !is_other_priority) {
    give_back(*loaded);
    return LeaseOutcome::done;
  }
  ASSIGN_OR_RETURN(Task task, read(*loaded));
  if (priority) task.rules.priority = *priority;
  const DueKey from = loaded->place;
  if (is_later) {
    DETENT_CHECK(next_state(loaded->state, TaskVerb::release_later) == TaskState::scheduled);
    unload(*loaded);
    place(std::move(task), from, deadline_of(*delay));
  } else {
    loaded->priority = task.rules.priority;
    give_back(*loaded);
    staging_.put(from, {.place = from, .task = std::move(task)});
  }
  return LeaseOutcome::done;
}

Result<LeaseOutcome> Engine::bury(LeaseToken lease, std::string error,
                                  std::optional<std::uint32_t> priority) {
  if (stopped_by_) return *stopped_by_;
  LoadedTask* loaded = holder_of(lease);
  if (loaded == nullptr) return LeaseOutcome::conflict;
  ASSIGN_OR_RETURN(Task task, read(*loaded));
  DETENT_CHECK(next_state(loaded->state, TaskVerb::bury) == TaskState::dead);
  ++counters_.failed;
  task.attempts = loaded->attempts + 1;
  task.last_error = cut_error(std::move(error));
  if (priority) task.rules.priority = *priority;
  rest_dead(*loaded, std::move(task));
  return LeaseOutcome::dead;
}

Engine::LoadedTask* Engine::holder_of(LeaseToken lease) noexcept {
  const auto it = leases_.find(lease.number);
  if (lease.epoch != epoch_ || it == leases_.end()) {
    ++counters_.conflicts;
    return nullptr;
  }
  return it->second;
}

LeaseOutcome Engine::end_attempt(LoadedTask& loaded, Task task, TaskVerb verb,
                                 std::optional<milliseconds> delay) {
  task.attempts = loaded.attempts + 1;
  if (task.attempts >= loaded.max_attempts) {
    const TaskVerb last = verb == TaskVerb::fail ? TaskVerb::fail_last : TaskVerb::run_out_last;
    DETENT_CHECK(next_state(loaded.state, last) == TaskState::dead);
    rest_dead(loaded, std::move(task));
    return LeaseOutcome::dead;
  }
  DETENT_CHECK(next_state(loaded.state, verb) == TaskState::scheduled);
  const DueKey from = loaded.place;
  unload(loaded);
  if (!delay) delay = retry_delay(task.rules.backoff.value_or(Backoff{}), task.attempts, rng_);
  place(std::move(task), from, deadline_of(*delay));
  return LeaseOutcome::done;
}

void Engine::rest_dead(LoadedTask& loaded, Task task) {
  const DueKey from = loaded.place;
  Queue& queue = *loaded.queue;
  unload(loaded);
  task.dead = true;
  staging_.put(from, {.place = {kNeverDue, from.id}, .task = std::move(task)});
  --queue.counts.waiting;
  ++queue.counts.dead;
  note_counts(queue);
  ++counters_.dead;
}

void Engine::give_back(LoadedTask& loaded) {
  DETENT_CHECK(next_state(loaded.state, TaskVerb::release) == TaskState::ready);
  due_wheel_.cancel(loaded.index);
  leases_.erase(loaded.lease);
  --loaded.queue->leased;
  loaded.state = TaskState::ready;
  loaded.queue->ready.insert(&loaded);
  want_serving(*loaded.queue);
}

}  // namespace detent

#include "engine/verbs/lease_verbs.h"

#include <algorithm>
#include <utility>

#include "task/lifecycle.h"
#include "task/limits.h"

namespace detent {

using std::chrono::milliseconds;

std::string_view LeaseVerbs::queue_of(LeaseToken token) const noexcept {
  const Lease* const lease = parts_.tasks.find_lease(token);
  if (lease == nullptr) return {};
  return lease->task->queue->record.queue;
}

Result<LeaseOutcome> LeaseVerbs::complete(LeaseToken token) {
  TRY(parts_.expect_working());
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  if (loaded.queue->record.settings.retention > milliseconds{0}) {
    ASSIGN_OR_RETURN(Task task, parts_.tasks.read(loaded));
    parts_.transitions.note_attempt(*lease, task, "");
    TRY(parts_.transitions.remove(
        {.stored = {loaded.place, std::move(task)}, .state = loaded.state, .loaded = &loaded},
        TaskVerb::complete));
  } else {
    TRY(parts_.transitions.remove(loaded, TaskVerb::complete));
  }
  return LeaseOutcome::done;
}

Result<LeaseOutcome> LeaseVerbs::fail(const FailRequest& request) {
  TRY(parts_.expect_working());
  if (request.delay) TRY(validate(Due{*request.delay}));
  TRY(validate(Due{request.least_delay}));
  const Lease* const lease = holder_of(request.lease);
  if (lease == nullptr) return LeaseOutcome::conflict;
  ASSIGN_OR_RETURN(Task task, parts_.tasks.read(*lease->task));
  parts_.news.count(*lease->task->queue, &TaskCounters::failed);
  return parts_.transitions.fail_attempt(*lease, std::move(task), kFailed, request);
}

Result<LeaseOutcome> LeaseVerbs::extend(LeaseToken token, milliseconds by) {
  TRY(parts_.expect_working());
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
  parts_.tasks.timers().set(
      task, std::max(parts_.tasks.timers().tick_of(task), parts_.time.tick_after(by)));
  parts_.news.tell(task.id(), *task.queue, TaskEvent::extended, task.state);
  return LeaseOutcome::done;
}

Result<LeaseOutcome> LeaseVerbs::release(LeaseToken token, std::optional<milliseconds> delay,
                                         std::optional<std::uint32_t> priority,
                                         ReleaseCount count) {
  TRY(parts_.expect_working());
  if (delay) TRY(validate(Due{*delay}));
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  const bool is_later = delay && *delay > milliseconds{0};
  const bool is_other_priority = priority && *priority != loaded.priority;
  const TaskVerb verb = is_later ? TaskVerb::release_later : TaskVerb::release;
  if (!is_later && !is_other_priority && count == ReleaseCount::none) {
    parts_.news.tell(loaded.id(), *loaded.queue, TaskEvent::released,
                     state_after(loaded.state, verb));
    parts_.tasks.give_back(loaded);
    return LeaseOutcome::done;
  }
  ASSIGN_OR_RETURN(Task task, parts_.tasks.read(loaded));
  if (priority) task.rules.priority = *priority;
  if (count != ReleaseCount::none) ++task.tally.leases;
  if (count == ReleaseCount::release) {
    ++task.tally.releases;
    task.tally.delay = delay.value_or(milliseconds{0});
  }
  parts_.transitions.end_lease(loaded, std::move(task), verb, delay.value_or(milliseconds{0}));
  return LeaseOutcome::done;
}

Result<LeaseOutcome> LeaseVerbs::bury(LeaseToken token, std::string error,
                                      std::optional<std::uint32_t> priority) {
  TRY(parts_.expect_working());
  const Lease* const lease = holder_of(token);
  if (lease == nullptr) return LeaseOutcome::conflict;
  LoadedTask& loaded = *lease->task;
  ASSIGN_OR_RETURN(Task task, parts_.tasks.read(loaded));
  parts_.news.count(*loaded.queue, &TaskCounters::failed);
  parts_.transitions.note_attempt(*lease, task, std::move(error));
  ++task.tally.burials;
  if (priority) task.rules.priority = *priority;
  parts_.transitions.end_lease(loaded, std::move(task), TaskVerb::bury);
  return LeaseOutcome::dead;
}

const Lease* LeaseVerbs::holder_of(LeaseToken token) noexcept {
  const Lease* const lease = parts_.tasks.find_lease(token);
  if (lease == nullptr) parts_.news.count(&TaskCounters::conflicts);
  return lease;
}

}  // namespace detent

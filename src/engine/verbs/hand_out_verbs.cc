#include "engine/verbs/hand_out_verbs.h"

#include <utility>

#include "task/lifecycle.h"

namespace detent {

using std::chrono::milliseconds;

// ---- workers ----

Result<std::vector<LeasedTask>> HandOutVerbs::lease(const LeaseRequest& request) {
  return parts_.hand_out.lease(request);
}

Result<std::optional<ReadyHead>> HandOutVerbs::next_ready(const LeaseRequest& request) {
  return parts_.hand_out.next_ready(request);
}

Result<LeasedTask> HandOutVerbs::lease_task(TaskId id, const LeaseRequest& request) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(LoadedTask* const loaded, bring_in(id));
  ASSIGN_OR_RETURN(Task task, parts_.tasks.read(*loaded));
  return parts_.hand_out.hand_out(*loaded, std::move(task), request);
}

/// Makes the task ready and loads it into memory. Errors: there is no such task; its state does not
/// allow a lease; it goes to a webhook; a limit allows no more leases.
Result<LoadedTask*> HandOutVerbs::bring_in(TaskId id) {
  ASSIGN_OR_RETURN(FoundTask found, parts_.tasks.find(id));
  const std::optional<TaskState> next = next_state(found.state, TaskVerb::run_now);
  if (!next) return not_allowed(id, found.state);
  Queue& queue = parts_.queues.queue_of(found.stored.task.queue);
  if (queue.record.settings.webhook || !found.stored.task.webhook.empty()) {
    return Error{ErrorCode::conflict,
                 "task " + to_string(id) + " has a webhook, so workers cannot lease it", "id"};
  }
  if (parts_.tasks.is_full_of_leases() || queue.awaits_a_lease()) {
    return Error{ErrorCode::resource_exhausted, "lease limit reached: wait until a lease ends",
                 "queue"};
  }
  if (*next != found.state) {
    // Not make_due(), because the request of a worker is not a redrive.
    parts_.transitions.reschedule(std::move(found), TaskVerb::run_now,
                                  parts_.time.deadline_of(milliseconds{0}));
    ASSIGN_OR_RETURN(found, parts_.tasks.find(id));
  }
  return parts_.transitions.load_ready(found);
}

WaitId HandOutVerbs::lease_or_wait(const LeaseRequest& request, milliseconds wait, LeaseDone done) {
  return parts_.hand_out.lease_or_wait(request, wait, std::move(done));
}

void HandOutVerbs::abandon_wait(WaitId id) { parts_.hand_out.abandon_wait(id); }

void HandOutVerbs::end_waits() { parts_.hand_out.end_waits(); }

Result<void> HandOutVerbs::expect_going_on() const { return parts_.hand_out.expect_going_on(); }

// ---- the deliverer ----

Result<std::vector<Delivery>> HandOutVerbs::lease_deliveries(const DeliveryRequest& request,
                                                             const HeldWebhooks& held) {
  return parts_.hand_out.lease_deliveries(request, held);
}

void HandOutVerbs::lease_deliveries_or_wait(const DeliveryRequest& request,
                                            const HeldWebhooks& held, DeliveriesDone done) {
  parts_.hand_out.lease_deliveries_or_wait(request, held, std::move(done));
}

}  // namespace detent

// The verbs that hand out tasks: to workers, which ask or wait for tasks, and to the deliverer of
// webhooks. hand_out.h decides which worker gets which task.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"
#include "task/request.h"

namespace detent {

class HandOutVerbs : public VerbGroup {
 public:
  using VerbGroup::VerbGroup;

  /// Hands out ready tasks without a webhook, most urgent first (priority, then due time, then id).
  /// The answer may be empty. It has at most 16 MiB of payload, or one task.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  /// The first task that lease() would hand out, for a caller that chooses between engines. Empty
  /// if no task is ready.
  Result<std::optional<ReadyHead>> next_ready(const LeaseRequest& request);
  /// Hands out a certain task, which is ready, scheduled or dead. A task that is not ready first
  /// becomes due now, durably. The queue and the number in `request` are ignored. Pauses and the
  /// rate limit do not apply. Errors: not_found; conflict if the task is leased, has ended, or has
  /// a webhook; resource_exhausted if its queue or the engine is at its limit of leases.
  Result<LeasedTask> lease_task(TaskId id, const LeaseRequest& request);
  /// As lease(), but if no task is ready, waits for a task, at most `wait`. The workers of a queue
  /// are served first come, first served. `done` runs exactly once, and never within this call. Its
  /// answer is empty if the wait expired or was abandoned. `done` usually runs after a commit. A
  /// waiting worker can get its tasks before the commit, even while the store writes, if the stored
  /// records of these tasks are current (hand_out_now.cc). Therefore `done` must not call a verb or
  /// after_commit().
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  /// Ends a wait without a task, because the worker has gone. Does nothing if the wait is over.
  void abandon_wait(WaitId id);
  /// For a stop: ends every wait and refuses new waits. Verbs that work in steps do not begin
  /// another step.
  void end_waits();
  /// Whether a verb that works in steps may begin another step. Errors: unavailable after
  /// end_waits().
  Result<void> expect_going_on() const;
  /// Whether a worker waits for a task.
  bool has_waits() const noexcept { return parts_.hand_out.waiting() > 0; }

  // For the deliverer of webhooks. There is one deliverer. It ends its leases with the same verbs
  // as a worker. If it does not end a lease, the lease expires. After a crash, its tasks are ready
  // again.

  /// Hands out ready tasks with a webhook, at most `max`. The answer may be empty. The queues with
  /// such tasks take turns, and each queue gets an equal part of `max`. Within a queue, the most
  /// urgent task is first. Pauses, rate and concurrency of a queue apply as for workers. A queue
  /// in `held` is skipped until a later call leaves it out of `held`. Errors: as
  /// validate(DeliveryRequest).
  Result<std::vector<Delivery>> lease_deliveries(const DeliveryRequest& request,
                                                 const HeldWebhooks& held = {});
  /// As lease_deliveries(), but if there is no such task, waits without a time limit. `done` runs
  /// exactly once, after a commit. Its answer is empty if another call or end_waits() has ended the
  /// wait. `done` must not call a verb.
  void lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                DeliveriesDone done);

 private:
  Result<LoadedTask*> bring_in(TaskId id);
};

}  // namespace detent

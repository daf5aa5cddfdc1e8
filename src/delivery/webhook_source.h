// The engine as the deliverer sees it: the source of due webhooks, and the receiver of the results.
// engine_webhooks.h implements it for a real engine.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "delivery/verdict.h"
#include "detent/unique_function.h"
#include "task/request.h"

namespace detent {

/// Thread-safe.
class WebhookSource {
 public:
  using Taken = UniqueFunction<void(std::vector<Delivery>)>;

  virtual ~WebhookSource() = default;
  /// Leases due webhooks, at most `max` ≥ 1, for kDeliveryLease. Waits until there is one. Queues
  /// whose webhook is in `held` are skipped. `taken` runs once, on any thread. Its argument is
  /// empty if another call has ended the wait, or if leasing is not possible now.
  virtual void take(std::size_t max, std::vector<std::string> held, Taken taken) = 0;
  /// Ends a lease. One that has run out by now is no error: the task is delivered again.
  virtual void end(LeaseToken lease, Verdict verdict) = 0;
};

/// Longer than a task waits for its host's turn and its delivery takes.
inline constexpr std::chrono::milliseconds kDeliveryLease{120'000};

}  // namespace detent

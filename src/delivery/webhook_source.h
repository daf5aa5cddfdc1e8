// Where due webhooks come from, and where what became of them goes: the engine, as the deliverer
// sees it. engine_webhooks.h is the one over a real engine.
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
  /// Leases due webhooks, most `max` ≥ 1, for kDeliveryLease; waits until there is one. Queues
  /// whose webhook is one of `held` are left alone. `taken` runs once, on any thread; with none
  /// when another call has ended its wait, or it cannot now.
  virtual void take(std::size_t max, std::vector<std::string> held, Taken taken) = 0;
  /// Ends a lease. One that has run out by now is no error: the task is delivered again.
  virtual void end(LeaseToken lease, Verdict verdict) = 0;
};

/// Longer than a task waits for its host's turn and its delivery takes.
inline constexpr std::chrono::milliseconds kDeliveryLease{120'000};

}  // namespace detent

// Webhooks that are due in an engine on its thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "delivery/webhook_source.h"
#include "engine/thread/engine_thread.h"

namespace detent {

/// Thread-safe. If the engine has failed or is stopping, a report to it is lost: the lease expires,
/// and the task is delivered again.
class EngineWebhooks final : public WebhookSource {
 public:
  /// `engine` must outlive this.
  explicit EngineWebhooks(EngineThread& engine) : engine_(engine) {}

  /// If another engine replaces the engine, the answer is empty.
  void take(std::size_t max, std::vector<std::string> held, Taken taken) override;
  void end(LeaseToken lease, Verdict verdict) override;

 private:
  EngineThread& engine_;
};

}  // namespace detent

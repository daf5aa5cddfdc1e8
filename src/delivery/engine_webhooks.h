// Webhooks that are due in an engine on its thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "delivery/webhook_source.h"
#include "engine/engine_thread.h"

namespace detent {

/// Thread-safe. What the engine can't be told any more, because it failed or is stopping, is lost:
/// the lease runs out, and the task is delivered again.
class EngineWebhooks final : public WebhookSource {
 public:
  /// `engine` must outlive this.
  explicit EngineWebhooks(EngineThread& engine) : engine_(engine) {}

  /// An engine that is replaced by another answers with none.
  void take(std::size_t max, std::vector<std::string> held, Taken taken) override;
  void end(LeaseToken lease, Verdict verdict) override;

 private:
  EngineThread& engine_;
};

}  // namespace detent

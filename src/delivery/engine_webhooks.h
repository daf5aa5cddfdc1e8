// Webhooks that are due in an engine on its thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "delivery/webhook_source.h"
#include "engine/thread/engine_thread.h"
#include "tracing/task_tracer.h"

namespace detent {

/// Thread-safe. If the engine has failed or is stopping, a report to it is lost: the lease expires,
/// and the task is delivered again.
class EngineWebhooks final : public WebhookSource {
 public:
  /// `engine` and `tracer`, which may be null, must outlive this.
  explicit EngineWebhooks(EngineThread& engine, TaskTracer* tracer = nullptr)
      : engine_(engine), tracer_(tracer) {}

  /// If another engine replaces the engine, the answer is empty.
  void take(std::size_t max, std::vector<std::string> held, Taken taken) override;
  void end(LeaseToken lease, Verdict verdict) override;

 private:
  EngineThread& engine_;
  TaskTracer* const tracer_;
};

}  // namespace detent

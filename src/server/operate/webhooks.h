// Assembles the delivery of tasks to webhooks and sinks, from the command line options.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "delivery/address_guard.h"
#include "delivery/deliverer.h"
#include "delivery/engine_webhooks.h"
#include "net/address/host_resolver.h"
#include "server/operate/delivery_log.h"

namespace detent::server {

struct WebhookOptions {
  std::string allow;           // blocks of addresses, with commas between; may be empty
  std::filesystem::path keys;  // a file of keys; empty: webhook.key in `data`, created if missing
  std::filesystem::path data;  // the server's data folder; empty: no folder, and no key of its own
  Sinks sinks = {};
  std::size_t max_calls = HostLimits{}.max_all_calls;  // calls at the same time
  TaskTracer* tracer = nullptr;                        // null: no traces
  DeliveryLog* log = nullptr;                          // null: failures are not logged
};

/// Thread-safe.
class Webhooks {
 public:
  /// Starts the deliveries. `engine`, `clock`, the tracer and the log must outlive it. Errors:
  /// invalid_argument for `allow`, or for the content of the key file; unavailable if the key file
  /// cannot be read or created.
  static Result<std::unique_ptr<Webhooks>> start(const WebhookOptions& options,
                                                 EngineThread& engine, Clock& clock);

  /// Reads the keys again. On an error the earlier keys stay in use.
  Result<void> reload_keys();
  /// The key file; empty if there are no keys.
  const std::filesystem::path& keys_file() const noexcept { return keys_file_; }
  const Deliverer& deliverer() const noexcept { return *deliverer_; }
  /// As Deliverer::stop(). Call it before the engine's thread stops.
  void stop(std::chrono::milliseconds grace) { deliverer_->stop(grace); }

 private:
  Webhooks(EngineThread& engine, TaskTracer* tracer, std::filesystem::path keys_file)
      : keys_file_(std::move(keys_file)),
        source_(std::make_shared<EngineWebhooks>(engine, tracer)) {}

  const std::filesystem::path keys_file_;
  net::SystemResolver resolver_;
  const std::shared_ptr<EngineWebhooks> source_;  // owned by this and the deliverer
  std::unique_ptr<Deliverer> deliverer_;          // goes first
};

}  // namespace detent::server

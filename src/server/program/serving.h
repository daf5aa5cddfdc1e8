// The steps that a server without a cluster and a node of a cluster have in common.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/result.h"
#include "cli/options/serve_options.h"
#include "detent/clock.h"
#include "net/http_server/http_server.h"
#include "net/socket/tls_server.h"
#include "server/access/access.h"
#include "server/beanstalk/beanstalk_server.h"
#include "server/operate/alerts.h"
#include "server/operate/delivery_log.h"
#include "server/operate/reloads.h"
#include "server/operate/service_manager.h"
#include "server/operate/stop_signal.h"
#include "tracing/task_tracer.h"

namespace detent::server {

/// The objects that a server makes before it opens its store. All must outlive their users.
struct ServeContext {
  StopSignal& stop_signal;
  const ServiceManager& manager;
  Reloads& reloads;
  Clock& clock;
  const Access* access;  // null: no tokens are needed
  std::shared_ptr<net::TlsServer> tls;
  TaskTracer* tracer;  // null: no traces
  DeliveryLog& deliveries;
};

/// How long requests that are under way at a stop may still take.
inline constexpr std::chrono::seconds kStopGrace{10};

/// Returns null without a collector. Errors: as TaskTracer::start().
Result<std::unique_ptr<TaskTracer>> start_tracer(const cli::ServeOptions& options, Clock& clock);

/// Starts the alerts of the options. `keys_file` has the keys that sign webhooks; "" for none.
/// Returns null without thresholds. Errors: as Alerts::start().
Result<std::unique_ptr<Alerts>> start_alerts(const cli::ServeOptions& options,
                                             const std::filesystem::path& keys_file,
                                             AlertSource source, Clock& clock);

/// Makes each reload read the keys of webhooks again: with `read_keys`, and for `alerts`, which may
/// be null. Does nothing without a file.
void reload_webhook_keys(Reloads& reloads, const std::filesystem::path& keys_file,
                         std::function<Result<void>()> read_keys, Alerts* alerts);

/// Announces the server and blocks until the process receives a stop signal. Until then it handles
/// the other signals. `beanstalk` may be null.
void run_until_stopped(const cli::ServeOptions& options, const ServeContext& with,
                       const net::HttpServer& http, BeanstalkServer* beanstalk);

}  // namespace detent::server

// `detent serve --node`: the program as a node of a cluster. main.cc has the part that both kinds
// of server have in common.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "cli/serve_options.h"
#include "detent/clock.h"
#include "net/tls_server.h"
#include "server/access/access.h"
#include "server/operate/reloads.h"
#include "server/operate/service_manager.h"
#include "server/operate/stop_signal.h"

namespace detent::server {

/// The objects that a server makes before it opens its store. All must outlive their users.
struct ServeContext {
  StopSignal& stop_signal;
  const ServiceManager& manager;
  Reloads& reloads;
  Clock& clock;
  const Access* access;  // null: no tokens are needed
  std::shared_ptr<net::TlsServer> tls;
};

/// Blocks until the process receives a stop signal. Until then it handles the other signals.
void wait_for_stop(const ServeContext& with, std::function<void()> on_drain);

/// Serves until the process receives a stop signal. Errors: invalid_argument for settings that a
/// node does not support; errors of the database and of the address.
Result<void> serve_as_node(const cli::ServeOptions& options, const ServeContext& with);

}  // namespace detent::server

// `detent serve --node`: the program as a node of a cluster. main.cc has what both kinds of server
// begin with.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "cli/serve_options.h"
#include "detent/clock.h"
#include "net/tls_server.h"
#include "server/access.h"
#include "server/reloads.h"
#include "server/service_manager.h"
#include "server/stop_signal.h"

namespace detent::server {

/// What a server has before it opens its store. All must outlive whoever uses it.
struct Beginnings {
  StopSignal& stop_signal;
  const ServiceManager& manager;
  Reloads& reloads;
  Clock& clock;
  const Access* access;  // null: no tokens are needed
  std::shared_ptr<net::TlsServer> tls;
};

/// Blocks until the process is told to stop; does meanwhile what other signals ask for.
void wait_for_stop(const Beginnings& with, std::function<void()> on_drain);

/// Serves until the process is told to stop. Errors: invalid_argument for settings that a node
/// cannot have; those of the database and of the address.
Result<void> serve_as_node(const cli::ServeOptions& options, const Beginnings& with);

}  // namespace detent::server

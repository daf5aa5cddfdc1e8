// `detent serve --node`: the program as a node of a cluster.
#pragma once

#include "base/result.h"
#include "cli/options/serve_options.h"
#include "server/program/serving.h"

namespace detent::server {

/// Serves until the process receives a stop signal. Errors: invalid_argument for settings that a
/// node does not support; errors of the database and of the address.
Result<void> serve_as_node(const cli::ServeOptions& options, const ServeContext& with);

}  // namespace detent::server

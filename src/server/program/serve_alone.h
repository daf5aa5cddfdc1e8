// `detent serve` without a cluster: one engine, on a folder or on a database of its own.
#pragma once

#include "base/result.h"
#include "cli/options/serve_options.h"
#include "server/program/serving.h"

namespace detent::server {

/// Serves until the process receives a stop signal. Errors: invalid_argument for settings; errors
/// of the store and of the address.
Result<void> serve_alone(const cli::ServeOptions& options, const ServeContext& with);

}  // namespace detent::server

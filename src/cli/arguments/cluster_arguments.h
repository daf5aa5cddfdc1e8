// Describes to CLI11 the options of `detent serve` for a node of a cluster.
#pragma once

#include "cli/arguments/argument_options.h"

namespace detent::cli {

/// `options` must outlive `serve`.
void add_cluster(CLI::App& serve, ClusterOptions& options);

}  // namespace detent::cli

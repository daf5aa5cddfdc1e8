// The options of `detent serve` for a node of a cluster, read by CLI11.
#pragma once

#include "cli/argument_options.h"

namespace detent::cli {

/// `options` must outlive `serve`.
void add_cluster(CLI::App& serve, ClusterOptions& options);

}  // namespace detent::cli

// The metrics of several shards as one page: a sample that several have is their sum.
#pragma once

#include <vector>

#include "net/http_message.h"

namespace detent::gateway {

/// Adds up pages in Prometheus' text format, family by family, in the order of the first page that
/// has them. Of the families that tell what is the same everywhere (`detent_build_info`) or where
/// only the highest means something (`detent_shard_epoch`), the highest counts. When an answer is
/// no success, it is the answer. Requires: at least one.
net::HttpResponse sum_metrics(std::vector<net::HttpResponse> pages);

}  // namespace detent::gateway

// The metrics of several shards as one page: a sample that several have is their sum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace detent::gateway {

/// Which families of a page count. Without gauges are those that never fall: counters, histograms
/// and summaries.
enum class Families : std::uint8_t { all, without_gauges };

/// Adds up pages in Prometheus' text format, family by family, in the order of the first page that
/// has them. Of the families that tell what is the same everywhere (`detent_build_info`) or where
/// only the highest means something (`detent_shard_epoch`), the highest counts. `detent_store_up`
/// is 0 where one store does not work.
std::string sum_metrics(const std::vector<std::string>& pages, Families families = Families::all);

}  // namespace detent::gateway

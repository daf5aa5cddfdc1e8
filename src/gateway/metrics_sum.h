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
/// has the family. Some families take the highest value instead: families that are equal on all
/// shards (`detent_build_info`), and families whose sum has no meaning (`detent_shard_epoch`).
/// `detent_store_up` is 0 if one store has failed.
std::string sum_metrics(const std::vector<std::string>& pages, Families families = Families::all);

}  // namespace detent::gateway

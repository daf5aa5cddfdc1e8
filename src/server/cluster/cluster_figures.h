// The sum of the figures of several shards, and the format in which nodes send each other their
// figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/values/engine_stats.h"
#include "store/lease_table.h"

namespace detent::server {

/// An engine, and its number of ready tasks.
struct ShardBacklog {
  ShardLease lease;
  std::uint64_t ready = 0;

  friend bool operator==(const ShardBacklog&, const ShardBacklog&) = default;
};

/// Figures, and the engines that they come from.
struct ClusterFigures {
  std::vector<ShardBacklog> of;
  EngineStats sum;  // without queues; its epoch is 0

  void add(const ClusterFigures& other);
  /// The sum. Its epoch changes when the set of engines changes. Otherwise a reader could take
  /// counts that a shard collected on another node for new events.
  EngineStats stats() &&;
};

/// Encodes the figures for another node. That node can decode them only if its version of the
/// format is the same.
std::string encode_figures(const ClusterFigures& figures);
/// Errors: data_loss.
Result<ClusterFigures> decode_figures(std::string_view bytes);

}  // namespace detent::server

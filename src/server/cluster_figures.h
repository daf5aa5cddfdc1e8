// The figures of several shards added up, and how nodes tell each other theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine_stats.h"
#include "store/lease_table.h"

namespace detent::server {

/// An engine, and the tasks that are ready there.
struct ShardBacklog {
  ShardLease lease;
  std::uint64_t ready = 0;

  friend bool operator==(const ShardBacklog&, const ShardBacklog&) = default;
};

/// Figures, and of which engines they are.
struct ClusterFigures {
  std::vector<ShardBacklog> of;
  EngineStats sum;  // without queues; its epoch is 0

  void add(const ClusterFigures& other);
  /// The sum, with an epoch that is another whenever it is of other engines: so nobody takes what a
  /// shard counted elsewhere before for something that happened.
  EngineStats stats() &&;
};

/// Bytes for another node, which reads them when its version of them is the same.
std::string encode_figures(const ClusterFigures& figures);
/// Errors: data_loss.
Result<ClusterFigures> decode_figures(std::string_view bytes);

}  // namespace detent::server

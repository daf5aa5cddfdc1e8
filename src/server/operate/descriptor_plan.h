// Divides the file descriptors of the process. Connections come from outside the server, so they
// get only the remainder: the store and the server's own calls are served first.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/result.h"
#include "cli/options/serve_options.h"
#include "server/access/exposure.h"

namespace detent::server {

/// The parts of the server that use descriptors.
struct DescriptorNeeds {
  bool has_beanstalk = true;
  std::size_t shards = 0;  // of the node's cluster; 0: the server is no node
};

struct DescriptorPlan {
  std::size_t store_files = 0;    // tables that RocksDB keeps open
  std::size_t others = 0;         // logs of the store, databases, brokers, and the server's own
  std::size_t webhook_calls = 0;  // at the same time, for each shard
  std::size_t peer_calls = 0;     // to other nodes, at the same time
  std::size_t http_connections = 0;
  std::size_t http_refusals = 0;  // connections above these, which are answered 503
  std::size_t beanstalk_connections = 0;

  friend bool operator==(const DescriptorPlan&, const DescriptorPlan&) = default;
};

/// The server does not start with fewer descriptors. For each shard that a node can serve, it needs
/// two connections to the database, a poller for webhooks, and one webhook call.
constexpr std::size_t least_descriptors(const DescriptorNeeds& needs) {
  return 128 + 4 * needs.shards;
}

/// Divides `limit` descriptors. Requires: limit ≥ least_descriptors(needs).
constexpr DescriptorPlan plan_descriptors(std::size_t limit, const DescriptorNeeds& needs) {
  constexpr std::size_t kMostRefusals = 64;
  constexpr std::size_t kMostPeerCalls = 16'384;
  const bool is_node = needs.shards > 0;
  const std::size_t shards = std::max<std::size_t>(needs.shards, 1);
  DescriptorPlan plan;
  // A node keeps its tasks in a database.
  plan.store_files = is_node ? 0 : std::clamp<std::size_t>(limit / 8, 20, 512);
  plan.others =
      std::max(std::min<std::size_t>(limit / 4, 512 + 8 * needs.shards), 32 + 3 * needs.shards);
  plan.webhook_calls = std::clamp<std::size_t>(limit / 8 / shards, 1, 512);
  std::size_t left = limit - plan.store_files - plan.others - plan.webhook_calls * shards;
  plan.peer_calls = is_node ? std::min({limit / 4, left / 2, kMostPeerCalls}) : 0;
  left -= plan.peer_calls;
  const std::size_t http =
      needs.has_beanstalk ? std::min(left / 3 * 2, kMostConnections + kMostRefusals) : left;
  plan.http_refusals = std::min(kMostRefusals, http / 8);
  plan.http_connections = std::min(http - plan.http_refusals, kMostConnections);
  if (needs.has_beanstalk) plan.beanstalk_connections = std::min(left - http, kMostConnections);
  return plan;
}

/// Raises the limit of the process to its hard limit, divides the descriptors and logs the plan.
/// `shards` is DescriptorNeeds::shards. Errors: `unavailable` if the hard limit is less than
/// least_descriptors().
Result<DescriptorPlan> take_descriptors(const cli::ServeOptions& options, std::size_t shards = 0);

/// The plan of a single server (not a node), for the current limit of the process.
DescriptorPlan descriptors_of(const cli::ServeOptions& options);

}  // namespace detent::server

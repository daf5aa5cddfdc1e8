// The figures that a node reports. Another node and a scraper get the figures of this node's
// shards. A client of this node gets the figures of the whole cluster, for which the node asks
// every other node.
//
// Figures are counts that can be added (cluster_figures.h). A caller never waits for an engine that
// hangs: questions to other nodes time out, and late pages of /metrics are replaced by earlier
// pages (metrics_page.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/unique_function.h"
#include "net/http_server/http_server.h"
#include "server/cluster/cluster_figures.h"
#include "server/cluster/cluster_shards.h"
#include "server/cluster/peer_link.h"
#include "server/routes/routes.h"
#include "store/lease_table.h"

namespace detent::server {

/// The path where nodes ask each other for figures.
inline constexpr std::string_view kFiguresTarget = "/v1/cluster/figures";

/// Thread-safe.
class NodeFigures {
 public:
  using Take = UniqueFunction<void(std::optional<ClusterFigures>)>;

  /// All arguments must outlive it. `here` has the page of figures that belong to no shard.
  NodeFigures(ClusterShards& shards, const Routes& here, const PeerLink& link);
  NodeFigures(const NodeFigures&) = delete;
  NodeFigures& operator=(const NodeFigures&) = delete;

  /// Sets the addresses of the other nodes. Questions to a removed node end.
  void set_nodes(std::vector<std::string> addresses) DETENT_EXCLUDES(mutex_);
  /// Requests the sum of the figures of all nodes; given on any thread. Gives no value if a node
  /// does not answer.
  void ask(Take take) DETENT_EXCLUDES(mutex_);
  /// Answers a question of another node with the figures of the shards of this node.
  void answer(const net::Responder& responder) const;
  /// `GET /metrics`. A scraper asks every node, so each node reports the shards that it has and
  /// had.
  void answer_metrics(const net::Responder& responder) const;
  /// Returns the last reported number of ready tasks in the shard, or no value before the first
  /// report.
  std::optional<std::uint64_t> backlog_of(ShardNumber shard) const { return backlog_->of(shard); }

 private:
  class Gathering;

  /// The latest calls to a node that end when it leaves. At most two askers wait at a time, for
  /// streams and for alerts.
  static constexpr std::size_t kMostCallsOfNode = 2;

  /// The number of ready tasks by shard. Thread-safe.
  class KnownBacklog {
   public:
    void note(const ClusterFigures& figures) DETENT_EXCLUDES(mutex_);
    std::optional<std::uint64_t> of(ShardNumber shard) const DETENT_EXCLUDES(mutex_);

   private:
    mutable Mutex mutex_;
    std::map<ShardNumber, std::uint64_t> ready_ DETENT_GUARDED_BY(mutex_);
  };

  void gather_here(const std::shared_ptr<Gathering>& gathering) const;
  std::vector<std::string> addresses() const DETENT_EXCLUDES(mutex_);

  ClusterShards& shards_;
  const Routes& here_;
  const PeerLink& link_;

  /// Synchronizes itself. Shared with pending answers, which may arrive after this object is gone.
  const std::shared_ptr<KnownBacklog> backlog_ = std::make_shared<KnownBacklog>();

  mutable Mutex mutex_;
  std::vector<std::string> addresses_ DETENT_GUARDED_BY(mutex_);
  /// The latest calls, by the address of the node. Some may have ended: see kMostCallsOfNode.
  std::vector<std::pair<std::string, PeerLink::CallNumber>> calls_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

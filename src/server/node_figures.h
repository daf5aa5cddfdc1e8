// What a node tells of figures: those of its own shards to another node and to a scraper, and those
// of the whole cluster, for which it asks every other node, to whoever wants them here.
//
// Figures are counts that add up (cluster_figures.h). Nobody waits for an engine that hangs: it is
// the questions that time out, and pages of /metrics that are late (metrics_page.h).
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
#include "net/http_server.h"
#include "server/cluster_figures.h"
#include "server/cluster_shards.h"
#include "server/peer_link.h"
#include "server/routes.h"
#include "store/lease_table.h"

namespace detent::server {

/// Where nodes ask each other for theirs.
inline constexpr std::string_view kFiguresTarget = "/v1/cluster/figures";

/// Thread-safe.
class NodeFigures {
 public:
  using Take = UniqueFunction<void(std::optional<ClusterFigures>)>;

  /// All must outlive it. `here` has a page of what is no shard's.
  NodeFigures(ClusterShards& shards, Routes& here, const PeerLink& link);
  NodeFigures(const NodeFigures&) = delete;
  NodeFigures& operator=(const NodeFigures&) = delete;

  /// Where the other nodes are. What was asked of one that is no longer among them is over.
  void set_nodes(std::vector<std::string> addresses) DETENT_EXCLUDES(mutex_);
  /// Has the figures of all nodes added up; on any thread. Nothing is given where one does not
  /// answer.
  void ask(Take take) DETENT_EXCLUDES(mutex_);
  /// What another node asks: the figures of the shards here.
  void answer(const net::Responder& responder) const;
  /// `GET /metrics`. A scraper asks every node, so each tells of the shards it has, and has had.
  void answer_metrics(const net::Responder& responder) const;
  /// How many tasks were ready in the shard when that was last told; nothing before.
  std::optional<std::uint64_t> backlog_of(ShardNumber shard) const { return backlog_->of(shard); }

 private:
  class Gathering;

  /// By shard. Thread-safe.
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
  Routes& here_;
  const PeerLink& link_;

  /// Synchronises itself. Shared with figures on their way, which may be given when this is gone.
  const std::shared_ptr<KnownBacklog> backlog_ = std::make_shared<KnownBacklog>();

  mutable Mutex mutex_;
  std::vector<std::string> addresses_ DETENT_GUARDED_BY(mutex_);
  /// The calls that were begun last, by the address of the node.
  std::vector<std::pair<std::string, PeerLink::CallNumber>> calls_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

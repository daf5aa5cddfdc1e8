// The front of a node: it accepts any request, and gets the answer from the nodes that serve the
// shards of the request.
//
// gateway/request_plan.h decides which shard gets which question, and how to combine the answers.
// This class sends the questions. It asks a shard of this node in process, and a shard of another
// node over HTTP. The HTTP request has headers that only nodes can write (peer_calls.h): the shard,
// the cluster's secret, and more. Only that shard may answer such a request, so a request is
// forwarded at most once.
//
// A paused node can wake up and still act as the owner of a shard that another node has taken over.
// Its writes are rejected, because their epoch is old. Leasing a task does not write, so the node
// also checks its shard lease before it sends an answer. If the lease is not certain, the answer is
// 503, as for a shard without an owner. The client then tries again, although the first request may
// have been carried out.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/shard_map.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "gateway/request_plan.h"
#include "net/http_server/http_server.h"
#include "server/cluster/cluster_shards.h"
#include "server/cluster/node_figures.h"
#include "server/cluster/peer_calls.h"
#include "server/cluster/peer_link.h"
#include "server/routes/routes.h"
#include "store/lease_table.h"

namespace detent::server {

/// The owner of each shard, as of the node's last step.
struct ClusterMap {
  std::vector<Member> members;     // that are alive, by name
  std::vector<ShardOwner> owners;  // by shard; either complete, or empty before the first look
  std::map<ShardLease, MonotonicTime> held_until;  // by this node: sure until then
  PartitionedQueues partitioned = {};
  std::vector<MissingMember> missing = {};  // by name
};

struct ClusterFrontOptions {
  ShardNumber shards = 1;
  std::string node;  // the name of this node
  std::size_t max_calls_to_a_node = 4'096;
  std::size_t max_calls_to_all_nodes = 16'384;
  std::size_t node_connections = kMostConnections;  // see PeerCallsOptions
};

/// Thread-safe.
class ClusterFront {
 public:
  /// All arguments must outlive it. `here` answers requests that are not about tasks. `on_stray`
  /// runs, on any thread, when a shard was not at the place that the map shows.
  ClusterFront(ClusterFrontOptions options, ClusterShards& shards, Routes& here,
               const PeerLink& link, const Clock& clock, std::function<void()> on_stray);
  ClusterFront(const ClusterFront&) = delete;
  ClusterFront& operator=(const ClusterFront&) = delete;

  /// Answers one request, now or later. Never blocks.
  void handle(net::HttpRequest request, net::Responder responder);
  /// See net::HeadCheck. A request of another node is not checked, because that node has already
  /// received all of it.
  std::optional<net::HttpResponse> refuse_unread(const net::HttpRequest& head);
  /// Replaces the map. Open questions to a node that no longer has the shard are answered with 503,
  /// because that node may be dead.
  void update(ClusterMap map) DETENT_EXCLUDES(mutex_);
  NodeFigures& figures() noexcept { return figures_; }
  using Answered = PeerCalls::Answered;
  using Abandon = PeerCalls::Abandon;
  using WhenSlow = PeerCalls::WhenSlow;
  /// Asks a shard. The answer can come on any thread, even before this call returns. Calling the
  /// returned function ends the question. `slow` is as in PeerCalls::ask(); a shard of this node is
  /// never slow.
  Abandon ask(gateway::Part part, Answered answered, WhenSlow slow = {});
  /// The places of queues, as of the last look.
  std::shared_ptr<const ShardMap> shard_map() const DETENT_EXCLUDES(mutex_);
  /// Returns true if all shards of this node are open and its leases are certain.
  bool is_ready() const DETENT_EXCLUDES(mutex_);
  /// Returns true if this node has the shard, as of the last look. Unlike a lease, this does not
  /// expire while the database is away.
  bool has_shard(ShardNumber shard) const DETENT_EXCLUDES(mutex_);
  NodeCounts nodes() const DETENT_EXCLUDES(mutex_);
  /// `GET /v1/cluster`.
  std::string render() const DETENT_EXCLUDES(mutex_);

 private:
  class ForwardedRequest;
  class Followers;

  void run(net::HttpRequest request, net::Responder responder);
  Abandon ask_here(const std::shared_ptr<ServedShard>& shard, net::HttpRequest request,
                   Answered answered);
  void ask_for_peer(const std::string& wait, const std::shared_ptr<ServedShard>& shard,
                    net::HttpRequest request, net::Responder responder);
  void answer_peer(net::HttpRequest request, net::Responder responder);
  void answer_ready(const net::Responder& responder) const;
  void note_change(const net::HttpResponse& answer) DETENT_EXCLUDES(mutex_);
  std::vector<std::string> set_partitioned(PartitionedQueues queues) DETENT_REQUIRES(mutex_);
  void follow(const std::vector<std::string>& queues) DETENT_EXCLUDES(mutex_);
  bool is_sure_of(const ShardLease& lease) const DETENT_EXCLUDES(mutex_);
  std::optional<std::string> node_of(ShardNumber shard) const DETENT_EXCLUDES(mutex_);
  /// Returns the address of the other node that serves the shard, or no value if no node is known
  /// to serve it.
  std::optional<std::string> address_of(ShardNumber shard) const DETENT_REQUIRES(mutex_);

  const ClusterFrontOptions options_;
  ClusterShards& shards_;
  Routes& here_;
  const PeerLink& link_;
  const Clock& clock_;
  const std::function<void()> on_stray_;

  // These members synchronize themselves.
  const std::shared_ptr<Followers>
      followers_;  // also of forwarded requests, which may be destroyed after this
  PeerCalls peers_;
  PeerWaits waits_;
  NodeFigures figures_;

  /// A rising number that chooses a shard where any of several can answer. Relaxed, because every
  /// order is correct.
  std::atomic<std::uint64_t> turn_{0};

  mutable Mutex mutex_;
  ClusterMap map_ DETENT_GUARDED_BY(mutex_);
  /// Shared with requests that are being planned.
  std::shared_ptr<const ShardMap> shard_map_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

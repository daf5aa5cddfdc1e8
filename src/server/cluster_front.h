// The door of a node: takes any request, and has it answered by the nodes that serve its shards.
//
// gateway/request_plan.h says which shard is asked what, and what is made of the answers; this says
// how each question gets there. A shard of this node is asked in process, one of another over
// HTTP, with headers that only nodes know to write (peer_calls.h): which shard is meant, the
// cluster's secret, and more. Such a request is answered by that shard or not at all, so it goes
// one hop at most.
//
// A node may believe that a shard is its own when it no longer is, having stood still. What it
// writes then has no effect (the epoch sees to that), but handing out a task writes nothing. So an
// answer goes out only while the shard's lease is sure to be this node's; else it is 503, as for a
// shard that nobody has just now. The caller tries again, and what was asked may have been done.
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
#include "net/http_server.h"
#include "server/cluster_shards.h"
#include "server/node_figures.h"
#include "server/peer_calls.h"
#include "server/peer_link.h"
#include "server/routes.h"
#include "store/lease_table.h"

namespace detent::server {

/// Who has what, as of a node's last step.
struct ClusterMap {
  std::vector<Member> members;                     // that are alive, by name
  std::vector<ShardOwner> owners;                  // by shard; all, or none before the first look
  std::map<ShardLease, MonotonicTime> held_until;  // by this node: sure until then
  PartitionedQueues partitioned = {};
  std::vector<MissingMember> missing = {};  // by name
};

struct ClusterFrontOptions {
  ShardNumber shards = 1;
  std::string node;  // this one's name
  std::size_t max_calls_to_a_node = 4'096;
  std::size_t max_calls_to_all_nodes = 16'384;
  std::size_t node_connections = kMostConnections;  // see PeerCallsOptions
};

/// Thread-safe.
class ClusterFront {
 public:
  /// All must outlive it. `here` answers what is not about tasks; `on_stray` runs, on any thread,
  /// when a shard was not where the map says.
  ClusterFront(ClusterFrontOptions options, ClusterShards& shards, Routes& here,
               const PeerLink& link, const Clock& clock, std::function<void()> on_stray);
  ClusterFront(const ClusterFront&) = delete;
  ClusterFront& operator=(const ClusterFront&) = delete;

  /// Answers one request, now or later. Never blocks.
  void handle(net::HttpRequest request, net::Responder responder);
  /// See net::HeadCheck. Another node sends what it has been sent whole.
  std::optional<net::HttpResponse> refuse_unread(const net::HttpRequest& head);
  /// What was asked of a node that has the shard no longer is answered 503: it may be dead.
  void update(ClusterMap map) DETENT_EXCLUDES(mutex_);
  NodeFigures& figures() noexcept { return figures_; }
  using Answered = PeerCalls::Answered;
  using Abandon = PeerCalls::Abandon;
  using Late = PeerCalls::Late;
  /// Asks a shard. The answer comes on any thread, perhaps before this returns; what is returned
  /// ends the question. `late` is as PeerCalls::ask()'s; a shard of this node is never late.
  Abandon ask(gateway::Part part, Answered answered, Late late = {});
  /// Where queues are, as of the last look.
  std::shared_ptr<const ShardMap> shard_map() const DETENT_EXCLUDES(mutex_);
  /// All shards this node has are open, and its leases are sure.
  bool is_ready() const DETENT_EXCLUDES(mutex_);
  NodeCounts nodes() const DETENT_EXCLUDES(mutex_);
  /// `GET /v1/cluster`.
  std::string render() const DETENT_EXCLUDES(mutex_);

 private:
  class Errand;
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
  /// Where another node serves it; nothing when nobody does, as far as is known.
  std::optional<std::string> address_of(ShardNumber shard) const DETENT_REQUIRES(mutex_);

  const ClusterFrontOptions options_;
  ClusterShards& shards_;
  Routes& here_;
  const PeerLink& link_;
  const Clock& clock_;
  const std::function<void()> on_stray_;

  // Synchronise themselves.
  const std::shared_ptr<Followers> followers_;  // of errands, too, which may be dropped after this
  PeerCalls peers_;
  PeerWaits waits_;
  NodeFigures figures_;

  /// Grows: whose turn it is where any of several would do. Relaxed: any order will do.
  std::atomic<std::uint64_t> turn_{0};

  mutable Mutex mutex_;
  ClusterMap map_ DETENT_GUARDED_BY(mutex_);
  /// Shared with requests that are being planned.
  std::shared_ptr<const ShardMap> shard_map_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

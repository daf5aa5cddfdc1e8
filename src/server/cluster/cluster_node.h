// A complete node of a cluster: the shards that it serves, the keeper that chooses these shards,
// the front for requests of clients and of other nodes, and the thread that keeps them in step with
// the database.
//
// Nodes share their state through LeaseTable and the stores. Each node has its own dashboard files,
// event streams and beanstalk clients.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log/log_pace.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "cluster/shard_keeper.h"
#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "net/address/host_resolver.h"
#include "net/http_client/http_caller.h"
#include "net/socket/stream_server.h"
#include "server/beanstalk/beanstalk_server.h"
#include "server/beanstalk/node_shards.h"
#include "server/cluster/cluster_front.h"
#include "server/cluster/cluster_job_shards.h"
#include "server/cluster/cluster_shards.h"
#include "server/cluster/node_changes.h"
#include "server/cluster/node_figures.h"
#include "server/cluster/peer_link.h"
#include "server/routes/routes.h"
#include "server/watch/event_hub.h"
#include "store/lease_table.h"

namespace detent::server {

struct ClusterNodeOptions {
  Member me;
  std::string secret;           // that the nodes of the cluster show each other
  std::string scheme = "http";  // the scheme of calls between nodes
  std::string ca_file = {};     // see HttpCallerOptions
  std::function<Result<OpenEngine>(const ShardLease&, ChangeFeed&)>
      open;  // see ClusterShardsOptions
  RoutesOptions routes = {};
  WebhookOptions webhooks = {};
  std::size_t memory_bytes = 0;  // the budget that /metrics reports
  std::size_t max_peer_calls = ClusterFrontOptions{}.max_calls_to_all_nodes;
  std::size_t http_connections = kMostConnections;  // of this node, and as a rule of the others
  std::uint64_t seed = 0;                           // spreads the beats of nodes
};

/// Thread-safe. The HTTP server must be stopped before it is destroyed, and after stop().
class ClusterNode {
 public:
  /// How long open shards may take to finish their work at a stop.
  static constexpr std::chrono::seconds kStopGrace{15};
  /// How long it may take at a stop to answer beanstalk clients and to give back their leases.
  static constexpr std::chrono::seconds kBeanstalkGrace{2};

  /// Joins the cluster and starts to take its share of the shards. `clock` must outlive it. Errors:
  /// as HttpCaller::start().
  static Result<std::unique_ptr<ClusterNode>> start(ClusterNodeOptions options,
                                                    std::unique_ptr<LeaseTable> table,
                                                    Clock& clock);
  /// Stops, if stop() has not been called.
  ~ClusterNode();
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  /// Runs `works`, on any thread, after the engines of all shards that are open here have answered,
  /// each with a read of its store. A shard that closes in the meantime counts as answered.
  void ask_whether_it_works(UniqueFunction<void()> works);

  void handle(net::HttpRequest request, net::Responder responder);
  /// See net::HeadCheck.
  std::optional<net::HttpResponse> refuse_unread(const net::HttpRequest& head) {
    return front_->refuse_unread(head);
  }
  /// Also serves beanstalk clients, for jobs on any node. Call it at most once, before stop().
  /// Errors: as BeanstalkServer::start().
  Result<void> start_beanstalk(net::StreamServerOptions options);
  /// Returns null if the beanstalk server is off.
  BeanstalkServer* beanstalk() noexcept { return beanstalk_.get(); }
  /// Returns true if this is the node of the cluster that sends alerts. It is the owner of the
  /// first shard, so a cluster has one such node, except for moments when the shard moves.
  bool sends_alerts() const { return front_->has_shard(0); }
  /// Requests the figures of the whole cluster. While a shard is away, gives the latest complete
  /// figures. They show the store as stopped while this node does not reach the database. See
  /// AskFigures.
  bool ask_figures_for_alerts(UniqueFunction<void(std::optional<EngineStats>)> take);
  /// Makes every shard read the keys again. Errors: the first error of a shard.
  Result<void> reload_webhook_keys();
  /// Ends event streams and waits of callers that have lost their permission.
  void check_again();
  /// Ends all event streams and waits of workers, before the servers stop.
  void end_waits();
  /// Disconnects beanstalk clients, hands all shards over, and leaves the cluster. Idempotent.
  /// Blocks until other nodes may take the shards.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  ClusterNode(ClusterNodeOptions options, std::unique_ptr<LeaseTable> table, Clock& clock);
  RoutesOptions routes_options();
  bool ask_figures(UniqueFunction<void(std::optional<EngineStats>)> take);
  Result<void> make_caller();
  /// The latest figures with all shards. Owned by this and by questions under way.
  struct LastFigures {
    Mutex mutex;
    std::optional<EngineStats> stats DETENT_GUARDED_BY(mutex);
  };
  void ask_changes(const std::string& address, const std::string& after,
                   NodeChanges::Answered answered);
  void run();
  void step();
  void look();
  void note(const Result<void>& stepped);
  void note_missing();
  std::string node_before(ShardNumber shard) const;
  ProcessFigures process_figures() const;
  bool is_stopping() const DETENT_EXCLUDES(mutex_);
  void stop_beanstalk();

  // Constant after construction.
  const ClusterNodeOptions options_;
  Clock& clock_;
  const std::unique_ptr<LeaseTable> table_;
  // Set by start_beanstalk(). Sessions of its clients refer to it, so it outlives them.
  std::unique_ptr<BeanstalkServer> beanstalk_;
  // Set by make_caller(). Answers that come late refer to it, so it outlives shards_ and caller_.
  std::unique_ptr<NodeShards> job_shards_;

  // These members synchronize themselves.
  Doorbell bell_;
  std::atomic<bool> has_strayed_{false};        // relaxed: the bell orders it
  std::atomic<NodeFigures*> figures_{nullptr};  // for the thread of events_, which begins first
  std::atomic<bool> is_cut_off_{false};         // the last step failed; relaxed: a gauge
  const std::shared_ptr<LastFigures> last_figures_ = std::make_shared<LastFigures>();
  NodeChanges changes_;
  EventHub events_;
  Routes here_;
  ClusterShards shards_;
  net::SystemResolver resolver_;
  std::unique_ptr<net::HttpCaller> caller_;
  std::optional<PeerLink> link_;  // by caller_
  std::unique_ptr<ClusterFront> front_;
  std::unique_ptr<ClusterJobShards> jobs_;  // for job_shards_

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  mutable Mutex mutex_;
  bool is_stopping_ DETENT_GUARDED_BY(mutex_) = false;

  // Used only by the thread.
  ShardKeeper keeper_;
  std::vector<ShardOwner> owners_;
  PartitionedQueues partitioned_;
  std::set<std::string> missing_;  // nodes that the log has told of
  std::optional<MonotonicTime> cut_off_since_;
  MonotonicTime answers_since_{};  // the database, after it was away
  LogPace cut_off_pace_;

  Thread thread_;
};

}  // namespace detent::server

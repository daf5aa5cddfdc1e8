// The shards that this node serves. Each shard has its own engine and all the parts around it.
//
// A shard is opened, served and closed by its own thread, because each of these can wait for the
// database. The keeper (cluster/shard_keeper.h) decides when to open and close a shard. Request
// handlers find the shard here. Shards share no state, so a slow or failed shard does not affect
// the other shards.
//
// If the store of a shard fails, the shard is not opened again in place. The shard closes, the
// keeper gives up its lease, and this node or another node takes the shard again with a new epoch.
// The database makes this safe (lease_table.h). A shard must not come back by itself, because
// another node may have taken it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "cluster/shard_keeper.h"
#include "detent/clock.h"
#include "engine/records/change_feed.h"
#include "engine/thread/engine_thread.h"
#include "server/cluster/cluster_figures.h"
#include "server/cluster/shard_jobs.h"
#include "server/cluster/shard_log.h"
#include "server/http/metrics_page.h"
#include "server/operate/webhooks.h"
#include "server/routes/routes.h"

namespace detent::server {

class EventHub;

struct ClusterShardsOptions {
  /// Opens the store of a shard under its lease, and an engine on that store. May block. Several
  /// threads can call it at the same time.
  std::function<Result<OpenEngine>(const ShardLease&, ChangeFeed&)> open;
  /// Makes the feed to which the engine of a shard reports its changes.
  std::function<std::shared_ptr<ChangeFeed>()> new_feed = [] {
    return std::make_shared<ChangeFeed>();
  };
  RoutesOptions routes = {};
  WebhookOptions webhooks = {};
  /// The node that had the shard before this node takes it; empty: none, this node, or unknown.
  /// Runs on the keeper's thread.
  std::function<std::string(ShardNumber)> node_before = [](ShardNumber) { return std::string(); };
  /// See ShardLog. May run on any thread.
  std::function<void()> on_next_log_line = [] {};
};

/// One shard on this node. Thread-safe.
class ServedShard {
 public:
  /// Starts to open the shard. All arguments must outlive it, except `lease`.
  ServedShard(const ShardLease& lease, const ClusterShardsOptions& options, ShardLog& log,
              EventHub& events, Clock& clock);
  /// As close() at a stop, and waits for the end.
  ~ServedShard();
  ServedShard(const ServedShard&) = delete;
  ServedShard& operator=(const ServedShard&) = delete;

  /// Answers with the shard's own routes, also for beanstalk clients. Answers 503 while the shard
  /// is not open.
  void handle(net::HttpRequest request, net::Responder responder) DETENT_EXCLUDES(mutex_);
  // For a shard that is serving:

  /// As Webhooks::reload_keys().
  Result<void> reload_webhook_keys() { return parts_.webhooks->reload_keys(); }
  /// Gives the shard's figures once, on its engine's thread. Never gives them if the shard ends
  /// first.
  void ask_figures(UniqueFunction<void(ClusterFigures)> take);
  /// As Routes::check_again().
  void check_again() { parts_.routes->check_again(); }
  /// Gives the shard's /metrics page once, on any thread. A shard that is closing or closed gives
  /// its last page. Do not call it before the shard is open. See MetricsPage.
  void ask_page(MetricsPage::Take take);
  /// Checks for late pages.
  void look_at_page() { page_.look(); }
  std::string last_page() const { return page_.last(); }
  /// Runs `works` on the engine's thread after the engine has read its store. Never runs it if the
  /// shard ends first.
  void ask_whether_it_works(UniqueFunction<void()> works);
  /// Answers waiting workers, without a task.
  void end_waits();
  /// Starts to close the shard: waiting clients are answered, and open leases are written to the
  /// store. The log has the reason of the first call.
  void close(ShardEnd end) DETENT_EXCLUDES(mutex_);

  const ShardLease& lease() const noexcept { return lease_; }
  bool is_opening() const { return is(State::opening); }
  bool is_serving() const DETENT_EXCLUDES(mutex_);
  /// Returns true if the shard has ended or could not be opened.
  bool is_closed() const DETENT_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { opening, serving, closing, closed };
  /// The parts that serve the shard. They are made when it is open. Members are destroyed in
  /// reverse order.
  struct Parts {
    std::shared_ptr<ChangeFeed> feed;  // with the reader that takes changes from it
    std::unique_ptr<EngineThread> engine;
    std::unique_ptr<Webhooks> webhooks;
    std::unique_ptr<Routes> routes;
    std::unique_ptr<ShardJobs> jobs;
  };

  void run();
  Result<void> open();
  void stop();
  void fail(const Error& error) DETENT_EXCLUDES(mutex_);
  bool is(State state) const DETENT_EXCLUDES(mutex_);
  void become(State state) DETENT_EXCLUDES(mutex_);
  std::optional<ShardEnd> end() const DETENT_EXCLUDES(mutex_);

  // Constant after construction.
  const ShardLease lease_;
  const std::string node_before_;
  const ClusterShardsOptions& options_;
  ShardLog& log_;
  EventHub& events_;
  Clock& clock_;

  // Synchronizes itself.
  Doorbell bell_;
  MetricsPage page_;

  // Guarded by mutex_.
  mutable Mutex mutex_;
  State state_ DETENT_GUARDED_BY(mutex_) = State::opening;
  std::optional<ShardEnd> end_ DETENT_GUARDED_BY(mutex_);  // set: it must close

  // Set by the thread before the state becomes `serving`; constant afterwards.
  Parts parts_;

  Thread thread_;
};

/// Thread-safe. The methods of ShardHost are for the keeper's thread only.
class ClusterShards final : public ShardHost {
 public:
  /// All arguments must outlive it.
  ClusterShards(ClusterShardsOptions options, EventHub& events, Clock& clock);

  void open(const ShardLease& lease) override DETENT_EXCLUDES(mutex_);
  void close(ShardNumber shard) override DETENT_EXCLUDES(mutex_);
  bool is_closed(ShardNumber shard) override DETENT_EXCLUDES(mutex_);
  void drop(ShardNumber shard) override DETENT_EXCLUDES(mutex_);

  /// The log says of shards that close from now on that the node stops.
  void expect_stop() { is_stopping_.store(true, std::memory_order_relaxed); }
  /// Lines that have been gathered for the log; see ShardLog.
  ShardLog& log() noexcept { return log_; }

  /// Returns null if this node does not have the shard, or if the shard is not open yet.
  std::shared_ptr<ServedShard> find(ShardNumber shard) const DETENT_EXCLUDES(mutex_);
  /// Gives the /metrics pages of all open shards, and the counts of shards that have ended here.
  /// Counters therefore never fall between two calls, even if shards move. Can be called on any
  /// thread.
  void ask_pages(UniqueFunction<void(std::vector<std::string>)> take) DETENT_EXCLUDES(mutex_);
  /// Call this periodically, so that a scraper does not wait for an engine that hangs.
  void look_at_pages() DETENT_EXCLUDES(mutex_);
  /// The open shards, by number.
  std::vector<std::shared_ptr<ServedShard>> serving() const DETENT_EXCLUDES(mutex_);
  /// Forgets the dropped shards that have ended. Returns true if all dropped shards have ended.
  /// Rarely blocks.
  bool sweep() DETENT_EXCLUDES(mutex_);
  /// Ends all remaining shards, even after their time limit. When it returns, every request has
  /// been answered. Call it after the keeper has finished, and before the receivers of the answers
  /// are destroyed. Blocks like ~ServedShard.
  void end() DETENT_EXCLUDES(mutex_);

 private:
  std::vector<std::shared_ptr<ServedShard>> with_pages() const DETENT_REQUIRES(mutex_);
  void note_ended(const ServedShard& shard) DETENT_REQUIRES(mutex_);

  const ClusterShardsOptions options_;
  EventHub& events_;
  Clock& clock_;

  // These members synchronize themselves.
  ShardLog log_;
  std::atomic<bool> is_stopping_{false};  // relaxed: for the log only

  mutable Mutex mutex_;
  std::string counted_by_ended_ DETENT_GUARDED_BY(mutex_);  // a page
  std::map<ShardNumber, std::shared_ptr<ServedShard>> shards_ DETENT_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ServedShard>> dropped_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

// The shards that this node serves: each an engine of its own, and all that goes with one.
//
// A shard is opened, served and closed by a thread of its own, because all three may wait for the
// database. The keeper (cluster/shard_keeper.h) says when; whoever has a request for a shard finds
// it here. Nothing in it is shared between shards, so one that fails, or is slow, harms no other.
//
// A shard whose store fails is not opened again in place: it ends, the keeper gives its lease up,
// and it is taken anew, here or elsewhere, under another epoch. What makes that safe is in the
// database (lease_table.h); a shard that was lost meanwhile must not come back by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "cluster/shard_keeper.h"
#include "detent/clock.h"
#include "engine/change_feed.h"
#include "engine/engine_thread.h"
#include "server/cluster_figures.h"
#include "server/metrics_page.h"
#include "server/routes.h"
#include "server/shard_jobs.h"
#include "server/webhooks.h"

namespace detent::server {

class EventHub;

struct ClusterShardsOptions {
  /// Opens the store of a shard under its lease, and the engine on it. May block; called by several
  /// threads at once.
  std::function<Result<OpenEngine>(const ShardLease&, ChangeFeed&)> open;
  /// Makes the feed that the engine of a shard tells its changes.
  std::function<std::shared_ptr<ChangeFeed>()> new_feed = [] {
    return std::make_shared<ChangeFeed>();
  };
  RoutesOptions routes = {};
  WebhookOptions webhooks = {};
};

/// One shard on this node. Thread-safe.
class ServedShard {
 public:
  /// Begins to open it. All must outlive it.
  ServedShard(const ShardLease& lease, const ClusterShardsOptions& options, EventHub& events,
              Clock& clock);
  /// As close(), and waits for the end.
  ~ServedShard();
  ServedShard(const ServedShard&) = delete;
  ServedShard& operator=(const ServedShard&) = delete;

  /// Answers with the shard's own routes, and for beanstalk clients; 503 while it is not open.
  void handle(net::HttpRequest request, net::Responder responder) DETENT_EXCLUDES(mutex_);
  // Of one that is serving:

  /// As Webhooks::reload_keys().
  Result<void> reload_webhook_keys() { return parts_.webhooks->reload_keys(); }
  /// Gives its figures once, on its engine's thread; never when it ends before.
  void ask_figures(UniqueFunction<void(ClusterFigures)> take);
  /// As Routes::check_again().
  void check_again() { parts_.routes->check_again(); }
  /// Gives its page of /metrics once, on any thread. Of one that is closing or closed that is the
  /// last; not to be asked before it is open. See MetricsPage.
  void ask_page(MetricsPage::Take take);
  /// For pages that are late.
  void look_at_page() { page_.look(); }
  std::string last_page() const { return page_.last(); }
  /// Has `works` run on its engine's thread, once it has read its store; never when it ends before.
  void ask_whether_it_works(UniqueFunction<void()> works);
  /// Answers workers that wait for a task, without one.
  void end_waits();
  /// Begins to end it: whoever waits is answered, open leases are written out.
  void close() DETENT_EXCLUDES(mutex_);

  const ShardLease& lease() const noexcept { return lease_; }
  bool is_opening() const { return is(State::opening); }
  bool is_serving() const DETENT_EXCLUDES(mutex_);
  /// It has ended, or could not be opened.
  bool is_closed() const DETENT_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { opening, serving, closing, closed };
  /// What serves it, made once it is open. Members end in the reverse order.
  struct Parts {
    std::shared_ptr<ChangeFeed> feed;  // with who takes from it
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

  // Constant after construction.
  const ShardLease lease_;
  const ClusterShardsOptions& options_;
  EventHub& events_;
  Clock& clock_;

  // Synchronises itself.
  Doorbell bell_;
  MetricsPage page_;

  // Guarded by mutex_.
  mutable Mutex mutex_;
  State state_ DETENT_GUARDED_BY(mutex_) = State::opening;
  bool must_close_ DETENT_GUARDED_BY(mutex_) = false;

  // Made by the thread before the state is serving, constant from then on.
  Parts parts_;

  Thread thread_;
};

/// Thread-safe; ShardHost's methods are for the keeper's thread.
class ClusterShards final : public ShardHost {
 public:
  /// All must outlive it.
  ClusterShards(ClusterShardsOptions options, EventHub& events, Clock& clock);

  void open(const ShardLease& lease) override DETENT_EXCLUDES(mutex_);
  void close(ShardNumber shard) override DETENT_EXCLUDES(mutex_);
  bool is_closed(ShardNumber shard) override DETENT_EXCLUDES(mutex_);
  void drop(ShardNumber shard) override DETENT_EXCLUDES(mutex_);

  /// Null when this node does not have it, or it is not open yet.
  std::shared_ptr<ServedShard> find(ShardNumber shard) const DETENT_EXCLUDES(mutex_);
  /// Gives the pages of /metrics of all that are open here, and what those that have ended have
  /// counted: from one time to the next nothing of it falls, wherever shards move. On any thread.
  void ask_pages(UniqueFunction<void(std::vector<std::string>)> take) DETENT_EXCLUDES(mutex_);
  /// To be called again and again: whoever waits for pages does not wait for an engine that hangs.
  void look_at_pages() DETENT_EXCLUDES(mutex_);
  /// Those that are open, by number.
  std::vector<std::shared_ptr<ServedShard>> serving() const DETENT_EXCLUDES(mutex_);
  /// Of those that were dropped, forgets the ones that have come to their end. True when none is
  /// left. Seldom blocks.
  bool sweep() DETENT_EXCLUDES(mutex_);
  /// Ends all that is left, in time or not: whoever was asked has answered when this returns. To be
  /// called before what takes the answers goes, when the keeper is done. Blocks as ~ServedShard.
  void end() DETENT_EXCLUDES(mutex_);

 private:
  std::vector<std::shared_ptr<ServedShard>> with_pages() const DETENT_REQUIRES(mutex_);
  void note_ended(const ServedShard& shard) DETENT_REQUIRES(mutex_);

  const ClusterShardsOptions options_;
  EventHub& events_;
  Clock& clock_;

  mutable Mutex mutex_;
  std::string counted_by_ended_ DETENT_GUARDED_BY(mutex_);  // a page
  std::map<ShardNumber, std::shared_ptr<ServedShard>> shards_ DETENT_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ServedShard>> dropped_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

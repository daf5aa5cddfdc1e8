// The shards of the cluster as the beanstalk clients of a node need them: answers come on the
// thread of the sessions, and leases that nobody works under any more are given back, again and
// again while their shard is away.
//
// That thread is of an engine without tasks; a pause there is a timer, which a stop of the node
// ends as all waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "detent/clock.h"
#include "detent/unique_function.h"
#include "server/beanstalk_hub.h"
#include "server/cluster_jobs.h"

namespace detent::server {

/// Confined to the thread of the hub's engine. To be copied: questions under way have one.
class SessionShards {
 public:
  /// What a shard that was away is to be given back is tried again after so long.
  static constexpr std::chrono::milliseconds kGiveBackPause{500};

  using Answered = UniqueFunction<void(Engine&, std::optional<ShardAnswer>)>;
  using Late = UniqueFunction<void(Engine&)>;

  /// Both must outlive it, and what it was asked.
  SessionShards(BeanstalkHub& hub, JobShards& shards) : hub_(&hub), shards_(&shards) {}

  /// See JobShards::map().
  std::shared_ptr<const ShardMap> map() const { return shards_->map(); }
  /// See JobShards::next_number().
  std::uint64_t next_number() const { return shards_->next_number(); }
  MonotonicTime now() const { return hub_->clock.now(); }

  /// See JobShards::ask().
  void ask(ShardNumber shard, const ShardAsk& ask, Answered answered, Late late = {}) const;
  /// Runs it then, or when all waits are ended. What is returned ends it by Engine::abandon_wait().
  Engine::WaitId after(Engine& engine, std::chrono::milliseconds delay,
                       UniqueFunction<void(Engine&)> then) const;
  /// The hub counts it until the shard has answered, or was asked often enough.
  void give_back(ShardNumber shard, std::vector<LeaseToken> leases) const;

 private:
  /// Leases of one shard.
  struct GiveBack {
    ShardNumber shard = 0;
    std::vector<LeaseToken> leases;
    int tries = 0;  // that are left
  };

  void give_back(GiveBack what) const;
  void give_back_later(Engine& engine, GiveBack what) const;

  BeanstalkHub* hub_;
  JobShards* shards_;
};

}  // namespace detent::server

// The shards of the cluster for the beanstalk clients of a node. Answers arrive on the thread of
// the sessions. Leases of disconnected clients are given back, with repeated attempts while their
// shard is unreachable.
//
// The thread belongs to an engine without tasks. A pause is a timer of that engine, so a stop of
// the node ends pauses together with all other waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "detent/clock.h"
#include "detent/unique_function.h"
#include "server/beanstalk/beanstalk_hub.h"
#include "server/beanstalk/cluster_jobs.h"

namespace detent::server {

/// Confined to the thread of the hub's engine. Copy it freely: each open question holds a copy.
class SessionShards {
 public:
  /// The pause before leases are again given back to a shard that was unreachable.
  static constexpr std::chrono::milliseconds kGiveBackPause{500};

  using Answered = UniqueFunction<void(Engine&, std::optional<ShardAnswer>)>;
  using Late = UniqueFunction<void(Engine&)>;

  /// Both must outlive it and its open questions.
  SessionShards(BeanstalkHub& hub, JobShards& shards) : hub_(&hub), shards_(&shards) {}

  /// See JobShards::map().
  std::shared_ptr<const ShardMap> map() const { return shards_->map(); }
  /// See JobShards::next_number().
  std::uint64_t next_number() const { return shards_->next_number(); }
  MonotonicTime now() const { return hub_->clock.now(); }

  /// See JobShards::ask().
  void ask(ShardNumber shard, const ShardAsk& ask, Answered answered, Late late = {}) const;
  /// Runs the function after `delay`, or when all waits are ended. Engine::abandon_wait() with the
  /// returned id cancels it.
  Engine::WaitId after(Engine& engine, std::chrono::milliseconds delay,
                       UniqueFunction<void(Engine&)> then) const;
  /// Gives the leases back. The hub counts the shard until it has answered, or the attempts are
  /// used up.
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

// The shards of the cluster for beanstalk clients, reached through the front of the node. The front
// knows the owner of each shard and asks it in process or over HTTP.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/beanstalk/cluster_jobs.h"
#include "server/cluster/cluster_front.h"

namespace detent::server {

class ClusterJobShards final : public ShardAsker {
 public:
  /// `front` must outlive it, but must end its questions first.
  explicit ClusterJobShards(ClusterFront& front);

  std::shared_ptr<const ShardMap> map() const override { return front_.shard_map(); }
  void ask(ShardNumber shard, const ShardAsk& ask, Done done, WhenSlow slow) override;
  std::uint64_t next_number() override { return ++last_number_; }
  /// Returns true if all questions have been answered.
  bool is_idle() const noexcept { return open_ == 0; }

 private:
  ClusterFront& front_;
  std::atomic<std::uint64_t> last_number_;
  std::atomic<std::uint64_t> open_{0};
};

}  // namespace detent::server

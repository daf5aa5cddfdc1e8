// The shards of the cluster for beanstalk clients, by way of a node's front: it knows who has a
// shard, and asks it here or over HTTP.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/cluster_front.h"
#include "server/cluster_jobs.h"

namespace detent::server {

class FrontJobs final : public JobShards {
 public:
  /// `front` must outlive it, and end its questions before.
  explicit FrontJobs(ClusterFront& front);

  std::shared_ptr<const ShardMap> map() const override { return front_.shard_map(); }
  void ask(ShardNumber shard, const ShardAsk& ask, Done done, Late late) override;
  std::uint64_t next_number() override { return ++last_number_; }
  /// All that was asked is answered.
  bool is_idle() const noexcept { return open_ == 0; }

 private:
  ClusterFront& front_;
  std::atomic<std::uint64_t> last_number_;
  std::atomic<std::uint64_t> open_{0};
};

}  // namespace detent::server

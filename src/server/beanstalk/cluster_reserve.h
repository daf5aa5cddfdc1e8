// One `reserve` of a beanstalk client, over all queues that it watches, on any shards.
//
// If all queues are on one shard, it waits there. If they are on several shards, it works in these
// steps:
//
// 1. It asks each shard for its most urgent job, and takes the most urgent of all.
// 2. If no shard has a job, it waits at all shards. The first job wins. The other waits are
//    cancelled, and a job that still arrives is given back immediately.
//
// A slow shard does not delay jobs of other shards. It does not delay the end either: after the
// deadline, slow shards are ignored. There is one exception: a `reserve` with timeout 0 gets "no
// job" only after all shards have answered.
//
// There is no polling: a wait at a shard lasts up to a minute and is then renewed. An unreachable
// shard is asked again after a pause, while the waits at the other shards continue. If a queue is
// partitioned or created again, the wait moves to the new places of the queue.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "detent/timer_handle.h"
#include "detent/unique_function.h"
#include "server/beanstalk/cluster_jobs.h"
#include "server/beanstalk/node_shards.h"

namespace detent::server {

/// Confined to the thread of the sessions. Questions under way keep it alive.
class ClusterReserve final : public std::enable_shared_from_this<ClusterReserve> {
 public:
  /// Waits at shards are renewed after this time.
  static constexpr std::chrono::seconds kLongestTake{60};
  /// The first pause before an unreachable shard is asked again.
  static constexpr std::chrono::milliseconds kAwayPause{200};
  /// The pause doubles each time up to this limit, because many clients may ask the same shard.
  static constexpr std::chrono::milliseconds kLongestAwayPause{5'000};
  /// A waiting reserve checks at this period whether its queues have moved.
  static constexpr std::chrono::milliseconds kMapPeriod{1'000};
  /// The most looks of a reserve that does not wait, if other clients take the jobs first.
  static constexpr int kMaxLooks = 3;

  struct Options {
    std::vector<std::string> queues;     // at least one
    std::optional<MonotonicTime> until;  // no value: it waits without end
    bool may_wait = true;                // false: as if `until` were now
  };
  struct Events {
    UniqueFunction<void()> on_wait;  // it begins to wait; once, if at all
    /// Runs once, never within start(): with the job, or with no value if there was no job in time
    /// or the wait was ended.
    UniqueFunction<void(std::optional<JobAnswer>)> on_end;
  };

  /// `shards` must outlive it.
  ClusterReserve(NodeShards& shards, Options options, Events events);

  void start();
  /// Ends it without a job. A waiting reserve ends immediately. Otherwise it ends unless a shard is
  /// handing out a job at this moment; slow shards do not count.
  void end_wait();
  /// Ends it immediately, because the client is gone. A job that a shard still hands out is given
  /// back.
  void abandon();

 private:
  /// Queues of one shard, and the take that runs for them on that shard.
  struct Part {
    ShardNumber shard = 0;
    std::vector<std::string> queues;
    std::optional<std::uint64_t> look = {};  // the look that the shard has not answered yet
    bool is_slow = false;                    // to tell, or to hand out
    std::optional<std::uint64_t> take = {};
    std::chrono::milliseconds pause = kAwayPause;  // before the next, when it is away
  };

  std::vector<Part> parts_now() const;
  void look();
  void looked(std::size_t part, const std::optional<ShardAnswer>& answer);
  void choose();
  void wait();
  void wait_or_end();
  void keep_watch();
  void follow_queues();
  void take(std::size_t part, std::chrono::milliseconds wait);
  void take_at_others();
  void end_when_slow();
  void end_takes();
  void took(std::size_t part, MonotonicTime asked_at, std::optional<ShardAnswer> answer);
  void take_again(std::size_t part, MonotonicTime asked_at);
  template <class Asked, class Method>
  auto if_asked(Asked asked, std::uint64_t number, Method method);
  template <class Asked>
  std::optional<std::size_t> part_of(Asked asked, std::uint64_t number) const;
  void end(std::optional<JobAnswer> got);
  std::chrono::milliseconds time_left() const;

  NodeShards& shards_;
  const std::vector<std::string> queues_;
  const std::optional<MonotonicTime> until_;
  bool may_wait_;
  bool ends_in_time_;  // may end without slow shards; false for a reserve with timeout 0, which
                       // needs all answers
  Events events_;
  std::shared_ptr<const ShardMap> map_;  // the map from which the parts were made
  std::vector<Part> parts_;              // not changed before it waits

  std::optional<ReadyHead> best_;  // of the shards that have reported their next job
  std::size_t best_part_ = 0;
  int looks_ = 0;
  int moves_ = 0;  // how often the parts were changed
  bool is_waiting_ = false;
  bool is_over_ = false;
  TimerHandle timer_;  // of the wait
};

}  // namespace detent::server

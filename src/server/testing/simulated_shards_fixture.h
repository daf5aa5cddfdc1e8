// Fixture for tests of beanstalk clients of a node: shards of a cluster that the test simulates.
// Questions of sessions wait until the test answers them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "server/beanstalk/cluster_jobs.h"
#include "task/task.h"

namespace detent::server {

inline constexpr ShardNumber kSimulatedShards = 4;

/// Keeps each question until the test answers it.
class SimulatedShards final : public ShardAsker {
 public:
  struct Asked {
    ShardNumber shard = 0;
    ShardAsk ask;
    Done done;
    WhenSlow slow = {};
  };

  std::shared_ptr<const ShardMap> map() const override {
    const MutexLock lock(mutex_);
    return map_;
  }
  void set_partitioned(PartitionedQueues queues) {
    const MutexLock lock(mutex_);
    map_ = std::make_shared<const ShardMap>(
        ShardMap{.shards = kSimulatedShards, .partitioned = std::move(queues)});
  }
  void ask(ShardNumber shard, const ShardAsk& ask, Done done, WhenSlow slow) override {
    const MutexLock lock(mutex_);
    asked_.push_back({shard, ask, std::move(done), std::move(slow)});
  }
  std::uint64_t next_number() override { return ++last_number_; }

  /// Blocks until there is a question.
  Asked next() {
    for (;;) {
      {
        const MutexLock lock(mutex_);
        if (!asked_.empty()) {
          Asked first = std::move(asked_.front());
          asked_.pop_front();
          return first;
        }
      }
      std::this_thread::yield();
    }
  }
  Asked next(ShardAsk::Kind kind) {
    Asked asked = next();
    EXPECT_EQ(asked.ask.kind, kind);
    return asked;
  }
  /// Takes the next `count` questions, which must end takes. Returns shard → the number of the
  /// take.
  std::map<ShardNumber, std::uint64_t> next_ends(int count) {
    std::map<ShardNumber, std::uint64_t> ended;
    for (int i = 0; i < count; ++i) {
      const Asked end = next(ShardAsk::Kind::end_take);
      ended[end.shard] = end.ask.number;
    }
    return ended;
  }
  bool is_asked() {
    const MutexLock lock(mutex_);
    return !asked_.empty();
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const ShardMap> map_ DETENT_GUARDED_BY(mutex_) =
      std::make_shared<const ShardMap>(ShardMap{.shards = kSimulatedShards});
  std::deque<Asked> asked_ DETENT_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> last_number_{0};
};

/// The answer to a take that got a job.
inline ShardAnswer job_answer(std::uint64_t id) {
  ShardAnswer answer;
  answer.answers.push_back({.reply = "RESERVED " + std::to_string(id) + " 1\r\nx\r\n",
                            .lease = JobAnswer::Lease::taken,
                            .taken = {.id = id,
                                      .token = {.epoch = 7, .number = id},
                                      .length = std::chrono::seconds{60},
                                      .queue = "q"}});
  return answer;
}

/// A queue whose home is this shard.
inline std::string queue_of(ShardNumber shard) {
  for (int i = 0;; ++i) {
    std::string name = "q" + std::to_string(i);
    if (shard_of_queue(name, kSimulatedShards) == shard) return name;
  }
}

/// The id of a job of this shard.
inline std::uint64_t id_of(ShardNumber shard, std::uint64_t number) {
  return (number << TaskId::kShardBits) | shard;
}

}  // namespace detent::server

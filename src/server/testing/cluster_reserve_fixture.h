// Fixture: one reserve over shards that the test simulates, on a thread whose clock the test moves.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "server/beanstalk/cluster_reserve.h"
#include "server/testing/simulated_shards_fixture.h"

namespace detent::server {

class ClusterReserveTest : public ::testing::Test {
 public:
  ~ClusterReserveTest() override { node_.stop(); }

 protected:
  using Kind = ShardAsk::Kind;
  using Asked = SimulatedShards::Asked;
  using Got = std::optional<JobAnswer>;

  /// Runs the job on the thread of the sessions and waits until it has run.
  void on_thread(Job job) {
    std::promise<void> done;
    node_.run([&] {
      job();
      done.set_value();
    });
    done.get_future().wait();
  }
  /// Waits until all pending work is done.
  void settle() const { clock_.await_waiters(1); }
  /// Starts a reserve over one queue of each of these shards, with this timeout or without end.
  std::future<Got> reserve(const std::vector<ShardNumber>& shards,
                           std::optional<std::chrono::milliseconds> timeout = {}) {
    ClusterReserve::Options options;
    for (const ShardNumber shard : shards) options.queues.push_back(queue_of(shard));
    if (timeout) options.until = clock_.now() + *timeout;
    auto ended = std::make_shared<std::promise<Got>>();  // which refuses a second value
    std::future<Got> end = ended->get_future();
    reserve_ = std::make_shared<ClusterReserve>(
        node_, std::move(options),
        ClusterReserve::Events{.on_wait = [this] { ++waits_; },
                               .on_end = [ended](Got got) { ended->set_value(std::move(got)); }});
    on_thread([this] { reserve_->start(); });
    return end;
  }
  static bool is_over(const std::future<Got>& end) {
    return end.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
  }
  /// Answers one look of `shards` shards: with the next job by shard, or with no job.
  void answer_look(std::size_t shards, const std::map<ShardNumber, ReadyHead>& heads = {}) {
    std::vector<Asked> looks;
    for (std::size_t i = 0; i < shards; ++i) looks.push_back(shards_.next(Kind::next));
    for (Asked& look : looks) {
      ShardAnswer answer;
      if (const auto head = heads.find(look.shard); head != heads.end()) answer.head = head->second;
      look.done(answer);
    }
  }
  /// Returns the next question of each of `shards` shards.
  std::map<ShardNumber, Asked> asked(Kind kind, std::size_t shards) {
    std::map<ShardNumber, Asked> asked;
    for (std::size_t i = 0; i < shards; ++i) {
      Asked one = shards_.next(kind);
      const ShardNumber shard = one.shard;
      asked.emplace(shard, std::move(one));
    }
    return asked;
  }
  std::map<ShardNumber, Asked> takes(std::size_t shards) { return asked(Kind::take, shards); }
  bool is_asked() {
    settle();
    return shards_.is_asked();
  }

  ManualClock clock_;
  SimulatedShards shards_;
  NodeShards node_{shards_, clock_};
  int waits_ = 0;
  std::shared_ptr<ClusterReserve> reserve_;
};

}  // namespace detent::server

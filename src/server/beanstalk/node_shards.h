// The shards of a cluster, as the sessions of beanstalk clients of one node use them. The shards
// are on this node or on other nodes, and every question to a shard can take long.
//
// The sessions run on a thread of their own: the driver of a Scheduler. A step is a timer that is
// due immediately, and the Scheduler runs timers one at a time, in order. An answer arrives on any
// thread, and is passed on as such a timer.
//
// Leases of disconnected clients are given back, with repeated attempts while their shard is
// unreachable.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "detent/clock.h"
#include "detent/scheduler.h"
#include "detent/unique_function.h"
#include "server/beanstalk/cluster_jobs.h"
#include "server/beanstalk/job_shards.h"

namespace detent::server {

class ClusterReserve;

class NodeShards final : public JobShards {
 public:
  /// The pause before leases are again given back to a shard that was unreachable.
  static constexpr std::chrono::milliseconds kGiveBackPause{500};

  using WhenSlow = UniqueFunction<void()>;

  /// Starts the thread. Both must outlive it; `asker` may still answer questions of this after it
  /// has stopped.
  NodeShards(ShardAsker& asker, Clock& clock);
  /// Stops, if stop() has not been called.
  ~NodeShards() override;
  NodeShards(const NodeShards&) = delete;
  NodeShards& operator=(const NodeShards&) = delete;

  // ---- On any thread ----

  /// Never returns false before stop(). A client has at most a few steps at a time, so the limit of
  /// connections is the limit of steps.
  [[nodiscard]] bool post(std::shared_ptr<BeanstalkSession> session, Step step) override;
  void post_end(std::shared_ptr<BeanstalkSession> session, Step step) override;
  /// Runs `job` after all steps that were posted before. Drops it after stop().
  void run(Job job);
  /// Ends all reserves, those that wait and those that are still to come.
  void end_waits();
  /// Returns true if all leases that were given back have arrived, or were tried often enough.
  bool has_given_back() const noexcept { return give_backs_ == 0; }
  /// Runs the posted steps, and joins the thread. Idempotent.
  void stop();

  // ---- On the thread of the sessions, also for ClusterReserve ----

  std::shared_ptr<const ShardMap> map() const override { return asker_.map(); }
  std::uint64_t next_number() override { return asker_.next_number(); }
  /// The shards never answer at once.
  std::optional<JobAnswer> call_now(const JobCall& /*call*/) override { return std::nullopt; }
  std::optional<Reserved> reserve_now(const LeaseRequest& /*wanted*/) override {
    return std::nullopt;
  }
  void ask(ShardNumber shard, ShardAsk asked, Answered answered) override;
  /// `slow` as in ShardAsker::ask(), but on the thread of the sessions.
  void ask(ShardNumber shard, const ShardAsk& asked, Answered answered, WhenSlow slow);
  ReserveNumber reserve(std::shared_ptr<BeanstalkSession> session,
                        const ReserveOptions& options) override;
  void end_reserve(ReserveNumber number) override;
  void abandon_reserve(ReserveNumber number) override;
  /// Answers of shards are durable when they arrive.
  void when_committed(std::shared_ptr<BeanstalkSession> session) override;
  void give_back(std::vector<LeaseToken> leases) override;
  void give_back(ShardNumber shard, std::vector<LeaseToken> leases);
  /// Runs `job` after `delay`, unless the handle has cancelled it.
  TimerHandle after(std::chrono::milliseconds delay, Job job);
  MonotonicTime now() const { return clock_.now(); }

 private:
  /// Leases of one shard.
  struct GiveBack {
    ShardNumber shard = 0;
    std::vector<LeaseToken> leases;
    int tries = 0;  // that are left
  };

  void send_back(GiveBack what);
  void gave_back(GiveBack what, std::size_t asked, bool is_answered);

  // Constant after construction.
  ShardAsker& asker_;
  const Clock& clock_;

  // Written by the thread of the sessions, read by the thread that stops the node. Sequentially
  // consistent, because it is rarely used.
  std::atomic<std::size_t> give_backs_{0};  // shards that must still take back leases

  // Used only by the thread of the sessions.
  std::unordered_map<ReserveNumber, std::shared_ptr<ClusterReserve>> reserves_;  // that have not
                                                                                 // ended
  ReserveNumber last_reserve_ = 0;
  bool have_waits_ended_ = false;

  Scheduler thread_;  // last, because its jobs use all of the above
};

}  // namespace detent::server

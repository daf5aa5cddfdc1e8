// The shards of a server without a cluster: its one engine. The sessions of beanstalk clients run
// on the engine's thread, so the engine carries out a call within the step of the session. All
// commands that a client sent together therefore share one commit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "server/beanstalk/job_shards.h"

namespace detent::server {

class EngineShards final : public JobShards {
 public:
  /// `clock` and `tracer`, which may be null, must outlive it. Requires: `thread` has stopped
  /// before this is destroyed.
  EngineShards(EngineThread& thread, const Clock& clock, TaskTracer* tracer = nullptr);

  [[nodiscard]] bool post(std::shared_ptr<BeanstalkSession> session, Step step) override;
  void post_end(std::shared_ptr<BeanstalkSession> session, Step step) override;

  std::shared_ptr<const ShardMap> map() const override { return map_; }
  std::uint64_t next_number() override { return ++last_number_; }
  std::optional<JobAnswer> call_now(const JobCall& call) override;
  void ask(ShardNumber shard, ShardAsk asked, Answered answered) override;
  std::optional<Reserved> reserve_now(const LeaseRequest& wanted) override;
  ReserveNumber reserve(std::shared_ptr<BeanstalkSession> session,
                        const ReserveOptions& options) override;
  void end_reserve(ReserveNumber number) override;
  void abandon_reserve(ReserveNumber number) override { end_reserve(number); }
  void when_committed(std::shared_ptr<BeanstalkSession> session) override;

  void give_back(std::vector<LeaseToken> leases) override;

 private:
  class WithEngine;

  EngineThread::Command command_of(std::shared_ptr<BeanstalkSession> session, Step step);
  void give_back_some(Engine& engine, std::vector<LeaseToken> leases);
  void give_back_later(std::vector<LeaseToken> leases);

  // Constant after construction.
  EngineThread& thread_;
  const Clock& clock_;
  TaskTracer* const tracer_;
  const std::shared_ptr<const ShardMap> map_;

  // Used only by the engine's thread.
  Engine* engine_ = nullptr;  // null: no step runs
  std::uint64_t last_number_ = 0;
};

}  // namespace detent::server

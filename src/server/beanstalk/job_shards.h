// The shards with all jobs, as the sessions of beanstalk clients use them, and the thread on which
// the sessions run.
//
// A server alone has one shard, its engine, and the sessions run on the engine's thread
// (engine_shards.h). This shard answers at once, and its answers are durable after the next commit.
// A node of a cluster asks the shards of all nodes (node_shards.h). Their answers come later, and
// are durable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/shard_map.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "server/beanstalk/beanstalk_jobs.h"
#include "server/beanstalk/cluster_jobs.h"

namespace detent::server {

class BeanstalkSession;

/// The result of a `reserve`. If both members are empty, there was no job in time.
struct Reserved {
  std::optional<JobAnswer> job = {};
  std::optional<beanstalk::Word> refusal = {};
};

struct ReserveOptions {
  std::optional<MonotonicTime> until = {};  // no value: it waits without end
  bool may_wait = true;                     // false: as if `until` were now
};

class JobShards {
 public:
  /// A method of a session that the thread of the sessions calls.
  using Step = void (BeanstalkSession::*)();
  /// Gets no value if the shard could not be asked or did not answer; the question may still have
  /// been carried out.
  using Answered = UniqueFunction<void(std::optional<ShardAnswer>)>;
  /// Names a reserve.
  using ReserveNumber = std::uint64_t;

  virtual ~JobShards() = default;

  // ---- On any thread ----

  /// Runs the step soon. Steps of one session keep their order. Returns false, and drops the step,
  /// if too many steps wait or the thread is stopping.
  [[nodiscard]] virtual bool post(std::shared_ptr<BeanstalkSession> session, Step step) = 0;
  /// As post(), but drops the step only if the thread is stopping.
  virtual void post_end(std::shared_ptr<BeanstalkSession> session, Step step) = 0;

  // ---- On the thread of the sessions, within a step ----

  /// The shards, and the queues that are on several shards.
  virtual std::shared_ptr<const ShardMap> map() const = 0;
  /// A rising number that chooses a shard where any of several can take a job.
  virtual std::uint64_t next_number() = 0;
  /// Carries the call out if its shard answers at once. Otherwise does nothing and returns no
  /// value: ask the shard.
  virtual std::optional<JobAnswer> call_now(const JobCall& call) = 0;
  /// Asks a shard. `answered` runs once, within a step or within this call.
  virtual void ask(ShardNumber shard, ShardAsk asked, Answered answered) = 0;
  /// Takes the most urgent ready job of the queues, if all their shards answer at once. Otherwise
  /// does nothing and returns no value: use reserve().
  virtual std::optional<Reserved> reserve_now(const LeaseRequest& wanted) = 0;
  /// Takes the most urgent ready job of the queues that the session watches, or waits for a job.
  /// Calls BeanstalkSession::reserved() once. BeanstalkSession::waits() tells when the wait begins.
  virtual ReserveNumber reserve(std::shared_ptr<BeanstalkSession> session,
                                const ReserveOptions& options) = 0;
  /// Ends a reserve: without a job, unless a shard is handing out a job at this moment. A reserve
  /// that has ended is ignored.
  virtual void end_reserve(ReserveNumber number) = 0;
  /// As end_reserve(), for a client that has gone. The session may still get a job, which it must
  /// give back.
  virtual void abandon_reserve(ReserveNumber number) = 0;
  /// Calls BeanstalkSession::committed() once all answers so far are durable, or may be lost.
  virtual void when_committed(std::shared_ptr<BeanstalkSession> session) = 0;

  // ---- On the thread of the sessions ----

  /// Gives leases back, with repeated attempts while their shards are away.
  virtual void give_back(std::vector<LeaseToken> leases) = 0;
};

}  // namespace detent::server

// The beanstalk commands, as calls to the engine that has the job or the queue. A call carries all
// input that the engine needs, and its answer carries all results. Calls do not depend on where the
// client is connected, on this node or on another node.
//
// docs/reference/beanstalk.md has the commands as a table of command and state.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/engine.h"
#include "engine/thread/engine_thread.h"
#include "protocol/beanstalk/command.h"
#include "protocol/beanstalk/reply_writer.h"
#include "protocol/beanstalk/stats_writer.h"
#include "tracing/task_tracer.h"

namespace detent::server {

/// The uses of one queue by connections.
struct QueueUse {
  std::uint64_t using_it = 0;  // connections that put into it
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;
  std::uint64_t deletes = 0;  // commands
  std::uint64_t pauses = 0;

  friend bool operator==(const QueueUse&, const QueueUse&) = default;
};

/// A lease that a client holds, as the engine granted it.
struct JobLease {
  std::uint64_t id = 0;  // of the job
  LeaseToken token;
  std::chrono::milliseconds length{0};  // from now
  std::string queue;

  friend bool operator==(const JobLease&, const JobLease&) = default;
};

/// A command on a job, or on one queue.
struct JobCall {
  beanstalk::Command command;
  std::string queue = {};  // the queue that the call is about, unless it is about a job
  std::optional<LeaseToken> lease = {};  // under which the client holds the job
  std::chrono::milliseconds length{0};   // touch: the new length of the lease
  QueueUse use = {};                     // stats-tube, pause-tube: of the queue

  friend bool operator==(const JobCall&, const JobCall&) = default;
};

struct JobAnswer {
  enum class Lease : std::uint8_t { as_it_was, over, extended, taken };

  std::string reply;  // whole, for the client
  Lease lease = Lease::as_it_was;
  JobLease taken = {};          // when it is
  std::string counted_in = {};  // the queue that was paused, or of the job that was deleted

  friend bool operator==(const JobAnswer&, const JobAnswer&) = default;
};

/// The subject of a command. `reserve`, and commands about the client or all queues, are not calls.
enum class Concern : std::uint8_t { job, queue, other };
Concern concern_of(beanstalk::Verb verb) noexcept;
/// Returns true for a call that may need several turns of the engine.
bool may_take_turns(beanstalk::Verb verb) noexcept;

/// Carries out calls one after the other. Confined to the engine's thread.
class JobVerbs {
 public:
  /// `clock` and `tracer`, which may be null, must outlive it.
  explicit JobVerbs(const Clock& clock, TaskTracer* tracer) : clock_(clock), tracer_(tracer) {}

  /// Carries out the call and returns its answer. Returns no value if the call must be made again
  /// in a later turn to continue. The answer is durable after the next commit. Requires: the
  /// command is a call.
  std::optional<JobAnswer> run(Engine& engine, const JobCall& call);
  /// Answers a call that cannot be made again.
  JobAnswer break_off();

 private:
  using Answer = std::optional<JobAnswer>;

  Answer put(Engine& engine, const JobCall& call);
  Answer reserve_job(Engine& engine, const JobCall& call);
  Answer delete_job(Engine& engine, const JobCall& call);
  Answer release(Engine& engine, const JobCall& call);
  Answer bury(Engine& engine, const JobCall& call);
  Answer touch(Engine& engine, const JobCall& call);
  Answer peek_delayed(Engine& engine, const JobCall& call);
  Answer kick(Engine& engine, const JobCall& call);
  Answer kick_job(Engine& engine, const JobCall& call);
  Answer pause(Engine& engine, const JobCall& call);
  Answer stats_job(Engine& engine, const JobCall& call);
  Answer stats_queue(Engine& engine, const JobCall& call);

  void settle(const JobCall& call, SpanStep step) const;

  const Clock& clock_;
  TaskTracer* const tracer_;
  /// The progress of a running kick or search.
  struct Progress {
    bool is_of_dead = false;
    QueueCursor cursor = {};
    std::uint64_t count = 0;
  };
  std::optional<Progress> kick_;
  std::optional<Place> search_;
};

/// Some calls that are carried out one after the other, over several turns of the engine if a call
/// needs them. Confined to the engine's thread.
class JobRun final : public std::enable_shared_from_this<JobRun> {
 public:
  /// Gets one answer for each call. They are durable after the next commit.
  using Done = UniqueFunction<void(Engine&, std::vector<JobAnswer>)>;

  /// `thread` must outlive it.
  JobRun(EngineThread& thread, JobVerbs verbs, std::vector<JobCall> calls, Done done)
      : thread_(thread), calls_(std::move(calls)), done_(std::move(done)), verbs_(verbs) {}

  /// `done` runs once, within this call or in a later turn.
  void go_on(Engine& engine);

 private:
  bool go_on_later();

  EngineThread& thread_;
  const std::vector<JobCall> calls_;
  Done done_;
  JobVerbs verbs_;
  std::vector<JobAnswer> answers_;
};

/// Ends leases of clients that do not work on the jobs any more. Expired leases are ignored, and so
/// are errors: leases end when the store fails.
void release_jobs(Engine& engine, std::span<const LeaseToken> leases);

/// The lease options of this protocol, without the queues.
LeaseRequest job_lease_request();
/// The lease as it is described at `now`.
JobLease job_lease(const LeasedTask& leased, const Clock& clock);
/// The answer to a reserve that got this job. Traces the lease, unless `tracer` is null.
JobAnswer reserved_job(const LeasedTask& leased, const Clock& clock, TaskTracer* tracer);
/// Maps the error of a verb to a reply of this protocol.
beanstalk::Word word_for(const Error& error) noexcept;

/// The figures that `stats` and `list-tubes` report, of one engine or of several.
struct AllJobs {
  beanstalk::JobCounts counts = {};
  std::uint64_t timeouts = 0;
  std::vector<std::string> queues = {};  // that have tasks

  void add(AllJobs other);
  friend bool operator==(const AllJobs&, const AllJobs&) = default;
};
AllJobs all_jobs(const EngineStats& stats);

}  // namespace detent::server

// What beanstalk commands do to the engine that has the job or the queue: each a call with all that
// it needs to know, and an answer with all that follows from it. Who has the client, on this node
// or another, is not part of it.
//
// docs/reference/beanstalk.md has the commands as a table of command and state.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "engine/engine.h"
#include "protocol/beanstalk/command.h"
#include "protocol/beanstalk/reply_writer.h"
#include "protocol/beanstalk/stats_writer.h"

namespace detent::server {

/// What connections have to do with one queue.
struct QueueUse {
  std::uint64_t using_it = 0;  // connections that put into it
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;
  std::uint64_t deletes = 0;  // commands
  std::uint64_t pauses = 0;

  friend bool operator==(const QueueUse&, const QueueUse&) = default;
};

/// A lease that a client holds, as its engine made it.
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
  std::string queue = {};                // what it is about, unless that is a job
  std::optional<LeaseToken> lease = {};  // under which the client holds the job
  std::chrono::milliseconds length{0};   // touch: that the lease is to have again
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

/// What a command is about. `reserve`, and what is about the client or all queues, is no call.
enum class Concern : std::uint8_t { job, queue, other };
Concern concern_of(beanstalk::Verb verb) noexcept;

/// Carries out calls one after the other. Confined to the engine's thread.
class JobVerbs {
 public:
  /// `clock` must outlive it.
  explicit JobVerbs(const Clock& clock) : clock_(clock) {}

  /// Answers; nothing when the call is to be made again, in a later turn, to go on. What it says is
  /// durable after the next commit. Requires: the command is a call.
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

  const Clock& clock_;
  /// Of the kick, or the search, that is under way.
  struct Progress {
    bool is_of_dead = false;
    QueueCursor cursor = {};
    std::uint64_t count = 0;
  };
  std::optional<Progress> kick_;
  std::optional<Place> search_;
};

/// How a client of this protocol leases, but for the queues.
LeaseRequest job_lease_request();
/// Told at `now`.
JobLease job_lease(const LeasedTask& leased, const Clock& clock);
/// RESERVED.
std::string reserved_reply(const LeasedTask& leased);
/// What an error of a verb is in this protocol.
beanstalk::Word word_for(const Error& error) noexcept;

/// What `stats` and `list-tubes` tell of the tasks of an engine, or of several.
struct AllJobs {
  beanstalk::JobCounts counts = {};
  std::uint64_t timeouts = 0;
  std::vector<std::string> queues = {};  // that have tasks

  void add(const AllJobs& other);
  friend bool operator==(const AllJobs&, const AllJobs&) = default;
};
AllJobs all_jobs(const EngineStats& stats);

}  // namespace detent::server

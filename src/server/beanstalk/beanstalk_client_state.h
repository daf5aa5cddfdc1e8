// The server's state of one beanstalk client: the queue that it uses, the queues that it watches,
// the leases that it holds, and its contribution to the server's counters.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "detent/clock.h"
#include "protocol/beanstalk/command.h"
#include "server/beanstalk/beanstalk_hub.h"
#include "server/beanstalk/beanstalk_jobs.h"

namespace detent::server {

/// Confined to the thread of the sessions.
class BeanstalkClientState {
 public:
  struct Held {
    LeaseToken lease;
    MonotonicTime until{};
    std::chrono::milliseconds length{0};
  };
  using HeldLeases = std::unordered_map<std::uint64_t, Held>;  // by job

  /// `hub` must outlive it.
  explicit BeanstalkClientState(BeanstalkHub& hub) : hub_(hub) {}

  /// open() and close() report that the client connected and disconnected, once each. Its leases
  /// stay in held().
  void open();
  void close();

  /// Counts a received command. Call it once per command.
  void count(const beanstalk::Command& command);
  void count(beanstalk::Refusal refusal);

  /// Returns the reply to a command about the client alone, or no value for any other command.
  std::optional<std::string> answer(const beanstalk::Command& command);
  /// Makes the call for the engine that has the job or the queue. Moves the body out of the
  /// command. Requires: the command is a call.
  JobCall call_for(beanstalk::Command&& command) const;
  /// Updates the state of the client from the answer. The caller sends the reply.
  void note(const JobCall& call, const JobAnswer& answer);
  void hold(const JobLease& lease);

  const std::string& used() const noexcept { return used_; }
  /// The queue that the client takes from. For a client that only puts: the queue that it puts to.
  const std::string& queue() const noexcept { return is_worker_ ? wanted_.queue : used_; }
  /// The lease request of a `reserve`, with the watched queues.
  const LeaseRequest& wanted() const noexcept { return wanted_; }
  /// Returns the start of the safety margin of the first lease that expires. Forgets expired
  /// leases.
  std::optional<MonotonicTime> deadline_soon();
  /// count_wait() and its counterpart report that the client starts or ends a wait for a job.
  void count_wait() { add_waits(1); }
  void count_end_of_wait() { add_waits(~std::uint64_t{0}); }

  HeldLeases& held() noexcept { return held_; }

 private:
  void add_waits(std::uint64_t change);
  std::string use(const std::string& queue);
  std::string watch(const std::string& queue);
  std::string ignore(const std::string& queue);

  BeanstalkHub& hub_;
  std::string used_ = "default";
  LeaseRequest wanted_ = job_lease_request();
  HeldLeases held_;
  bool is_producer_ = false;
  bool is_worker_ = false;
};

}  // namespace detent::server

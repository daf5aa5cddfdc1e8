// One beanstalk client as this server sees it, whoever has its jobs: the queue it uses, those it
// watches, the leases it holds, and its part in what the server counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "detent/clock.h"
#include "protocol/beanstalk/command.h"
#include "server/beanstalk_hub.h"
#include "server/beanstalk_jobs.h"

namespace detent::server {

/// Confined to the thread of the hub's engine.
class ServedClient {
 public:
  struct Held {
    LeaseToken lease;
    MonotonicTime until{};
    std::chrono::milliseconds length{0};
  };
  using HeldLeases = std::unordered_map<std::uint64_t, Held>;  // by job

  /// `hub` must outlive it.
  explicit ServedClient(BeanstalkHub& hub) : hub_(hub) {}

  /// It has come, and gone: once each. What it holds stays in held().
  void open();
  void close();

  /// A command has come. Once each.
  void count(const beanstalk::Command& command);
  void count(beanstalk::Refusal refusal);

  /// The reply to a command about the client alone; nothing for any other.
  std::optional<std::string> answer(const beanstalk::Command& command);
  /// What the engine that has the job, or the queue, is to be asked. Takes the command's body.
  /// Requires: the command is a call.
  JobCall call_for(beanstalk::Command&& command) const;
  /// What the answer has changed; its reply is for the client.
  void note(const JobCall& call, const JobAnswer& answer);
  void hold(const JobLease& lease);

  const std::string& used() const noexcept { return used_; }
  /// What it takes from or, if it only puts, puts to.
  const std::string& queue() const noexcept { return is_worker_ ? wanted_.queue : used_; }
  /// What a `reserve` asks for: its queues are those watched.
  const LeaseRequest& wanted() const noexcept { return wanted_; }
  /// When the safety margin of a lease begins that this client holds; forgets those that ran out.
  std::optional<MonotonicTime> deadline_soon();
  /// It waits for a job, or no more.
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

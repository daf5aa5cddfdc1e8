// The state that all connections of the beanstalk server share: the number of users and watchers of
// each queue, and the counters for `stats`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detent/clock.h"
#include "protocol/beanstalk/command.h"
#include "server/beanstalk/beanstalk_jobs.h"

namespace detent::server {

/// The uses of queues by name. A queue without users and without counts has no entry. Confined to
/// the thread of the sessions.
class QueueUses {
 public:
  QueueUse& of(const std::string& name) { return uses_[name]; }
  /// Returns all zeros for a queue without an entry.
  QueueUse look_up(const std::string& name) const {
    const auto it = uses_.find(name);
    return it == uses_.end() ? QueueUse{} : it->second;
  }
  /// Call this when a connection stops using the queue.
  void forget_if_unused(const std::string& name) {
    const QueueUse use = look_up(name);
    if (use.using_it + use.watching + use.deletes + use.pauses == 0) uses_.erase(name);
  }
  const std::map<std::string, QueueUse>& all() const noexcept { return uses_; }

 private:
  std::map<std::string, QueueUse> uses_;
};

struct BeanstalkHub {
  // Constant after construction.
  const Clock& clock;
  const MonotonicTime start = clock.now();
  const std::string id;  // of this server process, random

  // Written by the thread that drains the server, read by the thread of the sessions. Relaxed: a
  // put that arrives at that moment may be accepted or refused.
  std::atomic<bool> is_draining{false};

  // Used only by the thread of the sessions.
  QueueUses queues = {};
  std::array<std::uint64_t, beanstalk::kVerbs> commands = {};  // by Verb
  std::uint64_t connections = 0;
  std::uint64_t total_connections = 0;
  std::uint64_t producers = 0;
  std::uint64_t workers = 0;
  std::uint64_t waiting = 0;
};

/// The names of existing queues: queues with tasks, and queues that a client uses or watches.
std::vector<std::string> queue_names(const BeanstalkHub& hub, const AllJobs& jobs);
/// The reply to `stats`.
std::string stats_reply(const BeanstalkHub& hub, const AllJobs& jobs);
/// The reply to `list-tubes`.
std::string list_reply(const BeanstalkHub& hub, const AllJobs& jobs);

}  // namespace detent::server

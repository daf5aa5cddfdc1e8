// The state that all connections of the beanstalk server share: the engine on whose thread they
// run, the number of users and watchers of each queue, and the counters for `stats`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/thread/engine_thread.h"
#include "protocol/beanstalk/command.h"
#include "server/beanstalk/beanstalk_jobs.h"

namespace detent::server {

/// The uses of queues by name. A queue without users and without counts has no entry. Confined to
/// the engine's thread.
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
  EngineThread& engine;  // of a node of a cluster: one that has no tasks
  const Clock& clock;
  const MonotonicTime start = clock.now();
  const std::string id;  // of this server process, random

  // Written by the thread that drains the server, read by the engine's thread. Relaxed: a put that
  // arrives at that moment may be accepted or refused.
  std::atomic<bool> is_draining{false};
  // Used on a node of a cluster: the number of shards that must still take back leases of a
  // disconnected client. Written by the engine's thread, read by the thread that stops the server.
  std::atomic<std::size_t> give_backs{0};

  // Used only by the engine's thread.
  QueueUses queues = {};
  std::array<std::uint64_t, beanstalk::kVerbs> commands = {};  // by Verb
  std::uint64_t connections = 0;
  std::uint64_t total_connections = 0;
  std::uint64_t producers = 0;
  std::uint64_t workers = 0;
  std::uint64_t waiting = 0;
  // Used on a node of a cluster after its timers have ended: the give-backs that must be tried
  // again. It must be the last member, because its functions refer to the other members.
  std::vector<UniqueFunction<void()>> tries = {};
};

/// The names of existing queues: queues with tasks, and queues that a client uses or watches.
std::vector<std::string> queue_names(const BeanstalkHub& hub, const AllJobs& jobs);
/// The reply to `stats`.
std::string stats_reply(const BeanstalkHub& hub, const AllJobs& jobs);
/// The reply to `list-tubes`.
std::string list_reply(const BeanstalkHub& hub, const AllJobs& jobs);

}  // namespace detent::server

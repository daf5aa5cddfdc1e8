// What the connections of the beanstalk server share: the engine whose thread they are on, who uses
// and watches which queue, and what `stats` counts.
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
#include "engine/engine_thread.h"
#include "protocol/beanstalk/command.h"
#include "server/beanstalk_jobs.h"

namespace detent::server {

/// By name; a queue that nobody uses and where nothing was counted is not in it. Confined to the
/// engine's thread.
class QueueUses {
 public:
  QueueUse& of(const std::string& name) { return uses_[name]; }
  /// All zero for one that is not there.
  QueueUse look_up(const std::string& name) const {
    const auto it = uses_.find(name);
    return it == uses_.end() ? QueueUse{} : it->second;
  }
  /// To be called when a connection has gone from it.
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

  // Written by whoever drains the server, read by the engine's thread. Relaxed: a put that comes at
  // the same moment may go either way.
  std::atomic<bool> is_draining{false};
  // Of a node of a cluster: shards that have leases to take back of a client that has gone. Written
  // by the engine's thread, read by whoever stops the server.
  std::atomic<std::size_t> give_backs{0};

  // Touched only by the engine's thread.
  QueueUses queues = {};
  std::array<std::uint64_t, beanstalk::kVerbs> commands = {};  // by Verb
  std::uint64_t connections = 0;
  std::uint64_t total_connections = 0;
  std::uint64_t producers = 0;
  std::uint64_t workers = 0;
  std::uint64_t waiting = 0;
  // Of a node of a cluster, once its timers have ended: what is to be given back by another try.
  // The last member: what it has refers to the others.
  std::vector<UniqueFunction<void()>> tries = {};
};

/// Those that exist, by name: with tasks, or used or watched by somebody.
std::vector<std::string> queue_names(const BeanstalkHub& hub, const AllJobs& jobs);
/// What `stats` answers.
std::string stats_reply(const BeanstalkHub& hub, const AllJobs& jobs);
/// What `list-tubes` answers.
std::string list_reply(const BeanstalkHub& hub, const AllJobs& jobs);

}  // namespace detent::server

// The beanstalk protocol over TCP: connections of net/, commands of protocol/beanstalk, jobs of the
// shards. docs/reference/beanstalk.md is the user documentation.
//
// The server's I/O thread reads and parses commands; a session carries them out on the thread of
// the sessions (beanstalk_session.h). For each connection only one of the two threads works at a
// time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "detent/clock.h"
#include "net/socket/stream_server.h"
#include "server/beanstalk/beanstalk_hub.h"
#include "server/beanstalk/job_shards.h"

namespace detent::server {

/// Thread-safe. `shards` and `clock` must outlive it. Before it is destroyed it must be stopped,
/// and then the thread of `shards`, because running commands refer to it.
class BeanstalkServer {
 public:
  /// Errors: as net::StreamServer::start().
  static Result<std::unique_ptr<BeanstalkServer>> start(net::StreamServerOptions options,
                                                        JobShards& shards, const Clock& clock);

  std::uint16_t port() const noexcept { return streams_->port(); }
  std::size_t connections() const noexcept { return streams_->connections(); }
  /// After this call, `put` is answered with DRAINING. All other commands still work.
  void drain() noexcept { hub_.is_draining.store(true, std::memory_order_relaxed); }
  /// As net::StreamServer::stop(). Leases that clients hold are released.
  void stop(std::chrono::milliseconds grace) { streams_->stop(grace); }

 private:
  explicit BeanstalkServer(const Clock& clock);

  BeanstalkHub hub_;
  std::unique_ptr<net::StreamServer> streams_;
};

}  // namespace detent::server

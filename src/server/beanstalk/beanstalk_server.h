// The beanstalk protocol over TCP: connections of net/, commands of protocol/beanstalk, tasks of
// the engine. docs/reference/beanstalk.md is the user documentation.
//
// The server's I/O thread reads and parses commands; the engine's thread carries them out
// (beanstalk_handler.h). For each connection only one of the two threads works at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "detent/clock.h"
#include "net/stream_server.h"
#include "server/beanstalk/beanstalk_handler.h"
#include "server/beanstalk/beanstalk_hub.h"

namespace detent::server {

/// Thread-safe. `engine` and `clock` must outlive it. Before it is destroyed it must be stopped,
/// and then `engine`, because running commands refer to it.
class BeanstalkServer {
 public:
  /// Errors: as net::StreamServer::start().
  static Result<std::unique_ptr<BeanstalkServer>> start(net::StreamServerOptions options,
                                                        EngineThread& engine, const Clock& clock);
  /// As start(), but `answer_by` makes the handlers of clients. A node of a cluster uses this,
  /// because its `engine` has no tasks.
  using AnswerBy = std::function<std::shared_ptr<BeanstalkHandler>(
      BeanstalkHub&, const std::shared_ptr<net::Stream>&)>;
  static Result<std::unique_ptr<BeanstalkServer>> start(net::StreamServerOptions options,
                                                        EngineThread& engine, const Clock& clock,
                                                        AnswerBy answer_by);

  std::uint16_t port() const noexcept { return streams_->port(); }
  std::size_t connections() const noexcept { return streams_->connections(); }
  /// After this call, `put` is answered with DRAINING. All other commands still work.
  void drain() noexcept { hub_.is_draining.store(true, std::memory_order_relaxed); }
  /// As net::StreamServer::stop(). Leases that clients hold are released.
  void stop(std::chrono::milliseconds grace) { streams_->stop(grace); }
  // For the stop of a node, after the timers of its engine have ended:

  /// Returns true if all leases of clients were given back, or were tried often enough.
  bool has_given_back() const noexcept { return hub_.give_backs == 0; }
  /// Repeats the give-backs that failed before.
  void give_back_again();

 private:
  BeanstalkServer(EngineThread& engine, const Clock& clock, AnswerBy answer_by);

  BeanstalkHub hub_;
  const AnswerBy answer_by_;
  std::unique_ptr<net::StreamServer> streams_;
};

}  // namespace detent::server

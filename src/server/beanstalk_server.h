// The beanstalk protocol over TCP: connections of net/, commands of protocol/beanstalk, tasks of
// the engine. docs/reference/beanstalk.md is for users.
//
// A connection reads and parses on the server's I/O thread, its commands run on the engine's
// (beanstalk_handler.h); one side has the turn at a time.
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
#include "server/beanstalk_handler.h"
#include "server/beanstalk_hub.h"

namespace detent::server {

/// Thread-safe. `engine` and `clock` must outlive it; it must be stopped, and then `engine`, before
/// it is destroyed, because commands under way refer to it.
class BeanstalkServer {
 public:
  /// Errors: as net::StreamServer::start().
  static Result<std::unique_ptr<BeanstalkServer>> start(net::StreamServerOptions options,
                                                        EngineThread& engine, const Clock& clock);
  /// The same with clients answered by what `answer_by` makes: for a node of a cluster, whose
  /// `engine` has no tasks.
  using AnswerBy = std::function<std::shared_ptr<BeanstalkHandler>(
      BeanstalkHub&, const std::shared_ptr<net::Stream>&)>;
  static Result<std::unique_ptr<BeanstalkServer>> start(net::StreamServerOptions options,
                                                        EngineThread& engine, const Clock& clock,
                                                        AnswerBy answer_by);

  std::uint16_t port() const noexcept { return streams_->port(); }
  std::size_t connections() const noexcept { return streams_->connections(); }
  /// From now on `put` is answered DRAINING; all else goes on.
  void drain() noexcept { hub_.is_draining.store(true, std::memory_order_relaxed); }
  /// As net::StreamServer::stop(). Leases that clients hold are given back.
  void stop(std::chrono::milliseconds grace) { streams_->stop(grace); }
  // At a stop of a node, whose engine's timers have ended:

  /// What clients held is given back, or has been tried often enough.
  bool has_given_back() const noexcept { return hub_.give_backs == 0; }
  /// Tries what waits to be tried again.
  void give_back_again();

 private:
  BeanstalkServer(EngineThread& engine, const Clock& clock, AnswerBy answer_by);

  BeanstalkHub hub_;
  const AnswerBy answer_by_;
  std::unique_ptr<net::StreamServer> streams_;
};

}  // namespace detent::server

// A TCP server of byte streams behind callbacks, for protocols that are parsed elsewhere: sockets,
// limits and time-outs stay in this folder.
//
// A connection takes turns with its handler. Bytes that came are given to the handler, and no more
// are read until it asks for more; so a client that sends faster than it is answered is slowed down
// by TCP. One I/O thread serves all connections: handlers must not block it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace detent::net {

/// A connection, as its handler and those it asks see it.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Thread-safe. Writes, then tells the handler (on_sent); nothing happens when the connection is
  /// closed. Requires: what was sent before has been taken; the server has not been destroyed.
  virtual void send(std::string bytes) = 0;

  // On the I/O thread, from the handler's callbacks.

  /// Gives what comes next to on_bytes; closes the connection when nothing comes `within`, when the
  /// client has ended its side or the server stops.
  virtual void read(std::optional<std::chrono::milliseconds> within) = 0;
  virtual void close() = 0;
};

/// What speaks the protocol with one client. Its callbacks run on the I/O thread, one at a time,
/// and must neither block nor throw; the connection owns it.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;

  /// `bytes` are valid only until it returns.
  virtual void on_bytes(std::string_view bytes) = 0;
  /// The client has taken all that was sent.
  virtual void on_sent() = 0;
  /// The client will send no more, noticed while no read() was under way; it may still take an
  /// answer. One that had sent bytes ahead is noticed at the next read().
  virtual void on_end() = 0;
  /// The last callback, exactly once.
  virtual void on_closed() = 0;
};

struct StreamServerOptions {
  std::string address = "127.0.0.1";  // an IP address, v4 or v6
  std::uint16_t port = 0;             // 0: the system chooses
  /// When there are so many, a further one takes the place of the connection that has been open for
  /// longest without sending a byte. If there is none, it is closed at once.
  std::size_t max_connections = 10'000;
  std::size_t max_connections_of_address = 10'000;  // likewise; an IPv6 /64 is one address
  std::chrono::milliseconds write_timeout{10'000};  // for a client to take something of an answer
};

/// Makes the handler of a connection; runs on the I/O thread. The stream may be kept weakly.
using StreamHandlerFactory =
    std::function<std::unique_ptr<StreamHandler>(const std::shared_ptr<Stream>&)>;

/// Thread-safe. Destruction stops it at once.
class StreamServer {
 public:
  /// Binds, listens and starts the I/O thread, which first asks each handler for nothing: it reads.
  /// Errors: as HttpServer::start().
  static Result<std::unique_ptr<StreamServer>> start(StreamServerOptions options,
                                                     StreamHandlerFactory factory);
  virtual ~StreamServer() = default;

  virtual std::uint16_t port() const noexcept = 0;
  virtual std::size_t connections() const noexcept = 0;
  /// Accepts no more connections, closes those that read, lets the others be answered; returns when
  /// all are closed or `grace` is over, whatever is left then being cut. Idempotent.
  /// Requires: not called on the I/O thread.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace detent::net

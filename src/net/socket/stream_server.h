// A TCP server of byte streams with callbacks, for protocols that are parsed elsewhere. Sockets,
// limits and time-outs stay in this folder.
//
// A connection and its handler take turns. The handler gets the bytes that have arrived, and the
// connection reads no more until the handler asks. TCP therefore slows down a client that sends
// faster than it is answered. One I/O thread serves all connections, so handlers must not block it.
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

/// A connection, as its handler and other callers see it.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Thread-safe. Writes, then calls the handler's on_sent. Does nothing if the connection is
  /// closed. Requires: the earlier bytes have been taken; the server has not been destroyed.
  virtual void send(std::string bytes) = 0;

  // On the I/O thread, from the handler's callbacks.

  /// Passes the next bytes to on_bytes. Closes the connection if no bytes arrive `within` this
  /// time, if the client has closed its sending side, or if the server stops.
  virtual void read(std::optional<std::chrono::milliseconds> within) = 0;
  virtual void close() = 0;
};

/// The protocol handler of one client. Its callbacks run on the I/O thread, one at a time, and must
/// neither block nor throw. The connection owns it.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;

  /// `bytes` are valid only until it returns.
  virtual void on_bytes(std::string_view bytes) = 0;
  /// The client has taken all bytes that were sent.
  virtual void on_sent() = 0;
  /// The client has closed its sending side while no read() was running; it may still take an
  /// answer. If the client had sent bytes ahead, the close is noticed at the next read().
  virtual void on_end() = 0;
  /// The last callback, exactly once.
  virtual void on_closed() = 0;
};

struct StreamServerOptions {
  std::string address = "127.0.0.1";  // an IP address, v4 or v6
  std::uint16_t port = 0;             // 0: the system chooses
  /// At this limit, a new connection replaces the connection that has been open for longest without
  /// sending a byte. If there is no such connection, the new connection is closed immediately.
  std::size_t max_connections = 10'000;
  std::size_t max_connections_of_address = 10'000;  // the same limit per address; an IPv6 /64 is
                                                    // one address
  std::chrono::milliseconds write_timeout{10'000};  // for a client to take some bytes of an answer
};

/// Makes the handler of a connection; runs on the I/O thread. The stream may be kept weakly.
using StreamHandlerFactory =
    std::function<std::unique_ptr<StreamHandler>(const std::shared_ptr<Stream>&)>;

/// Thread-safe. The destructor stops the server immediately.
class StreamServer {
 public:
  /// Binds, listens and starts the I/O thread. Each connection reads first, without a request of
  /// its handler. Errors: as HttpServer::start().
  static Result<std::unique_ptr<StreamServer>> start(StreamServerOptions options,
                                                     StreamHandlerFactory factory);
  virtual ~StreamServer() = default;

  virtual std::uint16_t port() const noexcept = 0;
  virtual std::size_t connections() const noexcept = 0;
  /// Accepts no more connections, closes the connections that are reading, and lets the others be
  /// answered. Returns when all connections are closed; after `grace` the remaining connections are
  /// cut. Idempotent. Requires: not called on the I/O thread.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace detent::net

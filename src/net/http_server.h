// An HTTP/1.1 server behind callbacks: sockets, framing, limits and time-outs stay in this folder.
//
// The server parses a request, hands it to one handler and sends what the handler answers, whenever
// it answers and from whatever thread. It knows no routes and no JSON. One I/O thread serves all
// connections: handlers must not block it. Bad framing is answered `400` and the connection closed;
// a body is never read as a request. The sockets are Boost.Asio's (http_connection.h), the grammar
// is Boost.Beast's (http_parser.cc); nothing of either shows outside this folder.
//
// A connection has one request under way at a time. Pipelined ones wait in the socket, so answers
// are in order and a client that sends faster than it is answered is slowed down by TCP.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "detent/unique_function.h"
#include "net/http_message.h"

namespace detent::net {

class ResponseStream;

/// The right to answer one request. Copyable; all copies are the same right. Thread-safe.
/// If every copy goes away unanswered, the request is answered with `500`. May outlive the server.
class Responder {
 public:
  class Exchange;  // the connection's side, exchange.h
  explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  /// Answers. Only the first call counts; a client that has gone is no error. Does not block: the
  /// I/O thread writes.
  void send(HttpResponse response) const;
  /// The same, and tells whether the answer is the first and its client was still there: what the
  /// client would have been given can be taken back else. One that goes now may not get it.
  bool offer(HttpResponse response) const;
  /// Answers with a head, to which the body comes bit by bit; what `head` has of one goes first.
  /// Counts as an answer: only the first does, and the stream of another is over from the start.
  ResponseStream stream(HttpResponse head) const;
  /// Runs `gone` once, on the I/O thread, if the client goes away before the answer is sent, or the
  /// server stops before it; at once, on this thread, if that has happened already. Never after an
  /// answer. One callback a request: another replaces the first. A client that shuts down its side
  /// has gone; only send() answers it, if nobody asked here before. One that had pipelined another
  /// request is noticed only when its answer is written. `gone` must not throw. It may hold this
  /// Responder, but as long as it does the request does not count as dropped.
  void on_gone(UniqueFunction<void()> gone) const;

 private:
  std::shared_ptr<Exchange> exchange_;
};

/// The right to send the body of one answer as it is made, for as long as that takes: in chunks to
/// HTTP/1.1 clients, until the connection closes to older ones. Copyable; all copies are the same
/// right. Thread-safe. If every copy goes away before end(), the connection is cut, so that the
/// client can tell that it has not got all. May outlive the server, whose stop waits for end().
class ResponseStream {
 public:
  explicit ResponseStream(std::shared_ptr<Responder::Exchange> exchange)
      : exchange_(std::move(exchange)) {}

  /// Sends these bytes after those before. Does not block: the I/O thread writes. Returns false,
  /// and sends nothing, when the stream is over: ended, or the client has gone. One that is too
  /// slow, so that more than max_stream_bytes would wait for it, is cut then.
  bool send(std::string_view bytes) const;
  /// That was all. What has been sent is still written, and the connection goes on.
  void end() const;
  /// Runs `gone` once, on the I/O thread, when the client goes away, is cut, or wants no body (a
  /// HEAD request), or the server stops, before end(); at once, on this thread, if the stream is
  /// over already. For the rest as Responder::on_gone, whose callback an answer drops.
  void on_gone(UniqueFunction<void()> gone) const;

 private:
  std::shared_ptr<Responder::Exchange> exchange_;
};

class TlsServer;

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // an IP address, v4 or v6
  std::uint16_t port = 0;             // 0: the system chooses; see HttpServer::port()
  std::size_t max_header_bytes = 16 * 1024;
  std::size_t max_body_bytes = 16 * 1024 * 1024;
  /// Of all connections together, until they are answered. When there are more, requests whose
  /// bodies are still on their way are answered `503`; one that came in one piece never is.
  std::size_t max_body_bytes_of_all = 128 * 1024 * 1024;
  /// When there are so many, a further one takes the place of the connection that has been open for
  /// longest without sending a byte. If there is none, it is answered `503` and closed.
  std::size_t max_connections = 10'000;
  std::size_t max_connections_of_address = 10'000;  // likewise; an IPv6 /64 is one address
  std::size_t max_refusals = 64;  // connections above a limit that get the `503`; others get none
  std::chrono::milliseconds read_timeout{10'000};   // from the first byte of a request to its last
  std::size_t max_stream_bytes = 1024 * 1024;       // that wait for the client of a stream
  std::chrono::milliseconds write_timeout{10'000};  // for a client to take one whole answer, or
                                                    // what a stream had for it at once
  std::chrono::milliseconds idle_timeout{75'000};   // between requests of one connection
  /// Null: plain HTTP. Shared with whoever has it reload. A handshake may take read_timeout.
  std::shared_ptr<const TlsServer> tls = nullptr;
};

/// What answers a request that the handler did not: bad framing (400), too slow (408), too large
/// (413, 431), dropped (500), too many connections or bytes of bodies (503). Makes the body in the
/// application's error format. Runs on the I/O thread; must not throw.
using ErrorPage = std::function<HttpResponse(int status, std::string_view detail)>;
/// Runs on the I/O thread, one request at a time: must neither block nor throw.
using HttpHandler = std::function<void(HttpRequest, Responder)>;
/// Asked before a body is waited for, with a request that has none yet: what it answers instead, if
/// it refuses. The connection is closed then, and the client is not asked to send the body.
/// Likewise on the I/O thread, and must neither block nor throw. What comes in one piece is not
/// asked about.
using HeadCheck = std::function<std::optional<HttpResponse>(const HttpRequest& head)>;

/// Thread-safe. Destruction stops it at once; `stop` first for a graceful end.
class HttpServer {
 public:
  /// Binds, listens and starts the I/O thread.
  /// Errors: `unavailable` when the address is taken ("listen on 127.0.0.1:7070: Address already in
  /// use"), may not be used or the system is out of threads or files; `invalid_argument` when it is
  /// no IP address.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, HttpHandler handler,
                                                   ErrorPage error_page, HeadCheck check = {});
  virtual ~HttpServer() = default;

  /// The port bound, also when options.port was 0.
  virtual std::uint16_t port() const noexcept = 0;
  /// Connections open now, those included that are about to be closed after an error page.
  virtual std::size_t connections() const noexcept = 0;
  /// Accepts no more connections, lets requests that are under way be answered and streams be ended
  /// (each answer then closes its connection), closes idle ones; returns when all are closed or
  /// `grace` is over, whatever is left then being cut. Idempotent: the first call decides, others
  /// wait for it. Requires: not called on the I/O thread (from the handler or an on_gone callback).
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace detent::net

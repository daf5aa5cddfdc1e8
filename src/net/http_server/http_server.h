// An HTTP/1.1 server with callbacks. Sockets, framing, limits and time-outs stay in this folder.
//
// The server parses a request, passes it to one handler, and sends the answer of the handler. The
// answer can come at any time and from any thread. The server knows no routes and no JSON. One I/O
// thread serves all connections, so handlers must not block it. Bad framing is answered with `400`
// and the connection is closed; a body is never read as a request. The sockets are Boost.Asio's
// (http_connection.h), and the grammar is Boost.Beast's (http_parser.cc). Both are invisible
// outside this folder.
//
// A connection has one open request at a time. Pipelined requests wait in the socket. Answers are
// therefore in order, and TCP slows down a client that sends faster than it is answered.
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
#include "net/message/http_message.h"

namespace detent::net {

class ResponseStream;

/// The right to answer one request. Copyable; all copies are the same right. Thread-safe.
/// If every copy goes away unanswered, the request is answered with `500`. May outlive the server.
class Responder {
 public:
  class Exchange;  // the side of the connection; see exchange.h
  explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  /// Sends the answer. Only the first call has an effect. A client that has gone is not an error.
  /// Does not block: the I/O thread writes.
  void send(HttpResponse response) const;
  /// As send(). Returns true if this is the first answer and its client was still connected. On
  /// false the caller can take back the contents of the answer, for example leases. A client that
  /// disconnects at this moment may not get the answer.
  bool offer(HttpResponse response) const;
  /// Answers with a head; the body follows in parts. A body in `head` is sent first. This counts as
  /// an answer: if another answer was first, the stream is over from the start.
  ResponseStream stream(HttpResponse head) const;
  /// Runs `gone` once, on the I/O thread, if the client disconnects or the server stops before the
  /// answer is sent. If that has already happened, `gone` runs in this call. After an answer it
  /// never runs. A request has one callback; a second callback replaces the first.
  ///
  /// A client that closes its sending side counts as gone. If no callback was set before, send()
  /// can still answer such a client. If the client had pipelined another request, the close is
  /// noticed only when the answer is written. `gone` must not throw. It may hold this Responder,
  /// but then the request does not count as dropped.
  void on_gone(UniqueFunction<void()> gone) const;

 private:
  std::shared_ptr<Exchange> exchange_;
};

/// The right to send the body of one answer in parts: in chunks to HTTP/1.1 clients, and until the
/// end of the connection to older clients. Copyable; all copies are the same right. Thread-safe. If
/// every copy is destroyed before end(), the connection is cut, so that the client notices the
/// incomplete body. May outlive the server; the stop of the server waits for end().
class ResponseStream {
 public:
  explicit ResponseStream(std::shared_ptr<Responder::Exchange> exchange)
      : exchange_(std::move(exchange)) {}

  /// Sends these bytes after the earlier bytes. Does not block: the I/O thread writes. Returns
  /// false and sends no bytes if the stream is over, because it has ended or the client has gone.
  /// If more than max_stream_bytes would wait for a slow client, the client is cut.
  bool send(std::string_view bytes) const;
  /// Ends the body. The sent bytes are still written, and the connection stays open.
  void end() const;
  /// Runs `gone` once, on the I/O thread, if the stream is interrupted before end(): the client
  /// disconnects, is cut, or wants no body (a HEAD request), or the server stops. If the stream is
  /// already over, `gone` runs in this call. Otherwise as Responder::on_gone; an answer drops the
  /// callback of on_gone.
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
  /// The limit for the bodies of all unanswered requests together. Above it, a request whose body
  /// still arrives is answered with `503`. A request that arrived in one piece is always accepted.
  std::size_t max_body_bytes_of_all = 128 * 1024 * 1024;
  /// At this limit, a new connection replaces the connection that has been open for longest without
  /// sending a byte. If there is no such connection, the new connection is answered with `503` and
  /// closed.
  std::size_t max_connections = 10'000;
  std::size_t max_connections_of_address = 10'000;  // the same limit per address; an IPv6 /64 is
                                                    // one address
  std::size_t max_refusals = 64;  // connections above a limit that get the `503`; the others are
                                  // closed
  std::chrono::milliseconds read_timeout{10'000};   // from the first byte of a request to its last
  std::size_t max_stream_bytes = 1024 * 1024;       // bytes of one stream that wait for its client
  std::chrono::milliseconds write_timeout{10'000};  // for a client to take one whole answer, or one
                                                    // part of a stream
  std::chrono::milliseconds idle_timeout{75'000};   // between requests of one connection
  /// Null: plain HTTP. Shared with the object that reloads it. A handshake may take read_timeout.
  std::shared_ptr<const TlsServer> tls = nullptr;
};

/// Makes the answer to a request that the handler did not answer: bad framing (400), too slow
/// (408), too large (413, 431), dropped (500), too many connections or bytes of bodies (503). The
/// body has the application's error format. Runs on the I/O thread; must not throw.
using ErrorPage = std::function<HttpResponse(int status, std::string_view detail)>;
/// Runs on the I/O thread, one request at a time: must neither block nor throw.
using HttpHandler = std::function<void(HttpRequest, Responder)>;
/// Called with the head of a request before the server waits for its body. Returns an answer to
/// refuse the request. The connection is then closed, and the client is not asked to send the body.
/// Runs on the I/O thread; must neither block nor throw. Requests that arrive in one piece are not
/// checked.
using HeadCheck = std::function<std::optional<HttpResponse>(const HttpRequest& head)>;

/// Thread-safe. The destructor stops the server immediately; call `stop` first for a graceful end.
class HttpServer {
 public:
  /// Binds, listens and starts the I/O thread.
  /// Errors: `unavailable` if the address is in use ("listen on 127.0.0.1:7070: Address already in
  /// use") or not permitted, or if the system is out of threads or files; `invalid_argument` if it
  /// is not an IP address.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, HttpHandler handler,
                                                   ErrorPage error_page, HeadCheck check = {});
  virtual ~HttpServer() = default;

  /// The bound port, also if options.port was 0.
  virtual std::uint16_t port() const noexcept = 0;
  /// The number of open connections, including those that will be closed after an error page.
  virtual std::size_t connections() const noexcept = 0;
  /// Accepts no more connections, lets running requests be answered and streams end (each answer
  /// then closes its connection), and closes idle connections. Returns when all connections are
  /// closed; after `grace` the remaining connections are cut. Idempotent: the first call decides,
  /// and others wait for it. Requires: not called on the I/O thread (from the handler or an on_gone
  /// callback).
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace detent::net

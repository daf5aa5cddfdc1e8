// One client of the HTTP server: its socket, and its state between a request and the answer.
//
// Internal to this folder, and included by its .cc files only: it shows Boost.Asio. All methods run
// on the I/O thread, except the methods post_…: answers of other threads come through ExchangeLink
// and these methods. Sockets are non-blocking, and are read and written when the reactor reports
// them ready. All connections therefore share one read buffer, and an idle connection costs a few
// hundred bytes.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "net/http_server/exchange.h"
#include "net/http_server/http_server.h"
#include "net/message/http_parser.h"
#include "net/message/http_writer.h"
#include "net/message/input_buffer.h"
#include "net/socket/connection_loop.h"
#include "net/socket/tls_server.h"

namespace detent::net {

class HttpConnection;

/// The shared state of the connections of one server. Confined to the I/O thread.
struct ConnectionContext {
  static constexpr std::size_t kReadBytes = 64 * 1024;  // from one connection at a time

  const HttpServerOptions& options;
  const HttpHandler& handler;
  const ErrorPage& error_page;
  const HeadCheck& check;
  ConnectionLoop<HttpConnection>& loop;
  HttpDate date = {};
  SystemClock clock = {};
  std::size_t body_bytes = 0;  // the sum of charged_ of all connections
  std::array<char, kReadBytes> read_buffer = {};
};

/// For use on the I/O thread, except the methods post_…. Invariants:
/// 1. At most one wait for readability is outstanding (is_watching_).
/// 2. The link waits for an answer only in phase `held`, and only in this phase an answer is taken.
/// 3. The loop holds the connection exactly until phase `closed`.
/// 4. A deadline is set in the phases handshaking, idle, reading and lingering. In phase writing it
///    is set while the client takes no bytes. A running timer ends no later than the deadline.
class HttpConnection final : public AnswerTarget,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  /// `peer` is the client's address.
  HttpConnection(ConnectionContext& context, boost::asio::ip::tcp::socket socket, std::string peer);

  void start();
  /// Answers with an error page without reading anything, and closes.
  void refuse(int status, std::string_view detail);
  /// The server is stopping: closes the connection if no request is under way.
  void drain();
  void close();
  /// Returns true if the socket has unread bytes.
  bool has_input() const;

  // Thread-safe.
  void post_answer(std::optional<HttpResponse> response) override;
  void post_head(HttpResponse head) override;
  void post_look() override;

 private:
  enum class Phase : std::uint8_t {
    handshaking,
    idle,       // no byte of the next request has arrived
    reading,    // a part of the request has arrived
    held,       // the handler has the request
    writing,    // bytes wait until the client takes them
    streaming,  // all available bytes of the body are written; waits for more
    lingering,  // the last answer is written; waits for the client to take it and close
    closed,
  };
  enum class AfterWriting : std::uint8_t { read_on, stream_on, next_request, close, linger };

  void begin_handshake();
  void handshake();
  std::size_t read_some(boost::system::error_code& ec);
  std::size_t write_some(boost::system::error_code& ec);
  void end_tls();

  void hear();
  void watch();
  void on_readable(boost::system::error_code ec);
  void receive();
  void peek();
  void discard();

  void await_request();
  void parse(std::string_view fresh);
  void read_on();
  bool refuse_body();
  void charge(std::size_t body_bytes);
  void deliver();

  void answer(std::optional<HttpResponse> response);
  void fail(int status, std::string_view detail);
  void fail_with(HttpResponse response);
  void write_response(HttpResponse response, AfterWriting after);
  AfterWriting after_answer() const;
  void write_head(const HttpResponse& response, AfterWriting after_body, BodyEnd body_end);
  void begin_stream(const HttpResponse& head);
  void look_at_stream();
  void write(AfterWriting after);
  void write_more();
  void await_writable();
  void after_writing();
  void linger();
  void abort();

  void set_deadline(std::chrono::milliseconds delay);
  void clear_deadline() { deadline_.reset(); }
  void arm_timer();
  void on_timer();
  void on_deadline();

  ConnectionContext& context_;
  boost::asio::ip::tcp::socket socket_;
  const std::string peer_;
  const std::shared_ptr<ExchangeLink> link_;  // shared with the Responders of the requests
  const std::unique_ptr<TlsSession> tls_;     // null: no TLS
  Phase phase_ = Phase::idle;
  bool is_watching_ = false;
  bool is_heard_ = false;  // the loop was told that the client is not silent

  RequestParser parser_;
  InputBuffer input_;
  bool is_head_checked_ = false;
  bool sent_continue_ = false;
  std::size_t charged_ = 0;  // the bytes of the current body, here or in the handler

  // About the request that is held or being answered.
  bool keeps_alive_ = false;
  bool is_http11_ = true;
  bool is_head_ = false;

  std::string head_;  // the head that is being written
  std::string body_;
  std::size_t written_ = 0;  // written bytes of head_ and body_ together
  bool is_write_blocked_ = false;
  AfterWriting after_writing_ = AfterWriting::close;

  // The deadline moves with each phase, mostly to a later time. The timer then keeps its old end,
  // and checks the deadline when it ends. This saves three changes of the timer queue per request.
  std::optional<MonotonicTime> deadline_;
  std::optional<MonotonicTime> timer_end_;
  boost::asio::steady_timer timer_;
};

}  // namespace detent::net

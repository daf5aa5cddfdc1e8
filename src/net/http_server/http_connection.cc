#include "net/http_server/http_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kLingerTimeout{2'000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

// ---- life ---------------------------------------------------------------------------------------

HttpConnection::HttpConnection(ConnectionContext& context, tcp::socket socket, std::string peer)
    : context_(context),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      link_(std::make_shared<ExchangeLink>(*this, context.options.max_stream_bytes)),
      tls_(context.options.tls ? context.options.tls->accept(socket_.native_handle()) : nullptr),
      parser_({.max_header_bytes = context.options.max_header_bytes,
               .max_body_bytes = context.options.max_body_bytes}),
      timer_(context.loop.io()) {}

void HttpConnection::start() {
  if (context_.options.tls == nullptr) return await_request();
  if (tls_ == nullptr) return close();
  begin_handshake();
}

void HttpConnection::refuse(int status, std::string_view detail) {
  if (context_.options.tls != nullptr) return close();  // a handshake would cost too much
  hear();
  fail(status, detail);
}

void HttpConnection::drain() {
  if (phase_ == Phase::idle || phase_ == Phase::handshaking) close();
}

bool HttpConnection::has_input() const {
  error_code ignored;
  return socket_.available(ignored) > 0;
}

void HttpConnection::close() {
  if (phase_ == Phase::closed) return;
  const auto self = shared_from_this();
  phase_ = Phase::closed;
  charge(0);
  clear_deadline();
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  link_->close();
  context_.loop.remove(this);
}

/// Closes without waiting until the client has taken the bytes in the system's buffer.
void HttpConnection::abort() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

// ---- TLS ----------------------------------------------------------------------------------------

void HttpConnection::begin_handshake() {
  phase_ = Phase::handshaking;
  set_deadline(context_.options.read_timeout);
  watch();
}

void HttpConnection::handshake() {
  switch (tls_->handshake()) {
    case TlsSession::Step::done:
      return await_request();
    case TlsSession::Step::wants_read:
      return watch();
    case TlsSession::Step::wants_write:
      socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code ec) {
        if (self->phase_ != Phase::handshaking) return;
        return ec ? self->close() : self->handshake();
      });
      return;
    case TlsSession::Step::failed:  // for example, the client does not use TLS
      return close();
  }
}

/// Reads into the buffer of the context.
std::size_t HttpConnection::read_some(error_code& ec) {
  if (tls_ != nullptr) return tls_->read(context_.read_buffer, ec);
  return socket_.read_some(asio::buffer(context_.read_buffer), ec);
}

/// Writes the next bytes of head_ and body_.
std::size_t HttpConnection::write_some(error_code& ec) {
  const std::size_t of_head = std::min(written_, head_.size());
  if (tls_ != nullptr) {
    const bool is_in_head = of_head < head_.size();
    const std::string_view part = is_in_head ? head_ : body_;
    return tls_->write(part.substr(is_in_head ? of_head : written_ - of_head), ec);
  }
  const std::array<asio::const_buffer, 2> rest{asio::buffer(head_) + of_head,
                                               asio::buffer(body_) + (written_ - of_head)};
  return socket_.write_some(rest, ec);
}

/// Tells a TLS client that the bytes end here. Without this, the client cannot tell the end of the
/// bytes from an interrupted connection.
void HttpConnection::end_tls() {
  if (tls_ != nullptr) tls_->end();
}

// ---- reading ------------------------------------------------------------------------------------

/// Tells the loop that the client is not silent: it has sent bytes, or is answered without.
void HttpConnection::hear() {
  if (!std::exchange(is_heard_, true)) context_.loop.heard(this);
}

void HttpConnection::watch() {
  if (is_watching_) return;
  is_watching_ = true;
  const bool is_read = phase_ != Phase::handshaking && phase_ != Phase::lingering;
  if (tls_ != nullptr && is_read &&
      tls_->has_pending()) {  // the socket does not report these bytes
    return asio::post(context_.loop.io(), [self = shared_from_this()] {
      self->is_watching_ = false;
      self->on_readable({});
    });
  }
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    self->is_watching_ = false;
    self->on_readable(ec);
  });
}

void HttpConnection::on_readable(error_code ec) {
  if (phase_ == Phase::closed) return;
  if (ec) return close();
  hear();
  switch (phase_) {
    case Phase::handshaking:
      return handshake();
    case Phase::idle:
    case Phase::reading:
      return receive();
    case Phase::held:
    case Phase::streaming:
      return peek();
    case Phase::lingering:
      return discard();
    case Phase::writing:  // bytes of the next request are read after the answer
    case Phase::closed:
      return;
  }
}

void HttpConnection::receive() {
  error_code ec;
  const std::size_t size = read_some(ec);
  if (ec == asio::error::would_block) return watch();
  if (ec) return close();  // also in the middle of a request, because an answer cannot be sent
  parse({context_.read_buffer.data(), size});
}

/// The handler has the request, or the answer is being sent. Checks whether the client has gone.
void HttpConnection::peek() {
  char byte = 0;
  error_code ec;
  if (tls_ != nullptr) {
    tls_->peek({&byte, 1}, ec);
  } else {
    socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, ec);
  }
  if (ec == asio::error::would_block) return watch();
  // A client that has only closed its sending side still reads the answer. It looks the same as a
  // client that has closed both sides.
  if (ec == asio::error::eof && phase_ == Phase::held && link_->end_input()) return;
  if (ec) return close();
  // The next request has arrived. It stays in the socket, so nothing more can be learned from
  // there.
}

void HttpConnection::discard() {
  error_code ec;
  socket_.read_some(asio::buffer(context_.read_buffer), ec);
  if (ec && ec != asio::error::would_block) return close();
  watch();
}

void HttpConnection::await_request() {
  phase_ = Phase::idle;
  set_deadline(context_.options.idle_timeout);
  if (input_.empty()) return watch();
  parse({});
}

/// Parses the bytes that were left over from the last time, followed by `fresh`. `fresh` must be
/// valid only during this call.
void HttpConnection::parse(std::string_view fresh) {
  const std::string_view bytes = input_.join(fresh);
  input_.drop(bytes, parser_.parse(bytes));
  switch (parser_.state()) {
    case ParseState::complete:
      return deliver();
    case ParseState::failed:
      return fail(parser_.failure().status, parser_.failure().detail);
    case ParseState::header:
    case ParseState::body:
      return read_on();
  }
}

/// Waits for further bytes, because the request is not complete or has not begun.
void HttpConnection::read_on() {
  const bool in_body = parser_.state() == ParseState::body;
  if (phase_ == Phase::idle && (in_body || !input_.empty())) {
    phase_ = Phase::reading;
    set_deadline(context_.options.read_timeout);
  }
  if (in_body && refuse_body()) return;
  if (in_body && parser_.expects_continue() && !std::exchange(sent_continue_, true)) {
    head_ = kContinue;
    return write(AfterWriting::read_on);
  }
  watch();
}

/// Answers instead of reading the body, if the head check refuses the request or the bodies of all
/// connections exceed their limit. Returns whether it has answered.
bool HttpConnection::refuse_body() {
  if (!std::exchange(is_head_checked_, true) && context_.check) {
    HttpRequest head = parser_.head();
    head.peer = peer_;
    if (std::optional<HttpResponse> refusal = context_.check(head)) {
      fail_with(*std::move(refusal));
      return true;
    }
  }
  charge(parser_.body_size());
  if (context_.body_bytes <= context_.options.max_body_bytes_of_all) return false;
  fail(503, "too many large requests at the same time: try again");
  return true;
}

/// Sets the number of body bytes that this connection is charged for.
void HttpConnection::charge(std::size_t body_bytes) {
  context_.body_bytes += body_bytes - std::exchange(charged_, body_bytes);
}

void HttpConnection::deliver() {
  phase_ = Phase::held;
  clear_deadline();
  is_head_checked_ = false;
  sent_continue_ = false;
  charge(parser_.body_size());
  keeps_alive_ = parser_.keeps_alive();
  is_http11_ = parser_.is_http11();
  is_head_ = parser_.is_head();
  HttpRequest request = parser_.take();
  request.peer = peer_;
  context_.handler(std::move(request), ExchangeLink::open(link_));
  if (link_->is_waiting()) watch();
}

// ---- writing ------------------------------------------------------------------------------------

void HttpConnection::post_answer(std::optional<HttpResponse> response) {
  asio::post(context_.loop.io(),
             [self = shared_from_this(), response = std::move(response)]() mutable {
               self->answer(std::move(response));
             });
}

void HttpConnection::answer(std::optional<HttpResponse> response) {
  if (phase_ != Phase::held) return;  // the connection was closed after the answer was posted
  if (!response) response = context_.error_page(500, kNoAnswer);
  write_response(*std::move(response), after_answer());
}

HttpConnection::AfterWriting HttpConnection::after_answer() const {
  const bool keep = keeps_alive_ && !context_.loop.is_draining();
  return keep ? AfterWriting::next_request : AfterWriting::close;
}

/// Answers a request that the handler does not get. The client may still be sending this request.
/// If the connection were closed immediately, the system would reset it, and the client could lose
/// the answer. So the connection lingers.
void HttpConnection::fail(int status, std::string_view detail) {
  fail_with(context_.error_page(status, detail));
}

void HttpConnection::fail_with(HttpResponse response) {
  const bool has_start_line = parser_.state() == ParseState::body;
  is_head_ = has_start_line && parser_.is_head();
  parser_.drop();
  write_response(std::move(response), AfterWriting::linger);
}

void HttpConnection::write_response(HttpResponse response, AfterWriting after) {
  charge(0);
  write_head(response, after, BodyEnd::by_length);
  if (has_body(response.status) && !is_head_) body_ = std::move(response.body);
  write(after);
}

/// Writes the head of `response` into head_.
void HttpConnection::write_head(const HttpResponse& response, AfterWriting after_body,
                                BodyEnd body_end) {
  Persistence persistence = Persistence::close;
  if (after_body == AfterWriting::next_request) {
    persistence = is_http11_ ? Persistence::keep : Persistence::keep_announced;
  }
  head_.clear();
  const std::string_view date = context_.date.at(context_.clock.wall_now());
  write_response_head(response, {.persistence = persistence, .body_end = body_end}, date, head_);
}

void HttpConnection::post_head(HttpResponse head) {
  asio::post(context_.loop.io(),
             [self = shared_from_this(), head = std::move(head)] { self->begin_stream(head); });
}

void HttpConnection::post_look() {
  asio::post(context_.loop.io(), [self = shared_from_this()] { self->look_at_stream(); });
}

void HttpConnection::begin_stream(const HttpResponse& head) {
  if (phase_ != Phase::held) return;  // the connection was closed after the head was posted
  charge(0);
  keeps_alive_ = keeps_alive_ && is_http11_;
  write_head(head, after_answer(), is_http11_ ? BodyEnd::by_chunk : BodyEnd::by_close);
  if (has_body(head.status) && !is_head_) return write(AfterWriting::stream_on);
  link_->refuse_body();
  write(after_answer());
}

/// Writes the bytes that have collected while the last part was written.
void HttpConnection::look_at_stream() {
  if (phase_ == Phase::closed) return;
  if (link_->is_cut()) return abort();
  if (phase_ != Phase::streaming) return;  // it looks again after the current part is written
  StreamPart part = link_->take();
  if (part.bytes.empty() && !part.is_last) return;
  body_ = std::move(part.bytes);
  if (is_http11_)
    write_chunk(part.is_last ? ChunkPlace::last : ChunkPlace::more_follow, head_, body_);
  write(part.is_last ? after_answer() : AfterWriting::stream_on);
}

/// Starts to write head_ and body_.
void HttpConnection::write(AfterWriting after) {
  phase_ = Phase::writing;
  after_writing_ = after;
  written_ = 0;
  is_write_blocked_ = false;
  clear_deadline();
  write_more();
}

void HttpConnection::write_more() {
  while (written_ < head_.size() + body_.size()) {
    error_code ec;
    written_ += write_some(ec);
    if (ec == asio::error::would_block) return await_writable();
    if (ec) return close();
  }
  head_.clear();
  body_ = {};
  after_writing();
}

void HttpConnection::await_writable() {
  if (!std::exchange(is_write_blocked_, true)) set_deadline(context_.options.write_timeout);
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code ec) {
    if (self->phase_ != Phase::writing) return;
    if (ec) return self->close();
    self->write_more();
  });
}

void HttpConnection::after_writing() {
  switch (after_writing_) {
    case AfterWriting::next_request:
      return await_request();
    case AfterWriting::linger:
      return linger();
    case AfterWriting::stream_on:
      phase_ = Phase::streaming;
      link_->part_written();
      return watch();
    case AfterWriting::read_on:
      phase_ = Phase::reading;
      set_deadline(context_.options.read_timeout);  // the body could not arrive before `continue`
      return watch();
    case AfterWriting::close: {
      error_code ignored;
      const bool is_all_read = input_.empty() && socket_.available(ignored) == 0;
      if (!is_all_read) return linger();
      end_tls();
      return close();
    }
  }
}

/// Tells the client that no more bytes will come, and waits a short time until it closes. Bytes
/// that it sends during this time are read and dropped.
void HttpConnection::linger() {
  end_tls();
  error_code ec;
  socket_.shutdown(tcp::socket::shutdown_send, ec);
  if (ec) return close();
  phase_ = Phase::lingering;
  set_deadline(kLingerTimeout);
  watch();
}

// ---- deadlines ----------------------------------------------------------------------------------

void HttpConnection::set_deadline(milliseconds delay) {
  deadline_ = context_.clock.now() + delay;
  if (!timer_end_ || *deadline_ < *timer_end_) arm_timer();
}

void HttpConnection::arm_timer() {
  timer_end_ = deadline_;
  timer_.expires_after(*deadline_ - context_.clock.now());
  timer_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec) self->on_timer();
  });
}

void HttpConnection::on_timer() {
  timer_end_.reset();
  if (!deadline_) return;
  if (context_.clock.now() < *deadline_) return arm_timer();
  clear_deadline();
  on_deadline();
}

void HttpConnection::on_deadline() {
  switch (phase_) {
    case Phase::reading:
      return fail(408, "the request did not arrive in time");
    case Phase::writing:
      return abort();
    case Phase::handshaking:
    case Phase::idle:
    case Phase::lingering:
      return close();
    case Phase::held:
    case Phase::streaming:
    case Phase::closed:
      return;
  }
}

}  // namespace detent::net

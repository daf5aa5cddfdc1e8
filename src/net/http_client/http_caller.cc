#include "net/http_client/http_caller.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <limits>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "net/message/http_parser.h"
#include "net/message/http_writer.h"
#include "net/socket/client_socket.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 16 * 1024;
/// The most addresses of a name that are tried.
constexpr std::size_t kMaxAddresses = 4;

tcp::endpoint endpoint_of(const IpAddress& address, std::uint16_t port) {
  if (address.family() == IpAddress::Family::v6) {
    return {asio::ip::address_v6(address.bytes()), port};
  }
  asio::ip::address_v4::bytes_type bytes{};
  std::copy_n(address.bytes().begin(), bytes.size(), bytes.begin());
  return {asio::ip::address_v4(bytes), port};
}

/// A connection to a host. Several calls can use it one after the other.
struct Connection {
  explicit Connection(asio::io_context& io) : socket(io) {}

  ClientSocket socket;
  asio::steady_timer::time_point idle_since{};
};

/// Idle connections that wait for another call, by host. For use on the I/O thread.
class IdleConnections {
 public:
  explicit IdleConnections(const HttpCallerOptions& options) : options_(options) {}

  void keep(const HttpUrl& url, std::unique_ptr<Connection> connection) {
    const auto now = asio::steady_timer::clock_type::now();
    if (now >= next_sweep_) forget_old(now);
    auto& idle = by_host_[key_of(url)];
    if (idle.size() >= options_.max_idle_connections) return;
    connection->idle_since = now;
    idle.push_back(std::move(connection));
  }
  /// Returns the connection that was used last, so that connections that are not needed grow old
  /// and are closed. Returns null if there is none.
  std::unique_ptr<Connection> take(const HttpUrl& url) {
    const auto it = by_host_.find(key_of(url));
    if (it == by_host_.end()) return nullptr;
    auto& idle = it->second;
    forget_old(idle, asio::steady_timer::clock_type::now());
    while (!idle.empty()) {
      std::unique_ptr<Connection> last = std::move(idle.back());
      idle.pop_back();
      if (last->socket.is_quiet()) return last;
    }
    return nullptr;
  }

 private:
  using Time = asio::steady_timer::time_point;
  using Connections = std::vector<std::unique_ptr<Connection>>;

  void forget_old(Connections& idle, Time now) const {
    const Time oldest = now - options_.idle_timeout;
    std::erase_if(idle, [oldest](const auto& one) { return one->idle_since < oldest; });
  }
  /// Also removes old connections to hosts that are not called any more.
  void forget_old(Time now) {
    next_sweep_ = now + options_.idle_timeout;
    for (auto& [host, idle] : by_host_) forget_old(idle, now);
    std::erase_if(by_host_, [](const auto& entry) { return entry.second.empty(); });
  }
  static std::string key_of(const HttpUrl& url) {
    return (url.scheme == HttpUrl::Scheme::https ? "https://" : "http://") + url.authority;
  }

  const HttpCallerOptions& options_;
  std::unordered_map<std::string, Connections> by_host_;
  Time next_sweep_{};
};

/// The shared state of all calls. The I/O context is owned by the caller and by the running name
/// look-ups, which may end after the caller.
struct Shared {
  const HttpCallerOptions options;
  HostResolver& resolver;
  const AddressFilter filter;
  const std::shared_ptr<asio::io_context> io = std::make_shared<asio::io_context>(1);
  ssl::context tls{ssl::context::tls_client};
  IdleConnections idle{options};
};

std::string in_words(milliseconds timeout) {
  const auto count = timeout.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

/// The names of a step in error messages.
struct StepWords {
  std::string_view failed;     // as in "connect: …"
  std::string_view timed_out;  // as in "timed out after 5 s connecting"
};

StepWords words_of(CallStep step) {
  switch (step) {
    case CallStep::resolve:
      return {"resolve", "looking up the host's name"};
    case CallStep::filter:
      return {"address", "checking its addresses"};
    case CallStep::connect:
      return {"connect", "connecting"};
    case CallStep::handshake:
      return {"TLS handshake", "in the TLS handshake"};
    case CallStep::exchange:
      return {"exchange", "waiting for the answer"};
  }
  return {};
}

/// One call, from its URL to its end. For use on the I/O thread. The operations that it waits for
/// keep it alive.
class Call final : public std::enable_shared_from_this<Call> {
 public:
  Call(Shared& shared, HttpUrl url, HttpRequest request, HttpCaller::Done done)
      : shared_(shared),
        url_(std::move(url)),
        done_(std::move(done)),
        parser_({.max_header_bytes = shared.options.max_head_bytes,
                 .max_body_bytes = std::numeric_limits<std::size_t>::max()}) {
    request.target = url_.target;
    std::erase_if(request.headers, [](const auto& header) { return header.first == "connection"; });
    if (!keeps_alive()) request.headers.emplace_back("connection", "close");
    parser_.expect_answer_to(request.method);
    write_request(request, url_.authority, output_);
  }

  void start(HttpCaller::WhenSlow slow) {
    total_timer_.expires_after(shared_.options.total_timeout);
    total_timer_.async_wait([self = shared_from_this()](error_code ec) {
      if (!ec) self->time_out(self->shared_.options.total_timeout, " in all,");
    });
    if (slow.tell) watch(std::move(slow));
    connection_ = shared_.idle.take(url_);
    if (connection_) return exchange();
    connection_ = std::make_unique<Connection>(*shared_.io);
    begin(CallStep::resolve, shared_.options.resolve_timeout);
    if (url_.address) return filter({*url_.address});
    shared_.resolver.resolve(url_.host, [io = shared_.io, weak = weak_from_this()](
                                            Result<std::vector<IpAddress>> found) {
      asio::post(*io, [weak, found = std::move(found)]() mutable {
        if (const auto self = weak.lock()) self->resolved(std::move(found));
      });
    });
  }

  /// Ends the call without running its callbacks.
  void cut() {
    is_over_ = true;
    done_ = {};
    close();
  }

 private:
  void watch(HttpCaller::WhenSlow slow) {
    slow_timer_.emplace(*shared_.io, slow.after);
    slow_timer_->async_wait(
        [self = shared_from_this(), tell = std::move(slow.tell)](error_code ec) mutable {
          if (!ec && !self->is_over_) tell();
        });
  }

  void resolved(Result<std::vector<IpAddress>> found) {
    if (is_over_) return;
    if (!found) return fail(found.error().message);
    filter(*std::move(found));
  }

  void filter(std::vector<IpAddress> addresses) {
    step_ = CallStep::filter;
    for (const IpAddress& address : addresses) {
      if (const Result<void> allowed = shared_.filter(address, url_.port); !allowed) {
        return fail(allowed.error().message);
      }
    }
    if (addresses.size() > kMaxAddresses) addresses.resize(kMaxAddresses, addresses.front());
    addresses_ = std::move(addresses);
    connect(0);
  }

  void connect(std::size_t index) {
    begin(CallStep::connect, shared_.options.connect_timeout);
    next_address_ = index + 1;
    connection_->socket.close();
    connection_->socket.tcp().async_connect(
        endpoint_of(addresses_[index], url_.port),
        [self = shared_from_this(), index](error_code ec) {
          // Ignore the result if a later address is being tried.
          if (!self->is_over_ && self->next_address_ == index + 1) self->connected(ec);
        });
  }

  void connected(error_code ec) {
    if (ec) {
      if (next_address_ < addresses_.size()) return connect(next_address_);
      return fail(ec.message());
    }
    connection_->socket.tcp().set_option(tcp::no_delay(true), ec);
    if (url_.scheme == HttpUrl::Scheme::https) return handshake();
    exchange();
  }

  void handshake() {
    begin(CallStep::handshake, shared_.options.handshake_timeout);
    connection_->socket.async_handshake(
        shared_.tls, url_.host, [self = shared_from_this()](error_code ended) {
          if (self->is_over_) return;
          if (ended) return self->fail(self->connection_->socket.handshake_error(ended));
          self->exchange();
        });
  }

  void exchange() {
    begin(CallStep::exchange, shared_.options.answer_timeout);
    // Ignore a failed write: the host may have answered and closed. read() will find out.
    const auto written = [self = shared_from_this()](error_code, std::size_t) {
      self->is_written_ = true;
    };
    connection_->socket.async_write(asio::buffer(output_), written);
    read();
  }

  void read() {
    connection_->socket.async_read_some(
        asio::buffer(buffer_), [self = shared_from_this()](error_code ec, std::size_t size) {
          if (!self->is_over_) self->take_in(ec, size);
        });
  }

  void take_in(error_code ec, std::size_t size) {
    if (ec) return end_of_input(ec);
    input_.append(buffer_.data(), size);
    const ParseState before = parser_.state();
    input_.erase(0, parser_.parse(input_));
    switch (parser_.state()) {
      case ParseState::complete:
        return answer_whole();
      case ParseState::failed:
        return fail_parsing(before);
      case ParseState::body:
        if (parser_.body_size() >= shared_.options.max_body_bytes) return answer_cut();
        if (before == ParseState::header) begin(CallStep::exchange, shared_.options.body_timeout);
        break;
      case ParseState::header:
        break;
    }
    read();
  }

  void end_of_input(error_code ec) {
    if (has_head()) return answer_cut();
    const bool is_end = ec == asio::error::eof || ec == ssl::error::stream_truncated;
    fail(is_end ? "the connection was closed before the answer" : ec.message());
  }

  void fail_parsing(ParseState before) {
    const std::string& detail = parser_.failure().detail;
    fail(before == ParseState::body ? "the answer's body is broken: " + detail
                                    : "the answer is not HTTP: " + detail);
  }

  bool has_head() const { return parser_.state() == ParseState::body; }

  /// Begins a step with this time limit.
  void begin(CallStep step, milliseconds timeout) {
    step_ = step;
    const auto number = ++step_number_;
    step_timer_.expires_after(timeout);
    step_timer_.async_wait([self = shared_from_this(), number, timeout](error_code ec) {
      // An expired timer may run its handler after the next step has begun.
      if (!ec && number == self->step_number_) self->time_out_step(timeout);
    });
  }

  void time_out_step(milliseconds timeout) {
    const bool has_other = step_ == CallStep::connect && next_address_ < addresses_.size();
    if (has_other && !is_over_) return connect(next_address_);
    time_out(timeout, "");
  }

  /// `of_what` follows the time in the message: " in all," for the limit of the whole call.
  void time_out(milliseconds timeout, std::string_view of_what) {
    if (is_over_) return;
    if (has_head()) return answer_cut();
    finish(CallFailure{step_, CallFailure::Kind::timed_out,
                       "timed out after " + in_words(timeout) + std::string(of_what) + " " +
                           std::string(words_of(step_).timed_out)});
  }

  void answer_cut() {
    if (shared_.options.wants_whole_answers) return fail("the answer was cut short");
    finish(parser_.take_part());
  }

  void answer_whole() {
    const bool is_usable = parser_.keeps_alive() && is_written_ && input_.empty();
    if (is_usable && keeps_alive()) shared_.idle.keep(url_, std::move(connection_));
    finish(parser_.take_part());
  }
  bool keeps_alive() const { return shared_.options.max_idle_connections > 0; }

  void fail(const std::string& message) {
    finish(CallFailure{step_, CallFailure::Kind::failed,
                       std::string(words_of(step_).failed) + ": " + message});
  }

  void finish(CallOutcome outcome) {
    is_over_ = true;
    close();
    HttpCaller::Done done = std::move(done_);
    done(std::move(outcome));
  }

  void close() {
    total_timer_.cancel();
    step_timer_.cancel();
    if (slow_timer_) slow_timer_->cancel();
    if (connection_) connection_->socket.close();
  }

  Shared& shared_;
  const HttpUrl url_;
  HttpCaller::Done done_;
  std::string output_;
  CallStep step_ = CallStep::resolve;
  std::uint64_t step_number_ = 0;
  bool is_over_ = false;
  std::vector<IpAddress> addresses_;  // all have passed the filter
  std::size_t next_address_ = 0;
  asio::steady_timer total_timer_{*shared_.io};
  asio::steady_timer step_timer_{*shared_.io};
  std::optional<asio::steady_timer> slow_timer_;
  std::unique_ptr<Connection> connection_;  // null after it was kept for other calls
  bool is_written_ = false;                 // true after the write of the request has ended
  ResponseParser parser_;
  std::array<char, kReadBytes> buffer_{};
  std::string input_;
};

class Caller final : public HttpCaller {
 public:
  Caller(HttpCallerOptions options, HostResolver& resolver, AddressFilter filter)
      : shared_{std::move(options), resolver, std::move(filter)} {}

  ~Caller() override {
    if (!thread_.joinable()) return;  // the thread was not started
    asio::post(*shared_.io, [this] {
      for (const auto& [key, weak] : calls_) {
        if (const auto call = weak.lock()) call->cut();
      }
      work_.reset();  // the thread ends after the handlers of the cut calls have run
    });
    thread_.join();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  Result<void> prepare() {
    const std::string& file = shared_.options.ca_file;
    const error_code ec = trust(shared_.tls, file);
    if (!ec) return ok();
    return Error{ErrorCode::invalid_argument,
                 "read certificates of \"" + file + "\": " + ec.message(), ""};
  }

  void run() {
    thread_ = std::thread([this] { shared_.io->run(); });
  }

  using HttpCaller::call;
  CallNumber call(HttpUrl url, HttpRequest request, Done done, WhenSlow slow) override {
    const CallNumber number = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
    asio::post(*shared_.io, [this, number, url = std::move(url), request = std::move(request),
                             done = std::move(done), slow = std::move(slow)]() mutable {
      auto forget_and_tell = [this, number, done = std::move(done)](CallOutcome outcome) mutable {
        calls_.erase(number);
        done(std::move(outcome));
      };
      const auto call = std::make_shared<Call>(shared_, std::move(url), std::move(request),
                                               std::move(forget_and_tell));
      calls_.emplace(number, call);
      call->start(std::move(slow));
    });
    return number;
  }

  void abandon(CallNumber number) override {
    asio::post(*shared_.io, [this, number] {
      const auto it = calls_.find(number);
      if (it == calls_.end()) return;
      const std::shared_ptr<Call> call = it->second.lock();
      calls_.erase(it);
      if (call) call->cut();
    });
  }

 private:
  Shared shared_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{shared_.io->get_executor()};
  std::thread thread_;

  std::atomic<CallNumber> last_number_{0};  // relaxed: the numbers must only be different

  // Used only by the I/O thread.
  std::unordered_map<std::uint64_t, std::weak_ptr<Call>> calls_;
};

}  // namespace

Result<std::unique_ptr<HttpCaller>> HttpCaller::start(HttpCallerOptions options,
                                                      HostResolver& resolver,
                                                      AddressFilter filter) {
  try {  // Asio throws when the system is out of files or threads
    auto caller = std::make_unique<Caller>(std::move(options), resolver, std::move(filter));
    TRY(caller->prepare());
    caller->run();
    return std::unique_ptr<HttpCaller>(std::move(caller));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unavailable, std::string("make HTTP caller: ") + exception.what(), ""};
  }
}

}  // namespace detent::net

#include "net/http_client/http_client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "detent/clock.h"
#include "net/message/http_parser.h"
#include "net/message/http_writer.h"
#include "net/socket/client_socket.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr ParseLimits kAnswerLimits{.max_header_bytes = 64 * 1024,
                                    .max_body_bytes = std::size_t{64} * 1024 * 1024};

/// 24 hours for the longest wait of a call, and one hour for everything else.
constexpr milliseconds kLongestTimeout = std::chrono::hours{25};
/// After an interruption, how long to wait for an answer that is on its way.
constexpr milliseconds kInterruptedPatience{500};
constexpr std::uint16_t kPlainPort = 80;
constexpr std::uint16_t kTlsPort = 443;

/// The server that the client sends to.
struct Authority {
  std::string host;  // without brackets
  bool is_tls = false;
  std::uint16_t port = 80;
  std::string text;  // "127.0.0.1:7070", "[::1]:7070": for messages and the Host header
};

Error bad_url(std::string_view url, std::string_view reason) {
  return Error{ErrorCode::invalid_argument,
               "\"" + std::string(url) + "\": " + std::string(reason) +
                   "; expected http://HOST[:PORT] or https://HOST[:PORT]",
               "url"};
}

Result<Authority> parse_url(std::string_view url) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  const bool is_tls = url.starts_with(kTls);
  if (!is_tls && !url.starts_with(kPlain)) return bad_url(url, "not an http or https URL");
  std::string_view rest = url.substr(is_tls ? kTls.size() : kPlain.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) {
    return bad_url(url, "it has more than a host and a port");
  }
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) return bad_url(url, "it has no closing bracket");
  const std::size_t host_end = std::min(rest.find(':', bracket), rest.size());
  Authority authority{
      .host = "", .is_tls = is_tls, .port = is_tls ? kTlsPort : kPlainPort, .text = ""};
  authority.host = bracket > 0 ? rest.substr(1, bracket - 1) : rest.substr(0, host_end);
  if (bracket > 0 && host_end != bracket + 1) return bad_url(url, "it has text after the bracket");
  if (authority.host.empty()) return bad_url(url, "it has no host");
  if (host_end < rest.size()) {
    const std::string_view port = rest.substr(host_end + 1);
    const auto [end, failure] =
        std::from_chars(port.data(), port.data() + port.size(), authority.port);
    if (failure != std::errc{} || end != port.data() + port.size() || authority.port == 0) {
      return bad_url(url, "its port is not a number from 1 to 65535");
    }
  }
  authority.text = std::string(rest.substr(0, host_end)) + ":" + std::to_string(authority.port);
  return authority;
}

bool is_sendable(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c != 0x7f; });
}

/// Returns whether the text can be a header value. A line break in it would start another header.
bool is_header_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

/// Writes requests and reads their answers at the same time, so that neither side must store all
/// bytes of the other. It runs on the io_context of the client, and must live until that has no
/// work left.
class Round {
 public:
  Round(ClientSocket& socket, std::span<const HttpRequest> requests, std::string_view host)
      : socket_(socket), requests_(requests), parser_(kAnswerLimits) {
    for (const HttpRequest& request : requests) write_request(request, host, output_);
  }

  /// Requires: there is at least one request.
  void start() {
    parser_.expect_answer_to(requests_.front().method);
    socket_.async_write(asio::buffer(output_), [this](error_code ec, std::size_t) {
      // A failed write is not an error yet: the server may have answered and closed. read() finds
      // out.
      is_written_ = !ec;
    });
    read();
  }

  bool is_complete() const { return answers_.size() == requests_.size(); }
  bool saw_any_byte() const { return saw_any_byte_; }
  /// Requires: is_complete(). Returns whether the connection can be used for another round.
  bool keeps_alive() const { return is_written_ && keeps_alive_ && input_.empty(); }
  std::vector<HttpResponse> take_answers() { return std::move(answers_); }
  /// Returns the error that ended the round, or std::nullopt if there was none so far.
  const std::optional<Error>& error() const { return error_; }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(buffer_), [this](error_code ec, std::size_t size) {
      if (ec) return end(ec);
      saw_any_byte_ = true;
      input_.append(buffer_.data(), size);
      parse();
      if (!is_complete() && !error_) return read();
      if (!is_written_) socket_.close();  // cancels the write: its result is not needed any more
    });
  }

  void parse() {
    while (!is_complete() && !error_ && !input_.empty()) {
      const std::size_t taken = parser_.parse(input_);
      input_.erase(0, taken);
      if (parser_.state() == ParseState::failed) return fail_parsing();
      if (parser_.state() != ParseState::complete) return;
      take_answer();
    }
  }

  void take_answer() {
    keeps_alive_ = parser_.keeps_alive();
    answers_.push_back(parser_.take());
    if (is_complete()) return;
    parser_.expect_answer_to(requests_[answers_.size()].method);
    if (!keeps_alive_) fail(ErrorCode::unavailable, "closed the connection before all answers");
  }

  void end(error_code ec) {
    if (ec == asio::error::operation_aborted) return;  // timed out
    if (ec == asio::error::eof) {
      if (parser_.state() == ParseState::body) parser_.parse_end();
      if (parser_.state() == ParseState::complete) take_answer();
      if (!is_complete()) fail(ErrorCode::unavailable, "closed the connection before its answer");
    } else {
      fail(ErrorCode::unavailable, ec.message());
    }
    if (!is_written_) socket_.close();
  }

  void fail_parsing() {
    const ParseFailure& failure = parser_.failure();
    fail(failure.status == 413 ? ErrorCode::too_large : ErrorCode::internal,
         "answer: " + failure.detail);
  }

  void fail(ErrorCode code, std::string message) {
    if (!error_) error_ = Error{code, std::move(message), ""};
  }

  ClientSocket& socket_;
  const std::span<const HttpRequest> requests_;
  std::string output_;
  bool is_written_ = false;
  ResponseParser parser_;
  std::array<char, 64 * 1024> buffer_{};
  std::string input_;
  bool saw_any_byte_ = false;
  bool keeps_alive_ = true;
  std::vector<HttpResponse> answers_;
  std::optional<Error> error_;
};

class Client final : public HttpClient {
 public:
  Client(Authority authority, milliseconds timeout, HttpClientOptions options)
      : authority_(std::move(authority)), timeout_(timeout), options_(std::move(options)) {}

  /// Loads the trusted certificates. Call it before the first request. Errors: `invalid_argument`
  /// for a file without certificates.
  Result<void> trust() {
    if (!authority_.is_tls) return ok();
    const error_code ec = net::trust(tls_, options_.ca_file);
    if (!ec) return ok();
    return Error{ErrorCode::invalid_argument,
                 "read certificates from " + options_.ca_file + ": " + ec.message(), "ca"};
  }

  Result<HttpResponse> send(const HttpRequest& request) override {
    const Repeat repeat = request.method == "GET" ? Repeat::once : Repeat::never;
    ASSIGN_OR_RETURN(std::vector<HttpResponse> answers,
                     exchange_with_headers({&request, 1}, repeat));
    return std::move(answers.front());
  }

  Result<std::vector<HttpResponse>> send_all(const std::vector<HttpRequest>& requests) override {
    return exchange_with_headers(requests, Repeat::never);
  }

  bool may_have_been_seen() const noexcept override { return may_have_been_seen_; }

  void interrupt() noexcept override {
    is_interrupted_ = true;
    asio::post(io_, [this] {
      error_code failed;
      socket_.tcp().shutdown(tcp::socket::shutdown_send, failed);
      if (failed) socket_.close();  // it was being connected
      interrupted_until_ = std::min(interrupted_until_, clock_.now() + kInterruptedPatience);
    });
  }

 private:
  enum class Repeat : std::uint8_t { never, once };

  Result<std::vector<HttpResponse>> exchange_with_headers(std::span<const HttpRequest> requests,
                                                          Repeat repeat) {
    if (options_.headers.empty()) return exchange(requests, repeat);
    std::vector<HttpRequest> dressed(requests.begin(), requests.end());
    for (HttpRequest& request : dressed) {
      request.headers.insert(request.headers.end(), options_.headers.begin(),
                             options_.headers.end());
    }
    return exchange(dressed, repeat);
  }

  Result<std::vector<HttpResponse>> exchange(std::span<const HttpRequest> requests, Repeat repeat) {
    may_have_been_seen_ = false;
    if (requests.empty()) return std::vector<HttpResponse>{};
    for (const HttpRequest& request : requests) {
      if (!is_sendable(request.method) || !is_sendable(request.target)) {
        return Error{
            ErrorCode::invalid_argument,
            "cannot send method \"" + request.method + "\" with target \"" + request.target + "\"",
            ""};
      }
    }
    const MonotonicTime deadline = clock_.now() + timeout_;
    const bool is_reused = socket_.tcp().is_open() && socket_.is_quiet();
    if (!is_reused) TRY(connect(deadline));
    if (is_interrupted_) return interrupted();
    may_have_been_seen_ = true;
    Attempt attempt = run(requests, deadline);
    if (attempt.is_unseen && is_reused && repeat == Repeat::once && !is_interrupted_) {
      TRY(connect(deadline));
      attempt = run(requests, deadline);
    }
    return std::move(attempt.answers);
  }

  struct Attempt {
    Result<std::vector<HttpResponse>> answers;
    bool is_unseen = false;  // the connection was lost before the first byte of an answer
  };

  Attempt run(std::span<const HttpRequest> requests, MonotonicTime deadline) {
    Round round(socket_, requests, authority_.text);
    round.start();
    const bool in_time = run_until(deadline);
    if (!round.is_complete() || !round.keeps_alive()) socket_.close();
    if (round.is_complete()) return {.answers = round.take_answers()};
    if (!in_time || !round.error()) return {.answers = given_up()};
    return {.answers = with_context(authority_.text, *round.error()),
            .is_unseen = !round.saw_any_byte()};
  }

  Result<void> connect(MonotonicTime deadline) {
    socket_.close();
    error_code ec;
    const auto endpoints =
        tcp::resolver(io_).resolve(authority_.host, std::to_string(authority_.port), ec);
    if (ec) return cannot_connect(ec);
    ec = asio::error::would_block;
    asio::async_connect(socket_.tcp(), endpoints,
                        [&ec](error_code result, const tcp::endpoint&) { ec = result; });
    if (!run_until(deadline)) return given_up();
    if (ec) return cannot_connect(ec);
    socket_.tcp().set_option(tcp::no_delay(true), ec);
    return authority_.is_tls ? begin_tls(deadline) : ok();
  }

  Result<void> begin_tls(MonotonicTime deadline) {
    error_code ec = asio::error::would_block;
    socket_.async_handshake(tls_, authority_.host, [&ec](error_code result) { ec = result; });
    if (!run_until(deadline)) return given_up();
    if (!ec) return ok();
    socket_.close();
    return cannot_connect(ec);
  }

  /// Runs the started operations to their end. Returns false if the deadline ended them, or the end
  /// of the patience after an interruption.
  bool run_until(MonotonicTime deadline) {
    io_.restart();
    const auto left = [&] {
      return std::max(std::min(deadline, interrupted_until_) - clock_.now(),
                      MonotonicTimeline::duration{0});
    };
    while (io_.run_one_for(left()) > 0) continue;
    if (io_.stopped()) return true;
    socket_.close();
    io_.run();  // run the handlers of the closed socket
    return false;
  }

  Error given_up() const {
    if (is_interrupted_) return interrupted();
    return Error{ErrorCode::unavailable,
                 authority_.text + ": no answer within " + std::to_string(timeout_.count()) + " ms",
                 ""};
  }
  Error interrupted() const { return Error{ErrorCode::unavailable, "interrupted", ""}; }
  Error cannot_connect(error_code ec) const {
    return Error{ErrorCode::unavailable, "connect to " + authority_.text + ": " + ec.message(), ""};
  }

  const Authority authority_;
  const milliseconds timeout_;
  const HttpClientOptions options_;
  const SystemClock clock_;
  asio::io_context io_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  ClientSocket socket_{io_};
  bool may_have_been_seen_ = false;
  // Written by interrupt(), and read before each request. interrupt() also posts a handler, which
  // ends a request that runs at that moment.
  std::atomic<bool> is_interrupted_ = false;
  MonotonicTime interrupted_until_ = MonotonicTime::max();  // written by this handler
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::create(std::string_view url, milliseconds timeout,
                                                       HttpClientOptions options) {
  ASSIGN_OR_RETURN(Authority authority, parse_url(url));
  if (timeout <= milliseconds{0} || timeout > kLongestTimeout) {
    return Error{ErrorCode::invalid_argument,
                 "the timeout must be greater than 0 and at most 25 hours, got " +
                     std::to_string(timeout.count()) + " ms",
                 "timeout"};
  }
  for (const auto& [name, value] : options.headers) {  // do not repeat the value: it may be secret
    if (is_header_value(value)) continue;
    return Error{ErrorCode::invalid_argument,
                 "header " + name + " has a control character, for example a line break", name};
  }
  try {  // Asio throws when the system is out of files
    auto client = std::make_unique<Client>(std::move(authority), timeout, std::move(options));
    TRY(client->trust());
    return std::unique_ptr<HttpClient>(std::move(client));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unavailable, std::string("make HTTP client: ") + exception.what(), ""};
  }
}

}  // namespace detent::net

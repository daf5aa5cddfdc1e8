#include "net/message/http_parser.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <utility>

#include "detent/check.h"

namespace detent::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

// The size of the shortest chunked body, "0\r\n\r\n".
constexpr std::size_t kLastChunkBytes = 5;
constexpr std::size_t kFirstBodyReserve = 64 * 1024;  // the length may be wrong until bytes arrive

std::string_view to_std(beast::string_view text) { return {text.data(), text.size()}; }

bool is_all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns whether all characters are visible ASCII and not '#'. A fragment is never sent, and
/// other characters must be percent-encoded.
bool is_target_text(std::string_view target) {
  return std::all_of(target.begin(), target.end(),
                     [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

/// Removes scheme and host from a target in absolute form ("http://host/path?query"), which a
/// server must accept. Returns every other target unchanged.
std::string origin_form(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    if (path == scheme.size()) return {};  // it has no host; the caller refuses it
    if (path == std::string_view::npos) return "/";
    const std::string_view rest = target.substr(path);
    return rest.front() == '/' ? std::string(rest) : "/" + std::string(rest);
  }
  return std::string(target);
}

/// Finds the end of a header line by line, and continues where it stopped. It refuses two faults
/// that Beast does not refuse: Beast accepts folded lines, and it waits for a missing CR at the end
/// of the header.
class HeaderScan {
 public:
  enum class Found : std::uint8_t { nothing_yet, end, bare_line_feed, folded_line };

  Found look(std::string_view bytes) {
    for (;;) {
      const std::size_t newline = bytes.find('\n', scanned_);
      if (newline == std::string_view::npos) {
        scanned_ = bytes.size();
        return Found::nothing_yet;
      }
      scanned_ = newline + 1;
      if (newline == line_begin_ || bytes[newline - 1] != '\r') return Found::bare_line_feed;
      if (newline - 1 == line_begin_) return Found::end;
      const char first = bytes[line_begin_];
      if (line_begin_ > 0 && (first == ' ' || first == '\t')) return Found::folded_line;
      line_begin_ = scanned_;
    }
  }

  /// Returns the size of the header, including its empty line. Requires: look() has found the end.
  std::size_t header_size() const { return scanned_; }

 private:
  std::size_t scanned_ = 0;
  std::size_t line_begin_ = 0;
};

/// The common part of the parsers for requests and responses. Beast calls its on_… functions.
template <bool IsRequest>
class MessageSink : public http::basic_parser<IsRequest> {
 public:
  explicit MessageSink(ParseLimits limits) : limits_(limits) {
    // HeaderScan limits the size before Beast sees a header, so Beast needs no limit of its own.
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    this->header_limit(static_cast<std::uint32_t>(std::min(limits.max_header_bytes, most - 1) + 1));
    this->body_limit(limits.max_body_bytes);
    this->eager(false);
  }

  std::size_t parse(std::string_view bytes) {
    std::size_t taken = 0;
    if (state == ParseState::header) taken = parse_header(bytes);
    if (state == ParseState::body && taken < bytes.size()) {
      taken += parse_body(bytes.substr(taken));
    }
    return taken;
  }

  void fail(int status, std::string detail) {
    state = ParseState::failed;
    failure = {.status = status, .detail = std::move(detail)};
  }

  ParseState state = ParseState::header;
  ParseFailure failure;
  bool http11 = false;
  HttpHeaders headers;
  std::string body;

 protected:
  using error_code = beast::error_code;

  /// Called in the on_… functions. Stops Beast, and sets the reason.
  void refuse(error_code& ec, std::string_view detail) {
    failure = {.status = 400, .detail = std::string(detail)};
    ec = http::error::bad_value;
  }

  /// Receives one header line; `name` is in lower case.
  virtual void on_header_line(std::string name, std::string_view value, error_code& ec) = 0;

 private:
  std::size_t parse_header(std::string_view bytes) {
    // RFC 9112, section 2.2: ignore an empty line before a message.
    if (!skipped_empty_line_ && bytes == "\r") return 0;
    if (!skipped_empty_line_ && bytes.starts_with("\r\n")) {
      skipped_empty_line_ = true;
      return 2 + parse_header(bytes.substr(2));
    }
    switch (scan_.look(bytes)) {
      case HeaderScan::Found::bare_line_feed:
        fail(400, "a line ends without CR");
        return 0;
      case HeaderScan::Found::folded_line:
        fail(400, "a header line is folded");
        return 0;
      case HeaderScan::Found::nothing_yet:
        if (bytes.size() >= limits_.max_header_bytes) fail_header_size();
        return 0;
      case HeaderScan::Found::end:
        break;
    }
    if (scan_.header_size() > limits_.max_header_bytes) {
      fail_header_size();
      return 0;
    }
    error_code ec;
    this->put(boost::asio::const_buffer(bytes.data(), scan_.header_size()), ec);
    if (ec) {
      fail(ec);
      return 0;
    }
    state = this->is_done() ? ParseState::complete : ParseState::body;
    is_before_chunks_ = this->chunked();
    this->eager(true);
    return scan_.header_size();
  }

  std::size_t parse_body(std::string_view bytes) {
    // Beast 1.81 asserts that the first chunk arrives in one piece if it is also the last. But the
    // client decides how the bytes are split. So wait for the fewest bytes that can end the body.
    if (is_before_chunks_ && bytes.front() == '0' && bytes.size() < kLastChunkBytes) return 0;
    error_code ec;
    const std::size_t taken = this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
    if (ec && ec != http::error::need_more) {
      fail(ec);
    } else if (this->is_done()) {
      state = ParseState::complete;
    } else if (bytes.size() - taken > limits_.max_header_bytes) {
      fail(431, "a chunk's header or the trailers are larger than " +
                    std::to_string(limits_.max_header_bytes) + " bytes");
    }
    return taken;
  }

  void fail(error_code ec) {
    if (ec == http::error::body_limit) {
      fail(413, "the body is larger than " + std::to_string(limits_.max_body_bytes) + " bytes");
    } else if (!failure.detail.empty()) {
      state = ParseState::failed;  // refuse() has set the reason
    } else {
      fail(400, ec.message());
    }
  }

  void fail_header_size() {
    fail(431, "the header is larger than " + std::to_string(limits_.max_header_bytes) + " bytes");
  }

  void on_field_impl(http::field, beast::string_view name, beast::string_view value,
                     error_code& ec) final {
    if (state != ParseState::header) return;  // a trailer: read and drop it
    on_header_line(to_lower(to_std(name)), to_std(value), ec);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) final {
    if (length) body.reserve(std::min<std::uint64_t>(*length, kFirstBodyReserve));
  }
  std::size_t on_body_impl(beast::string_view part, error_code&) final {
    body.append(part.data(), part.size());
    return part.size();
  }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view part, error_code&) final {
    body.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) final {
    is_before_chunks_ = false;
  }
  void on_finish_impl(error_code&) final {}

  const ParseLimits limits_;
  HeaderScan scan_;
  bool skipped_empty_line_ = false;
  bool is_before_chunks_ = false;  // the header of the first chunk is not complete yet
};

}  // namespace

// ---- Requests -----------------------------------------------------------------------------------

class RequestParser::Sink final : public MessageSink<true> {
 public:
  using MessageSink::MessageSink;

  std::string method;
  std::string target;
  bool expects_continue = false;

 private:
  void on_request_impl(http::verb, beast::string_view method_text, beast::string_view target_text,
                       int version, error_code& ec) override {
    http11 = version == 11;
    method = to_std(method_text);
    if (is_target_text(to_std(target_text))) target = origin_form(to_std(target_text));
    const bool is_path = target.starts_with('/');
    const bool is_whole_server = target == "*" && method == "OPTIONS";
    if (!is_path && !is_whole_server)
      refuse(ec, "the request target must be a path that begins with /");
  }

  void on_header_line(std::string name, std::string_view value, error_code& ec) override {
    if (name == "content-length") {
      if (++lengths_ > 1) return refuse(ec, "more than one Content-Length");
      if (!is_all_digits(value)) return refuse(ec, "Content-Length must be a number");
    } else if (name == "transfer-encoding") {
      if (!http11) return refuse(ec, "Transfer-Encoding in HTTP/1.0");
      if (!equals_ignoring_case(value, "chunked")) return refuse(ec, "unknown Transfer-Encoding");
    } else if (name == "host") {
      if (++hosts_ > 1) return refuse(ec, "more than one Host");
    } else if (name == "expect" && http11 && equals_ignoring_case(value, "100-continue")) {
      expects_continue = true;
    }
    headers.emplace_back(std::move(name), value);
  }

  void on_header_impl(error_code& ec) override {
    if (http11 && hosts_ == 0) refuse(ec, "no Host header");
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  int lengths_ = 0;
  int hosts_ = 0;
};

RequestParser::RequestParser(ParseLimits limits)
    : limits_(limits), sink_(std::make_unique<Sink>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::parse(std::string_view bytes) { return sink_->parse(bytes); }
ParseState RequestParser::state() const noexcept { return sink_->state; }
const ParseFailure& RequestParser::failure() const noexcept { return sink_->failure; }
bool RequestParser::keeps_alive() const { return sink_->keep_alive(); }
bool RequestParser::is_http11() const noexcept { return sink_->http11; }
bool RequestParser::expects_continue() const noexcept { return sink_->expects_continue; }
bool RequestParser::is_head() const noexcept { return sink_->method == "HEAD"; }

HttpRequest RequestParser::head() const {
  DETENT_CHECK(state() == ParseState::body);
  return {.method = sink_->method, .target = sink_->target, .headers = sink_->headers, .body = {}};
}

std::size_t RequestParser::body_size() const noexcept { return sink_->body.size(); }

void RequestParser::drop() { sink_ = std::make_unique<Sink>(limits_); }

HttpRequest RequestParser::take() {
  DETENT_CHECK(state() == ParseState::complete);
  HttpRequest request{.method = std::move(sink_->method),
                      .target = std::move(sink_->target),
                      .headers = std::move(sink_->headers),
                      .body = std::move(sink_->body)};
  drop();  // a parser of Beast reads only one message
  return request;
}

// ---- Responses ----------------------------------------------------------------------------------

class ResponseParser::Sink final : public MessageSink<false> {
 public:
  using MessageSink::MessageSink;

  int status = 0;
  std::string content_type;

 private:
  void on_response_impl(int status_code, beast::string_view, int version, error_code&) override {
    http11 = version == 11;
    status = status_code;
  }

  void on_header_line(std::string name, std::string_view value, error_code& ec) override {
    if (name == "content-length") {
      if (++lengths_ > 1) return refuse(ec, "more than one Content-Length");
    } else if (name == "transfer-encoding") {
      if (!equals_ignoring_case(value, "chunked")) return refuse(ec, "unknown Transfer-Encoding");
    } else if (name == "content-type") {
      content_type = value;
    } else {
      headers.emplace_back(std::move(name), value);
    }
  }

  void on_header_impl(error_code&) override {}
  void on_request_impl(http::verb, beast::string_view, beast::string_view, int,
                       error_code&) override {}

  int lengths_ = 0;
};

ResponseParser::ResponseParser(ParseLimits limits)
    : limits_(limits), sink_(std::make_unique<Sink>(limits)) {}
ResponseParser::~ResponseParser() = default;

void ResponseParser::expect_answer_to(std::string_view method) { sink_->skip(method == "HEAD"); }

std::size_t ResponseParser::parse(std::string_view bytes) {
  std::size_t taken = sink_->parse(bytes);
  while (state() == ParseState::complete && sink_->status < 200) {
    const bool has_no_body = sink_->skip();
    sink_ = std::make_unique<Sink>(limits_);
    sink_->skip(has_no_body);
    taken += sink_->parse(bytes.substr(taken));
  }
  return taken;
}

void ResponseParser::parse_end() {
  if (state() == ParseState::body) {
    beast::error_code ec;
    sink_->put_eof(ec);
    if (!ec) {
      sink_->state = ParseState::complete;
      return;
    }
  }
  if (state() != ParseState::failed) sink_->fail(400, "the connection ended inside a message");
}

ParseState ResponseParser::state() const noexcept { return sink_->state; }
const ParseFailure& ResponseParser::failure() const noexcept { return sink_->failure; }
bool ResponseParser::keeps_alive() const { return sink_->keep_alive(); }

std::size_t ResponseParser::body_size() const noexcept { return sink_->body.size(); }

HttpResponse ResponseParser::take() {
  DETENT_CHECK(state() == ParseState::complete);
  return take_part();
}

HttpResponse ResponseParser::take_part() {
  DETENT_CHECK(state() == ParseState::complete || state() == ParseState::body);
  HttpResponse response{.status = sink_->status,
                        .content_type = std::move(sink_->content_type),
                        .body = std::move(sink_->body),
                        .headers = std::move(sink_->headers)};
  sink_ = std::make_unique<Sink>(limits_);
  return response;
}

}  // namespace detent::net

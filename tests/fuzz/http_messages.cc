// Parses the bytes of a connection as HTTP requests and as HTTP responses. Reading in pieces of any
// size must give the same messages as reading in one piece. No message may exceed the limits. If an
// accepted request is sent on, it must be read as the same request. Otherwise two servers could
// disagree where it ends.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detent/check.h"
#include "net/message/http_parser.h"
#include "net/message/http_writer.h"
#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {

namespace {

constexpr net::ParseLimits kLimits{.max_header_bytes = 512, .max_body_bytes = 256};

/// The result of reading a connection: its messages, and the reason if it was closed.
template <class Message>
struct Heard {
  std::vector<Message> messages;
  std::vector<bool> kept_alive;
  int status = 0;
  std::string detail;
  bool is_in_body = false;
};

/// Works as InputBuffer does: the parser gets the bytes that it did not take again, before the next
/// bytes.
template <class Parser, class Message>
Heard<Message> hear(std::string_view bytes, std::size_t piece) {
  Parser parser(kLimits);
  Heard<Message> heard;
  std::string waiting;
  while (!bytes.empty()) {
    waiting += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    std::size_t taken = 1;
    while (taken > 0 && !waiting.empty()) {
      taken = parser.parse(waiting);
      DETENT_CHECK(taken <= waiting.size());
      waiting.erase(0, taken);
      if (parser.state() == net::ParseState::failed) {
        heard.status = parser.failure().status;
        heard.detail = parser.failure().detail;
        return heard;
      }
      if (parser.state() != net::ParseState::complete) continue;
      heard.kept_alive.push_back(parser.keeps_alive());
      heard.messages.push_back(parser.take());
      DETENT_CHECK(heard.messages.back().body.size() <= kLimits.max_body_bytes);
    }
  }
  heard.is_in_body = parser.state() == net::ParseState::body;
  return heard;
}

bool are_same(const net::HttpRequest& one, const net::HttpRequest& other) {
  return one.method == other.method && one.target == other.target && one.body == other.body &&
         one.headers == other.headers;
}
bool are_same(const net::HttpResponse& one, const net::HttpResponse& other) {
  return one.status == other.status && one.content_type == other.content_type &&
         one.body == other.body && one.headers == other.headers;
}

/// The detail of a failure may differ: with two faults, the piece that arrives first decides which
/// fault is found.
template <class Message>
void expect_same(const Heard<Message>& pieces, const Heard<Message>& whole) {
  DETENT_CHECK(pieces.kept_alive == whole.kept_alive);
  DETENT_CHECK(pieces.messages.size() == whole.messages.size());
  for (std::size_t i = 0; i < whole.messages.size(); ++i) {
    DETENT_CHECK(are_same(pieces.messages[i], whole.messages[i]));
  }
  DETENT_CHECK((pieces.status == 0) == (whole.status == 0));
  DETENT_CHECK(whole.status == 0 || !whole.detail.empty());
  DETENT_CHECK(pieces.is_in_body == whole.is_in_body);
}

net::HttpHeaders without_framing(const net::HttpRequest& request) {
  net::HttpHeaders headers;
  for (const auto& header : request.headers) {
    const bool is_framing = header.first == "host" || header.first == "content-length" ||
                            header.first == "transfer-encoding";
    if (!is_framing) headers.push_back(header);
  }
  return headers;
}

void expect_same_when_sent_on(const net::HttpRequest& request) {
  std::string bytes;
  net::write_request(request, "h", bytes);
  net::RequestParser parser({.max_header_bytes = 4096, .max_body_bytes = 4096});
  DETENT_CHECK(parser.parse(bytes + "GET / HTTP/1.1\r\n") == bytes.size());
  DETENT_CHECK(parser.state() == net::ParseState::complete);
  const net::HttpRequest again = parser.take();
  DETENT_CHECK(again.method == request.method && again.target == request.target);
  DETENT_CHECK(again.body == request.body);
  DETENT_CHECK(without_framing(again) == without_framing(request));
}

}  // namespace

void http_messages(std::string_view input) {
  if (input.empty()) return;
  const std::size_t piece = std::size_t{static_cast<std::uint8_t>(input.front())} + 1;
  const std::string_view bytes = input.substr(1);
  const std::size_t all = std::max<std::size_t>(bytes.size(), 1);
  const auto requests = hear<net::RequestParser, net::HttpRequest>(bytes, all);
  expect_same(hear<net::RequestParser, net::HttpRequest>(bytes, piece), requests);
  for (const net::HttpRequest& request : requests.messages) expect_same_when_sent_on(request);
  expect_same(hear<net::ResponseParser, net::HttpResponse>(bytes, piece),
              hear<net::ResponseParser, net::HttpResponse>(bytes, all));
}

}  // namespace detent::fuzz

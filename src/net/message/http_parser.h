// Parses HTTP/1.0 and 1.1 messages from bytes. Pure: no socket, no clock.
//
// Boost.Beast's incremental parser reads the grammar (http_parser.cc is the only file that includes
// it). This parser is stricter. Request smuggling works if two parties disagree about the end of a
// message. Where RFC 9112 permits a guess, the parser therefore refuses the message:
//
// - both Content-Length and Transfer-Encoding, or either of them twice
// - codings other than "chunked"
// - folded header lines, and line ends without CR
// - a missing or second Host
//
// http_parser_test.cc has the table of cases.
//
// Both parsers take bytes as they arrive and return how many bytes they took. The caller presents
// the rest again, followed by the next bytes. No byte is parsed twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/message/http_message.h"

namespace detent::net {

struct ParseLimits {
  std::size_t
      max_header_bytes;        // of the start line with headers, a chunk's header, or the trailers
  std::size_t max_body_bytes;  // after the chunks are joined
};

/// The reason for a refused message: the status for the server's answer, and a sentence for people.
struct ParseFailure {
  int status = 0;  // 400, 413 or 431
  std::string detail;
};

enum class ParseState : std::uint8_t {
  header,    // the end of the header has not been seen
  body,      // the header is accepted, the body is not complete
  complete,  // call take()
  failed,    // see failure(); the connection cannot be read any further
};

/// Reads the requests of one connection, one after the other. Thread-compatible. The memory for a
/// body grows with the bytes that have arrived, up to twice their number.
class RequestParser {
 public:
  explicit RequestParser(ParseLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Reads one request from the front of `bytes`. Returns the number of bytes that it took; it
  /// takes no byte after the end of the request. Requires: the state is header or body.
  std::size_t parse(std::string_view bytes);

  ParseState state() const noexcept;
  const ParseFailure& failure() const noexcept;

  /// Requires for the four methods down to is_head(): the state is body or complete.
  bool keeps_alive() const;
  bool is_http11() const noexcept;
  /// Returns true if the client waits for `100 Continue` before it sends the body.
  bool expects_continue() const noexcept;
  bool is_head() const noexcept;

  /// Returns a copy of the request without its body. Requires: the state is body.
  HttpRequest head() const;
  /// The number of bytes of the body that have arrived; 0 after take().
  std::size_t body_size() const noexcept;
  /// Discards the current request; the next parse() starts another request.
  void drop();
  /// Returns the request; the next parse() starts another request. Requires: the state is complete.
  HttpRequest take();

 private:
  class Sink;
  const ParseLimits limits_;
  std::unique_ptr<Sink> sink_;
};

/// Reads the responses of one connection. Interim responses (1xx) are skipped. Thread-compatible.
class ResponseParser {
 public:
  explicit ResponseParser(ParseLimits limits);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Sets the method that the next response answers, because a response to HEAD has no body.
  /// Requires: no byte of that response has been parsed.
  void expect_answer_to(std::string_view method);

  /// As RequestParser::parse.
  std::size_t parse(std::string_view bytes);
  /// The connection has ended. Completes a response whose body lasts until the end of the
  /// connection. Every other incomplete response fails.
  void parse_end();

  ParseState state() const noexcept;
  const ParseFailure& failure() const noexcept;
  /// Requires: the state is complete.
  bool keeps_alive() const;
  /// As RequestParser::take(). Header names are in lower case. Content-Type and the headers about
  /// framing are left out of the headers.
  HttpResponse take();
  /// The number of bytes of the body that have arrived.
  std::size_t body_size() const noexcept;
  /// Returns the response with the part of its body that has arrived. The connection cannot be read
  /// any further. Requires: the state is body or complete.
  HttpResponse take_part();

 private:
  class Sink;
  const ParseLimits limits_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace detent::net

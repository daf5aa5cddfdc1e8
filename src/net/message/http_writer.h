// Writes the start line and headers of HTTP/1.1 messages; the body follows unchanged.
//
// Header values may come from outside. A control character in a name or value is replaced by a
// space, because a line end would let an attacker add a header.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "net/message/http_message.h"

namespace detent::net {

/// The state of the connection after the message.
enum class Persistence : std::uint8_t {
  keep,            // HTTP/1.1's default: no header is sent
  keep_announced,  // "Connection: keep-alive", for HTTP/1.0 clients that asked for it
  close,           // "Connection: close"
};

/// How the client finds the end of the body.
enum class BodyEnd : std::uint8_t {
  by_length,  // the body is complete: "Content-Length"
  by_chunk,   // "Transfer-Encoding: chunked", for HTTP/1.1 only
  by_close,   // with the end of the connection; persistence must be `close`
};

struct Framing {
  Persistence persistence = Persistence::keep;
  BodyEnd body_end = BodyEnd::by_length;
};

/// Formats a time as "Sun, 06 Nov 1994 08:49:37 GMT". It keeps the text for one second.
/// Thread-compatible.
class HttpDate {
 public:
  std::string_view at(WallInstant now);

 private:
  std::chrono::sys_seconds made_for_{std::chrono::seconds{-1}};
  std::string text_;
};

/// Appends the head of `response`. If the body ends by length, the head contains the length; 204
/// and 304 have no body and no length.
void write_response_head(const HttpResponse& response, Framing framing, std::string_view date,
                         std::string& out);

/// Makes `body` a chunk: appends the chunk's start to `head`, and its end to `body`. The last chunk
/// may be empty, and ends the whole body.
enum class ChunkPlace : std::uint8_t { more_follow, last };
void write_chunk(ChunkPlace place, std::string& head, std::string& body);

/// Returns true if a response with `status` may have a body.
constexpr bool has_body(int status) noexcept { return status != 204 && status != 304; }

/// Appends the whole of `request`, addressed to `host` ("127.0.0.1:7070"). This function makes the
/// headers Host, Content-Length and Transfer-Encoding itself, and ignores those of the request.
void write_request(const HttpRequest& request, std::string_view host, std::string& out);

}  // namespace detent::net

// HTTP/1.1 messages as bytes: the start line and headers; the body follows as it is.
//
// What callers put into headers may come from outside, so a control character in a name or value
// (a line end would start a header of the attacker's choice) is replaced by a space.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "net/http_message.h"

namespace detent::net {

/// What becomes of the connection after the message.
enum class Persistence : std::uint8_t {
  keep,            // HTTP/1.1's default: nothing is said
  keep_announced,  // "Connection: keep-alive", for HTTP/1.0 clients that asked for it
  close,           // "Connection: close"
};

/// "Sun, 06 Nov 1994 08:49:37 GMT", kept for the second it was made for. Thread-compatible.
class HttpDate {
 public:
  std::string_view at(WallInstant now);

 private:
  std::chrono::sys_seconds made_for_{std::chrono::seconds{-1}};
  std::string text_;
};

/// Appends the head of `response`, with the length of its body (none for 204 and 304, which have no
/// body).
void write_response_head(const HttpResponse& response, Persistence persistence,
                         std::string_view date, std::string& out);

/// True when `status` allows a body in the response.
constexpr bool has_body(int status) noexcept { return status != 204 && status != 304; }

/// Appends the whole of `request`, addressed to `host` ("127.0.0.1:7070"). A Host, Content-Length
/// or Transfer-Encoding among its headers is left out: they are made here.
void write_request(const HttpRequest& request, std::string_view host, std::string& out);

}  // namespace detent::net

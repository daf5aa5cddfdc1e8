// Where an HTTP request goes: a URL, read so that nobody can disagree about which host it names.
//
// Readers of URLs differ in how they take "http://127.1/", "http://0x7f000001/" or
// "http://good.com@evil.com/", and a check by one reader followed by a connection by another is how
// such checks are got around. So there is one reader, and it refuses what is not plain: a host is a
// v6 address in brackets, a v4 address as four decimal numbers, or a name; a name whose last label
// is a number (WHATWG URL, "ends in a number") is neither.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/ip_address.h"

namespace detent::net {

inline constexpr std::size_t kMaxUrlBytes = 2'048;

struct HttpUrl {
  enum class Scheme : std::uint8_t { http, https };
  Scheme scheme = Scheme::https;
  std::string host;                  // in lower case, without brackets
  std::optional<IpAddress> address;  // what the host says, when it is no name
  std::uint16_t port = 443;
  std::string target = "/";  // path and query
  std::string authority;     // for the Host header; without the scheme's own port
};

/// Reads "http(s)://HOST[:PORT][/PATH][?QUERY]", at most kMaxUrlBytes of visible ASCII. Refuses
/// user names and passwords, fragments, back slashes, escapes and underscores apart anything but
/// letters, digits, - . _ in a name, names that end with a dot, zones, port 0.
/// Errors: `invalid_argument` that says what is wrong and does not repeat the URL.
Result<HttpUrl> parse_http_url(std::string_view text);

}  // namespace detent::net

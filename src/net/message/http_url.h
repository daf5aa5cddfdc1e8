// The target of an HTTP request: a URL that every reader understands as the same host.
//
// Readers of URLs differ in how they read "http://127.1/", "http://0x7f000001/" or
// "http://good.com@evil.com/". If one reader checks a URL and another reader connects, an attacker
// can use this difference to avoid the check. All code therefore uses this one reader, and it
// refuses ambiguous URLs. A host is a v6 address in brackets, a v4 address as four decimal numbers,
// or a name. A name whose last label is a number is refused (WHATWG URL, "ends in a number").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/address/ip_address.h"

namespace detent::net {

inline constexpr std::size_t kMaxUrlBytes = 2'048;

struct HttpUrl {
  enum class Scheme : std::uint8_t { http, https };
  Scheme scheme = Scheme::https;
  std::string host;                  // in lower case, without brackets
  std::optional<IpAddress> address;  // the address, unless the host is a name
  std::uint16_t port = 443;
  std::string target = "/";  // path and query
  std::string authority;     // for the Host header; without the default port of the scheme
};

/// Reads "http(s)://HOST[:PORT][/PATH][?QUERY]", at most kMaxUrlBytes of visible ASCII. Refuses
/// user names and passwords, fragments, back slashes, escapes in the host, names that end with a
/// dot, zones, and port 0. A name may contain letters, digits, - . and _ only. Errors:
/// `invalid_argument`; the message gives the reason and does not repeat the URL.
Result<HttpUrl> parse_http_url(std::string_view text);

}  // namespace detent::net

#include "net/message/http_url.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "net/message/http_message.h"

namespace detent::net {
namespace {

constexpr std::size_t kMaxNameBytes = 253;
constexpr std::size_t kMaxLabelBytes = 63;

Error bad(std::string_view reason) {
  return Error{ErrorCode::invalid_argument, "the URL " + std::string(reason), ""};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
}

/// Returns whether a reader could take the label for a part of an address: "10", "0x7f", "0x".
bool is_number(std::string_view label) {
  if (label.starts_with("0x")) {
    return std::all_of(label.begin() + 2, label.end(), is_hex_digit);
  }
  return std::all_of(label.begin(), label.end(), is_digit);
}

/// Requires: `name` is in lower case.
Result<void> check_name(std::string_view name) {
  if (name.size() > kMaxNameBytes) return bad("has a host name longer than 253 bytes");
  if (!std::all_of(name.begin(), name.end(), is_name_char)) {
    return bad("has a host name with a character other than letters, digits, - . _");
  }
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (end == begin || end - begin > kMaxLabelBytes) {
      return bad("has a host name with an empty part, or one longer than 63 bytes");
    }
    if (end == name.size() && is_number(name.substr(begin))) {
      return bad("has a number as its host; write an address as four decimal numbers");
    }
    begin = end + 1;
  }
  return ok();
}

/// `host` is as in the URL, including brackets.
Result<void> read_host(std::string_view host, HttpUrl& url) {
  if (host.empty()) return bad("has no host");
  if (host.front() == '[') {
    url.host = to_lower(host.substr(1, host.size() - 2));
    url.address = IpAddress::parse(url.host);
    if (!url.address || url.address->family() != IpAddress::Family::v6) {
      return bad("has brackets around a text that is not an IPv6 address");
    }
    return ok();
  }
  url.host = to_lower(host);
  url.address = IpAddress::parse(url.host);
  return url.address ? ok() : check_name(url.host);
}

Result<void> read_port(std::string_view text, HttpUrl& url) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, url.port);
  if (error != std::errc{} || stop != end || url.port == 0)
    return bad("needs a port from 1 to 65535 after the :");
  return ok();
}

Result<void> read_scheme(std::string_view& rest, HttpUrl& url) {
  const std::size_t end = rest.find("://");
  const std::string scheme = to_lower(rest.substr(0, std::min(end, rest.size())));
  if (end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return bad("does not begin with http:// or https://");
  }
  url.scheme = scheme == "http" ? HttpUrl::Scheme::http : HttpUrl::Scheme::https;
  rest.remove_prefix(end + 3);
  return ok();
}

}  // namespace

Result<HttpUrl> parse_http_url(std::string_view text) {
  if (text.size() > kMaxUrlBytes) return bad("is longer than 2048 bytes");
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '\\'; };
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    return bad("has a character that is not visible ASCII, or a back slash");
  }
  HttpUrl url;
  std::string_view rest = text;
  TRY(read_scheme(rest, url));
  if (rest.find('#') != std::string_view::npos)
    return bad("has a fragment (#), which is not allowed");
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, authority_end);
  if (authority.find('@') != std::string_view::npos)
    return bad("has a user name (@), which is not allowed");
  if (authority_end < rest.size()) {
    const std::string_view target = rest.substr(authority_end);
    url.target = (target.front() == '/' ? "" : "/") + std::string(target);
  }

  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return bad("has no closing bracket");
  const std::size_t host_end = std::min(authority.find(':', bracket), authority.size());
  if (bracket > 0 && host_end != bracket + 1) return bad("has text after the closing bracket");
  const std::uint16_t usual_port = url.scheme == HttpUrl::Scheme::http ? 80 : 443;
  url.port = usual_port;
  TRY(read_host(authority.substr(0, host_end), url));
  if (host_end < authority.size()) TRY(read_port(authority.substr(host_end + 1), url));
  url.authority = bracket > 0 ? "[" + url.host + "]" : url.host;
  if (url.port != usual_port) url.authority += ":" + std::to_string(url.port);
  return url;
}

}  // namespace detent::net

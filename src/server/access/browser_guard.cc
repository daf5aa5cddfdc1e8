#include "server/access/browser_guard.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace detent::server {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Returns "https://example.org:8443" without its scheme, or "" for any scheme except http and
/// https.
std::string_view host_of_origin(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  }
  return {};
}

/// "example.org:80" without its port, "[::1]:80" also without its brackets.
std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

}  // namespace

bool is_from_own_page(const net::HttpRequest& request, std::string_view cors_origin) {
  const bool is_safe =
      request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  if (is_safe || cors_origin == "*") return true;
  const std::string_view own = request.header("host");
  return std::ranges::all_of(request.headers, [&](const auto& header) {
    const auto& [name, origin] = header;
    if (name != "origin") return true;
    if (!origin.empty() && origin == cors_origin) return true;
    return !own.empty() && lower(host_of_origin(origin)) == lower(own);
  });
}

bool is_own_name(const net::HttpRequest& request, std::span<const std::string> names) {
  const std::string_view host = request.header("host");
  if (host.empty()) return true;  // HTTP/1.0, which no browser speaks
  const std::string name = lower(name_of_host(host));
  const bool has_no_domain = !host.starts_with('[') && name.find('.') == name.npos;
  return has_no_domain || is_address(name) || std::ranges::find(names, name) != names.end();
}

}  // namespace detent::server

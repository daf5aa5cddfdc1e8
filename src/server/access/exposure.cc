#include "server/access/exposure.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/log/log.h"

namespace detent::server {
namespace {

enum class Reach : std::uint8_t { no_address, loopback, other_machines };

Reach reach_of(const std::string& host) {
  constexpr unsigned char kLoopbackNet = 127;
  std::array<unsigned char, sizeof(in6_addr)> address{};
  bool is_loopback = false;
  if (inet_pton(AF_INET, host.c_str(), address.data()) == 1) {
    is_loopback = address[0] == kLoopbackNet;
  } else if (inet_pton(AF_INET6, host.c_str(), address.data()) == 1) {
    is_loopback = IN6_IS_ADDR_LOOPBACK(reinterpret_cast<const in6_addr*>(address.data()));
  } else {
    return Reach::no_address;
  }
  return is_loopback ? Reach::loopback : Reach::other_machines;
}

enum class Allowed : std::uint8_t { loopback, everywhere };

Result<void> check(const std::string& host, Allowed allowed, const char* field, const char* need) {
  const Reach reach = reach_of(host);
  if (reach == Reach::no_address) {
    return Error{ErrorCode::invalid_argument,
                 "--" + std::string(field) + ": '" + host +
                     "' is not an IP address; use 127.0.0.1 for clients on this machine",
                 field};
  }
  if (reach == Reach::loopback || allowed == Allowed::everywhere) return ok();
  return Error{ErrorCode::invalid_argument,
               "--" + std::string(field) + ": other machines can reach the address " + host +
                   "; use 127.0.0.1 or ::1, " + need,
               field};
}

}  // namespace

bool is_loopback(const std::string& host) { return reach_of(host) == Reach::loopback; }

std::size_t max_connections_of_address(const std::string& host, std::size_t of_all) {
  constexpr std::size_t kMostOfAddress = 1'000;
  return is_loopback(host) ? of_all
                           : std::min(kMostOfAddress, std::max<std::size_t>(of_all / 2, 1));
}

void warn_of_exposure(const cli::ServeOptions& options) {
  if (!is_loopback(options.http_host) && options.tls_cert.empty()) {
    log_warning("tokens and payloads are sent unencrypted: use --tls-cert or a TLS proxy",
                {{"address", options.http_host}});
  }
  const bool has_beanstalk = !options.beanstalk_host.empty();
  if (has_beanstalk && !is_loopback(options.beanstalk_host)) {
    log_warning("every client that can reach the beanstalk address has full access",
                {{"address", options.beanstalk_host}});
  }
}

Result<void> check_exposure(const cli::ServeOptions& options) {
  const Allowed http = options.auth.empty() ? Allowed::loopback : Allowed::everywhere;
  TRY(check(options.http_host, http, "http", "or give a file of access tokens with --auth"));
  if (options.beanstalk_host.empty()) return ok();
  const Allowed beanstalk = options.beanstalk_public ? Allowed::everywhere : Allowed::loopback;
  return check(options.beanstalk_host, beanstalk, "beanstalk",
               "or give every client full access with --beanstalk-public, because the protocol has "
               "no access control");
}

}  // namespace detent::server

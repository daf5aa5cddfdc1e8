#include "server/exposure.h"

#include <arpa/inet.h>

#include <array>

namespace detent::server {

Result<void> require_loopback(const std::string& host) {
  constexpr unsigned char kLoopbackNet = 127;
  std::array<unsigned char, sizeof(in6_addr)> address{};
  if (inet_pton(AF_INET, host.c_str(), address.data()) == 1) {
    if (address[0] == kLoopbackNet) return ok();
  } else if (inet_pton(AF_INET6, host.c_str(), address.data()) == 1) {
    if (IN6_IS_ADDR_LOOPBACK(reinterpret_cast<const in6_addr*>(address.data()))) return ok();
  } else {
    return Error{ErrorCode::invalid_argument, "'" + host + "' is no IP address", "http"};
  }
  return Error{ErrorCode::invalid_argument,
               host +
                   " can be reached from other machines, and this version has no access control: "
                   "listen on 127.0.0.1 or ::1, behind a proxy if need be",
               "http"};
}

}  // namespace detent::server

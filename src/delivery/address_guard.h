// Decides which addresses a webhook may call: addresses of the public Internet, and addresses that
// the operator has allowed.
//
// A client that can schedule a task can make this server send requests. The guard protects machines
// that only the server can reach (server-side request forgery). For IPv4 it refuses every block of
// IANA's special-purpose registry (RFC 6890 and later). For IPv6 it allows only global unicast,
// without the special-purpose blocks in it. Addresses that wrap an IPv4 address (mapped, NAT64) are
// judged by the wrapped address. Pure; the lists are from the registries as of 2025.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/address/ip_address.h"

namespace detent {

/// Immutable.
class AddressGuard {
 public:
  /// Allows the public Internet only.
  AddressGuard() = default;
  /// Parses additional allowed blocks: "10.1.0.0/16,fd00::/8,192.0.2.7"; may be empty.
  /// Errors: `invalid_argument` with the invalid block.
  static Result<AddressGuard> parse(std::string_view allowed);

  /// Addresses in an allowed block may be called at any port. For other addresses, a port below
  /// 1024 must be 80 or 443, because services of other protocols use these ports and could misread
  /// an HTTP request.
  /// Errors: `invalid_argument` with the address or port and the reason.
  Result<void> check(const net::IpAddress& address, std::uint16_t port) const;

 private:
  bool is_allowed(const net::IpAddress& address) const noexcept;

  std::vector<net::IpBlock> allowed_;
};

}  // namespace detent

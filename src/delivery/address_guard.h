// Which addresses a webhook may be delivered to: those of the public Internet, and what the
// operator has allowed.
//
// Whoever can schedule a task can make this server send requests; the guard keeps them from the
// machines that only it can reach (server-side request forgery). Of IPv4 every block of IANA's
// special-purpose registry (RFC 6890 and later) is refused, of IPv6 all but global unicast, without
// the special-purpose blocks in it. Addresses that only wrap a v4 address (mapped, NAT64) are
// judged by what they wrap. Pure; the lists are from the registries as of 2025.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/ip_address.h"

namespace detent {

/// Immutable.
class AddressGuard {
 public:
  /// Allows the public Internet only.
  AddressGuard() = default;
  /// Reads "10.1.0.0/16,fd00::/8,192.0.2.7": blocks to allow besides; may be empty.
  /// Errors: `invalid_argument` that names the block that is none.
  static Result<AddressGuard> parse(std::string_view allowed);

  /// What is in an allowed block may be called at any port. Elsewhere a port below 1024 must be 80
  /// or 443: behind the others are protocols that an HTTP request could be taken for.
  /// Errors: `invalid_argument` that says which address or port, and why not.
  Result<void> check(const net::IpAddress& address, std::uint16_t port) const;

 private:
  bool is_allowed(const net::IpAddress& address) const noexcept;

  std::vector<net::IpBlock> allowed_;
};

}  // namespace detent

#include "delivery/address_guard.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "detent/check.h"

namespace detent {
namespace {

using net::IpAddress;
using net::IpBlock;

struct SpecialBlock {
  IpBlock block;
  std::string_view what;
};

SpecialBlock special(std::string_view text, std::string_view what) {
  const std::optional<IpBlock> block = IpBlock::parse(text);
  DETENT_CHECK(block.has_value());
  return {*block, what};
}

/// IANA IPv4 Special-Purpose Address Registry, multicast, and the cloud's metadata by its own name.
const std::vector<SpecialBlock>& special_v4() {
  static const std::vector<SpecialBlock> blocks{
      special("0.0.0.0/8", "\"this network\""),
      special("10.0.0.0/8", "private"),
      special("100.64.0.0/10", "shared by a carrier's customers"),
      special("127.0.0.0/8", "loopback"),
      special("169.254.0.0/16", "link-local"),
      special("172.16.0.0/12", "private"),
      special("192.0.0.0/24", "for protocols"),
      special("192.0.2.0/24", "for documentation"),
      special("192.31.196.0/24", "AS112"),
      special("192.52.193.0/24", "AMT"),
      special("192.88.99.0/24", "6to4 relay"),
      special("192.168.0.0/16", "private"),
      special("192.175.48.0/24", "AS112"),
      special("198.18.0.0/15", "for benchmarks"),
      special("198.51.100.0/24", "for documentation"),
      special("203.0.113.0/24", "for documentation"),
      special("224.0.0.0/4", "multicast"),
      special("240.0.0.0/4", "reserved"),
  };
  return blocks;
}

/// The special blocks within global unicast. All addresses outside global unicast are refused
/// anyway.
const std::vector<SpecialBlock>& special_v6() {
  static const std::vector<SpecialBlock> blocks{
      special("2001::/23", "for protocols, Teredo among them"),
      special("2001:db8::/32", "for documentation"),
      special("2002::/16", "6to4"),
      special("2620:4f:8000::/48", "AS112"),
      special("3fff::/20", "for documentation"),
  };
  return blocks;
}

bool is_in(std::string_view block, const IpAddress& address) {
  return special(block, "").block.contains(address);
}

/// The v4 address that traffic to this v6 address reaches, when it wraps one.
std::optional<IpAddress> wrapped_v4(const IpAddress& address) {
  if (address.family() == IpAddress::Family::v4) return std::nullopt;
  const bool is_wrapped = is_in("::ffff:0:0/96", address) || is_in("64:ff9b::/96", address);
  return is_wrapped ? std::optional(address.embedded_v4()) : std::nullopt;
}

/// Why an address is not a public Internet address; empty if it is one. Requires: it does not wrap
/// another address.
std::optional<std::string_view> reason_against(const IpAddress& address) {
  const bool is_v4 = address.family() == IpAddress::Family::v4;
  for (const SpecialBlock& special : is_v4 ? special_v4() : special_v6()) {
    if (special.block.contains(address)) return special.what;
  }
  if (is_v4 || is_in("2000::/3", address)) return std::nullopt;
  return "not global unicast";
}

Error refused(const std::string& what, std::string_view reason) {
  return Error{ErrorCode::invalid_argument, what + " is refused: " + std::string(reason), ""};
}

}  // namespace

Result<AddressGuard> AddressGuard::parse(std::string_view allowed) {
  AddressGuard guard;
  while (!allowed.empty()) {
    const std::size_t end = std::min(allowed.find(','), allowed.size());
    const std::string_view text = allowed.substr(0, end);
    const std::optional<IpBlock> block = IpBlock::parse(text);
    if (!block) {
      return Error{ErrorCode::invalid_argument,
                   "--webhook-allow: \"" + std::string(text) +
                       "\" is not a block of addresses; expected ADDRESS or ADDRESS/BITS, with no "
                       "bits set after BITS, and commas between blocks",
                   "webhook_allow"};
    }
    guard.allowed_.push_back(*block);
    allowed.remove_prefix(std::min(end + 1, allowed.size()));
  }
  return guard;
}

Result<void> AddressGuard::check(const IpAddress& address, std::uint16_t port) const {
  const IpAddress judged = wrapped_v4(address).value_or(address);
  if (is_allowed(judged)) return ok();
  if (const auto reason = reason_against(judged)) return refused(to_string(address), *reason);
  if (port < 1024 && port != 80 && port != 443) {
    return refused("port " + std::to_string(port), "below 1024 only 80 and 443 may be called");
  }
  return ok();
}

bool AddressGuard::is_allowed(const IpAddress& address) const noexcept {
  return std::ranges::any_of(allowed_,
                             [&address](const IpBlock& block) { return block.contains(address); });
}

}  // namespace detent

// An IP address, and a block of addresses, as values for address rules.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace detent::net {

/// Version 4 or 6, without a zone. Immutable.
class IpAddress {
 public:
  enum class Family : std::uint8_t { v4, v6 };
  using Bytes = std::array<std::uint8_t, 16>;  // in network order; a v4 address uses the first four

  constexpr IpAddress(Family family, const Bytes& bytes) noexcept
      : family_(family), bytes_(bytes) {}

  /// Reads "192.0.2.1" (four decimal numbers without leading zeros) or "2001:db8::1" (RFC 4291; no
  /// brackets, no zone). Returns no value for any other spelling.
  static std::optional<IpAddress> parse(std::string_view text);

  constexpr Family family() const noexcept { return family_; }
  constexpr const Bytes& bytes() const noexcept { return bytes_; }
  constexpr int bits() const noexcept { return family_ == Family::v4 ? 32 : 128; }
  /// Returns the v4 address in the last 32 bits. Requires: the family is v6.
  IpAddress embedded_v4() const noexcept;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  Family family_;
  Bytes bytes_;
};
/// Writes an address so that parse() can read it; v6 as in RFC 5952.
std::string to_string(const IpAddress& address);

/// All addresses of one family that begin with the same bits ("10.0.0.0/8"). Immutable.
class IpBlock {
 public:
  /// Reads "ADDRESS/BITS", or an address alone, which is a block of one address. The bits after the
  /// first BITS must be zero, because "10.1.2.3/8" is more likely a mistake than a block.
  static std::optional<IpBlock> parse(std::string_view text);

  bool contains(const IpAddress& address) const noexcept;

 private:
  IpBlock(IpAddress first, int bits) noexcept : first_(first), bits_(bits) {}

  IpAddress first_;
  int bits_;
};

}  // namespace detent::net

#include "net/address/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "detent/check.h"

namespace detent::net {
namespace {

int family_number(IpAddress::Family family) {
  return family == IpAddress::Family::v4 ? AF_INET : AF_INET6;
}

/// Returns a mask for the bits of byte `index` that belong to the first `bits` of an address.
std::uint8_t mask_of(int bits, int index) {
  const int in_byte = std::clamp(bits - 8 * index, 0, 8);
  return static_cast<std::uint8_t>(0xff << (8 - in_byte));
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const Family family = text.find(':') == std::string_view::npos ? Family::v4 : Family::v6;
  // The C functions take a string that ends with a zero byte, but the text may contain one.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  Bytes bytes{};
  const std::string copy(text);
  if (inet_pton(family_number(family), copy.c_str(), bytes.data()) != 1) return std::nullopt;
  return IpAddress(family, bytes);
}

IpAddress IpAddress::embedded_v4() const noexcept {
  DETENT_CHECK(family_ == Family::v6);
  Bytes bytes{};
  std::copy(bytes_.begin() + 12, bytes_.end(), bytes.begin());
  return {Family::v4, bytes};
}

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* const made = inet_ntop(family_number(address.family()), address.bytes().data(),
                                     text.data(), static_cast<socklen_t>(text.size()));
  DETENT_CHECK(made != nullptr);
  return made;
}

std::optional<IpBlock> IpBlock::parse(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::optional<IpAddress> first = IpAddress::parse(text.substr(0, slash));
  if (!first) return std::nullopt;
  int bits = first->bits();
  if (slash < text.size()) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc{} || stop != end || bits < 0 || bits > first->bits()) {
      return std::nullopt;
    }
  }
  for (int i = 0; i < static_cast<int>(first->bytes().size()); ++i) {
    const std::uint8_t byte = first->bytes()[static_cast<std::size_t>(i)];
    if ((byte & ~mask_of(bits, i)) != 0) return std::nullopt;
  }
  return IpBlock(*first, bits);
}

bool IpBlock::contains(const IpAddress& address) const noexcept {
  if (address.family() != first_.family()) return false;
  for (int i = 0; 8 * i < bits_; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const int difference = address.bytes()[index] ^ first_.bytes()[index];
    if ((difference & mask_of(bits_, i)) != 0) return false;
  }
  return true;
}

}  // namespace detent::net

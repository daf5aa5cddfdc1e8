// FNV-1a with 64 bits (Fowler, Noll, Vo). The hash of a text is the same on every machine and in
// every version, so it may be stored. Do not use it for secrets, or if an attacker can choose the
// input. Its low bits are its weakest.
#pragma once

#include <cstdint>
#include <string_view>

namespace detent {

/// Thread-compatible.
class Fnv1a {
 public:
  constexpr void byte(std::uint8_t value) noexcept { hash_ = (hash_ ^ value) * 0x100'0000'01B3u; }
  constexpr void bytes(std::string_view values) noexcept {
    for (const char value : values) byte(static_cast<std::uint8_t>(value));
  }
  constexpr std::uint64_t value() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF2'9CE4'8422'2325u;
};

constexpr std::uint64_t fnv1a(std::string_view bytes) noexcept {
  Fnv1a hash;
  hash.bytes(bytes);
  return hash.value();
}

}  // namespace detent

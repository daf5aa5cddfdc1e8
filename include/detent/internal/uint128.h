// Uint128: unsigned numbers of 128 bits, modulo 2^128. Compilers have such a type only for
// processors of 64 bits. For the others, Uint128ByHalves has the operators that Detent uses.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <utility>

namespace detent::internal {

/// A number of 128 bits as two numbers of 64 bits. It behaves like the type of the compiler, so a
/// negative number becomes 2^128 minus its amount. A division takes 128 steps. Immutable.
class Uint128ByHalves {
 public:
  /// Implicit, as for the type of the compiler.
  template <std::integral Number>
  // NOLINTNEXTLINE(google-explicit-constructor): see above
  constexpr Uint128ByHalves(Number number) noexcept
      : high_(std::cmp_less(number, 0) ? ~std::uint64_t{0} : 0),
        low_(static_cast<std::uint64_t>(number)) {}

  /// Returns the lower bits, as many as `Number` has.
  template <std::integral Number>
  explicit constexpr operator Number() const noexcept {
    return static_cast<Number>(low_);
  }

  friend constexpr auto operator<=>(const Uint128ByHalves&,
                                    const Uint128ByHalves&) noexcept = default;

  friend constexpr Uint128ByHalves operator+(Uint128ByHalves a, Uint128ByHalves b) noexcept {
    const std::uint64_t low = a.low_ + b.low_;
    return of_halves(a.high_ + b.high_ + (low < a.low_ ? 1 : 0), low);
  }
  friend constexpr Uint128ByHalves operator-(Uint128ByHalves a, Uint128ByHalves b) noexcept {
    return of_halves(a.high_ - b.high_ - (a.low_ < b.low_ ? 1 : 0), a.low_ - b.low_);
  }
  friend constexpr Uint128ByHalves operator*(Uint128ByHalves a, Uint128ByHalves b) noexcept {
    return of_halves(high_half(a.low_, b.low_) + a.high_ * b.low_ + a.low_ * b.high_,
                     a.low_ * b.low_);
  }
  /// Long division, bit by bit. Requires: b > 0.
  friend constexpr Uint128ByHalves operator/(Uint128ByHalves a, Uint128ByHalves b) noexcept {
    Uint128ByHalves quotient = 0;
    Uint128ByHalves rest = 0;
    for (int bit = 127; bit >= 0; --bit) {
      // If the shift drops a bit of the rest, the rest is greater than any b.
      const bool drops_bit = rest.high_ >> 63 != 0;
      rest = (rest << 1) + ((a >> bit).low_ & 1);
      const bool fits = drops_bit || rest >= b;
      if (fits) rest = rest - b;
      quotient = (quotient << 1) + (fits ? 1 : 0);
    }
    return quotient;
  }
  /// Requires: b > 0.
  friend constexpr Uint128ByHalves operator%(Uint128ByHalves a, Uint128ByHalves b) noexcept {
    return a - a / b * b;
  }
  /// Requires: 0 <= bits < 128.
  friend constexpr Uint128ByHalves operator<<(Uint128ByHalves a, int bits) noexcept {
    if (bits == 0) return a;
    if (bits >= 64) return of_halves(a.low_ << (bits - 64), 0);
    return of_halves(a.high_ << bits | a.low_ >> (64 - bits), a.low_ << bits);
  }
  /// Requires: 0 <= bits < 128.
  friend constexpr Uint128ByHalves operator>>(Uint128ByHalves a, int bits) noexcept {
    if (bits == 0) return a;
    if (bits >= 64) return a.high_ >> (bits - 64);
    return of_halves(a.high_ >> bits, a.low_ >> bits | a.high_ << (64 - bits));
  }

 private:
  static constexpr Uint128ByHalves of_halves(std::uint64_t high, std::uint64_t low) noexcept {
    Uint128ByHalves number = low;
    number.high_ = high;
    return number;
  }

  /// Returns the upper 64 bits of a × b, by four products of 32 bits.
  static constexpr std::uint64_t high_half(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t a_low = a & 0xFFFF'FFFFu;
    const std::uint64_t b_low = b & 0xFFFF'FFFFu;
    const std::uint64_t middle = (a >> 32) * b_low + (a_low * b_low >> 32);
    const std::uint64_t other_middle = a_low * (b >> 32) + (middle & 0xFFFF'FFFFu);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other_middle >> 32);
  }

  // In this order for operator<=>.
  std::uint64_t high_;
  std::uint64_t low_;
};

#if defined(__SIZEOF_INT128__)
__extension__ using Uint128 = unsigned __int128;
#else
using Uint128 = Uint128ByHalves;
#endif

}  // namespace detent::internal

// Occupancy: the occupied cells of a chunk, and their number, in one word.
//
// The lists of internal/cell_lists.h fill the lowest hole, clear a bit when a timer is cancelled,
// and walk over the set bits. Each of these steps needs the count. A population count takes a dozen
// instructions on processors without a special instruction. Here the count is the lowest byte of
// the word.
#pragma once

#include <bit>
#include <cstdint>

namespace detent::internal {

/// One bit for each occupied cell of a chunk, and their count in the lowest byte. One addition
/// clears a bit and updates the count. Reading the count needs no shift.
class Occupancy {
 public:
  static constexpr unsigned kFirst = 8;  // the lowest bit
  static constexpr unsigned kCapacity = 64 - kFirst;

  unsigned count() const noexcept { return static_cast<std::uint8_t>(word_); }
  bool full() const noexcept { return count() == kCapacity; }
  void fill() noexcept { word_ = kBits | kCapacity; }
  bool contains(unsigned bit) const noexcept { return (word_ >> bit & 1) != 0; }

  /// Sets the lowest clear bit and returns its position. Requires: not full.
  unsigned add() noexcept {
    const unsigned bit = lowest(~word_ & kBits);
    word_ = (word_ | (word_ + kFirstBit)) + 1;
    return bit;
  }
  /// Clears a bit. Requires: the bit is set.
  void remove(unsigned bit) noexcept {
    word_ += ~(std::uint64_t{1} << bit);  // this adds −2^bit − 1
  }
  /// Returns the lowest set bit. Requires: a bit is set.
  unsigned first() const noexcept { return lowest(bits()); }
  /// Returns all set bits.
  std::uint64_t bits() const noexcept { return word_ & kBits; }

 private:
  static constexpr std::uint64_t kFirstBit = std::uint64_t{1} << kFirst;
  static constexpr std::uint64_t kBits = ~(kFirstBit - 1);

  static unsigned lowest(std::uint64_t bits) noexcept {
    if (bits == 0) __builtin_unreachable();  // avoids a check for zero
    return static_cast<unsigned>(std::countr_zero(bits));
  }

  std::uint64_t word_ = 0;
};

}  // namespace detent::internal

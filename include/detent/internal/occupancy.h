// Which places of a chunk of cells are taken: one word that also counts them.
//
// The lists of internal/cell_lists.h fill the lowest hole, clear a bit when a timer is cancelled,
// and go through what is set. They ask for the count at every one of these, and a population count
// is a dozen instructions on processors that need not have one; here it is the word's lowest byte.
#pragma once

#include <bit>
#include <cstdint>

namespace detent::internal {

/// Which of a chunk's cells are occupied, a bit each, and in the lowest byte how many: so that to
/// clear a bit and to count it are one addition, and their number needs no shift to be looked at.
class Occupancy {
 public:
  static constexpr unsigned kFirst = 8;  // the lowest bit
  static constexpr unsigned kCapacity = 64 - kFirst;

  unsigned count() const noexcept { return static_cast<std::uint8_t>(word_); }
  bool full() const noexcept { return count() == kCapacity; }
  void fill() noexcept { word_ = kBits | kCapacity; }
  bool contains(unsigned bit) const noexcept { return (word_ >> bit & 1) != 0; }

  /// Sets the lowest clear bit. Requires: not full. Returns: which.
  unsigned add() noexcept {
    const unsigned bit = lowest(~word_ & kBits);
    word_ = (word_ | (word_ + kFirstBit)) + 1;
    return bit;
  }
  /// Clears a bit. Requires: it is set.
  void remove(unsigned bit) noexcept {
    word_ += std::rotl(~std::uint64_t{1}, static_cast<int>(bit));  // that is, −2^bit − 1
  }
  /// The lowest bit that is set. Requires: there is one.
  unsigned first() const noexcept { return lowest(bits()); }
  /// All bits that are set.
  std::uint64_t bits() const noexcept { return word_ & kBits; }

 private:
  static constexpr std::uint64_t kFirstBit = std::uint64_t{1} << kFirst;
  static constexpr std::uint64_t kBits = ~(kFirstBit - 1);

  static unsigned lowest(std::uint64_t bits) noexcept {
    if (bits == 0) __builtin_unreachable();  // saves looking
    return static_cast<unsigned>(std::countr_zero(bits));
  }

  std::uint64_t word_ = 0;
};

}  // namespace detent::internal

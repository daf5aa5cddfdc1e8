// The levels of a hierarchical wheel: which slot a tick belongs to, and which slot comes next.
//
// Ticks are absolute and read as digits of a few bits. Seen from a base tick, a later tick lives on
// the level of the highest digit in which the two differ, in the slot that digit names. With digits
// of six bits (64 slots a level):
//
//     base      … 0 03 17 40          the second digit is the highest that differs, so the level
//     placement … 0 03 25 02          is 1 and the slot is 25: it covers 64 ticks, … 0 03 25 00 on
//
// So everything on a level is earlier than everything above it, and slots of one level are in time
// order: the next slot is the lowest bit of the lowest occupied level. Nothing ever wraps round,
// because a slot that the base enters has been emptied first. The digits cover all 64 bits.
//
// This is the map only: it knows which slots are occupied, not what is in them. Slots have numbers,
// level by level, by which whoever keeps the timers finds a slot's list.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/check.h"
#include "detent/tick.h"

namespace detent::internal {

/// Levels with `1 << kDigitBits` slots each. Not movable. Thread-compatible. Every operation is
/// O(1), in time and in space, unless it says otherwise.
///
/// Invariants:
///  1. No occupied slot starts before base(), and each lies where slot_of(its start) says.
///  2. Bit l of occupied_levels_ is set exactly when a slot of level l is occupied.
template <unsigned kDigitBits>
class LevelMap {
 public:
  static_assert(kDigitBits >= 1 && kDigitBits <= 10);
  static constexpr unsigned kSlotsPerLevel = 1u << kDigitBits;
  static constexpr unsigned kLevelCount = (64 + kDigitBits - 1) / kDigitBits;
  static constexpr unsigned kSlotCount = kLevelCount * kSlotsPerLevel;

  /// A slot, the first tick it covers, and its number. It covers kSlotsPerLevel^level ticks.
  struct Slot {
    unsigned level;
    unsigned number;
    Tick start;

    Tick last() const noexcept { return start | ((Tick{1} << (level * kDigitBits)) - 1); }
  };

  /// The level on which `placement` lives as seen from `base`.
  static constexpr unsigned level_of(Tick base, Tick placement) noexcept {
    return (static_cast<unsigned>(std::bit_width((base ^ placement) | 1)) - 1) / kDigitBits;
  }

  static constexpr unsigned digit(Tick tick, unsigned level) noexcept {
    return static_cast<unsigned>(tick >> (level * kDigitBits)) & (kSlotsPerLevel - 1);
  }

  explicit LevelMap(Tick base) noexcept : base_(base) {}
  LevelMap(const LevelMap&) = delete;
  LevelMap& operator=(const LevelMap&) = delete;

  Tick base() const noexcept { return base_; }
  /// Returns: whether no slot is occupied.
  bool empty() const noexcept { return occupied_levels_ == 0; }

  /// Moves the base forward or, when nothing is occupied, anywhere.
  /// Requires: every occupied slot starts at or after `base`.
  void set_base(Tick base) noexcept {
    DETENT_DCHECK(empty() || (base >= base_ && next()->start >= base));
    base_ = base;
  }

  /// The number of the slot in which `placement` lives. Requires: placement >= base().
  unsigned slot_of(Tick placement) const noexcept {
    DETENT_DCHECK(placement >= base_);
    const unsigned level = level_of(base_, placement);
    return level * kSlotsPerLevel + digit(placement, level);
  }

  void set_occupied(unsigned slot) noexcept {
    occupied_[slot / kWordBits] |= std::uint64_t{1} << (slot % kWordBits);
    occupied_levels_ |= std::uint64_t{1} << (slot / kSlotsPerLevel);
  }

  void clear_occupied(unsigned slot) noexcept {
    std::uint64_t& word = occupied_[slot / kWordBits];
    word &= ~(std::uint64_t{1} << (slot % kWordBits));
    if (word != 0) return;
    const unsigned level = slot / kSlotsPerLevel;
    if (first_occupied(level) == kSlotsPerLevel) occupied_levels_ &= ~(std::uint64_t{1} << level);
  }

  bool is_occupied(unsigned slot) const noexcept {
    return (occupied_[slot / kWordBits] >> (slot % kWordBits) & 1) != 0;
  }

  /// Returns: the occupied slot that starts first; empty when there is none.
  std::optional<Slot> next() const noexcept {
    if (occupied_levels_ == 0) return std::nullopt;
    const auto level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
    return slot_at(level, first_occupied(level));
  }

  /// The slot of that number, as seen from base().
  Slot slot(unsigned number) const noexcept {
    return slot_at(number / kSlotsPerLevel, number % kSlotsPerLevel);
  }

  /// Stops the process unless both invariants hold. O(slots).
  void check_invariants() const noexcept {
    for (unsigned number = 0; number < kSlotCount; ++number) {
      if (!is_occupied(number)) continue;
      const Tick start = slot(number).start;
      DETENT_CHECK(start >= base_ && slot_of(start) == number);
    }
    for (unsigned level = 0; level < kLevelCount; ++level) {
      const bool occupied = first_occupied(level) < kSlotsPerLevel;
      DETENT_CHECK((occupied_levels_ >> level & 1) == (occupied ? 1u : 0u));
    }
  }

 private:
  // A level has a word of its own, or several.
  static constexpr unsigned kWordBits = kSlotsPerLevel < 64 ? kSlotsPerLevel : 64;
  static constexpr unsigned kWordsPerLevel = kSlotsPerLevel / kWordBits;

  // The base's digits above `level`, then `index`, then zeros. No shift is as wide as the tick.
  Slot slot_at(unsigned level, unsigned index) const noexcept {
    const unsigned shift = level * kDigitBits;
    const Tick above = base_ >> shift >> kDigitBits << kDigitBits;
    return {.level = level,
            .number = level * kSlotsPerLevel + index,
            .start = (above | index) << shift};
  }

  // The lowest occupied slot of a level, or kSlotsPerLevel. None is below the base's.
  unsigned first_occupied(unsigned level) const noexcept {
    for (unsigned word = kWordsPerLevel == 1 ? 0 : digit(base_, level) / kWordBits;
         word < kWordsPerLevel; ++word) {
      const std::uint64_t bits = occupied_[level * kWordsPerLevel + word];
      if (bits != 0) return word * kWordBits + static_cast<unsigned>(std::countr_zero(bits));
    }
    return kSlotsPerLevel;
  }

  Tick base_;
  std::uint64_t occupied_levels_ = 0;
  std::array<std::uint64_t, kLevelCount * kWordsPerLevel> occupied_{};
};

}  // namespace detent::internal

// LevelMap: the levels of a hierarchical wheel. It tells the slot of a tick, and the next slot.
//
// Ticks are absolute, and are read as digits of a few bits. The level of a tick is the highest
// digit in which the tick differs from a base tick. The value of this digit is its slot. An example
// with digits of six bits (64 slots per level):
//
//     base      … 0 03 17 40          the second digit is the highest that differs, so the level
//     placement … 0 03 25 02          is 1 and the slot is 25: it covers 64 ticks, … 0 03 25 00 on
//
// Every tick on a level is earlier than all ticks on coarser levels, and the slots of one level are
// in time order. The next slot is therefore the lowest bit of the lowest occupied level. The slots
// never wrap around, because a slot is emptied before the base enters it. The digits cover all 64
// bits.
//
// This class is only the map: it knows which slots are occupied, but not their contents. Slots are
// numbered level by level. The owner of the timers uses these numbers to find the list of a slot.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/check.h"
#include "detent/tick.h"

namespace detent::internal {

/// Levels with `1 << kDigitBits` slots each. Not movable. Thread-compatible. Each operation takes
/// O(1) time and space unless its comment says otherwise.
///
/// Invariants:
///
/// - No occupied slot starts before base(), and each occupied slot is at slot_of(its start).
/// - Bit l of occupied_levels_ is set exactly when a slot of level l is occupied.
template <unsigned kDigitBits>
class LevelMap {
 public:
  static_assert(kDigitBits >= 1 && kDigitBits <= 10);
  static constexpr unsigned kSlotsPerLevel = 1u << kDigitBits;
  static constexpr unsigned kLevelCount = (64 + kDigitBits - 1) / kDigitBits;
  static constexpr unsigned kSlotCount = kLevelCount * kSlotsPerLevel;

  /// A slot, its first tick and its number. It covers kSlotsPerLevel^level ticks.
  struct Slot {
    unsigned level;
    unsigned number;
    Tick start;

    Tick last() const noexcept { return start | ((Tick{1} << (level * kDigitBits)) - 1); }
  };

  /// Returns the level of `placement`, seen from `base`.
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
  /// Returns true if no slot is occupied.
  bool empty() const noexcept { return occupied_levels_ == 0; }

  /// Moves the base forward. If no slot is occupied, the base may move to any tick. Requires: every
  /// occupied slot starts at or after `base`.
  void set_base(Tick base) noexcept {
    DETENT_DCHECK(empty() || (base >= base_ && next()->start >= base));
    base_ = base;
  }

  /// Returns the number of the slot that contains `placement`. Requires: placement >= base().
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

  /// Returns the occupied slot that starts first; std::nullopt if no slot is occupied.
  std::optional<Slot> next() const noexcept {
    if (occupied_levels_ == 0) return std::nullopt;
    const auto level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
    return slot_at(level, first_occupied(level));
  }

  /// Returns the slot with this number, seen from base().
  Slot slot(unsigned number) const noexcept {
    return slot_at(number / kSlotsPerLevel, number % kSlotsPerLevel);
  }

  /// Stops the process if an invariant is broken. O(slots).
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
  // A level has a word of its own, or several words.
  static constexpr unsigned kWordBits = kSlotsPerLevel < 64 ? kSlotsPerLevel : 64;
  static constexpr unsigned kWordsPerLevel = kSlotsPerLevel / kWordBits;

  // The start consists of the base's digits above `level`, then `index`, then zeros. The shift is
  // split, because a shift by the full width of a tick is undefined.
  Slot slot_at(unsigned level, unsigned index) const noexcept {
    const unsigned shift = level * kDigitBits;
    const Tick above = base_ >> shift >> kDigitBits << kDigitBits;
    return {.level = level,
            .number = level * kSlotsPerLevel + index,
            .start = (above | index) << shift};
  }

  // Returns the lowest occupied slot of a level, or kSlotsPerLevel. No occupied slot is below the
  // slot of the base.
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

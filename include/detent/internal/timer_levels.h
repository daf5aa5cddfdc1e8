// The levels of a hierarchical wheel: which slot a tick belongs to, and which slot comes next.
//
// Ticks are absolute and read as eleven digits of six bits. Seen from a base tick, a later tick
// lives on the level of the highest digit in which the two differ, in the slot that digit names:
//
//     base      … 0 03 17 40          the second digit is the highest that differs, so the level
//     placement … 0 03 25 02          is 1 and the slot is 25: it covers 64 ticks, … 0 03 25 00 on
//
// So everything on a level is earlier than everything above it, and slots of one level are in time
// order: the next slot is the lowest bit of the lowest occupied level. Nothing ever wraps round,
// because a slot that the base enters has been emptied first. Eleven digits cover all 64 bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/check.h"
#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// Whether the links of a slot are kept in one chain or in several that can be walked at once.
enum class Spread { one_chain, over_all_chains };

/// Links sorted roughly by the tick they were placed at. Owns no link. Not movable.
/// Thread-compatible. Every operation is O(1) unless it says otherwise.
///
/// Invariants:
///  1. A link placed at p is on level level_of(base, p) in slot digit(p, level), now as when it was
///     inserted, whatever the base has become since: no slot that is occupied starts before base.
///  2. Bit s of occupied_[l] is set exactly when slot s of level l holds a link.
///     A slot's links are in its first chains_in_use_ chains.
///  3. Bit l of occupied_levels_ is set exactly when occupied_[l] is not zero.
class TimerLevels {
 public:
  static constexpr unsigned kDigitBits = 6;
  static constexpr unsigned kSlotsPerLevel = 1u << kDigitBits;
  static constexpr unsigned kLevelCount = 11;
  /// The top digit has only the four bits that are left of 64, so the top level has 16 slots.
  static constexpr unsigned kSlotCount = (kLevelCount - 1) * kSlotsPerLevel + 16;

  /// A slot and the first tick it covers. It covers 64^level ticks.
  struct Slot {
    unsigned level;
    unsigned index;
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

  explicit TimerLevels(Tick base) noexcept : base_(base) {}
  TimerLevels(const TimerLevels&) = delete;
  TimerLevels& operator=(const TimerLevels&) = delete;

  Tick base() const noexcept { return base_; }
  bool empty() const noexcept { return occupied_levels_ == 0; }

  /// Moves the base forward or, when nothing is held, anywhere.
  /// Requires: every occupied slot starts after `base`, or is taken next.
  void set_base(Tick base) noexcept {
    DETENT_DCHECK(empty() || (base >= base_ && next()->start >= base));
    base_ = base;
  }

  /// With `spread`, links of a slot go to its chains in turn, else to the first one.
  /// Requires: placement >= base(); `link` is in no list.
  void insert(Link& link, Tick placement, Spread spread) noexcept {
    DETENT_DCHECK(placement >= base_);
    const unsigned level = level_of(base_, placement);
    const unsigned index = digit(placement, level);
    unsigned chain = 0;
    if (spread == Spread::over_all_chains) {
      chain = turn_++ % LinkChains::kCount;
      chains_in_use_ = LinkChains::kCount;
    }
    chain_of(level, index, chain).push_back(link);
    occupied_[level] |= std::uint64_t{1} << index;
    occupied_levels_ |= 1u << level;
  }

  /// Returns: the occupied slot that starts first; empty when nothing is held.
  std::optional<Slot> next() const noexcept {
    if (occupied_levels_ == 0) return std::nullopt;
    const auto level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
    const auto index = static_cast<unsigned>(std::countr_zero(occupied_[level]));
    return Slot{.level = level, .index = index, .start = start_of(level, index)};
  }

  /// Moves the slot's links to the ends of `into`, and the base to `base`.
  /// Requires: `slot` is what next() returns; `base` is one of its ticks.
  void take(const Slot& slot, Tick base, LinkChains& into) noexcept {
    for (unsigned chain = 0; chain < chains_in_use_; ++chain) {
      into.append(chain, chain_of(slot.level, slot.index, chain));
    }
    clear_occupied(slot.level, slot.index);
    set_base(base);
  }

  /// Returns: the slot's only link; null when it holds several.
  const Link* only_link(const Slot& slot) const noexcept {
    const Link* only = nullptr;
    for (unsigned chain = 0; chain < chains_in_use_; ++chain) {
      const Link& sentinel = chain_of(slot.level, slot.index, chain).sentinel();
      if (sentinel.next == &sentinel) continue;
      if (only != nullptr || sentinel.next != sentinel.prev) return nullptr;
      only = sentinel.next;
    }
    return only;
  }

  /// To be called when unlinking left the list of `sentinel` empty; does nothing unless that list
  /// is one of these slots.
  void note_emptied(const Link* sentinel) noexcept {
    // Integers, because comparing pointers into different arrays with < has no meaning in C++.
    const auto offset = reinterpret_cast<std::uintptr_t>(sentinel) -
                        reinterpret_cast<std::uintptr_t>(chains_.data());
    if (offset >= sizeof(chains_)) return;
    const auto slot = static_cast<unsigned>(offset / sizeof(LinkList) / LinkChains::kCount);
    const unsigned level = slot / kSlotsPerLevel;
    const unsigned index = slot % kSlotsPerLevel;
    if (slot_is_empty(level, index)) clear_occupied(level, index);
  }

  /// Calls visit(const Slot&, const LinkList&) for every chain of every slot. O(slots).
  template <class Visit>
  void for_each_chain(Visit&& visit) const {
    for (unsigned slot = 0; slot < kSlotCount; ++slot) {
      const unsigned level = slot / kSlotsPerLevel;
      const unsigned index = slot % kSlotsPerLevel;
      const Slot where{.level = level, .index = index, .start = start_of(level, index)};
      for (unsigned chain = 0; chain < LinkChains::kCount; ++chain) {
        visit(where, chain_of(level, index, chain));
      }
    }
  }

  /// Stops the process unless invariants 2 and 3 hold and every occupied slot lies where
  /// invariant 1 lets it lie. O(slots).
  void check_invariants() const noexcept {
    for (unsigned slot = 0; slot < kSlotCount; ++slot) {
      const unsigned level = slot / kSlotsPerLevel;
      const unsigned index = slot % kSlotsPerLevel;
      const bool occupied = (occupied_[level] >> index & 1) != 0;
      DETENT_CHECK(occupied == !slot_is_empty(level, index));
      if (!occupied) continue;
      DETENT_CHECK(start_of(level, index) >= base_);
      DETENT_CHECK(level_of(base_, start_of(level, index)) == level);
    }
    for_each_chain([this](const Slot& slot, const LinkList& chain) {
      const auto number = &chain - &chain_of(slot.level, slot.index, 0);
      DETENT_CHECK(chain.empty() || number < static_cast<std::ptrdiff_t>(chains_in_use_));
    });
    for (unsigned level = 0; level < kLevelCount; ++level) {
      DETENT_CHECK((occupied_levels_ >> level & 1) == (occupied_[level] != 0));
    }
  }

 private:
  // The base's digits above `level`, then `index`, then zeros. No shift is as wide as the tick.
  Tick start_of(unsigned level, unsigned index) const noexcept {
    const unsigned shift = level * kDigitBits;
    return (base_ >> shift >> kDigitBits << kDigitBits | index) << shift;
  }

  void clear_occupied(unsigned level, unsigned index) noexcept {
    occupied_[level] &= ~(std::uint64_t{1} << index);
    if (occupied_[level] == 0) occupied_levels_ &= ~(1u << level);
    if (occupied_levels_ == 0) chains_in_use_ = 1;
  }

  LinkList& chain_of(unsigned level, unsigned index, unsigned chain) noexcept {
    return chains_[(level * kSlotsPerLevel + index) * LinkChains::kCount + chain];
  }
  const LinkList& chain_of(unsigned level, unsigned index, unsigned chain) const noexcept {
    return chains_[(level * kSlotsPerLevel + index) * LinkChains::kCount + chain];
  }

  bool slot_is_empty(unsigned level, unsigned index) const noexcept {
    for (unsigned chain = 0; chain < chains_in_use_; ++chain) {
      if (!chain_of(level, index, chain).empty()) return false;
    }
    return true;
  }

  Tick base_;
  std::uint32_t occupied_levels_ = 0;
  std::array<std::uint64_t, kLevelCount> occupied_{};
  unsigned turn_ = 0;           // the chain that the next link goes to, when they are spread
  unsigned chains_in_use_ = 1;  // the chains of a slot that may hold links: one, or all
  std::array<LinkList, kSlotCount * LinkChains::kCount> chains_;
};

}  // namespace detent::internal

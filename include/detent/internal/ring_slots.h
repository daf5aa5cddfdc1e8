// RingSlots: one ring of slots in which many rounds of time share each slot. SimpleWheel and
// HashedWheel use it.
//
// The ring has a list for each number modulo slot_count. Each slot stores the earliest number in
// it, so that a slot is visited only when one of its timers is due:
//
//     slot_count 8   slot 3: timers of the numbers 11, 19 and 75, earliest 11;
//                            visited at 11, 19 and 75
//
// A search visits the slots in the order of the ring. Within one round this is the order of time.
// If more than one round is left to go, all slots with due timers are emptied together. Their
// timers are sorted once, so the cost does not depend on the number of rounds.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "detent/check.h"
#include "detent/internal/link_list.h"
#include "detent/internal/queue_passes.h"
#include "detent/internal/slot_store.h"
#include "detent/tick.h"

namespace detent::internal {

/// The sizes of a wheel with one ring.
struct RingOptions {
  std::size_t slot_count = 0;  ///< at least 1, at most 2^28; a slot takes 24 bytes
  Tick slot_width = 1;         ///< ticks per slot, at least 1
  Tick now = 0;                ///< initial time

  /// Returns an error message if no wheel can be made from these options; otherwise std::nullopt.
  std::optional<std::string> fault() const {
    constexpr std::size_t kMostSlots = std::size_t{1} << 28;
    if (slot_count == 0) return "slot_count is 0: a wheel has at least one slot";
    if (slot_count > kMostSlots) {
      return "slot_count is " + std::to_string(slot_count) + ": a wheel has at most " +
             std::to_string(kMostSlots) + " slots";
    }
    if (slot_width == 0) return "slot_width is 0: a slot is at least one tick wide";
    if (slot_width > std::numeric_limits<Tick>::max() / slot_count) {
      return "slot_width × slot_count is " + std::to_string(slot_width) + " × " +
             std::to_string(slot_count) + " ticks: more than 64 bits hold";
    }
    return std::nullopt;
  }

  /// Returns the length of one round in ticks.
  Tick round() const noexcept { return slot_width * slot_count; }
};

/// A ring of slots for a SlotStore. Owns no link. Not movable. Thread-compatible. `insert` and
/// `note_emptied` are O(1). A search is O(slots), but only O(slots / 64) over empty slots.
///
/// Invariants:
///
/// - A link is in the slot of its number, which is above reached().
/// - The bit of a slot in occupied_ is set exactly when its list is not empty. Its `earliest` is
///   then a number of this slot, above reached(), and not above the number of any link in it. (It
///   is below all of them after the earliest link was cancelled.)
class RingSlots {
 public:
  struct Taken {
    SlotNumber start;
    Batch batch;
  };

  /// Requires: slot_count > 0.
  explicit RingSlots(std::size_t slot_count)
      : slots_(slot_count), occupied_((slot_count + kWordBits - 1) / kWordBits) {}
  RingSlots(const RingSlots&) = delete;
  RingSlots& operator=(const RingSlots&) = delete;

  // ---- TimerSlots documents each function.

  SlotNumber reached() const noexcept { return reached_; }
  void set_reached(SlotNumber number) noexcept { reached_ = number; }

  void insert(Link& link, SlotNumber number) noexcept {
    const std::size_t index = number % slots_.size();
    Slot& slot = slots_[index];
    slot.earliest = slot.links.empty() ? number : std::min(slot.earliest, number);
    slot.links.push_back(link);
    occupied_[index / kWordBits] |= bit_of(index);
  }

  void note_emptied(const Link* sentinel) noexcept {
    const std::size_t index = index_of_list(slots_, sentinel);
    if (index < slots_.size()) clear_occupied(index);
  }

  bool nothing_within(SlotNumber last) const noexcept { return !first_within(last); }
  std::optional<SlotNumber> next_start() const noexcept {
    return first_within(std::numeric_limits<SlotNumber>::max());
  }

  bool seek(SlotNumber last) noexcept {
    const std::optional<SlotNumber> found = first_within(last);
    if (found) reached_ = *found - 1;
    return found.has_value();
  }

  // If at most one round is left to go, the first slot fires, and its timers of later rounds are
  // put back. Otherwise a slot can hold due timers of several rounds, so all due slots are taken to
  // be sorted.
  Taken take(SlotNumber last, LinkList& into) noexcept {
    const SlotNumber start = reached_ + 1;
    if (last - reached_ <= slots_.size()) {
      take_slot(start % slots_.size(), into);
      reached_ = start;
      return {start, Batch::to_fire};
    }
    take_all_within(last, into);
    reached_ = last;
    return {start, Batch::to_place};
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) for_each_link(slot.links, visit);
  }

  template <class NumberOf>
  void check_invariants(const NumberOf& number_of) const noexcept {
    for (std::size_t index = 0; index < slots_.size(); ++index) {
      const Slot& slot = slots_[index];
      DETENT_CHECK(is_occupied(index) == !slot.links.empty());
      if (slot.links.empty()) continue;
      DETENT_CHECK(slot.earliest > reached_ && slot.earliest % slots_.size() == index);
      for_each_link(slot.links, [&](const Link& link) {
        const SlotNumber number = number_of(link);
        DETENT_CHECK(number >= slot.earliest && number % slots_.size() == index);
      });
    }
  }

 private:
  static constexpr std::size_t kWordBits = 64;

  struct Slot {
    LinkList links;           // first, so that a list and its slot have the same address
    SlotNumber earliest = 0;  // undefined while there are no links
  };

  static std::uint64_t bit_of(std::size_t index) noexcept {
    return std::uint64_t{1} << (index % kWordBits);
  }
  bool is_occupied(std::size_t index) const noexcept {
    return (occupied_[index / kWordBits] & bit_of(index)) != 0;
  }
  void clear_occupied(std::size_t index) noexcept {
    occupied_[index / kWordBits] &= ~bit_of(index);
  }

  // Returns the first occupied slot at or after `index`, or slots_.size().
  std::size_t next_occupied(std::size_t index) const noexcept {
    std::uint64_t mask = ~std::uint64_t{0} << (index % kWordBits);
    for (std::size_t word = index / kWordBits; word < occupied_.size(); ++word) {
      const std::uint64_t bits = occupied_[word] & mask;
      if (bits != 0) return word * kWordBits + static_cast<std::size_t>(std::countr_zero(bits));
      mask = ~std::uint64_t{0};
    }
    return slots_.size();
  }

  // Returns the first number up to `last` that is the earliest number of a slot. Slots are visited
  // in the order of their next round. The search therefore ends as soon as no later slot can have
  // an earlier number.
  std::optional<SlotNumber> first_within(SlotNumber last) const noexcept {
    const std::uint64_t count = last - reached_;
    if (count == 0) return std::nullopt;
    const std::size_t start = (reached_ + 1) % slots_.size();
    std::uint64_t best = count;  // distance from reached_ + 1 to the earliest number found
    for (std::size_t passed = 0; passed < std::min<std::uint64_t>(best, slots_.size());) {
      const std::size_t index = (start + passed) % slots_.size();
      const std::size_t found = next_occupied(index);
      passed += found - index;
      if (found == slots_.size()) continue;  // continue at the first slot of the ring, or end
      best = std::min(best, slots_[found].earliest - reached_ - 1);
      ++passed;
    }
    return best < count ? std::optional(reached_ + 1 + best) : std::nullopt;
  }

  void take_slot(std::size_t index, LinkList& into) noexcept {
    into.append(slots_[index].links);
    clear_occupied(index);
  }

  // O(slots).
  void take_all_within(SlotNumber last, LinkList& into) noexcept {
    for (std::size_t index = next_occupied(0); index < slots_.size();
         index = next_occupied(index + 1)) {
      if (slots_[index].earliest <= last) take_slot(index, into);
    }
  }

  std::vector<Slot> slots_;
  std::vector<std::uint64_t> occupied_;  // one bit per slot
  SlotNumber reached_ = 0;               // all links have numbers above this
};

}  // namespace detent::internal

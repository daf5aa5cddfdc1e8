// LinkLevels: sorts links by tick in bulk. First many links are added, then they are removed from
// the earliest on.
//
// Some wheels can only hold future timers. They use LinkLevels for timers that were due before
// their pass began, and for timers that a long jump passes. It is a radix sort from the top digit,
// built from the levels of level_map.h with short digits, so that it is small. Adding a link is
// O(1). Each link moves at most 16 times, once for each slot that the caller takes and adds again.
#pragma once

#include <array>
#include <cstdint>

#include "detent/check.h"
#include "detent/internal/level_map.h"
#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// Links with equal ticks stay in the order in which they were added. Owns no link. Not movable.
/// Thread-compatible. Takes 4 KB. Each operation is O(1) unless its comment says otherwise.
///
/// Invariant: a slot is occupied in the map exactly when its list is not empty.
class LinkLevels {
  using Map = LevelMap<4>;

 public:
  using Slot = Map::Slot;

  bool empty() const noexcept { return map_.empty(); }

  /// Allows adding links with any tick. Requires: empty().
  void reset() noexcept { map_.set_base(0); }

  /// Adds a link. Requires: no slot that starts after `tick` has been taken since the last reset().
  void insert(Link& link, Tick tick) noexcept {
    const unsigned slot = map_.slot_of(tick);
    lists_[slot].push_back(link);
    map_.set_occupied(slot);
  }

  /// Returns the first tick of the first slot. Requires: !empty().
  Tick next_start() const noexcept { return map_.next()->start; }

  /// Moves the links of the first slot to the end of `into`. If the slot covers more than one tick
  /// (its level is not 0), the caller must add them again. Requires: !empty().
  Slot take(LinkList& into) noexcept {
    const Slot slot = *map_.next();
    into.append(lists_[slot.number]);
    map_.clear_occupied(slot.number);
    map_.set_base(slot.start);
    return slot;
  }

  /// Call this when unlinking left the list of `sentinel` empty. Has no effect if the list belongs
  /// to another container.
  void note_emptied(const Link* sentinel) noexcept {
    // Compares integers, because C++ does not define < between pointers into different arrays.
    const auto offset =
        reinterpret_cast<std::uintptr_t>(sentinel) - reinterpret_cast<std::uintptr_t>(&lists_);
    if (offset < sizeof(lists_)) {
      map_.clear_occupied(static_cast<unsigned>(offset / sizeof(LinkList)));
    }
  }

  /// Calls visit(Link&) for every link, in an unspecified order. O(links + slots).
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const LinkList& list : lists_) for_each_link(list, visit);
  }

  /// Stops the process if an invariant is broken, here or in the map. O(slots).
  void check_invariants() const noexcept {
    map_.check_invariants();
    for (unsigned slot = 0; slot < Map::kSlotCount; ++slot) {
      DETENT_CHECK(map_.is_occupied(slot) == !lists_[slot].empty());
    }
  }

 private:
  Map map_{0};
  std::array<LinkList, Map::kSlotCount> lists_;
};

}  // namespace detent::internal

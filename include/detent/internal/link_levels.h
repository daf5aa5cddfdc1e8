// Links sorted by tick in bulk: many are put in, then they are taken out from the earliest on.
//
// The wheels that know only what lies ahead of them use it for timers that were due before their
// pass began, and for those that a long jump passes. It is a radix sort, digit by digit from the
// top: the levels of level_map.h with short digits, so that it is small. Putting a link in is O(1),
// and it is moved at most 16 times, each time by whoever takes the slots out, bit by bit.
#pragma once

#include <array>
#include <cstdint>

#include "detent/check.h"
#include "detent/internal/level_map.h"
#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// Equal ticks stay in the order in which they were put in. Owns no link. Not movable.
/// Thread-compatible. 4 KB. Every operation is O(1) unless it says otherwise.
///
/// Invariant: a slot is occupied in the map exactly when its list is not empty.
class LinkLevels {
  using Map = LevelMap<4>;

 public:
  using Slot = Map::Slot;

  bool empty() const noexcept { return map_.empty(); }

  /// Any tick may be put in from now on. Requires: empty().
  void reset() noexcept { map_.set_base(0); }

  /// Requires: no slot that starts after `tick` has been taken since the last reset().
  void insert(Link& link, Tick tick) noexcept {
    const unsigned slot = map_.slot_of(tick);
    lists_[slot].push_back(link);
    map_.set_occupied(slot);
  }

  /// Returns: the tick at which the first slot starts. Requires: !empty().
  Tick next_start() const noexcept { return map_.next()->start; }

  /// Moves the links of the first slot to the end of `into`. If the slot covers more than one tick
  /// (its level is not 0), they are to be put in again. Requires: !empty().
  Slot take(LinkList& into) noexcept {
    const Slot slot = *map_.next();
    into.append(lists_[slot.number]);
    map_.clear_occupied(slot.number);
    map_.set_base(slot.start);
    return slot;
  }

  /// To be called when unlinking left the list of `sentinel` empty; does nothing unless that list
  /// is one of these.
  void note_emptied(const Link* sentinel) noexcept {
    // Integers, because comparing pointers into different arrays with < has no meaning in C++.
    const auto offset =
        reinterpret_cast<std::uintptr_t>(sentinel) - reinterpret_cast<std::uintptr_t>(&lists_);
    if (offset < sizeof(lists_)) {
      map_.clear_occupied(static_cast<unsigned>(offset / sizeof(LinkList)));
    }
  }

  /// Calls visit(Link&) for every link, in no order. O(links + slots).
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const LinkList& list : lists_) for_each_link(list, visit);
  }

  /// Stops the process unless the invariant and the map's hold. O(slots).
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

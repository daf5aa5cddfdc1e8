// The state of real timer queues as levels of slots, for the figures of docs/designs and for the
// playground. Each function reads the slots of the queue itself, or computes a slot by the rule
// that check_invariants() verifies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "design_picture.h"
#include "detent/dense_wheel.h"
#include "detent/fifo_timer_wheel.h"
#include "detent/internal/level_map.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/tick.h"

namespace design {

using detent::DenseWheel;
using detent::FifoTimerWheel;
using detent::HierarchicalWheel;
using detent::Tick;
using Levels = std::vector<LevelPicture>;

// Ends the program if a sentence of a figure is not true.
inline void require(bool holds, const std::string& sentence) {
  if (holds) return;
  std::fprintf(stderr, "not true: %s\n", sentence.c_str());
  std::exit(EXIT_FAILURE);
}

// "350", or "71 749 230" with spaces that do not break a line.
inline std::string number(Tick value) {
  std::string digits = std::to_string(value);
  if (value < 10'000) return digits;
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, "\u00a0");
  return digits;
}

// ---- Levels, as the queues show them.

inline SlotPicture& slot_of(LevelPicture& level, std::size_t index) {
  const auto place = std::find_if(level.slots.begin(), level.slots.end(),
                                  [index](const auto& slot) { return slot.index >= index; });
  if (place != level.slots.end() && place->index == index) return *place;
  return *level.slots.insert(place, {index, {}, {}});
}

inline void put(LevelPicture& level, std::size_t index, Tick deadline) {
  std::vector<Tick>& deadlines = slot_of(level, index).deadlines;
  deadlines.insert(std::upper_bound(deadlines.begin(), deadlines.end(), deadline), deadline);
}

inline bool is_in(const Levels& levels, std::size_t level, std::size_t index, Tick deadline) {
  return level < levels.size() &&
         std::any_of(levels[level].slots.begin(), levels[level].slots.end(), [&](const auto& slot) {
           return slot.index == index &&
                  std::count(slot.deadlines.begin(), slot.deadlines.end(), deadline) == 1;
         });
}

// A ring does not show its slots. check_invariants() ends the program if a timer is in another slot
// than deadline modulo slot_count.
template <class Ring>
Levels ring_levels(const std::vector<Tick>& pending, const Ring& ring, std::size_t slot_count) {
  ring.check_invariants();
  LevelPicture level{"", slot_count, ring.now() % slot_count, {}};
  for (const Tick deadline : pending) put(level, deadline % slot_count, deadline);
  return {level};
}

inline Levels wheel_levels(const HierarchicalWheel& wheel) {
  Levels levels;
  for (std::size_t i = 0; i < wheel.level_count(); ++i) {
    levels.push_back({"level " + std::to_string(i), wheel.slot_count(i), wheel.hand(i), {}});
  }
  wheel.for_each_timer([&levels](const HierarchicalWheel::Slot& slot, const auto& timer) {
    put(levels[slot.level], slot.index, timer.deadline());
  });
  return levels;
}

// The delay queue of a wheel: its slots with timers. The first slot expires first.
inline Boxes delay_queue(const HierarchicalWheel& wheel, Tick ours) {
  std::vector<HierarchicalWheel::Slot> slots;
  std::map<Tick, bool> has_ours;
  wheel.for_each_timer([&](const HierarchicalWheel::Slot& slot, const auto& timer) {
    if (timer.deadline() == ours) has_ours[slot.start] = true;
  });
  wheel.for_each_slot([&slots](const auto& slot, std::size_t) { slots.push_back(slot); });
  std::sort(slots.begin(), slots.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  Boxes row{"delay queue of buckets: expiration, level and slot", {}};
  for (const auto& slot : slots) {
    row.boxes.push_back({number(slot.start) + ": " + number(slot.level) + '/' + number(slot.index),
                         has_ours.contains(slot.start), false});
  }
  require(slots.empty() || wheel.next_wakeup() == slots.front().start, "the queue is the wake-up");
  return row;
}

// A TimerWheel does not show its slots. The level and the slot of a timer that was not postponed
// are those that the wheel's own functions compute from the current tick.
inline Levels digit_levels(const std::vector<Tick>& pending, Tick now, std::size_t level_count) {
  using Map = detent::internal::LevelMap<8>;
  Levels levels;
  for (unsigned i = 0; i < level_count; ++i) {
    levels.push_back({"level " + std::to_string(i), 256, Map::digit(now, i), {}});
  }
  for (const Tick deadline : pending) {
    const unsigned level = Map::level_of(now, deadline);
    if (deadline > now) put(levels.at(level), Map::digit(deadline, level), deadline);
  }
  return levels;
}

// A DenseWheel shows its slots with their ranges. A timer that was not postponed is in the slot
// whose range contains its deadline.
inline Levels detent_levels(const DenseWheel& wheel, const std::vector<Tick>& deadlines,
                            std::size_t level_count) {
  Levels levels;
  for (unsigned i = 0; i < level_count; ++i) {
    levels.push_back({"level " + std::to_string(i),
                      256,
                      static_cast<std::size_t>(wheel.now() >> 8 * i & 255),
                      {}});
  }
  wheel.for_each_slot([&](const detent::WheelSlot& slot) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < deadlines.size(); ++i) {
      const Tick deadline = deadlines[i];
      if (!wheel.is_pending(i) || deadline < slot.first || deadline > slot.last) continue;
      put(levels.at(slot.level), slot.index, deadline);
      ++count;
    }
    require(count == slot.count, "each timer is in the slot of its deadline");
  });
  return levels;
}

// Shows the inside of a queue without levels.
template <class Base>
class Shown : public Base {
 public:
  explicit Shown(Tick now) : Base(now) {}
  std::vector<Tick> in_memory_order() const {
    std::vector<Tick> deadlines;
    this->store().future().for_each(
        [&](const auto& timer) { deadlines.push_back(timer.deadline()); });
    return deadlines;
  }
};

// The levels of 64 slots of a FifoTimerWheel. Its lists begin with the slots, level by level. A
// timer that was due when it was scheduled is in no slot. Requires: level_count is at most 11.
class ShownFifoWheel : public FifoTimerWheel {
 public:
  using FifoTimerWheel::FifoTimerWheel;
  Levels levels(std::size_t level_count) const {
    Levels levels;
    for (unsigned i = 0; i < level_count; ++i) {
      levels.push_back({"level " + std::to_string(i),
                        kSlots,
                        static_cast<std::size_t>(now() >> 6 * i & (kSlots - 1)),
                        {}});
    }
    store().lists().for_each([&levels](unsigned list, const auto*, const auto& entry) {
      const std::size_t level = list / kSlots;
      if (level < levels.size()) put(levels[level], list % kSlots, entry.deadline);
    });
    return levels;
  }

 private:
  static constexpr std::size_t kSlots = 64;
};

}  // namespace design

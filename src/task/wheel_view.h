// The engine's wheel, in a form for people: the slots that hold timers, and their number.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "detent/clock.h"

namespace detent {

/// The wheel of the tasks in memory. Its timers are due times and lease deadlines.
struct WheelView {
  /// A slot that holds timers.
  struct Slot {
    unsigned level = 0;  // 0 is the finest
    unsigned index = 0;  // within its level
    WallTime from{};     // the first instant that the slot covers
    WallTime until{};    // the first instant after the slot
    std::uint64_t count = 0;
  };
  WallTime now{};
  std::chrono::milliseconds tick{1};
  unsigned level_count = 0;  // levels that tasks can be on
  unsigned slots_per_level = 0;
  std::uint64_t timers = 0;
  std::vector<Slot> slots;  // earliest first
};

}  // namespace detent

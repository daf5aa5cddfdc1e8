// The engine's wheel as people see it: which slots hold timers, and how many.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "detent/clock.h"

namespace detent {

/// The wheel of the tasks in memory: when they are due, or their leases run out.
struct WheelView {
  /// A slot that holds timers.
  struct Slot {
    unsigned level = 0;  // 0 is the finest
    unsigned index = 0;  // in its level
    WallTime from{};     // the first instant it covers, and
    WallTime until{};    // the first after it
    std::uint64_t count = 0;
  };
  WallTime now{};
  std::chrono::milliseconds tick{1};
  unsigned level_count = 0;  // that a task can be on
  unsigned slots_per_level = 0;
  std::uint64_t timers = 0;
  std::vector<Slot> slots;  // earliest first
};

}  // namespace detent

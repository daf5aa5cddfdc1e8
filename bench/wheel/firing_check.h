// Before anything is measured: does the queue fire each timer at its tick, and no other?
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "bench/wheel/bench_queue.h"

namespace detent::bench {

/// `ticks` ticks of random operations on 5 000 timers, each firing's tick checked.
/// Returns: how many timers fired early, late or never.
template <class Queue>
std::uint64_t count_wrong_firings(Tick ticks) {
  constexpr std::uint32_t kTimers = 5'000;
  constexpr Tick kIdle = 0;
  Queue queue(Capacity{.timers = kTimers});
  Fired fired(kTimers);
  Rng random(7);
  std::vector<Tick> deadlines(kTimers);
  std::uint64_t wrong = 0;
  const auto delay = [&random] {
    return Tick{1} + random.below(random.below(4) == 0 ? 300 : 60'000);
  };
  const auto arm = [&](std::uint32_t id, Tick deadline) {
    deadlines[id] = deadline;
    queue.schedule(id, deadline);
  };
  for (std::uint32_t id = 0; id < kTimers; ++id) arm(id, delay());
  for (Tick now = 1; now <= ticks; ++now) {
    const std::uint32_t moved = random.below(kTimers);
    queue.cancel(moved);
    arm(moved, now - 1 + delay());
    const std::uint32_t kept_alive = random.below(kTimers);
    deadlines[kept_alive] = now - 1 + 60'000;
    queue.postpone(kept_alive, deadlines[kept_alive]);

    fired.count = 0;
    queue.advance(now, fired);
    for (std::size_t i = 0; i < fired.count; ++i) {
      const std::uint32_t id = fired.ids[i];
      if (deadlines[id] != now) ++wrong;
      deadlines[id] = kIdle;
    }
    for (std::size_t i = 0; i < fired.count; ++i) arm(fired.ids[i], now + delay());
    if (now % 5'000 == 0) {
      wrong += static_cast<std::uint64_t>(
          std::ranges::count_if(deadlines, [now](Tick deadline) { return deadline <= now; }));
    }
  }
  return wrong;
}

}  // namespace detent::bench

// Planted faults: the checks of the cases must fail for these queues.
#include "tests/regress/classic/our_queues.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "detent/timer_wheel.h"

namespace detent::classic {
namespace {

/// A wheel that rounds deadlines down to slots of four ticks, like the classic wheels.
struct EarlyWheel : TimerWheel {
  bool schedule(Timer& timer, Tick deadline) noexcept {
    return TimerWheel::schedule(timer, deadline / 4 * 4);
  }
};

/// A wheel that wakes up a tick late.
struct LateWheel : TimerWheel {
  std::optional<Tick> next_wakeup() const noexcept {
    const std::optional<Tick> wakeup = TimerWheel::next_wakeup();
    return wakeup ? std::optional(*wakeup + 1) : std::nullopt;
  }
};

/// A wheel that accepts some timers but never fires them.
struct LosingWheel : TimerWheel {
  bool schedule(Timer& timer, Tick deadline) noexcept {
    return deadline >= 64 || TimerWheel::schedule(timer, deadline);
  }
};

/// A wheel whose time stands still.
struct DeadWheel : TimerWheel {
  template <class OnFire>
  AdvanceResult advance(Tick, OnFire&&, std::size_t = kNoLimit) noexcept {
    return {};
  }
};

template <class Queue>
std::vector<std::optional<Tick>> outcome(Drive drive) {
  Queue queue;
  return fire_ticks(queue, {7, 70}, drive);
}

TEST(OurQueues, AFireTickIsSeenAsItIs) {
  using Ticks = std::vector<std::optional<Tick>>;
  EXPECT_EQ(outcome<TimerWheel>(Drive::tick_by_tick), (Ticks{7, 70}));
  EXPECT_EQ(outcome<TimerWheel>(Drive::wakeup_to_wakeup), (Ticks{7, 70}));
  EXPECT_EQ(outcome<EarlyWheel>(Drive::tick_by_tick), (Ticks{4, 68}));
  EXPECT_EQ(outcome<EarlyWheel>(Drive::wakeup_to_wakeup), (Ticks{4, 68}));
  EXPECT_EQ(outcome<LateWheel>(Drive::wakeup_to_wakeup), (Ticks{8, 71}));
  EXPECT_EQ(outcome<LosingWheel>(Drive::tick_by_tick), (Ticks{7, std::nullopt}));
  EXPECT_EQ(outcome<LosingWheel>(Drive::wakeup_to_wakeup), (Ticks{7, std::nullopt}));
  EXPECT_EQ(outcome<DeadWheel>(Drive::tick_by_tick), (Ticks{std::nullopt, std::nullopt}));
}

}  // namespace
}  // namespace detent::classic

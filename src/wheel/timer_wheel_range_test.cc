// The whole range of ticks: every boundary of every level, all small cases, and the wake-ups.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "detent/timer_wheel.h"

namespace detent {
namespace {

constexpr Tick kLastTick = std::numeric_limits<Tick>::max();
constexpr auto kIgnore = [](Timer&) {};

std::size_t count_fired(TimerWheel& wheel, Tick now) { return wheel.advance(now, kIgnore).fired; }

// Where levels begin, give or take one, and some ticks that are aligned to nothing.
std::vector<Tick> interesting_ticks() {
  std::vector<Tick> ticks{0, 1, 2, kLastTick - 1, kLastTick, 123'456'789, 0xDEAD'BEEF'1234'5678u};
  for (unsigned shift = 6; shift < 64; shift += 6) {
    for (const Tick multiple : {Tick{1}, Tick{3}}) {
      const Tick boundary = multiple << shift;
      ticks.insert(ticks.end(), {boundary - 1, boundary, boundary + 1});
    }
  }
  return ticks;
}

TEST(TimerWheelRange, FiresExactlyAtEveryBoundaryFromEveryBoundary) {
  for (const Tick start : interesting_ticks()) {
    for (const Tick deadline : interesting_ticks()) {
      if (deadline <= start) continue;
      TimerWheel wheel(start);
      Timer timer;
      wheel.schedule(timer, deadline);
      ASSERT_EQ(count_fired(wheel, deadline - 1), 0u) << start << " → " << deadline;
      ASSERT_EQ(wheel.next_wakeup(), deadline) << "the tick before, the wake-up is exact";
      ASSERT_EQ(count_fired(wheel, deadline), 1u) << start << " → " << deadline;
    }
  }
}

TEST(TimerWheelRange, FiresAtEveryBoundaryWhenJumpedOver) {
  for (const Tick start : interesting_ticks()) {
    TimerWheel wheel(start);
    const std::vector<Tick> deadlines = interesting_ticks();
    std::vector<Timer> timers(deadlines.size());
    for (std::size_t i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], deadlines[i]);
    wheel.check_invariants();
    Tick latest = 0;
    const AdvanceResult result = wheel.advance(kLastTick, [&](Timer& timer) {
      EXPECT_GE(timer.deadline(), latest);
      latest = timer.deadline();
    });
    ASSERT_EQ(result.fired, timers.size()) << start;
    wheel.check_invariants();
  }
}

TEST(TimerWheelRange, LastTickFiresWhenAdvanceReachesIt) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, kLastTick);
  EXPECT_EQ(count_fired(wheel, kLastTick - 1), 0u);
  EXPECT_EQ(count_fired(wheel, kLastTick), 1u);
  EXPECT_EQ(wheel.now(), kLastTick);

  wheel.schedule(timer, kLastTick);
  wheel.check_invariants();
  EXPECT_EQ(wheel.next_wakeup(), kLastTick);
  EXPECT_EQ(count_fired(wheel, kLastTick), 1u) << "the end of time is a tick like any other";
}

// Every start × delay × place to stop, around a boundary of levels 1 and 2 at once. At the stop the
// timer is left alone, cancelled, or postponed. A wheel looks only at the digits in which ticks
// differ, so one wheel serves for all cases, each 2^14 ticks after the last.
TEST(TimerWheelRange, SmallCasesExhaustively) {
  constexpr Tick kBoundary = 4'096;
  constexpr Tick kCase = Tick{1} << 14;
  TimerWheel wheel;
  Tick origin = 0;
  for (Tick first = kBoundary - 66; first <= kBoundary + 2; ++first) {
    for (Tick delay = 0; delay <= 132; ++delay) {
      for (Tick stop = 0; stop <= delay + 1; ++stop) {
        origin += kCase;
        const Tick start = origin + first;
        wheel.advance(start, kIgnore);
        Timer timer;
        const Tick deadline = start + delay;
        wheel.schedule(timer, deadline);
        const bool due = stop >= delay;
        ASSERT_EQ(count_fired(wheel, start + stop), due ? 1u : 0u) << first << '+' << delay;
        if (due) continue;
        switch (stop % 3) {
          case 0:
            ASSERT_EQ(count_fired(wheel, deadline - 1), 0u) << first << '+' << delay;
            ASSERT_EQ(count_fired(wheel, deadline), 1u) << first << '+' << delay;
            break;
          case 1:
            ASSERT_TRUE(wheel.cancel(timer));
            ASSERT_EQ(wheel.next_wakeup(), std::nullopt);
            ASSERT_EQ(count_fired(wheel, deadline + 200), 0u) << first << '+' << delay;
            break;
          default:
            wheel.postpone(timer, deadline + stop);
            ASSERT_EQ(count_fired(wheel, deadline + stop - 1), 0u) << first << '+' << delay;
            ASSERT_EQ(count_fired(wheel, deadline + stop), 1u) << first << '+' << delay;
        }
      }
    }
  }
}

TEST(TimerWheelRange, EveryTickOfThreeLevelsFiresOnItsTick) {
  constexpr Tick kSpan = 70'000;  // more than 16 slots of level 2
  TimerWheel wheel(12'345);
  std::vector<Timer> timers(kSpan);
  for (Tick i = 0; i < kSpan; ++i) wheel.schedule(timers[i], 12'346 + i);
  for (Tick i = 0; i < kSpan; ++i) {
    ASSERT_EQ(count_fired(wheel, 12'346 + i), 1u);
    ASSERT_FALSE(timers[i].is_pending());
  }
}

TEST(TimerWheelRange, JumpingFromWakeupToWakeupFiresOnTimeInAtMostElevenJumps) {
  Rng random(20'240'601);
  for (int round = 0; round < 20'000; ++round) {
    const Tick start = random.next() >> random.below(64);
    const Tick deadline = start + ((kLastTick - start) >> random.below(64));
    if (deadline == start) continue;
    TimerWheel wheel(start);
    std::array<Timer, 2> timers;  // two, because a timer alone in its slot needs one jump only
    for (Timer& timer : timers) wheel.schedule(timer, deadline);
    int wakeups = 0;
    while (!wheel.empty()) {
      const std::optional<Tick> next = wheel.next_wakeup();
      ASSERT_TRUE(next.has_value());
      ASSERT_GT(*next, wheel.now()) << "no busy waiting";
      ASSERT_LE(*next, deadline);
      wheel.advance(*next, kIgnore);
      ++wakeups;
    }
    ASSERT_EQ(wheel.now(), deadline);
    ASSERT_LE(wakeups, 11);
  }
}

TEST(TimerWheelRange, NextWakeupLooksAtAllLevels) {
  TimerWheel wheel;
  Timer near;
  Timer far;
  Timer farther;
  wheel.schedule(far, 1'000'000);
  EXPECT_EQ(wheel.next_wakeup(), 1'000'000u) << "it is alone in its slot";
  wheel.schedule(farther, 1'000'001);
  EXPECT_EQ(wheel.next_wakeup(), 786'432u) << "the start of their slot, 3 × 64^3";
  wheel.schedule(near, 10);
  EXPECT_EQ(wheel.next_wakeup(), 10u);
  wheel.cancel(near);
  EXPECT_EQ(wheel.next_wakeup(), 786'432u);
}

TEST(TimerWheelRange, NextWakeupOfALonePostponedTimerStaysInItsSlot) {
  TimerWheel wheel;
  Timer postponed;
  Timer other;
  wheel.schedule(postponed, 100);
  wheel.schedule(other, 130);
  wheel.postpone(postponed, 1'000);
  EXPECT_EQ(wheel.next_wakeup(), 127u) << "the slot of 100 ends there; 130 is in the next";
  EXPECT_EQ(count_fired(wheel, 127), 0u);
  EXPECT_EQ(wheel.next_wakeup(), 130u);
}

}  // namespace
}  // namespace detent

// The promises of TimerWheel beyond the contract of all queues: the ticks of its wake-ups, the
// count of moves between its levels of 256 slots, and its exact deadlines. timer_queue_*_test.cc
// test the contract.
#include "detent/timer_wheel.h"

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <deque>
#include <fstream>
#include <optional>
#include <string>

#include "wheel/test_queues.h"

namespace detent {
namespace {

static_assert(TimerQueue<TimerWheel>);
static_assert(sizeof(TimerWheel) < 17'500, "17 KB, as its header says");
static_assert(std::same_as<TimerWheel::Timer, Timer>);
static_assert(!TimerCallback<int>);
static_assert(!TimerCallback<void (*)(int)>);

TEST(TimerWheel, StartsAtZeroUnlessTold) {
  EXPECT_EQ(TimerWheel().now(), 0u);
  EXPECT_EQ(TimerWheel(9).now(), 9u);
}

TEST(TimerWheel, NextWakeupLooksAtAllLevels) {
  TimerWheel wheel;
  Timer near;
  Timer far;
  Timer farther;
  wheel.schedule(far, 1'000'000);
  EXPECT_EQ(wheel.next_wakeup(), 1'000'000u) << "it is alone in its slot";
  wheel.schedule(farther, 1'000'001);
  EXPECT_EQ(wheel.next_wakeup(), 983'040u) << "the start of their slot, 15 × 256^2";
  wheel.schedule(near, 10);
  EXPECT_EQ(wheel.next_wakeup(), 10u);
  wheel.cancel(near);
  EXPECT_EQ(wheel.next_wakeup(), 983'040u);
}

TEST(TimerWheel, NextWakeupOfALonePostponedTimerStaysInItsSlot) {
  TimerWheel wheel;
  Timer postponed;
  Timer other;
  wheel.schedule(postponed, 300);
  wheel.schedule(other, 600);
  wheel.postpone(postponed, 1'000);
  EXPECT_EQ(wheel.next_wakeup(), 511u) << "the slot of 300 ends there; 600 is in the next";
  EXPECT_EQ(count_fired(wheel, 511), 0u);
  EXPECT_EQ(wheel.next_wakeup(), 600u);
}

TEST(TimerWheel, MovesCountAsMuchAsFires) {
  TimerWheel wheel;
  std::array<Timer, 10> timers;
  for (Tick i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], 65'536 + 1'000 + i);

  const AdvanceResult first = wheel.advance(67'000, kIgnore, 10);
  EXPECT_EQ(first.fired, 0u);
  EXPECT_TRUE(first.more) << "ten timers were moved to a finer level";
  EXPECT_EQ(wheel.now(), 65'536u);
  wheel.check_invariants();
  EXPECT_TRUE(wheel.advance(67'000, kIgnore, 10).more);
  EXPECT_EQ(wheel.now(), 66'304u) << "moved to single ticks, in the slot that starts here";
  EXPECT_EQ(wheel.advance(67'000, kIgnore, 10).fired, 10u);
}

TEST(TimerWheel, MovingOntoTheBaseTickDoesNotFinishIt) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  wheel.schedule(timers[0], 65'536);
  wheel.schedule(timers[1], 65'700);
  EXPECT_TRUE(wheel.advance(66'000, kIgnore, 2).more);
  EXPECT_EQ(wheel.now(), 65'535u);
  EXPECT_EQ(wheel.next_wakeup(), 65'535u);
  EXPECT_EQ(wheel.advance(66'000, kIgnore, 1).fired, 1u);
  EXPECT_EQ(wheel.now(), 65'536u);
}

TEST(TimerWheel, TimersAreMovedAtMostEightTimes) {
  constexpr Tick kFar = (Tick{1} << 63) + 1;
  TimerWheel wheel;
  std::array<Timer, 2> timers;  // a timer that is alone would fire without moves
  for (Timer& timer : timers) wheel.schedule(timer, kFar);
  std::size_t calls = 1;
  while (wheel.advance(kFar, kIgnore, 1).more) ASSERT_LE(++calls, 2u * 8u);
  EXPECT_TRUE(wheel.empty());
}

// A boundary of the levels 1 and 2. Tests every combination of start, delay and stop close to the
// end of a slot. At the stop, the timer is left alone, cancelled or postponed. A wheel looks only
// at the digits that differ between ticks. So one wheel serves all cases: each case starts 2^20
// ticks after the previous case.
TEST(TimerWheel, FiresOnItsTickAroundABoundaryOfTwoLevels) {
  constexpr Tick kBoundary = 65'536;
  constexpr Tick kCase = Tick{1} << 20;
  constexpr std::array<Tick, 18> kTicks{0,   1,   2,   3,   100, 253, 254, 255, 256,
                                        257, 258, 259, 300, 510, 511, 512, 513, 514};
  TimerWheel wheel;
  Tick origin = 0;
  for (const Tick before : kTicks) {
    for (const Tick delay : kTicks) {
      for (const Tick stop : kTicks) {
        origin += kCase;
        const Tick start = origin + kBoundary + 1 - before;
        SCOPED_TRACE(testing::Message()
                     << "before " << before << ", delay " << delay << ", stop " << stop);
        wheel.advance(start, kIgnore);
        Timer timer;
        wheel.schedule(timer, start + delay);
        const bool due = stop >= delay;
        ASSERT_EQ(count_fired(wheel, start + stop), due ? 1u : 0u);
        if (due) continue;
        if (stop % 3 == 0) {
          ASSERT_TRUE(wheel.cancel(timer));
          ASSERT_EQ(count_fired(wheel, start + delay + 600), 0u);
          continue;
        }
        const Tick deadline = start + delay + (stop % 3 == 1 ? 0 : stop);
        wheel.postpone(timer, deadline);
        ASSERT_EQ(count_fired(wheel, deadline - 1), 0u);
        ASSERT_EQ(count_fired(wheel, deadline), 1u);
      }
    }
  }
}

#if defined(__linux__)
std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// A process may have 65 530 mappings (vm.max_map_count). A server with one wheel per connection
// must not use them up.
TEST(TimerWheel, SmallWheelsNeedNoMappings) {
  constexpr std::size_t kWheels = 2'000;
  const std::size_t before = count_mappings();
  std::deque<TimerWheel> wheels(kWheels);
  std::deque<Timer> timers(kWheels);
  for (std::size_t i = 0; i < kWheels; ++i) wheels[i].schedule(timers[i], i + 1);
  EXPECT_LE(count_mappings(), before + 100);
  for (std::size_t i = 0; i < kWheels; ++i) {
    EXPECT_EQ(wheels[i].mapped_bytes(), 0u);
    EXPECT_EQ(count_fired(wheels[i], i + 1), 1u);
  }
}
#endif

}  // namespace
}  // namespace detent

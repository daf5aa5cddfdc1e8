// Bugs of the Kafka-style wheel with time, and the correct results of Detent. cases.md lists all
// cases.
#include "tests/regress/classic/kafka_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detent/queues/hashed_wheel.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/simple_wheel.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"
#include "tests/regress/classic/our_queues.h"
#include "tests/regress/classic/relative_wheel_port.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The time when the port fires a timer that is scheduled at `now` with `delay`. kNever if it does
/// not fire within an hour.
Millis port_fires_at(Millis tick, Millis now, Millis delay) {
  World world;
  KafkaPort port(world, tick, 20);
  port.run_until(now);
  KafkaTimer timer;
  Millis fired = kNever;
  port.start_after(timer, delay, [&] { fired = world.real; });
  port.run_until(now + 3'600'000);
  return fired;
}

TEST(KafkaPort, KW_EARLY_FLOOR) {
  constexpr Millis kNow = 95;
  Millis earliest = 0;
  for (Millis delay = 1'100; delay <= 2'900; delay += 100) {
    const Millis early = kNow + delay - port_fires_at(1'000, kNow, delay);
    EXPECT_EQ(early, (kNow + delay) % 1'000);
    earliest = std::max(earliest, early);
  }
  EXPECT_EQ(earliest, 995);

  for (int delay = 1'100; delay <= 2'900; delay += 100) {
    const milliseconds deadline{kNow + delay};
    EXPECT_EQ(worst_lateness(1s, milliseconds{kNow}, deadline),
              std::chrono::ceil<std::chrono::seconds>(deadline) - deadline);
    EXPECT_EQ(worst_lateness(1ms, milliseconds{kNow}, deadline), 0ms);
  }
}

TEST(KafkaPort, KW_SUBTICK_NOW) {
  EXPECT_EQ(port_fires_at(1'000, 0, 900), 0);

  EXPECT_EQ(worst_lateness(1s, 0ms, 900ms), 100ms);
  EXPECT_EQ(worst_lateness(1ms, 0ms, 900ms), 0ms);
  SchedulerRig rig({.resolution = 1s});
  bool fired = false;
  const TimerHandle timer = rig.scheduler().schedule_after(900ms, [&] { fired = true; });
  rig.advance(1s - 1ns);
  EXPECT_FALSE(fired);
  rig.advance(1ns);
  EXPECT_TRUE(fired);
}

TEST(KafkaPort, KW_WALLCLOCK_BACK) {
  World world;
  KafkaPort port(world, 1, 20);
  KafkaTimer timer;
  Millis port_fired = kNever;
  port.start_after(timer, 200, [&] { port_fired = world.real; });
  port.run_until(0);
  world.wall_offset = -1'000;
  port.run_until(10'000);
  EXPECT_EQ(port_fired, 1'200) << "after 1.2 s: late by the step";

  SchedulerRig rig({.resolution = 1ms});
  bool fired = false;
  const TimerHandle ours = rig.scheduler().schedule_after(200ms, [&] { fired = true; });
  rig.settle();
  rig.clock().step_wall(-1s);
  rig.advance(199ms);
  EXPECT_FALSE(fired);
  rig.advance(1ms);
  EXPECT_TRUE(fired);
}

void expect_endless_recursion(Millis size) {
  World world;
  KafkaPort port(world, 1, size);
  KafkaTimer timer;
  EXPECT_THROW(port.start_after(timer, 1, [] {}), EndlessRecursion);
}

/// Detent's wheels with one slot.
struct OneSlotCase : RingCase<SimpleWheel, 1, QueueNature{.span = 1}> {
  static constexpr const char* kName = "SimpleWheel of 1";
};
struct OneHashedSlotCase : RingCase<HashedWheel, 1, QueueNature{}> {
  static constexpr const char* kName = "HashedWheel of 1";
};

TEST(KafkaPort, KW_SIZE_1) {
  expect_endless_recursion(1);

  expect_on_time<testing::Types<OneSlotCase, OneHashedSlotCase>>(0, {1, 2, 5, 100});
  std::string error;
  EXPECT_FALSE(HierarchicalWheel::make({.slots_per_level = 1}, &error).has_value());
  EXPECT_EQ(error, "slots_per_level is 1: a level has at least 2 slots");
}

TEST(KafkaPort, KW_SIZE_0) {
  expect_endless_recursion(0);

  std::string error;
  EXPECT_FALSE(SimpleWheel::make({.slot_count = 0}, &error).has_value());
  EXPECT_EQ(error, "slot_count is 0: a wheel has at least one slot");
  EXPECT_FALSE(HashedWheel::make({.slot_count = 0}, &error).has_value());
  EXPECT_FALSE(HierarchicalWheel::make({}, &error).has_value());
  EXPECT_FALSE(HierarchicalWheel::make({.level_sizes = {20, 0}}, &error).has_value());
  EXPECT_EQ(error, "level_sizes[1] is 0: a level has at least 2 slots");
}

// With buckets of one second, the span of the third level is 1000 × 2^60 ms, which wraps to the
// smallest signed number. The spans of all higher levels wrap to 0. So a delay beyond the second
// level finds no level.
TEST(KafkaPort, KW_INTERVAL_OVERFLOW) {
  constexpr Millis kSize = Millis{1} << 20;
  constexpr Millis kSecondSpan = 1'000 * kSize * kSize;
  World world;
  KafkaPort port(world, 1'000, kSize);
  KafkaTimer timer;
  EXPECT_THROW(port.start_after(timer, kSecondSpan, [] {}), EndlessRecursion);
  EXPECT_EQ(port.interval(1), kSecondSpan);
  EXPECT_EQ(port.interval(2), std::numeric_limits<Millis>::min());
  EXPECT_EQ(port.interval(3), 0);

  std::string error;
  constexpr Tick kTooWide = Tick{1} << 44;
  EXPECT_FALSE(SimpleWheel::make({.slot_count = kSize, .slot_width = kTooWide}, &error));
  EXPECT_NE(error.find("more than 64 bits hold"), std::string::npos) << error;
  const HierarchicalWheel::Options four_levels{.level_sizes = {kSize, kSize, kSize, kSize}};
  EXPECT_FALSE(HierarchicalWheel::make(four_levels, &error).has_value());
  EXPECT_NE(error.find("more ticks than 64 bits hold"), std::string::npos) << error;
  using OnDemand = testing::Types<LevelsOnDemandCase<HierarchicalWheel::Drive::tickless, kSize>>;
  expect_on_time<OnDemand>(0, {Tick{kSecondSpan}, Tick{1} << 60, kLastTick - 1, kLastTick});
  expect_on_time(0, {Tick{kSecondSpan}});
  expect_on_time(0, {Tick{1} << 63, kLastTick - 1, kLastTick});
  expect_on_time(12'345, {kLastTick});
}

// The Kafka design is correct in this case, because a level begins at a multiple of its bucket. The
// bug is the shortcut of other wheels that use the delay to find the slot: two ticks of the hand's
// slot have already passed. The slot deadline % slots does not help either, if the delay (399 <
// 400) chooses the level: deadline 401 would go to the hand's slot, which also holds [1, 19].
TEST(KafkaPort, KW_003_PARTIAL_SLOT) {
  RelativeWheelPort by_delay({{1, 20}, {20, 20}, {400, 20}});
  std::int64_t fired = 0;
  by_delay.run_until(2);
  by_delay.add(399, [&] { fired = by_delay.now(); });
  by_delay.run_until(1'000);
  EXPECT_EQ(fired, 399);
  EXPECT_EQ(port_fires_at(1, 2, 399), 401);

  expect_on_time(2, {401});
  std::vector<Tick> with_the_slot{401};
  for (Tick deadline = 3; deadline <= 19; ++deadline) with_the_slot.push_back(deadline);
  expect_on_time(2, with_the_slot);
  expect_on_time<LevelsUnderBothDrives<20, 20, 20>>(2, with_the_slot);
  expect_on_time<OnDemandUnderBothDrives<20>>(2, with_the_slot);
}

}  // namespace
}  // namespace detent::classic

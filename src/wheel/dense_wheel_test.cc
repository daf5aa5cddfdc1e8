// The special properties of DenseWheel. The timer_queue_* tests check the contract of all queues.
#include "detent/dense_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "wheel/test_no_pages.h"

namespace detent {
namespace {

std::vector<std::uint32_t> fired_at(DenseWheel& wheel, Tick now) {
  std::vector<std::uint32_t> fired;
  wheel.advance(now, [&](std::uint32_t index) { fired.push_back(index); });
  return fired;
}

TEST(DenseWheel, AnUnusedNumberIsNotPending) {
  DenseWheel wheel;
  EXPECT_FALSE(wheel.is_pending(0));
  EXPECT_FALSE(wheel.is_pending(4'000'000'000));
  EXPECT_FALSE(wheel.cancel(4'000'000'000));
}

TEST(DenseWheel, GrowsToTheLargestNumber) {
  DenseWheel wheel;
  wheel.schedule(1'000'000, 5);
  wheel.postpone(2'000'000, 6);
  EXPECT_TRUE(wheel.is_pending(1'000'000));
  EXPECT_FALSE(wheel.is_pending(999'999));
  EXPECT_EQ(fired_at(wheel, 6), (std::vector<std::uint32_t>{1'000'000, 2'000'000}));
}

TEST(DenseWheel, DeadlineOfIsTheLatestGiven) {
  DenseWheel wheel;
  wheel.schedule(3, 100);
  EXPECT_EQ(wheel.deadline_of(3), 100u);
  wheel.postpone(3, 70'000);
  EXPECT_EQ(wheel.deadline_of(3), 70'000u);
  wheel.schedule(3, 50);
  EXPECT_EQ(wheel.deadline_of(3), 50u);
}

TEST(DenseWheelDeathTest, DeadlineOfATimerThatIsNotPendingIsABug) {
  const DenseWheel wheel;
  EXPECT_DEATH(static_cast<void>(wheel.deadline_of(3)), "is_pending");
}

TEST(DenseWheel, PostponeToEarlierMovesItThere) {
  DenseWheel wheel;
  for (const Tick later : {Tick{101}, Tick{300}, Tick{70'000}, Tick{1} << 40}) {
    wheel.schedule(1, wheel.now() + later);
    wheel.postpone(1, wheel.now() + 100);
    EXPECT_TRUE(fired_at(wheel, wheel.now() + 99).empty());
    EXPECT_EQ(fired_at(wheel, wheel.now() + 1).size(), 1u);
  }
}

TEST(DenseWheel, ManyInOneCallAreTheSameAsOneByOne) {
  DenseWheel wheel;
  std::vector<DenseWheel::Timer> timers;
  std::vector<std::uint32_t> even;
  for (std::uint32_t index = 0; index < 500; ++index) {
    timers.push_back({.index = index, .deadline = index * 7 % 300 + Tick{1}});
    if (index % 2 == 0) even.push_back(index);
  }
  wheel.schedule(timers);
  EXPECT_EQ(wheel.size(), 500u);
  EXPECT_EQ(wheel.deadline_of(499), 499u * 7 % 300 + 1);

  EXPECT_EQ(wheel.cancel(even), 250u);
  EXPECT_EQ(wheel.cancel(even), 0u);
  even.push_back(1);
  even.push_back(1);
  even.push_back(100'000);
  EXPECT_EQ(wheel.cancel(even), 1u) << "the other numbers were given twice or never used";
  EXPECT_EQ(fired_at(wheel, 300).size(), 249u);
}

TEST(DenseWheel, ReserveMakesRoom) {
  DenseWheel wheel;
  wheel.reserve(10'000);
  EXPECT_FALSE(wheel.is_pending(9'999));
  for (std::uint32_t index = 0; index < 10'000; ++index) wheel.schedule(index, index + 1);
  wheel.check_invariants();
  EXPECT_EQ(fired_at(wheel, 10'000).size(), 10'000u);
}

// The row of the wheel is longer than the maximum, because its size grows to powers of two.
TEST(DenseWheel, RefusesNumbersThatAreNotBelowItsMaximum) {
  DenseWheel wheel({.now = 100, .max_count = 1'000});
  EXPECT_EQ(wheel.now(), 100u);
  EXPECT_TRUE(wheel.schedule(999, 200));
  for (const std::uint32_t number : {1'000u, 1'023u, 4'000'000'000u}) {
    EXPECT_FALSE(wheel.schedule(number, 200));
    EXPECT_FALSE(wheel.postpone(number, 200));
    EXPECT_EQ(wheel.try_schedule(number, 200), TryScheduleResult::beyond_maximum);
    EXPECT_FALSE(wheel.is_pending(number));
    EXPECT_FALSE(wheel.cancel(number));
  }
  EXPECT_EQ(wheel.schedule(std::vector<DenseWheel::Timer>{{7, 200}, {1'000, 200}, {8, 200}}), 2u);
  EXPECT_EQ(wheel.try_schedule(9, 200), TryScheduleResult::scheduled);
  wheel.reserve(1'000);
  EXPECT_FALSE(wheel.schedule(1'000, 200));
  wheel.check_invariants();
  EXPECT_EQ(fired_at(wheel, 200).size(), 4u);
}

TEST(DenseWheelDeathTest, RoomBeyondTheMaximumIsABug) {
  DenseWheel wheel({.max_count = 1'000});
  EXPECT_DEATH(wheel.reserve(1'001), "count <= max_count");
}

// A wheel that soon has no memory for its cells, and none for the row of a large number.
TEST(DenseWheel, TryScheduleReportsThatThereIsNoMemory) {
  internal::IndexWheel<8, internal::NoPages> wheel;
  EXPECT_EQ(wheel.try_schedule(4'000'000'000, 5), TryScheduleResult::out_of_memory);
  EXPECT_TRUE(wheel.empty());
  std::uint32_t count = 0;
  while (count < 16'384 && wheel.try_schedule(count, 7) == TryScheduleResult::scheduled) ++count;
  EXPECT_GT(count, 1'000u);
  EXPECT_LT(count, 16'384u);
  EXPECT_EQ(wheel.size(), count);
  wheel.check_invariants();

  EXPECT_EQ(wheel.try_schedule(5, 300), TryScheduleResult::out_of_memory);
  EXPECT_EQ(wheel.deadline_of(5), 7u) << "the deadline is unchanged";
  EXPECT_EQ(wheel.try_schedule(5, 7), TryScheduleResult::scheduled) << "it keeps its place";
  EXPECT_TRUE(wheel.cancel(3));
  EXPECT_EQ(wheel.try_schedule(3, 7), TryScheduleResult::scheduled) << "it gets its old place";
  EXPECT_EQ(wheel.size(), count);
  wheel.check_invariants();
  for (std::uint32_t index = 0; index < 100; ++index) wheel.cancel(index);
  EXPECT_EQ(wheel.try_schedule(count, 300), TryScheduleResult::scheduled);
  std::size_t fired = 0;
  wheel.advance(300, [&](std::uint32_t) { ++fired; });
  EXPECT_EQ(fired, count - 99);
}

TEST(DenseWheel, CallbackMayGrowTheWheel) {
  DenseWheel wheel;
  for (std::uint32_t index = 0; index < 100; ++index) wheel.schedule(index, 10);
  std::uint32_t next = 1'000;
  std::size_t fired = 0;
  wheel.advance(10, [&](std::uint32_t) {
    ++fired;
    for (int i = 0; i < 100; ++i) wheel.schedule(next++ * 5, 11);
  });
  EXPECT_EQ(fired, 100u);
  EXPECT_EQ(fired_at(wheel, 11).size(), 10'000u);
  wheel.check_invariants();
}

TEST(DenseWheel, ShowsWhichSlotsHoldHowManyTimers) {
  DenseWheel wheel(1'000);
  std::map<std::uint32_t, Tick> deadlines;
  for (std::uint32_t i = 0; i < 500; ++i) {
    const Tick deadline = 1'000 + Tick{i} * i * i;
    wheel.schedule(i, deadline);
    if (deadline > 1'000) deadlines.emplace(i, deadline);
  }
  wheel.advance(2'000, [&](std::uint32_t i) { deadlines.erase(i); });
  wheel.cancel(499);
  deadlines.erase(499);
  std::size_t count = 0;
  Tick after = 0;
  wheel.for_each_slot([&](const WheelSlot& slot) {
    EXPECT_GT(slot.first, after);
    EXPECT_EQ(slot.last - slot.first + 1, Tick{1} << (8 * slot.level));
    EXPECT_EQ(slot.index, slot.first >> (8 * slot.level) & 255U);
    EXPECT_EQ(slot.count,
              static_cast<std::size_t>(std::ranges::count_if(deadlines, [&](const auto& timer) {
                return timer.second >= slot.first && timer.second <= slot.last;
              })));
    count += slot.count;
    after = slot.last;
  });
  EXPECT_EQ(count, deadlines.size());
}

}  // namespace
}  // namespace detent

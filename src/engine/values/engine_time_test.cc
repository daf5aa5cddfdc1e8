#include "engine/values/engine_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;

// A wall clock that does not start on a whole millisecond.
constexpr WallInstant kStart{std::chrono::seconds{1'577'836'800} + 300us};

Tick since_1970(WallTime at) { return static_cast<Tick>(at.time_since_epoch().count()); }

TEST(EngineTime, ADateIsTheTickOfItsMilliseconds) {
  ManualClock clock(kStart);
  const EngineTime time(clock);
  const WallTime due{milliseconds{1'600'000'000'123}};
  EXPECT_EQ(time.tick_at(due), 1'600'000'000'123u);
}

TEST(EngineTime, TheTickOfADateIsReachedWhenTheWallClockShowsItNotBefore) {
  ManualClock clock(kStart);
  const EngineTime time(clock);
  const WallTime due = std::chrono::ceil<milliseconds>(kStart) + 5ms;
  clock.advance(due - kStart - 1ns);
  EXPECT_LT(time.now(), time.tick_at(due));
  clock.advance(1ns);
  EXPECT_EQ(time.now(), time.tick_at(due));
}

TEST(EngineTime, ADelayHasPassedInFullWhenItsTickIsReached) {
  ManualClock clock(kStart);
  const EngineTime time(clock);
  const Tick tick = time.tick_after(10ms);
  clock.advance(10ms);
  EXPECT_LT(time.now(), tick);  // 0.3 ms past a tick: the tenth full tick is not over yet
  clock.advance(700us);
  EXPECT_EQ(time.now(), tick);
}

TEST(EngineTime, WhenIsTheFirstInstantOfATick) {
  ManualClock clock(kStart);
  const EngineTime time(clock);
  const Tick tick = time.now() + 7;
  clock.advance(time.when(tick) - clock.now() - 1ns);
  EXPECT_EQ(time.now(), tick - 1);
  clock.advance(1ns);
  EXPECT_EQ(time.now(), tick);
}

TEST(EngineTime, WhenIsAheadUntilTheLastYearsOfNanoseconds) {
  ManualClock clock(kStart);
  const EngineTime time(clock);
  for (int years = 1; years <= 230; ++years) {  // 2020 … 2250
    clock.advance(std::chrono::years{1});
    EXPECT_EQ(time.when(time.now() + 1) - clock.now(), 700us) << years;
  }
  EXPECT_GT(time.when(std::numeric_limits<Tick>::max()), clock.now());
}

TEST(EngineTime, ASteppedWallClockMovesDatesAndLeavesDelays) {
  ManualClock clock(kStart);
  EngineTime time(clock);
  const WallTime due = std::chrono::ceil<milliseconds>(kStart) + 1h;
  const Tick by_delay = time.tick_after(1h);
  clock.step_wall(30min);
  ASSERT_TRUE(time.notice_step());
  EXPECT_EQ(time.tick_after(1h), by_delay);
  EXPECT_EQ(time.tick_at(due), by_delay - since_1970(WallTime{milliseconds{30min}}));
  EXPECT_EQ(time.wall_now(), std::chrono::floor<milliseconds>(clock.wall_now()));
  EXPECT_FALSE(time.notice_step());
}

TEST(EngineTime, TheFarthestDatesDoNotOverflow) {
  ManualClock clock(kStart);
  const EngineTime time(clock);
  const WallTime year_9999{milliseconds{253'402'300'799'999}};
  EXPECT_EQ(time.tick_at(year_9999), since_1970(year_9999));
  EXPECT_GT(time.when(time.tick_at(year_9999)), clock.now());
  EXPECT_GT(time.when(std::numeric_limits<Tick>::max()), clock.now());
}

}  // namespace
}  // namespace detent

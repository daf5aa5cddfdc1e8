// One call of advance does at most `limit` things, says so, and the next call goes on from there.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "detent/timer_wheel.h"

namespace detent {
namespace {

constexpr auto kIgnore = [](Timer&) {};

// Ten timers, due at 1 … 10.
class TimerWheelLimit : public testing::Test {
 protected:
  TimerWheelLimit() {
    for (Tick i = 0; i < timers_.size(); ++i) wheel_.schedule(timers_[i], i + 1);
  }

  TimerWheel wheel_;
  std::array<Timer, 10> timers_;
};

TEST_F(TimerWheelLimit, StopsAtTheLimitAndGoesOn) {
  std::vector<Tick> fired;
  const auto record = [&](Timer& timer) { fired.push_back(timer.deadline()); };

  const AdvanceResult first = wheel_.advance(20, record, 3);
  EXPECT_EQ(first.fired, 3u);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(wheel_.now(), 3u) << "the last tick that is finished";
  EXPECT_EQ(wheel_.next_wakeup(), 3u);
  EXPECT_EQ(wheel_.size(), 7u);
  wheel_.check_invariants();

  const AdvanceResult second = wheel_.advance(20, record);
  EXPECT_EQ(second.fired, 7u);
  EXPECT_FALSE(second.more);
  EXPECT_EQ(wheel_.now(), 20u);
  EXPECT_EQ(fired, (std::vector<Tick>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(TimerWheelLimit, GoesOnToTheOldTickEvenWhenGivenAnEarlierOne) {
  wheel_.advance(20, kIgnore, 3);
  EXPECT_EQ(wheel_.advance(0, kIgnore).fired, 7u);
  EXPECT_EQ(wheel_.now(), 20u);
}

TEST_F(TimerWheelLimit, NoMoreWhenTheLimitIsJustEnough) {
  const AdvanceResult result = wheel_.advance(20, kIgnore, 10);
  EXPECT_EQ(result.fired, 10u);
  EXPECT_FALSE(result.more);
  EXPECT_EQ(wheel_.now(), 20u);
}

TEST_F(TimerWheelLimit, ZeroDoesNothingAndTellsWhetherAnythingIsDue) {
  const AdvanceResult result = wheel_.advance(20, kIgnore, 0);
  EXPECT_EQ(result.fired, 0u);
  EXPECT_TRUE(result.more);
  EXPECT_EQ(wheel_.now(), 0u);
  EXPECT_EQ(wheel_.size(), 10u);
  EXPECT_EQ(wheel_.advance(20, kIgnore).fired, 10u);
  EXPECT_FALSE(wheel_.advance(100, kIgnore, 0).more);
  EXPECT_EQ(wheel_.now(), 100u);
}

TEST_F(TimerWheelLimit, StopsInTheMiddleOfATick) {
  for (Timer& timer : timers_) wheel_.schedule(timer, 5);
  EXPECT_TRUE(wheel_.advance(20, kIgnore, 4).more);
  EXPECT_EQ(wheel_.now(), 4u) << "tick 5 is not finished";
  EXPECT_EQ(wheel_.size(), 6u);
  wheel_.check_invariants();
  EXPECT_EQ(wheel_.advance(20, kIgnore).fired, 6u);
}

TEST_F(TimerWheelLimit, WhatIsCancelledOrDestroyedBetweenTheCallsDoesNotFire) {
  auto extra = std::make_unique<Timer>();
  wheel_.schedule(*extra, 5);
  for (Timer& timer : timers_) wheel_.schedule(timer, 5);
  EXPECT_EQ(wheel_.advance(20, kIgnore, 4).fired, 4u);

  std::size_t cancelled = 0;
  for (Timer& timer : timers_) cancelled += wheel_.cancel(timer) ? 1u : 0u;
  extra.reset();
  EXPECT_EQ(cancelled, 7u);
  wheel_.check_invariants();

  const AdvanceResult rest = wheel_.advance(20, kIgnore);
  EXPECT_EQ(rest.fired, 0u);
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(wheel_.now(), 20u);
}

TEST_F(TimerWheelLimit, WhatIsScheduledBetweenTheCallsComesAfterWhatWasDueBefore) {
  wheel_.advance(20, kIgnore, 3);
  Timer newcomer;
  wheel_.schedule(newcomer, 0);
  std::vector<Tick> fired;
  const AdvanceResult result =
      wheel_.advance(20, [&](Timer& timer) { fired.push_back(timer.deadline()); });
  EXPECT_FALSE(result.more);
  EXPECT_EQ(fired, (std::vector<Tick>{4, 5, 6, 7, 8, 9, 10, 0}));
}

TEST_F(TimerWheelLimit, PostponedBetweenTheCallsIsNotFiredEarly) {
  wheel_.advance(20, kIgnore, 3);
  wheel_.postpone(timers_[4], 15);
  wheel_.postpone(timers_[5], 25);
  EXPECT_EQ(wheel_.advance(20, kIgnore).fired, 6u) << "15 is within the pass, 25 is not";
  EXPECT_EQ(wheel_.advance(24, kIgnore).fired, 0u);
  EXPECT_EQ(wheel_.advance(25, kIgnore).fired, 1u);
}

TEST_F(TimerWheelLimit, CallbacksThatScheduleForAtOnceHoldNobodyBack) {
  std::vector<Tick> first_firing(11, 0);
  Tick calls = 0;
  const auto at_once = [&](Timer& timer) {
    const auto number = static_cast<std::size_t>(&timer - timers_.data()) + 1;
    if (first_firing[number] == 0) first_firing[number] = calls;
    wheel_.schedule(timer, 0);
  };
  for (calls = 1; calls <= 10; ++calls) EXPECT_EQ(wheel_.advance(20, at_once, 1).fired, 1u);
  EXPECT_EQ(first_firing, (std::vector<Tick>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(TimerWheelLimit, WhatACallbackSchedulesForAtOnceNeverFiresInTheSameCall) {
  std::size_t most_in_one_call = 0;
  std::vector<int> fired(10, 0);
  const auto at_once = [&](Timer& timer) {
    ++fired[static_cast<std::size_t>(&timer - timers_.data())];
    wheel_.schedule(timer, wheel_.now());
  };
  for (const std::size_t limit : {3u, 100u, 7u, 100u, 100u}) {
    fired.assign(10, 0);
    wheel_.advance(20, at_once, limit);
    for (const int count : fired) {
      most_in_one_call = std::max(most_in_one_call, static_cast<std::size_t>(count));
    }
    wheel_.check_invariants();
  }
  EXPECT_EQ(most_in_one_call, 1u);
}

TEST(TimerWheelLimits, MovesCountToo) {
  TimerWheel wheel;
  std::array<Timer, 10> timers;
  for (Tick i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], 4'096 + 100 + i);

  const AdvanceResult first = wheel.advance(5'000, kIgnore, 10);
  EXPECT_EQ(first.fired, 0u);
  EXPECT_TRUE(first.more) << "ten timers were moved to a finer level";
  EXPECT_EQ(wheel.now(), 4'096u);
  wheel.check_invariants();
  EXPECT_TRUE(wheel.advance(5'000, kIgnore, 10).more);
  EXPECT_EQ(wheel.now(), 4'160u) << "moved to single ticks, the first of them 4196";
  EXPECT_EQ(wheel.advance(5'000, kIgnore, 10).fired, 10u);
}

TEST(TimerWheelLimits, MovingOntoTheBaseTickDoesNotFinishIt) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  wheel.schedule(timers[0], 4'096);
  wheel.schedule(timers[1], 4'200);
  EXPECT_TRUE(wheel.advance(5'000, kIgnore, 2).more);
  EXPECT_EQ(wheel.now(), 4'095u);
  EXPECT_EQ(wheel.next_wakeup(), 4'095u);
  EXPECT_EQ(wheel.advance(5'000, kIgnore, 1).fired, 1u);
  EXPECT_EQ(wheel.now(), 4'096u);
}

TEST(TimerWheelLimits, OverdueTimersFireInOrderWithLimitedWork) {
  TimerWheel wheel(1'000'000);
  std::array<Timer, 200> timers;
  for (Tick i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], (i * 7'919) % 1'000'000);
  Tick latest = 0;
  std::size_t fired = 0;
  std::size_t calls = 0;
  for (bool more = true; more; ++calls) {
    const AdvanceResult result = wheel.advance(
        1'000'001,
        [&](Timer& timer) {
          EXPECT_GE(timer.deadline(), latest);
          latest = timer.deadline();
        },
        5);
    fired += result.fired;
    more = result.more;
    EXPECT_LE(result.fired, 5u);
    wheel.check_invariants();
    if (more) {
      EXPECT_EQ(wheel.now(), 1'000'000u);
    }
  }
  EXPECT_EQ(fired, timers.size());
  EXPECT_LE(calls, timers.size() * 12 / 5 + 1) << "each is sorted, moved at most ten times, fired";
}

TEST(TimerWheelLimits, OfOneAlwaysGetsThere) {
  constexpr Tick kFar = Tick{1} << 63;
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  wheel.schedule(timers[0], kFar + 1);
  wheel.schedule(timers[1], kFar + 1);
  std::size_t calls = 1;
  while (wheel.advance(kFar + 1, kIgnore, 1).more) ++calls;
  EXPECT_TRUE(wheel.empty());
  EXPECT_LE(calls, 2u * 11u);
}

TEST(TimerWheelLimits, NowNeverGoesBack) {
  TimerWheel wheel;
  std::array<Timer, 64> timers;
  for (Tick i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], 1 + i * i * i);
  Tick now = 0;
  for (bool more = true; more;) {
    more = wheel.advance(300'000, kIgnore, 1).more;
    EXPECT_GE(wheel.now(), now);
    now = wheel.now();
    for (const Timer& timer : timers) {
      EXPECT_TRUE(!timer.is_pending() || timer.deadline() > now);
    }
  }
  EXPECT_EQ(now, 300'000u);
}

}  // namespace
}  // namespace detent

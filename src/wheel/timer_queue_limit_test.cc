// One call of advance does at most `limit` steps and reports whether it stopped. The next call
// continues from there. For every queue.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "wheel/test_queues.h"

namespace detent {
namespace {

// Ten timers, due at 1 … 10. No queue has to move these timers before they fire.
template <class Case>
struct TenTimers {
  TenTimers() {
    for (Tick i = 0; i < timers.size(); ++i) queue->schedule(timers[i], i + 1);
  }

  decltype(Case::make(0)) queue = Case::make(0);
  std::array<TimerOf<Case>, 10> timers;
};

template <class Case>
class TimerQueueLimit : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueLimit, EveryQueue, QueueNames);

TYPED_TEST(TimerQueueLimit, StopsAtTheLimitAndContinues) {
  TenTimers<TypeParam> ten;
  std::vector<Tick> fired;
  const auto record = [&](auto& timer) { fired.push_back(timer.deadline()); };

  const AdvanceResult first = ten.queue->advance(20, record, 3);
  EXPECT_EQ(first.fired, 3u);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(ten.queue->now(), 3u) << "the last tick that is finished";
  EXPECT_EQ(ten.queue->next_wakeup(), 3u);
  EXPECT_EQ(ten.queue->size(), 7u);
  ten.queue->check_invariants();

  const AdvanceResult second = ten.queue->advance(20, record);
  EXPECT_EQ(second.fired, 7u);
  EXPECT_FALSE(second.more);
  EXPECT_EQ(ten.queue->now(), 20u);
  EXPECT_EQ(fired, (std::vector<Tick>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TYPED_TEST(TimerQueueLimit, ContinuesToTheOldTickEvenIfGivenAnEarlierTick) {
  TenTimers<TypeParam> ten;
  ten.queue->advance(20, kIgnore, 3);
  EXPECT_EQ(ten.queue->advance(0, kIgnore).fired, 7u);
  EXPECT_EQ(ten.queue->now(), 20u);
}

TYPED_TEST(TimerQueueLimit, ReportsNoMoreIfTheLimitIsJustEnough) {
  TenTimers<TypeParam> ten;
  const AdvanceResult result = ten.queue->advance(20, kIgnore, 10);
  EXPECT_EQ(result.fired, 10u);
  EXPECT_FALSE(result.more);
  EXPECT_EQ(ten.queue->now(), 20u);
}

TYPED_TEST(TimerQueueLimit, ZeroDoesNothingAndReportsWhetherTimersAreDue) {
  TenTimers<TypeParam> ten;
  const AdvanceResult result = ten.queue->advance(20, kIgnore, 0);
  EXPECT_EQ(result.fired, 0u);
  EXPECT_TRUE(result.more);
  EXPECT_EQ(ten.queue->now(), 0u);
  EXPECT_EQ(ten.queue->size(), 10u);
  EXPECT_EQ(ten.queue->advance(20, kIgnore).fired, 10u);
  EXPECT_FALSE(ten.queue->advance(100, kIgnore, 0).more);
  EXPECT_EQ(ten.queue->now(), 100u);
}

TYPED_TEST(TimerQueueLimit, StopsInTheMiddleOfATick) {
  TenTimers<TypeParam> ten;
  for (auto& timer : ten.timers) ten.queue->schedule(timer, 5);
  EXPECT_TRUE(ten.queue->advance(20, kIgnore, 4).more);
  EXPECT_EQ(ten.queue->now(), 4u) << "tick 5 is not finished";
  EXPECT_EQ(ten.queue->size(), 6u);
  ten.queue->check_invariants();
  EXPECT_EQ(ten.queue->advance(20, kIgnore).fired, 6u);
}

TYPED_TEST(TimerQueueLimit, TimersCancelledOrDestroyedBetweenTheCallsDoNotFire) {
  TenTimers<TypeParam> ten;
  auto extra = std::make_unique<TimerOf<TypeParam>>();
  ten.queue->schedule(*extra, 5);
  for (auto& timer : ten.timers) ten.queue->schedule(timer, 5);
  EXPECT_EQ(ten.queue->advance(20, kIgnore, 4).fired, 4u);

  std::size_t cancelled = 0;
  for (auto& timer : ten.timers) cancelled += ten.queue->cancel(timer) ? 1u : 0u;
  extra.reset();
  EXPECT_EQ(cancelled, 7u);
  ten.queue->check_invariants();

  const AdvanceResult rest = ten.queue->advance(20, kIgnore);
  EXPECT_EQ(rest.fired, 0u);
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(ten.queue->now(), 20u);
}

TYPED_TEST(TimerQueueLimit, TimersScheduledBetweenTheCallsFireAfterEarlierDueTimers) {
  TenTimers<TypeParam> ten;
  ten.queue->advance(20, kIgnore, 3);
  TimerOf<TypeParam> newcomer;
  ten.queue->schedule(newcomer, 0);
  std::vector<Tick> fired;
  const AdvanceResult result =
      ten.queue->advance(20, [&](auto& timer) { fired.push_back(timer.deadline()); });
  EXPECT_FALSE(result.more);
  EXPECT_EQ(fired, (std::vector<Tick>{4, 5, 6, 7, 8, 9, 10, 0}));
}

TYPED_TEST(TimerQueueLimit, PostponedBetweenTheCallsIsNotFiredEarly) {
  TenTimers<TypeParam> ten;
  ten.queue->advance(20, kIgnore, 3);
  ten.queue->postpone(ten.timers[4], 15);
  ten.queue->postpone(ten.timers[5], 25);
  EXPECT_EQ(ten.queue->advance(20, kIgnore).fired, 6u) << "15 is within the pass, 25 is not";
  EXPECT_EQ(ten.queue->advance(24, kIgnore).fired, 0u);
  EXPECT_EQ(ten.queue->advance(25, kIgnore).fired, 1u);
}

TYPED_TEST(TimerQueueLimit, CallbacksThatScheduleDueTimersDoNotDelayOtherTimers) {
  TenTimers<TypeParam> ten;
  std::vector<Tick> first_firing(11, 0);
  Tick calls = 0;
  const auto at_once = [&](auto& timer) {
    const auto number = static_cast<std::size_t>(&timer - ten.timers.data()) + 1;
    if (first_firing[number] == 0) first_firing[number] = calls;
    ten.queue->schedule(timer, 0);
  };
  for (calls = 1; calls <= 10; ++calls) EXPECT_EQ(ten.queue->advance(20, at_once, 1).fired, 1u);
  EXPECT_EQ(first_firing, (std::vector<Tick>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TYPED_TEST(TimerQueueLimit, ADueTimerThatACallbackSchedulesNeverFiresInTheSameCall) {
  TenTimers<TypeParam> ten;
  std::size_t most_in_one_call = 0;
  std::vector<int> fired(10, 0);
  const auto at_once = [&](auto& timer) {
    ++fired[static_cast<std::size_t>(&timer - ten.timers.data())];
    ten.queue->schedule(timer, ten.queue->now());
  };
  for (const std::size_t limit : {3u, 100u, 7u, 100u, 100u}) {
    fired.assign(10, 0);
    ten.queue->advance(20, at_once, limit);
    for (const int count : fired) {
      most_in_one_call = std::max(most_in_one_call, static_cast<std::size_t>(count));
    }
    ten.queue->check_invariants();
  }
  EXPECT_EQ(most_in_one_call, 1u);
}

TYPED_TEST(TimerQueueLimit, OverdueTimersFireInOrderWithLimitedWork) {
  auto queue = TypeParam::make(1'000'000);
  std::array<TimerOf<TypeParam>, 200> timers;
  for (Tick i = 0; i < timers.size(); ++i) queue->schedule(timers[i], (i * 7'919) % 1'000'000);
  Tick latest = 0;
  std::size_t fired = 0;
  std::size_t calls = 0;
  const auto is_in_order = [&](auto& timer) {
    EXPECT_GE(timer.deadline(), latest);
    latest = timer.deadline();
  };
  for (bool more = true; more; ++calls) {
    const AdvanceResult result = queue->advance(1'000'001, is_in_order, 5);
    fired += result.fired;
    more = result.more;
    EXPECT_LE(result.fired, 5u);
    EXPECT_EQ(queue->now(), more ? 1'000'000u : 1'000'001u);
    queue->check_invariants();
  }
  EXPECT_EQ(fired, timers.size());
  EXPECT_LE(calls, timers.size() * 12 / 5 + 1) << "each is sorted, moved at most ten times, fired";
}

TYPED_TEST(TimerQueueLimit, OfOneAlwaysFinishes) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 2> timers;
  for (auto& timer : timers) queue->schedule(timer, kSmallestSpan);
  std::size_t calls = 1;
  while (queue->advance(kSmallestSpan, kIgnore, 1).more) ASSERT_LT(++calls, 100u);
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(queue->now(), kSmallestSpan);
}

TYPED_TEST(TimerQueueLimit, NowNeverGoesBackOrPastATimerThatHasNotFired) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 64> timers;
  for (Tick i = 0; i < timers.size(); ++i) queue->schedule(timers[i], 1 + 2 * i * i);
  Tick now = 0;
  for (bool more = true; more;) {
    more = queue->advance(9'000, kIgnore, 1).more;
    EXPECT_GE(queue->now(), now);
    now = queue->now();
    for (const auto& timer : timers) EXPECT_TRUE(!timer.is_pending() || timer.deadline() > now);
  }
  EXPECT_EQ(now, 9'000u);
}

}  // namespace
}  // namespace detent

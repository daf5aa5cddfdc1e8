// The contract of TimerQueue, sentence by sentence, for every queue. Other files test callbacks,
// limits, the range of ticks, the comparison with a model, and the special promises of single
// queues.
#include "detent/queues/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "wheel/test_queues.h"

namespace detent {
namespace {

template <TimerQueue Queue>
std::vector<Tick> deadlines_fired(Queue& queue, Tick now) {
  std::vector<Tick> deadlines;
  queue.advance(now, [&](auto& timer) { deadlines.push_back(timer.deadline()); });
  queue.check_invariants();
  return deadlines;
}

// A wake-up may be early, but it must not be at now() if no timer is due yet.
template <TimerQueue Queue>
bool wakes_between_now_and(const Queue& queue, Tick deadline) {
  return queue.next_wakeup() > queue.now() && queue.next_wakeup() <= deadline;
}

template <class Case>
class TimerQueueContract : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueContract, EveryQueue, QueueNames);

TYPED_TEST(TimerQueueContract, StartsEmptyAtTheGivenTick) {
  const auto queue = TypeParam::make(7);
  EXPECT_EQ(queue->now(), 7u);
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(queue->size(), 0u);
  EXPECT_EQ(queue->next_wakeup(), std::nullopt);
  queue->check_invariants();
}

TYPED_TEST(TimerQueueContract, FiresAtItsDeadlineAndNotBefore) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  EXPECT_TRUE(queue->schedule(timer, 1'000));
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(timer.deadline(), 1'000u);

  EXPECT_EQ(count_fired(*queue, 999), 0u);
  EXPECT_EQ(count_fired(*queue, 1'000), 1u);
  EXPECT_FALSE(timer.is_pending());
  EXPECT_TRUE(queue->empty());
}

TYPED_TEST(TimerQueueContract, FiresOnce) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 10);
  EXPECT_EQ(count_fired(*queue, 10), 1u);
  EXPECT_EQ(count_fired(*queue, 100'000), 0u);
}

TYPED_TEST(TimerQueueContract, DeadlineAtOrBeforeNowFiresAtTheNextAdvance) {
  auto queue = TypeParam::make(100);
  TimerOf<TypeParam> now;
  TimerOf<TypeParam> past;
  queue->schedule(now, 100);
  queue->schedule(past, 3);

  EXPECT_EQ(queue->next_wakeup(), 100u);
  EXPECT_EQ(deadlines_fired(*queue, 100), (std::vector<Tick>{3, 100}));
}

TYPED_TEST(TimerQueueContract, FiresInDeadlineOrder) {
  auto queue = TypeParam::make(1'000);
  const std::array<Tick, 8> deadlines{7'000, 1'001, 5'000, 999, 9'000, 0, 1'064, 1'000};
  std::array<TimerOf<TypeParam>, 8> timers;
  for (std::size_t i = 0; i < timers.size(); ++i) queue->schedule(timers[i], deadlines[i]);

  EXPECT_EQ(deadlines_fired(*queue, 10'000),
            (std::vector<Tick>{0, 999, 1'000, 1'001, 1'064, 5'000, 7'000, 9'000}));
}

// Half of the timers are scheduled long before the deadline and half at the tick before it. So
// wheels keep the two halves in different places.
template <class Case>
std::vector<std::ptrdiff_t> order_of_equal_deadlines() {
  constexpr Tick kDeadline = 7'000;
  auto queue = Case::make(0);
  std::array<TimerOf<Case>, 50> timers;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (i == timers.size() / 2) count_fired(*queue, kDeadline - 1);
    queue->schedule(timers[i], kDeadline);
  }
  std::vector<std::ptrdiff_t> order;
  queue->advance(kDeadline, [&](auto& timer) { order.push_back(&timer - timers.data()); });
  return order;
}

TYPED_TEST(TimerQueueContract, EqualDeadlinesFireInTheSameOrderInEveryRun) {
  std::vector<std::ptrdiff_t> order = order_of_equal_deadlines<TypeParam>();
  EXPECT_EQ(order.size(), 50u);
  EXPECT_EQ(order, order_of_equal_deadlines<TypeParam>());

  const bool as_scheduled = std::is_sorted(order.begin(), order.end());
  EXPECT_TRUE(as_scheduled || !TypeParam::kNature.keeps_schedule_order);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(std::adjacent_find(order.begin(), order.end()), order.end()) << "each fires once";
}

TYPED_TEST(TimerQueueContract, ScheduleOfAPendingTimerMovesIt) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 50);
  queue->schedule(timer, 500);
  EXPECT_EQ(queue->size(), 1u);
  EXPECT_EQ(count_fired(*queue, 499), 0u);

  queue->schedule(timer, 5'000);
  queue->schedule(timer, 600);
  EXPECT_TRUE(wakes_between_now_and(*queue, 600u));
  EXPECT_EQ(count_fired(*queue, 600), 1u);
}

TYPED_TEST(TimerQueueContract, ScheduleMovesToThePastAndBack) {
  auto queue = TypeParam::make(100);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 5'000);
  queue->schedule(timer, 1);
  queue->schedule(timer, 5'000);
  EXPECT_EQ(count_fired(*queue, 4'999), 0u);
  EXPECT_EQ(count_fired(*queue, 5'000), 1u);
}

TYPED_TEST(TimerQueueContract, CancelReturnsWhetherItWasPending) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  EXPECT_FALSE(queue->cancel(timer));
  queue->schedule(timer, 10);
  EXPECT_TRUE(queue->cancel(timer));
  EXPECT_FALSE(timer.is_pending());
  EXPECT_FALSE(queue->cancel(timer));
  EXPECT_EQ(queue->next_wakeup(), std::nullopt);
  EXPECT_EQ(count_fired(*queue, 100), 0u);

  queue->schedule(timer, 200);
  EXPECT_EQ(count_fired(*queue, 200), 1u);
  EXPECT_FALSE(queue->cancel(timer)) << "it has fired";
}

TYPED_TEST(TimerQueueContract, TimerKnowsItsDeadlineWhilePendingAndOnceFired) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  EXPECT_EQ(timer.deadline(), 0u);
  queue->schedule(timer, 300);
  EXPECT_EQ(timer.deadline(), 300u);
  queue->postpone(timer, 400);
  EXPECT_EQ(timer.deadline(), 400u);
  queue->schedule(timer, 100);
  queue->advance(200, [](auto& fired) { EXPECT_EQ(fired.deadline(), 100u); });
  EXPECT_EQ(timer.deadline(), 100u);
}

TYPED_TEST(TimerQueueContract, CancelOfAnOverdueTimerStopsIt) {
  auto queue = TypeParam::make(100);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 50);
  EXPECT_TRUE(queue->cancel(timer));
  EXPECT_EQ(queue->next_wakeup(), std::nullopt);
  EXPECT_EQ(count_fired(*queue, 200), 0u);
}

TYPED_TEST(TimerQueueContract, PostponeToLaterFiresAtTheLaterDeadlineOnly) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 100);
  queue->postpone(timer, 150);
  queue->postpone(timer, 8'000);
  EXPECT_EQ(timer.deadline(), 8'000u);
  EXPECT_EQ(queue->size(), 1u);

  EXPECT_EQ(count_fired(*queue, 7'999), 0u);
  EXPECT_EQ(deadlines_fired(*queue, 16'000), std::vector<Tick>{8'000});
}

TYPED_TEST(TimerQueueContract, PostponedTimerKeepsItsPlaceInDeadlineOrder) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> postponed;
  TimerOf<TypeParam> other;
  queue->schedule(postponed, 10);
  queue->schedule(other, 15);
  queue->postpone(postponed, 20);
  EXPECT_EQ(deadlines_fired(*queue, 30), (std::vector<Tick>{15, 20}));
}

TYPED_TEST(TimerQueueContract, PostponeWithAnEarlierDeadlineBehavesLikeSchedule) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 8'000);
  queue->postpone(timer, 40);
  EXPECT_TRUE(wakes_between_now_and(*queue, 40u));
  EXPECT_EQ(count_fired(*queue, 40), 1u);
}

TYPED_TEST(TimerQueueContract, PostponeOfATimerThatIsNotPendingSchedulesIt) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->postpone(timer, 40);
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(count_fired(*queue, 39), 0u);
  EXPECT_EQ(count_fired(*queue, 40), 1u);
}

TYPED_TEST(TimerQueueContract, PostponeOfAnOverdueTimer) {
  auto queue = TypeParam::make(1'000);
  TimerOf<TypeParam> still_overdue;
  TimerOf<TypeParam> later;
  queue->schedule(still_overdue, 10);
  queue->schedule(later, 10);
  queue->postpone(still_overdue, 900);
  queue->postpone(later, 1'001);
  queue->check_invariants();
  EXPECT_EQ(deadlines_fired(*queue, 1'000), std::vector<Tick>{900});
  EXPECT_EQ(deadlines_fired(*queue, 1'001), std::vector<Tick>{1'001});
}

TYPED_TEST(TimerQueueContract, PostponedOverdueTimerNoLongerAsksToBeFired) {
  auto queue = TypeParam::make(1'000);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 10);
  EXPECT_EQ(queue->next_wakeup(), 1'000u);
  queue->postpone(timer, 1'010);
  EXPECT_TRUE(wakes_between_now_and(*queue, 1'010u));
}

TYPED_TEST(TimerQueueContract, DestroyingATimerCancelsIt) {
  auto queue = TypeParam::make(0);
  auto far = std::make_unique<TimerOf<TypeParam>>();
  auto overdue = std::make_unique<TimerOf<TypeParam>>();
  queue->schedule(*far, 8'000);
  queue->schedule(*overdue, 0);
  far.reset();
  EXPECT_EQ(queue->size(), 1u);
  overdue.reset();
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(queue->next_wakeup(), std::nullopt);
  EXPECT_EQ(count_fired(*queue, 9'000), 0u);
  queue->check_invariants();
}

TYPED_TEST(TimerQueueContract, TimersMayOutliveTheQueue) {
  std::array<TimerOf<TypeParam>, 3> timers;
  {
    auto queue = TypeParam::make(10);
    queue->schedule(timers[0], 5);
    queue->schedule(timers[1], 11);
    queue->schedule(timers[2], 8'000);
  }
  for (const auto& timer : timers) EXPECT_FALSE(timer.is_pending());

  auto next = TypeParam::make(0);
  for (auto& timer : timers) next->schedule(timer, 1);
  EXPECT_EQ(count_fired(*next, 1), 3u);
}

TYPED_TEST(TimerQueueContract, TimersMayOutliveAQueueThatStoppedAtItsLimit) {
  std::array<TimerOf<TypeParam>, 6> timers;
  {
    auto queue = TypeParam::make(10);
    for (auto& timer : timers) queue->schedule(timer, 5);
    EXPECT_TRUE(queue->advance(20, kIgnore, 3).more);
  }
  for (const auto& timer : timers) EXPECT_FALSE(timer.is_pending());
}

TYPED_TEST(TimerQueueContract, AdvanceToAnEarlierTickCountsAsNow) {
  auto queue = TypeParam::make(100);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 60);
  EXPECT_EQ(count_fired(*queue, 5), 1u);
  EXPECT_EQ(queue->now(), 100u);
}

TYPED_TEST(TimerQueueContract, SizeCountsPendingTimers) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 4> timers;
  for (Tick i = 0; i < timers.size(); ++i) queue->schedule(timers[i], i * 1'000);
  EXPECT_EQ(queue->size(), 4u);
  EXPECT_FALSE(queue->empty());
  queue->cancel(timers[3]);
  EXPECT_EQ(queue->size(), 3u);
  EXPECT_EQ(count_fired(*queue, 1'000), 2u);
  EXPECT_EQ(queue->size(), 1u);
}

TYPED_TEST(TimerQueueContract, RefusesTimersOfAnotherQueue) {
  auto queue = TypeParam::make(0);
  auto other = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 10);
  EXPECT_DEATH(other->schedule(timer, 20), "check failed");
  EXPECT_DEATH(other->postpone(timer, 20), "check failed");
  EXPECT_DEATH(other->cancel(timer), "check failed");

  EXPECT_TRUE(queue->cancel(timer));
  EXPECT_TRUE(other->schedule(timer, 20));
  EXPECT_EQ(count_fired(*other, 20), 1u);
}

}  // namespace
}  // namespace detent

// The contract of TimerWheel, sentence by sentence; callbacks, limits, the range of ticks and the
// comparison with a model have files of their own.
#include "detent/timer_wheel.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace detent {
namespace {

struct Numbered : Timer {
  explicit Numbered(int n = 0) : number(n) {}
  int number;
};

std::vector<Tick> deadlines_fired(TimerWheel& wheel, Tick now) {
  std::vector<Tick> deadlines;
  wheel.advance(now, [&](Timer& timer) { deadlines.push_back(timer.deadline()); });
  wheel.check_invariants();
  return deadlines;
}

std::size_t count_fired(TimerWheel& wheel, Tick now) {
  return wheel.advance(now, [](Timer&) {}).fired;
}

TEST(TimerWheel, StartsEmptyAtTheGivenTick) {
  const TimerWheel wheel(7);
  EXPECT_EQ(wheel.now(), 7u);
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.check_invariants();
}

TEST(TimerWheel, FiresAtItsDeadlineAndNotBefore) {
  TimerWheel wheel;
  Timer timer;
  EXPECT_TRUE(wheel.schedule(timer, 1'000));
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(timer.deadline(), 1'000u);

  EXPECT_EQ(count_fired(wheel, 999), 0u);
  EXPECT_EQ(count_fired(wheel, 1'000), 1u);
  EXPECT_FALSE(timer.is_pending());
  EXPECT_TRUE(wheel.empty());
}

TEST(TimerWheel, FiresOnce) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 10);
  EXPECT_EQ(count_fired(wheel, 10), 1u);
  EXPECT_EQ(count_fired(wheel, 100'000), 0u);
}

TEST(TimerWheel, DeadlineAtOrBeforeNowFiresAtTheNextAdvance) {
  TimerWheel wheel(100);
  Timer now;
  Timer past;
  wheel.schedule(now, 100);
  wheel.schedule(past, 3);

  EXPECT_EQ(wheel.next_wakeup(), 100u);
  EXPECT_EQ(deadlines_fired(wheel, 100), (std::vector<Tick>{3, 100}));
}

TEST(TimerWheel, FiresInDeadlineOrder) {
  TimerWheel wheel(1'000);
  const std::array<Tick, 8> deadlines{70'000, 1'001, 5'000, 999, 5'000'000, 0, 1'064, 1'000};
  std::array<Timer, 8> timers;
  for (std::size_t i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], deadlines[i]);

  EXPECT_EQ(deadlines_fired(wheel, 10'000'000),
            (std::vector<Tick>{0, 999, 1'000, 1'001, 1'064, 5'000, 70'000, 5'000'000}));
}

TEST(TimerWheel, EqualDeadlinesFireInTheSameOrderInEveryRun) {
  std::vector<std::vector<int>> runs(2);
  for (std::vector<int>& order : runs) {
    TimerWheel wheel;
    std::array<Numbered, 50> timers;
    for (int i = 0; i < 50; ++i) {
      timers[static_cast<std::size_t>(i)].number = i;
      wheel.schedule(timers[static_cast<std::size_t>(i)], 70'000);
      if (i == 25) wheel.advance(69'999, [](Timer&) {});
    }
    wheel.advance(70'000,
                  [&](Timer& timer) { order.push_back(static_cast<Numbered&>(timer).number); });
  }
  EXPECT_EQ(runs[0].size(), 50u);
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(TimerWheel, ScheduleOfAPendingTimerMovesIt) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 50);
  wheel.schedule(timer, 500);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(count_fired(wheel, 499), 0u);

  wheel.schedule(timer, 5'000);
  wheel.schedule(timer, 600);
  EXPECT_EQ(wheel.next_wakeup(), 600u);
  EXPECT_EQ(count_fired(wheel, 600), 1u);
}

TEST(TimerWheel, ScheduleMovesToThePastAndBack) {
  TimerWheel wheel(100);
  Timer timer;
  wheel.schedule(timer, 5'000);
  wheel.schedule(timer, 1);
  wheel.schedule(timer, 5'000);
  EXPECT_EQ(count_fired(wheel, 4'999), 0u);
  EXPECT_EQ(count_fired(wheel, 5'000), 1u);
}

TEST(TimerWheel, CancelTellsWhetherItWasPending) {
  TimerWheel wheel;
  Timer timer;
  EXPECT_FALSE(wheel.cancel(timer));
  wheel.schedule(timer, 10);
  EXPECT_TRUE(wheel.cancel(timer));
  EXPECT_FALSE(timer.is_pending());
  EXPECT_FALSE(wheel.cancel(timer));
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  EXPECT_EQ(count_fired(wheel, 100), 0u);

  wheel.schedule(timer, 200);
  EXPECT_EQ(count_fired(wheel, 200), 1u);
  EXPECT_FALSE(wheel.cancel(timer)) << "it has fired";
}

TEST(TimerWheel, CancelOfAnOverdueTimerStopsIt) {
  TimerWheel wheel(100);
  Timer timer;
  wheel.schedule(timer, 50);
  EXPECT_TRUE(wheel.cancel(timer));
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  EXPECT_EQ(count_fired(wheel, 200), 0u);
}

TEST(TimerWheel, PostponeToLaterFiresAtTheLaterDeadlineOnly) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 100);
  wheel.postpone(timer, 150);
  wheel.postpone(timer, 10'000);
  EXPECT_EQ(timer.deadline(), 10'000u);
  EXPECT_EQ(wheel.size(), 1u);

  EXPECT_EQ(count_fired(wheel, 9'999), 0u);
  EXPECT_EQ(deadlines_fired(wheel, 20'000), std::vector<Tick>{10'000});
}

TEST(TimerWheel, PostponedTimerKeepsItsPlaceInDeadlineOrder) {
  TimerWheel wheel;
  Timer postponed;
  Timer other;
  wheel.schedule(postponed, 10);
  wheel.schedule(other, 15);
  wheel.postpone(postponed, 20);
  EXPECT_EQ(deadlines_fired(wheel, 30), (std::vector<Tick>{15, 20}));
}

TEST(TimerWheel, PostponeWithAnEarlierDeadlineBehavesLikeSchedule) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 10'000);
  wheel.postpone(timer, 40);
  EXPECT_EQ(wheel.next_wakeup(), 40u);
  EXPECT_EQ(count_fired(wheel, 40), 1u);
}

TEST(TimerWheel, PostponeOfATimerThatIsNotPendingSchedulesIt) {
  TimerWheel wheel;
  Timer timer;
  wheel.postpone(timer, 40);
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(count_fired(wheel, 39), 0u);
  EXPECT_EQ(count_fired(wheel, 40), 1u);
}

TEST(TimerWheel, PostponeOfAnOverdueTimer) {
  TimerWheel wheel(1'000);
  Timer still_overdue;
  Timer later;
  wheel.schedule(still_overdue, 10);
  wheel.schedule(later, 10);
  wheel.postpone(still_overdue, 900);
  wheel.postpone(later, 1'001);
  wheel.check_invariants();
  EXPECT_EQ(deadlines_fired(wheel, 1'000), std::vector<Tick>{900});
  EXPECT_EQ(deadlines_fired(wheel, 1'001), std::vector<Tick>{1'001});
}

TEST(TimerWheel, PostponedOverdueTimerNoLongerAsksToBeFired) {
  TimerWheel wheel(1'000);
  Timer timer;
  wheel.schedule(timer, 10);
  EXPECT_EQ(wheel.next_wakeup(), 1'000u);
  wheel.postpone(timer, 1'010);
  EXPECT_EQ(wheel.next_wakeup(), 1'010u);
}

TEST(TimerWheel, DestroyingATimerCancelsIt) {
  TimerWheel wheel;
  auto far = std::make_unique<Timer>();
  auto overdue = std::make_unique<Timer>();
  wheel.schedule(*far, 100'000);
  wheel.schedule(*overdue, 0);
  far.reset();
  EXPECT_EQ(wheel.size(), 1u);
  overdue.reset();
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  EXPECT_EQ(count_fired(wheel, 200'000), 0u);
  wheel.check_invariants();
}

TEST(TimerWheel, TimersMayOutliveTheWheel) {
  std::array<Timer, 3> timers;
  {
    TimerWheel wheel(10);
    wheel.schedule(timers[0], 5);
    wheel.schedule(timers[1], 11);
    wheel.schedule(timers[2], Tick{1} << 63);
  }
  for (const Timer& timer : timers) EXPECT_FALSE(timer.is_pending());

  TimerWheel next;
  for (Timer& timer : timers) next.schedule(timer, 1);
  EXPECT_EQ(count_fired(next, 1), 3u);
}

TEST(TimerWheel, TimersMayOutliveAWheelThatStoppedAtItsLimit) {
  std::array<Timer, 6> timers;
  {
    TimerWheel wheel(10);
    for (Timer& timer : timers) wheel.schedule(timer, 5);
    EXPECT_TRUE(wheel
                    .advance(
                        20, [](Timer&) {}, 9)
                    .more);
  }
  for (const Timer& timer : timers) EXPECT_FALSE(timer.is_pending());
}

TEST(TimerWheel, AdvanceToAnEarlierTickCountsAsNow) {
  TimerWheel wheel(100);
  Timer timer;
  wheel.schedule(timer, 60);
  EXPECT_EQ(count_fired(wheel, 5), 1u);
  EXPECT_EQ(wheel.now(), 100u);
}

TEST(TimerWheel, SizeCountsWhatIsPending) {
  TimerWheel wheel;
  std::array<Timer, 4> timers;
  for (Tick i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], i * 1'000);
  EXPECT_EQ(wheel.size(), 4u);
  EXPECT_FALSE(wheel.empty());
  wheel.cancel(timers[3]);
  EXPECT_EQ(wheel.size(), 3u);
  EXPECT_EQ(count_fired(wheel, 1'000), 2u);
  EXPECT_EQ(wheel.size(), 1u);
}

TEST(TimerWheel, CountsAsItsTimersOwnWheelOnly) {
  TimerWheel wheel;
  TimerWheel other;
  Timer timer;
  wheel.schedule(timer, 10);
  EXPECT_DEATH(other.schedule(timer, 20), "check failed");
  EXPECT_DEATH(other.postpone(timer, 20), "check failed");
  EXPECT_DEATH(other.cancel(timer), "check failed");

  EXPECT_TRUE(wheel.cancel(timer));
  EXPECT_TRUE(other.schedule(timer, 20));
  EXPECT_EQ(count_fired(other, 20), 1u);
}

}  // namespace
}  // namespace detent

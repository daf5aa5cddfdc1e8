// Periodic timers: rate without drift, count, missed ticks, jobs that throw.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "detent/scheduler.h"
#include "detent/timer_group.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using Times = std::vector<MonotonicTime>;

constexpr MonotonicTime at(std::chrono::nanoseconds since_start) {
  return MonotonicTime{since_start};
}

TEST(SchedulerPeriodic, RunsEveryPeriodFromTheFirstOn) {
  SchedulerRig rig;
  Times runs;
  const TimerHandle timer =
      rig.scheduler().schedule_every({.period = 10ms}, [&] { runs.push_back(rig.clock().now()); });
  for (int i = 0; i < 35; ++i) rig.advance(1ms);
  EXPECT_EQ(runs, (Times{at(10ms), at(20ms), at(30ms)}));
}

TEST(SchedulerPeriodic, ACountOfNRunsNTimes) {
  for (const std::uint64_t count : {1u, 2u, 3u, 7u}) {
    SchedulerRig rig;
    std::uint64_t runs = 0;
    int alive = 0;
    const TimerHandle timer = rig.scheduler().schedule_every(
        {.period = 1s, .count = count}, [&runs, token = LifeToken(alive)] { ++runs; });
    for (int i = 0; i < 20; ++i) rig.advance(1s);
    EXPECT_EQ(runs, count);
    EXPECT_EQ(alive, 0) << "the job goes with its last run";
    EXPECT_EQ(rig.scheduler().stats().completed, 1u);
  }
}

TEST(SchedulerPeriodic, AJobMayEndItsTimerAndThatRunIsTheLast) {
  SchedulerRig rig;
  int runs = 0;
  int alive = 0;
  const TimerHandle timer = rig.scheduler().schedule_every(
      {.period = 1s}, [&runs, token = LifeToken(alive)](TimerContext& context) {
        if (++runs < 3) return;
        context.stop();
        context.stop();
      });
  for (int i = 0; i < 5; ++i) rig.advance(1s);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(alive, 0) << "the job goes with its last run";
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
}

TEST(SchedulerPeriodic, AJobEndsItsOwnTimerAndNoOther) {
  SchedulerRig rig({.shards = 1});
  std::vector<int> runs(3);
  std::vector<TimerHandle> timers;
  for (int& count : runs) {
    timers.push_back(rig.scheduler().schedule_every({.period = 1s}, [&](TimerContext& context) {
      ++count;
      if (&count == &runs[1]) context.stop();
    }));
  }
  for (int i = 0; i < 3; ++i) rig.advance(1s);
  EXPECT_EQ(runs, (std::vector{3, 1, 3}));
}

TEST(SchedulerPeriodic, AGenericCallableIsCalledWithoutAContext) {
  SchedulerRig rig;
  int runs = 0;
  const auto job = [&runs](auto&&... arguments) {
    static_assert(sizeof...(arguments) == 0);
    ++runs;
  };
  const TimerHandle timer = rig.scheduler().schedule_every({.period = 1s}, job);
  rig.advance(1s);
  EXPECT_EQ(runs, 1);
}

TEST(SchedulerPeriodic, AJobOfAGroupMayEndItsTimer) {
  SchedulerRig rig;
  TimerGroup group(rig.scheduler());
  int runs = 0;
  const TimerHandle timer = group.schedule_every({.period = 1s}, [&](TimerContext& context) {
    ++runs;
    context.stop();
  });
  for (int i = 0; i < 3; ++i) rig.advance(1s);
  EXPECT_EQ(runs, 1);
}

TEST(SchedulerPeriodic, AJobThatWasHandedBackHasNoTimerToEnd) {
  SchedulerRig rig;
  int runs = 0;
  rig.scheduler()
      .schedule_every({.period = 1s},
                      [&](TimerContext& context) {
                        ++runs;
                        context.stop();
                      })
      .release();
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 1u);
  left[0].job();
  SchedulerRig other;
  const TimerHandle timer =
      other.scheduler().schedule_every({.period = 1s}, std::move(left[0].job));
  for (int i = 0; i < 3; ++i) other.advance(1s);
  EXPECT_EQ(runs, 2) << "it ends its new timer";
}

TEST(SchedulerPeriodic, AJobThatWasHandedBackDoesNotEndTheTimerThatCallsIt) {
  SchedulerRig rig;
  rig.scheduler()
      .schedule_every({.period = 1s}, [](TimerContext& context) { context.stop(); })
      .release();
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 1u);
  SchedulerRig other;
  int runs = 0;
  const TimerHandle timer = other.scheduler().schedule_every({.period = 1s}, [&] {
    ++runs;
    left[0].job();
  });
  for (int i = 0; i < 3; ++i) other.advance(1s);
  EXPECT_EQ(runs, 3);
}

// Every run begins 3 ms late and takes 2 ms. The thousandth run must still be due after 1000
// periods.
TEST(SchedulerPeriodic, DoesNotDrift) {
  SchedulerRig rig;
  std::uint64_t runs = 0;
  const TimerHandle timer = rig.scheduler().schedule_every({.period = 10ms}, [&] {
    ++runs;
    rig.clock().advance(2ms);
  });
  rig.advance(3ms);
  for (int i = 0; i < 1000; ++i) rig.advance(8ms);  // a round takes 10 ms with the 2 ms of the job
  EXPECT_EQ(runs, 1000u);
  EXPECT_EQ(rig.clock().now(), at(3ms + 10s));
}

TEST(SchedulerPeriodic, OneRunReplacesTheTicksOfAJump) {
  for (const MissedTick missed : {MissedTick::coalesce, MissedTick::skip}) {
    SchedulerRig rig;
    Times runs;
    const TimerHandle timer = rig.scheduler().schedule_every(
        {.period = 10ms, .missed = missed}, [&] { runs.push_back(rig.clock().now()); });
    rig.advance(55ms);
    EXPECT_EQ(runs, (Times{at(55ms)}));
    rig.advance(5ms - 1ns);
    EXPECT_EQ(runs.size(), 1u);
    rig.advance(1ns);
    EXPECT_EQ(runs, (Times{at(55ms), at(60ms)})) << "in phase again";
  }
}

/// The runs until 60 ms, with a period of 10 ms and a first run that takes `takes`.
Times runs_after_a_slow_one(MissedTick missed, std::chrono::nanoseconds takes) {
  SchedulerRig rig;
  Times runs;
  const TimerHandle timer = rig.scheduler().schedule_every({.period = 10ms, .missed = missed}, [&] {
    runs.push_back(rig.clock().now());
    if (runs.size() == 1) rig.clock().advance(takes);
  });
  rig.advance(10ms);
  while (rig.clock().now() < at(60ms)) rig.advance(1ms);
  return runs;
}

TEST(SchedulerPeriodic, OneImmediateRunReplacesTicksMissedByASlowRun) {
  EXPECT_EQ(runs_after_a_slow_one(MissedTick::coalesce, 25ms),
            (Times{at(10ms), at(35ms), at(40ms), at(50ms), at(60ms)}));
}

TEST(SchedulerPeriodic, TicksMissedByASlowRunAreSkippedOnRequest) {
  EXPECT_EQ(runs_after_a_slow_one(MissedTick::skip, 25ms),
            (Times{at(10ms), at(40ms), at(50ms), at(60ms)}));
}

TEST(SchedulerPeriodic, ATickThatFallsOnTheEndOfASlowRunIsNotMissed) {
  for (const MissedTick missed : {MissedTick::coalesce, MissedTick::skip}) {
    EXPECT_EQ(runs_after_a_slow_one(missed, 20ms),
              (Times{at(10ms), at(30ms), at(40ms), at(50ms), at(60ms)}));
  }
}

TEST(SchedulerPeriodic, ContinuesAfterARunThatThrows) {
  int caught = 0;
  SchedulerRig rig({.error_handler = [&](std::exception_ptr) { ++caught; }});
  int runs = 0;
  const TimerHandle timer = rig.scheduler().schedule_every({.period = 1ms, .count = 3}, [&] {
    ++runs;
    throw std::runtime_error("each time");
  });
  for (int i = 0; i < 10; ++i) rig.advance(1ms);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(caught, 3);
}

TEST(SchedulerPeriodic, CancelInsideItsOwnJobEndsIt) {
  SchedulerRig rig;
  TimerHandle timer;
  int runs = 0;
  timer = rig.scheduler().schedule_every({.period = 1ms}, [&] {
    ++runs;
    if (runs < 2) return;
    EXPECT_EQ(timer.cancel(), CancelResult::running);
  });
  for (int i = 0; i < 5; ++i) rig.advance(1ms);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
}

TEST(SchedulerPeriodic, CancelBetweenRunsEndsIt) {
  SchedulerRig rig;
  int runs = 0;
  TimerHandle timer = rig.scheduler().schedule_every({.period = 1ms}, [&] { ++runs; });
  rig.advance(1ms);
  EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
  rig.advance(10ms);
  EXPECT_EQ(runs, 1);
}

TEST(SchedulerPeriodic, ExpiresAfterShiftsItsPhase) {
  SchedulerRig rig;
  Times runs;
  TimerHandle timer =
      rig.scheduler().schedule_every({.period = 10ms}, [&] { runs.push_back(rig.clock().now()); });
  rig.advance(4ms);
  EXPECT_TRUE(timer.expires_after(10ms));
  for (int i = 0; i < 30; ++i) rig.advance(1ms);
  EXPECT_EQ(runs, (Times{at(14ms), at(24ms), at(34ms)}));
}

TEST(SchedulerPeriodic, APeriodLongerThanTimeNeverRuns) {
  SchedulerRig rig;
  int runs = 0;
  const TimerHandle timer =
      rig.scheduler().schedule_every({.period = std::chrono::nanoseconds::max()}, [&] { ++runs; });
  rig.advance(100 * 365 * 24h);
  EXPECT_EQ(runs, 0);
}

TEST(SchedulerPeriodicDeathTest, APeriodOfZeroIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SchedulerRig rig;
        const TimerHandle timer = rig.scheduler().schedule_every({.period = 0ms}, [] {});
      },
      "options.period > ");
}

}  // namespace
}  // namespace detent

// Recurring timers: dates, count, start and end, jitter, missed occurrences, overlap, and the end
// of a timer. scheduler_recurring_clock_test.cc tests steps of the wall clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/recurring_test_rig.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using Runs = std::vector<OccurrenceRun>;

TEST(SchedulerRecurring, RunsOnEachDateOfTheRuleAndPassesIt) {
  RecurringRig rig;
  rig.simulation().run_for(5min);
  const TimerHandle timer = rig.every(1h);
  rig.simulation().run_for(3h);
  EXPECT_EQ(rig.runs(), (Runs{{1h, 1h}, {2h, 2h}, {3h, 3h}}));
}

TEST(SchedulerRecurring, ADateThatIsNowHasPassed) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h);
  rig.simulation().run_for(1h);
  EXPECT_EQ(rig.runs(), (Runs{{1h, 1h}}));
}

TEST(SchedulerRecurring, AJobMayEndItsTimer) {
  RecurringRig rig;
  int dated = 0;
  int undated = 0;
  const TimerHandle one =
      rig.scheduler().schedule_on(Every{1h}, [&](TimerContext& context, WallTime) {
        if (++dated == 2) context.stop();
      });
  const TimerHandle other = rig.scheduler().schedule_on(Every{1h}, [&](TimerContext& context) {
    ++undated;
    context.stop();
  });
  rig.simulation().run_for(5h);
  EXPECT_EQ(dated, 2);
  EXPECT_EQ(undated, 1);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 2u);
}

/// Not a lambda: clang 14 crashes on a lambda whose requires clause names its parameters.
struct CountsOnlyWithoutArguments {
  int* runs;
  template <class... Arguments>
  requires(sizeof...(Arguments) == 0) void operator()(Arguments...) const { ++*runs; }
};

// Each of these callables would also compile as a job of another form, or would not compile if it
// were asked for its form.
TEST(SchedulerRecurring, AGenericCallableGetsTheDate) {
  RecurringRig rig;
  int runs = 0;
  std::vector<TimerHandle> timers;
  const auto schedule = [&](RecurringJob job) {
    timers.push_back(rig.scheduler().schedule_on(Every{1h}, std::move(job), {.count = 1}));
  };
  schedule(std::bind([&runs] { ++runs; }));  // NOLINT(modernize-avoid-bind): users may pass one
  schedule([&runs](auto&&... arguments) { runs += static_cast<int>(sizeof...(arguments)); });
  schedule([&runs](const auto& when) {
    if (when == RecurringRig::at(1h)) ++runs;
  });
  schedule(CountsOnlyWithoutArguments{&runs});
  rig.simulation().run_for(1h);
  EXPECT_EQ(runs, 4);
}

TEST(SchedulerRecurring, AJobThatWasHandedBackDoesNotEndTheTimerThatCallsIt) {
  RecurringRig rig;
  const TimerHandle timer =
      rig.scheduler().schedule_on(Every{1h}, [](TimerContext& context) { context.stop(); });
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 1u);
  RecurringRig other;
  int runs = 0;
  const TimerHandle caller = other.scheduler().schedule_on(Every{1h}, [&] {
    ++runs;
    left[0].job();
  });
  other.simulation().run_for(3h);
  EXPECT_EQ(runs, 3);
}

TEST(SchedulerRecurring, AJobMayTakeNoDateAndARuleMayBeALambda) {
  RecurringRig rig;
  int runs = 0;
  const TimerHandle timer = rig.scheduler().schedule_on(
      [](WallTime time) -> std::optional<WallTime> {
        return time < RecurringRig::at(2h) ? std::optional(time + 1h) : std::nullopt;
      },
      [&runs] { ++runs; });
  rig.simulation().run_for(24h);
  EXPECT_EQ(runs, 2);
}

TEST(SchedulerRecurring, ACountOfNRunsNTimes) {
  for (const std::uint64_t count : {1u, 2u, 7u}) {
    RecurringRig rig;
    int alive = 0;
    std::uint64_t runs = 0;
    const TimerHandle timer = rig.scheduler().schedule_on(
        Every{1h}, [&runs, token = LifeToken(alive)] { ++runs; }, {.count = count});
    rig.simulation().run_for(20h);
    EXPECT_EQ(runs, count);
    EXPECT_EQ(alive, 0) << "the job goes with its last run";
    EXPECT_EQ(rig.scheduler().stats().completed, 1u);
    EXPECT_EQ(rig.scheduler().stats().runs, count);
  }
}

TEST(SchedulerRecurring, StartAndEndAreOccurrencesThemselves) {
  RecurringRig rig;
  const TimerHandle timer =
      rig.every(1h, {.start = RecurringRig::at(3h), .end = RecurringRig::at(5h)});
  rig.simulation().run_for(24h);
  EXPECT_EQ(rig.runs(), (Runs{{3h, 3h}, {4h, 4h}, {5h, 5h}}));
  EXPECT_FALSE(timer.is_pending());
  EXPECT_EQ(rig.scheduler().stats().completed, 1u);
}

TEST(SchedulerRecurring, AStartInThePastRunsNoPastOccurrences) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h, {.start = RecurringRig::at(-10h)});
  rig.simulation().run_for(90min);
  EXPECT_EQ(rig.runs(), (Runs{{1h, 1h}}));
}

TEST(SchedulerRecurring, WithoutAFutureDateTheHandleIsEmpty) {
  RecurringRig rig;
  int alive = 0;
  const TimerHandle timer = rig.scheduler().schedule_on(Every{1h}, [token = LifeToken(alive)] {},
                                                        {.end = RecurringRig::at(30min)});
  EXPECT_FALSE(timer);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().stats().scheduled, 0u);
}

// ---- jitter -------------------------------------------------------------------------------------

TEST(SchedulerRecurring, JitterDelaysAllRunsByOneOffsetWithinItsBounds) {
  std::set<std::chrono::milliseconds> offsets;
  for (int i = 0; i < 100; ++i) {
    RecurringRig rig;
    const std::string key = "host " + std::to_string(i);
    const RecurringOptions options{.jitter = 10min, .jitter_key = key};
    const TimerHandle timer = rig.every(1h, options);
    const TimerHandle twin = rig.every(1h, options);
    rig.simulation().run_for(3h);
    ASSERT_GE(rig.runs().size(), 6u);
    const auto offset = rig.runs()[0].ran_at - rig.runs()[0].occurrence;
    EXPECT_GE(offset, 0ms);
    EXPECT_LT(offset, 10min);
    for (const OccurrenceRun& run : rig.runs()) EXPECT_EQ(run.ran_at, run.occurrence + offset);
    offsets.insert(offset);
  }
  EXPECT_GT(offsets.size(), 95u);
  EXPECT_LT(*offsets.begin(), 1min);
  EXPECT_GT(*offsets.rbegin(), 9min);
}

// A restart between the date and the delayed run must not lose the run.
TEST(SchedulerRecurring, AnOccurrenceHasNotPassedBeforeItsJitter) {
  const RecurringOptions options{.count = 1, .jitter = 10min, .jitter_key = "a"};
  RecurringRig first;
  const TimerHandle before = first.every(1h, options);
  first.simulation().run_for(2h);
  ASSERT_EQ(first.runs().size(), 1u);
  const std::chrono::milliseconds offset = first.runs()[0].ran_at;
  RecurringRig second;
  second.simulation().run_for(offset - 1ms);
  const TimerHandle after = second.every(1h, options);
  second.simulation().run_for(1ms);
  EXPECT_EQ(second.runs(), (Runs{{offset, 0ms}}));
}

TEST(SchedulerRecurring, JitterWithoutAKeyIsDrawnForEachTimer) {
  RecurringRig rig;
  std::vector<TimerHandle> timers;
  for (int i = 0; i < 20; ++i) timers.push_back(rig.every(1h, {.jitter = 10min}));
  rig.simulation().run_for(1h + 10min);
  std::set<std::chrono::milliseconds> offsets;
  for (const OccurrenceRun& run : rig.runs()) {
    EXPECT_GE(run.ran_at, run.occurrence);
    EXPECT_LT(run.ran_at, run.occurrence + 10min);
    offsets.insert(run.ran_at - run.occurrence);
  }
  EXPECT_GT(offsets.size(), 15u);
}

// ---- missed occurrences -------------------------------------------------------------------------

// The machine sleeps for six hours. It wakes at 06:30 and has missed 01:00 to 06:00.
Runs after_a_suspend(const RecurringOptions& options) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h, options);
  rig.simulation().run_for(30min);
  rig.simulation().suspend(6h);
  rig.simulation().run_for(1h);
  return rig.runs();
}

TEST(SchedulerRecurring, MissedOccurrencesRunAsThePolicySays) {
  const auto late = 6h + 30min;
  EXPECT_EQ(after_a_suspend({}), (Runs{{late, 6h}, {7h, 7h}}));
  EXPECT_EQ(after_a_suspend({.missed = MissedOccurrence::skip}), (Runs{{7h, 7h}}));
  EXPECT_EQ(
      after_a_suspend({.missed = MissedOccurrence::all}),
      (Runs{{late, 1h}, {late, 2h}, {late, 3h}, {late, 4h}, {late, 5h}, {late, 6h}, {7h, 7h}}));
  EXPECT_EQ(after_a_suspend({.missed = MissedOccurrence::all, .most_missed = 2}),
            (Runs{{late, 5h}, {late, 6h}, {7h, 7h}}));
}

TEST(SchedulerRecurring, GraceSkipsOccurrencesThatAreTooLate) {
  const auto late = 6h + 30min;
  EXPECT_EQ(after_a_suspend({.grace = 30min}), (Runs{{late, 6h}, {7h, 7h}}));
  EXPECT_EQ(after_a_suspend({.grace = 30min - 1ms}), (Runs{{7h, 7h}}));
  EXPECT_EQ(after_a_suspend({.missed = MissedOccurrence::skip, .grace = 1h}),
            (Runs{{late, 6h}, {7h, 7h}}));
  EXPECT_EQ(after_a_suspend({.missed = MissedOccurrence::all, .grace = 150min}),
            (Runs{{late, 4h}, {late, 5h}, {late, 6h}, {7h, 7h}}));
  EXPECT_EQ(after_a_suspend({.missed = MissedOccurrence::all, .grace = 1min}), (Runs{{7h, 7h}}));
}

TEST(SchedulerRecurring, ASkippedOccurrenceDoesNotCountAsARun) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h, {.count = 2, .missed = MissedOccurrence::skip});
  rig.simulation().suspend(90min);
  rig.simulation().run_for(5h);
  EXPECT_EQ(rig.runs(), (Runs{{2h, 2h}, {3h, 3h}}));
  EXPECT_EQ(rig.scheduler().stats().runs, 2u);
  EXPECT_EQ(rig.scheduler().lateness().total.count, 2u);
}

TEST(SchedulerRecurring, ALateExecutorMissesNothingWithinTheGrace) {
  RecurringRig rig({.job_delay = 50s});
  const TimerHandle timer = rig.every(1h, {.missed = MissedOccurrence::skip});
  rig.simulation().run_for(100h);
  EXPECT_GE(rig.runs().size(), 99u);
}

// ---- overlap ------------------------------------------------------------------------------------

// Occurrences each minute, and a job that takes 150 s.
Runs of_a_slow_job(RecurringOptions options) {
  RecurringRig rig;
  options.count = 3;  // more runs would keep the simulation busy forever
  const TimerHandle timer = rig.scheduler().schedule_on(Every{1min}, rig.job(150s), options);
  rig.simulation().run_for(10min);
  return rig.runs();
}

TEST(SchedulerRecurring, OccurrencesDuringARunWaitOrAreSkipped) {
  EXPECT_EQ(of_a_slow_job({}), (Runs{{60s, 60s}, {210s, 180s}, {360s, 360s}}));
  EXPECT_EQ(of_a_slow_job({.overlap = Overlap::skip}),
            (Runs{{60s, 60s}, {240s, 240s}, {420s, 420s}}));
  EXPECT_EQ(of_a_slow_job({.missed = MissedOccurrence::all}),
            (Runs{{60s, 60s}, {210s, 120s}, {360s, 180s}}));
}

TEST(SchedulerRecurring, CatchingUpIsNotAnOverlap) {
  RecurringRig rig;
  const TimerHandle timer = rig.scheduler().schedule_on(
      Every{1h}, rig.job(40min), {.missed = MissedOccurrence::all, .overlap = Overlap::skip});
  rig.simulation().suspend(3h + 30min);
  rig.simulation().run_for(4h);
  EXPECT_EQ(rig.runs(), (Runs{{210min, 1h}, {250min, 2h}, {290min, 3h}, {6h, 6h}, {7h, 7h}}));
}

TEST(SchedulerRecurring, AnOccurrenceAtTheEndOfARunDoesNotOverlap) {
  RecurringRig rig;
  const TimerHandle timer =
      rig.scheduler().schedule_on(Every{1h}, rig.job(1h), {.count = 3, .overlap = Overlap::skip});
  rig.simulation().run_for(3h);
  EXPECT_EQ(rig.runs(), (Runs{{1h, 1h}, {2h, 2h}, {3h, 3h}}));
}

// ---- the end and the reports --------------------------------------------------------------------

TEST(SchedulerRecurring, ATimerContinuesAfterItsJobThrows) {
  int errors = 0;
  Simulation simulation(1, {.scheduler = {.error_handler = [&](std::exception_ptr) { ++errors; },
                                          .wall_check = 0ns}});
  const TimerHandle timer = simulation.scheduler().schedule_on(
      Every{1h}, [] { throw std::runtime_error("no"); }, {.count = 3});
  simulation.run_for(24h);
  EXPECT_EQ(errors, 3);
  EXPECT_EQ(simulation.scheduler().stats().errors, 3u);
}

TEST(SchedulerRecurring, CancelInsideItsJobEndsIt) {
  RecurringRig rig;
  int alive = 0;
  int runs = 0;
  TimerHandle timer;
  timer = rig.scheduler().schedule_on(Every{1h}, [&, token = LifeToken(alive)] {
    ++runs;
    EXPECT_EQ(timer.cancel_and_wait(), CancelResult::running);
  });
  rig.simulation().run_for(24h);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
}

TEST(SchedulerRecurring, AHandleThatIsDroppedCancelsAndOneReleasedDoesNot) {
  RecurringRig rig;
  int alive = 0;
  {
    const TimerHandle dropped =
        rig.scheduler().schedule_on(Every{1h}, [token = LifeToken(alive)] {});
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
  rig.every(1h).release();
  rig.simulation().run_for(2h);
  EXPECT_EQ(rig.runs().size(), 2u);
}

TEST(SchedulerRecurring, StopWhileItWaitsDropsIt) {
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::run_pending}) {
    RecurringRig rig;
    int alive = 0;
    int runs = 0;
    const TimerHandle timer =
        rig.scheduler().schedule_on(Every{1h}, [&runs, token = LifeToken(alive)] { ++runs; });
    rig.simulation().run_for(90min);
    EXPECT_TRUE(rig.scheduler().stop(drain).empty());
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
    EXPECT_FALSE(rig.every(1h));
  }
}

TEST(SchedulerRecurring, StopInsideItsJobEndsIt) {
  RecurringRig rig;
  int runs = 0;
  const TimerHandle timer = rig.scheduler().schedule_on(Every{1h}, [&] {
    ++runs;
    rig.scheduler().stop();
  });
  rig.simulation().run_for(24h);
  EXPECT_EQ(runs, 1);
}

TEST(SchedulerRecurring, HandedBackItHasTheRemainingOptionsAndPassesTheNextOccurrence) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h, {.count = 5});
  rig.simulation().run_for(2h + 30min);
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].date, RecurringRig::at(3h));
  EXPECT_FALSE(left[0].periodic);
  ASSERT_TRUE(left[0].recurring);
  EXPECT_EQ(left[0].recurring->count, 3u);
  left[0].job();
  EXPECT_EQ(rig.runs().back(), (OccurrenceRun{2h + 30min, 3h}));
}

TEST(SchedulerRecurring, ADumpShowsItsNextDateAndWhoScheduledIt) {
  RecurringRig rig;
  const TimerHandle timer =
      rig.scheduler().schedule_on(Every{1h}, rig.job(), {}, {.name = "report"});
  rig.simulation().run_for(90min);
  const std::vector<TimerInfo> infos = rig.scheduler().pending_timers();
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].name, "report");
  EXPECT_EQ(infos[0].date, RecurringRig::at(2h));
  EXPECT_FALSE(infos[0].period);
  EXPECT_NE(std::string(infos[0].scheduled_at.file).find("recurring_test"), std::string::npos);
}

// ---- moving -------------------------------------------------------------------------------------

TEST(SchedulerRecurring, AMovedRunReplacesOccurrencesUntilThenAndTheRuleContinues) {
  RecurringRig rig;
  TimerHandle timer = rig.every(1h);
  EXPECT_TRUE(timer.expires_after(10min));  // instead of 01:00
  rig.simulation().run_for(30min);
  EXPECT_EQ(rig.runs(), (Runs{{10min, 1h}}));
  EXPECT_TRUE(timer.expires_at(RecurringRig::at(4h + 30min)));  // instead of 02:00
  rig.simulation().run_for(5h);
  EXPECT_EQ(rig.runs(), (Runs{{10min, 1h}, {270min, 2h}, {5h, 5h}}));
}

// ---- on threads ---------------------------------------------------------------------------------

TEST(SchedulerRecurring, CancelAndWaitWaitsForTheRun) {
  SchedulerRig rig;
  Gate begun;
  Gate go_on;
  int alive = 0;
  TimerHandle timer =
      rig.scheduler().schedule_on(Every{1h}, [&begun, &go_on, token = LifeToken(alive)] {
        begun.open();
        go_on.wait();
      });
  rig.settle();
  rig.clock().advance(1h);
  begun.wait();
  EXPECT_EQ(timer.cancel(), CancelResult::running);
  go_on.open();
  EXPECT_NE(timer.cancel_and_wait(), CancelResult::cancelled);
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace detent

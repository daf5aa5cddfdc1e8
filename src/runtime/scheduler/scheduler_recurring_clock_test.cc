// Recurring timers and the wall clock: small and huge steps forward and back, and a random test
// with clocks, sleeps and late executors. detent/recurring.h states the rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/recurring_test_rig.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using Runs = std::vector<OccurrenceRun>;

TEST(SchedulerRecurringClock, AStepForwardBringsTheNextDateNearer) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h);
  rig.simulation().run_for(10min);
  rig.simulation().step_wall(40min);
  rig.simulation().run_for(20min);
  EXPECT_EQ(rig.runs(), (Runs{{1h, 1h}}));  // 30 minutes after the start
}

TEST(SchedulerRecurringClock, AStepBackDelaysTheNextDate) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h);
  rig.simulation().run_for(50min);
  rig.simulation().step_wall(-30min);
  rig.simulation().run_for(39min);
  EXPECT_TRUE(rig.runs().empty());
  rig.simulation().run_for(1min);
  EXPECT_EQ(rig.runs(), (Runs{{1h, 1h}}));
}

TEST(SchedulerRecurringClock, AStepBackOverAnOccurrenceDoesNotRepeatIt) {
  for (const std::chrono::nanoseconds step : {10min + 0ns, 5h + 0ns, 26h + 0ns}) {
    RecurringRig rig;
    const TimerHandle timer = rig.every(1h);
    rig.simulation().run_for(30h);
    rig.simulation().step_wall(-step);
    rig.simulation().run_for(step + 1h);
    ASSERT_EQ(rig.runs().size(), 31u);
    EXPECT_EQ(rig.runs().back(), (OccurrenceRun{31h, 31h}));
  }
}

TEST(SchedulerRecurringClock, AStepForwardOverOccurrencesMissesThem) {
  RecurringRig rig;
  const TimerHandle timer = rig.every(1h);
  rig.simulation().run_for(10min);
  rig.simulation().step_wall(5h);
  rig.simulation().run_for(1h);
  EXPECT_EQ(rig.runs(), (Runs{{5h + 10min, 5h}, {6h, 6h}}));
}

// A machine without a clock battery shows 2020 or 2050 after its start, until it asks the network.
TEST(SchedulerRecurringClock, AClockThatWasYearsAheadHasNoLastingEffect) {
  for (const bool had_run : {false, true}) {
    RecurringRig rig;
    rig.simulation().step_wall(24h * 10'000);
    const TimerHandle timer = rig.every(24h);
    if (had_run) rig.simulation().run_for(24h);
    const std::size_t before = rig.runs().size();
    EXPECT_EQ(before, had_run ? 1u : 0u);
    rig.simulation().step_wall(-24h * 9'000);
    rig.simulation().run_for(24h);
    ASSERT_EQ(rig.runs().size(), before + 1);
    const auto day = (1'001 + (had_run ? 1 : 0)) * std::chrono::milliseconds{24h};
    EXPECT_EQ(rig.runs().back(), (OccurrenceRun{day, day}));
    EXPECT_EQ(rig.scheduler().stats().runs, before + 1) << "a look at the clock is no run";
  }
}

// A periodic timer that its handle moves to a date has a date for one run.
TEST(SchedulerRecurringClock, AStepForwardBringsADateOfAPeriodicTimerNearer) {
  RecurringRig rig;
  int runs = 0;
  TimerHandle timer = rig.scheduler().schedule_every({.period = 24h}, [&runs] { ++runs; });
  EXPECT_TRUE(timer.expires_at(RecurringRig::at(2h)));
  rig.simulation().step_wall(3h);
  rig.simulation().run_for(0s);
  EXPECT_EQ(runs, 1);
}

TEST(SchedulerRecurringClock, AStepInsideTheJobCountsFromItsEnd) {
  RecurringRig rig;
  std::vector<WallTime> runs;
  const TimerHandle timer = rig.scheduler().schedule_on(Every{1h}, [&](WallTime occurrence) {
    runs.push_back(occurrence);
    if (runs.size() == 1) rig.simulation().clock().step_wall(-20min);
    if (runs.size() == 2) rig.simulation().clock().step_wall(3h);
  });
  rig.simulation().run_for(1h + 19min);
  EXPECT_EQ(runs.size(), 1u);
  rig.simulation().run_for(2h + 1min);
  EXPECT_EQ(runs, (std::vector{RecurringRig::at(1h), RecurringRig::at(2h), RecurringRig::at(5h),
                               RecurringRig::at(6h)}));
}

TEST(SchedulerRecurringClock, AStepBackDelaysARunThatWaitsForItsExecutor) {
  SchedulerRig rig({.wall_check = 0ns});
  Gate go_on;
  Gate begun;
  const TimerHandle slow = rig.scheduler().schedule_after(0s, [&] {
    begun.open();
    go_on.wait();
  });
  std::vector<WallInstant> runs;
  const TimerHandle timer =
      rig.scheduler().schedule_on(Every{1h}, [&] { runs.push_back(rig.clock().wall_now()); });
  begun.wait();
  rig.clock().advance(1h);
  rig.clock().step_wall(-30min);
  go_on.open();
  rig.settle();
  EXPECT_TRUE(runs.empty());
  rig.advance(30min);
  EXPECT_EQ(runs, (std::vector<WallInstant>{RecurringRig::at(1h)}));
}

/// Random sleeps and steps of less than a day. Each occurrence must run at most once, in order, and
/// never before its date. With `all`, every occurrence that the clock passed must run.
class RandomClock {
 public:
  RandomClock(std::uint64_t seed, const RecurringOptions& options)
      : rng_(seed), rig_({.job_delay = 10s}), options_(options) {}

  void run() {
    const TimerHandle timer = rig_.every(10min, options_);
    std::chrono::milliseconds highest = 0ms;
    for (int i = 0; i < 60; ++i) {
      switch (rng_.below(4)) {
        case 0:
          rig_.simulation().suspend(minutes(500));
          break;
        case 1:
          // Never as far back as was_clock_wrong() takes for a wrong clock.
          rig_.simulation().step_wall(std::max<std::chrono::nanoseconds>(
              minutes(1'000) - 500min, highest - 24h - rig_.wall()));
          break;
        default:
          rig_.simulation().run_for(minutes(90));
      }
      highest = std::max(highest, rig_.wall());
    }
    rig_.simulation().run_for(48h);
    check(std::max(highest, rig_.wall()));
  }

 private:
  std::chrono::nanoseconds minutes(std::uint32_t most) {
    return std::chrono::minutes{rng_.below(most)};
  }

  void check(std::chrono::milliseconds highest) {
    std::chrono::milliseconds last = 0ms;
    for (const OccurrenceRun& run : rig_.runs()) {
      EXPECT_GE(run.ran_at, run.occurrence);
      EXPECT_GT(run.occurrence, last);
      last = run.occurrence;
    }
    if (options_.missed == MissedOccurrence::all) {
      EXPECT_LE(rig_.runs().size(), static_cast<std::size_t>(highest / 10min));
      EXPECT_GE(rig_.runs().size(), static_cast<std::size_t>((highest - 10s) / 10min));
    }
  }

  Rng rng_;
  RecurringRig rig_;
  const RecurringOptions options_;
};

/// The number of seeds, from the environment variable DETENT_CLOCK_RUNS.
std::uint64_t clock_runs() {
  const char* const text = std::getenv("DETENT_CLOCK_RUNS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 40;
}

TEST(SchedulerRecurringClock, NoOccurrenceRunsTwiceOrEarlyWhateverTheClockDoes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < clock_runs(); ++i) {
    RandomClock(seed + i, {}).run();
    RandomClock(seed + i, {.missed = MissedOccurrence::skip}).run();
    RandomClock(seed + i, {.missed = MissedOccurrence::all, .most_missed = 1'000'000}).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace detent

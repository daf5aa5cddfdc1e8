// The order of timers that are due together, and how a scheduler uses slack.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// ---- order --------------------------------------------------------------------------------------

// More than one batch of timers per deadline, and deadlines less than a tick apart.
TEST(SchedulerOrder, BySchedulePutsEqualDeadlinesInTheOrderOfScheduling) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  SchedulerRig rig({.order = DueOrder::by_schedule});
  struct Timer {
    nanoseconds deadline;
    int number;
    auto operator<=>(const Timer&) const = default;
  };
  std::vector<Timer> expected;
  std::vector<Timer> fired;
  std::vector<TimerHandle> handles;
  for (int number = 0; number < 3000; ++number) {
    const nanoseconds deadline = 1ms + nanoseconds{rng.below(4) * 3'000};
    const Timer timer{deadline, number};
    handles.push_back(rig.scheduler().schedule_at(MonotonicTime{deadline},
                                                  [&, timer] { fired.push_back(timer); }));
    expected.push_back(timer);
  }
  // A reused index must not put a later timer before an earlier timer.
  for (int number = 0; number < 3000; number += 3) {
    handles[static_cast<std::size_t>(number)].cancel();
    const Timer timer{1ms, 3000 + number};
    expected[static_cast<std::size_t>(number)] = timer;
    rig.scheduler()
        .schedule_at(MonotonicTime{1ms}, [&, timer] { fired.push_back(timer); })
        .release();
  }
  std::sort(expected.begin(), expected.end());
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(fired.size(), 3000u);
  EXPECT_TRUE(fired == expected);
}

TEST(SchedulerOrder, ByScheduleHoldsBetweenLooksAsWell) {
  SchedulerRig rig({.order = DueOrder::by_schedule});
  std::vector<int> fired;
  for (int number = 0; number < 500; ++number) {
    rig.scheduler()
        .schedule_after(
            1ms,
            [&, number] {
              fired.push_back(number);
              if (number > 0) return;
              rig.scheduler().schedule_after(0s, [&] { fired.push_back(500); }).release();
            })
        .release();
  }
  rig.settle();
  rig.advance(1ms);
  std::vector<int> expected(501);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(fired, expected);
}

TEST(SchedulerOrderDeathTest, ByScheduleOverSeveralShardsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(SchedulerRig({.shards = 2, .order = DueOrder::by_schedule}), "check failed");
}

// ---- slack --------------------------------------------------------------------------------------

constexpr nanoseconds kResolution = 10us;

/// The firing times of 2,000 timers that are due within a second: `at` as time, `late` from their
/// deadlines.
struct Firing {
  std::vector<nanoseconds> at;
  std::vector<nanoseconds> late;
  std::uint64_t wakeups = 0;
};

Firing fire_with(const TimerOptions& options, std::uint64_t seed) {
  Rng rng(seed);
  Simulation simulation(seed, {.scheduler = {.resolution = kResolution}});
  Firing firing;
  for (int i = 0; i < 2000; ++i) {
    const MonotonicTime due{nanoseconds{rng.below(1'000'000'000)}};
    simulation.scheduler()
        .schedule_at(
            due,
            [&, due] {
              firing.at.push_back(simulation.clock().now().time_since_epoch());
              firing.late.push_back(simulation.clock().now() - due);
            },
            options)
        .release();
  }
  simulation.run_for(5s);
  firing.wakeups = simulation.scheduler().stats().wakeups;
  EXPECT_EQ(firing.at.size(), 2000u);
  for (const nanoseconds late : firing.late) {
    EXPECT_GE(late, 0ns) << "never before the deadline";
    EXPECT_LE(late, options.slack + kResolution) << "nor later than its slack";
  }
  return firing;
}

TEST(SchedulerSlack, CoalescingSavesWakeUps) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  const Firing exact = fire_with({}, seed);
  const Firing coalesced = fire_with({.slack = 50ms}, seed);
  EXPECT_GT(exact.wakeups, 1500u);
  EXPECT_LT(coalesced.wakeups, 200u) << "a second has twenty spans of 50 ms";
}

/// The largest number of timers that fire in one millisecond.
std::size_t peak_of(const Firing& firing) {
  std::vector<std::size_t> per_ms(5001);
  for (const nanoseconds at : firing.at) ++per_ms.at(static_cast<std::size_t>(at / 1ms));
  return *std::max_element(per_ms.begin(), per_ms.end());
}

TEST(SchedulerSlack, FillingValleysSpreadsTheLoad) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  const TimerOptions valleys{.slack = 500ms, .slack_use = SlackUse::fill_valleys};
  const std::size_t spread = peak_of(fire_with(valleys, seed));
  EXPECT_LE(spread, 5u) << "1.3 to 2 a millisecond on average";
  EXPECT_LT(spread, peak_of(fire_with({}, seed)));
}

TEST(SchedulerSlack, FillingValleysSpreadsAStormOfTheSameInstant) {
  Simulation simulation(test_seed());
  Firing firing;
  const auto job = [&] { firing.at.push_back(simulation.clock().now().time_since_epoch()); };
  const TimerOptions valleys{.slack = 999ms, .slack_use = SlackUse::fill_valleys};
  std::vector<TimerHandle> timers;
  for (int i = 0; i < 4000; ++i) {
    timers.push_back(simulation.scheduler().schedule_after(1s, job, valleys));
    // Cancelled and moved timers must not count at their old places.
    if (i % 2 == 0) {
      timers.back().expires_after(1s);
    } else {
      timers.back().cancel();
    }
  }
  simulation.run_for(3s);
  EXPECT_EQ(firing.at.size(), 2000u);
  EXPECT_LE(peak_of(firing), 5u);
}

TEST(SchedulerSlack, APeriodicTimerKeepsItsPhaseUnderSlack) {
  Simulation simulation(1);
  std::vector<nanoseconds> at;
  const TimerHandle timer = simulation.scheduler().schedule_every(
      {.period = 100ms, .count = 50},
      [&] { at.push_back(simulation.clock().now().time_since_epoch()); }, {.slack = 30ms});
  simulation.run_for(10s);
  ASSERT_EQ(at.size(), 50u);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const nanoseconds tick = (i + 1) * 100ms;
    EXPECT_GE(at[i], tick);
    EXPECT_LE(at[i], tick + 30ms + kResolution);
  }
}

TEST(SchedulerSlack, HugeSlackIsAsLateAsItMayBeAndNoLater) {
  Simulation simulation(1);
  int fired = 0;
  const TimerHandle coalesced =
      simulation.scheduler().schedule_after(1s, [&] { ++fired; }, {.slack = nanoseconds::max()});
  const TimerHandle spread = simulation.scheduler().schedule_after(
      1s, [&] { ++fired; }, {.slack = nanoseconds::max(), .slack_use = SlackUse::fill_valleys});
  simulation.run_for(1s - 1ns);
  EXPECT_EQ(fired, 0);
  simulation.scheduler().stop(Drain::run_due);
  EXPECT_EQ(fired, 0) << "not due";
}

}  // namespace
}  // namespace detent

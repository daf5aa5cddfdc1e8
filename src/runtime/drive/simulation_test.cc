// Simulation: the order of its runs, repeatable runs by seed, and faults.
#include "detent/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/test_seed.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime at(std::chrono::nanoseconds since_start) {
  return MonotonicTime{since_start};
}

TEST(Simulation, RunsAYearOfHourlyTimersOnTheHour) {
  Simulation simulation(test_seed());
  int runs = 0;
  int off_the_hour = 0;
  const TimerHandle timer = simulation.scheduler().schedule_every({.period = 1h}, [&] {
    ++runs;
    if (simulation.clock().now() != at(runs * 1h)) ++off_the_hour;
  });
  simulation.run_for(24h * 365);
  EXPECT_EQ(runs, 24 * 365);
  EXPECT_EQ(off_the_hour, 0);
  EXPECT_EQ(simulation.clock().now(), at(24h * 365));
}

/// The order in which ten timers that are due together run, together with the timers they schedule.
std::string trace_of(std::uint64_t seed) {
  Simulation simulation(seed, {.job_delay = 3ms});
  std::string trace;
  for (char name = 'a'; name < 'k'; ++name) {
    simulation.scheduler()
        .schedule_after(1s,
                        [&, name] {
                          trace += name;
                          simulation.scheduler()
                              .schedule_after(1ms, [&, name] { trace += char(name - 'a' + 'A'); })
                              .release();
                        })
        .release();
  }
  simulation.run_for(2s);
  return trace;
}

TEST(Simulation, TheSameSeedRunsTheSame) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  EXPECT_EQ(trace_of(seed).size(), 20u);
  EXPECT_EQ(trace_of(seed), trace_of(seed));
}

TEST(Simulation, DifferentSeedsRunInDifferentOrders) { EXPECT_NE(trace_of(1), trace_of(2)); }

TEST(Simulation, RunForEndsAtItsTimeAndRunsTimersDueAtThatTime) {
  Simulation simulation(1);
  int runs = 0;
  const TimerHandle due = simulation.scheduler().schedule_after(1s, [&] { ++runs; });
  const TimerHandle later = simulation.scheduler().schedule_after(1s + 1ms, [&] { ++runs; });
  simulation.run_for(1s);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(simulation.clock().now(), at(1s));
}

TEST(Simulation, AJobMayTakeLong) {
  Simulation simulation(1);
  std::vector<MonotonicTime> runs;
  const TimerHandle slow =
      simulation.scheduler().schedule_every({.period = 10ms, .missed = MissedTick::skip}, [&] {
        runs.push_back(simulation.clock().now());
        simulation.clock().advance(25ms);
      });
  simulation.run_for(80ms);
  EXPECT_EQ(runs, (std::vector{at(10ms), at(40ms), at(70ms)}));
}

TEST(Simulation, DatesFollowTheWallClockAndDelaysDoNot) {
  Simulation simulation(1);
  const WallTime start =
      std::chrono::floor<std::chrono::milliseconds>(simulation.clock().wall_now());
  int dated = 0;
  int delayed = 0;
  const TimerHandle a = simulation.scheduler().schedule_at(start + 2h, [&] { ++dated; });
  const TimerHandle b = simulation.scheduler().schedule_after(2h, [&] { ++delayed; });
  simulation.run_for(1h);
  simulation.suspend(1h);  // the wall clock shows start + 2 h
  simulation.run_for(1s);  // noticed within wall_check
  EXPECT_EQ(dated, 1);
  EXPECT_EQ(delayed, 0);
  simulation.run_for(1h);
  EXPECT_EQ(delayed, 1);
}

TEST(Simulation, ADateIsNeverEarlyWhenTheWallClockIsSteppedBack) {
  Simulation simulation(1);
  const WallTime start =
      std::chrono::floor<std::chrono::milliseconds>(simulation.clock().wall_now());
  int dated = 0;
  const TimerHandle a = simulation.scheduler().schedule_at(start + 2h, [&] { ++dated; });
  simulation.step_wall(-30min);
  simulation.run_for(2h + 29min + 59s);
  EXPECT_EQ(dated, 0);
  simulation.run_for(2s);
  EXPECT_EQ(dated, 1);
}

TEST(Simulation, StopRunsDueAndPendingTimers) {
  Simulation simulation(1, {.job_delay = 1s});
  int runs = 0;
  const TimerHandle a = simulation.scheduler().schedule_after(1h, [&] { ++runs; });
  const TimerHandle b = simulation.scheduler().schedule_after(100h, [&] { ++runs; });
  const TimerHandle c = simulation.scheduler().schedule_every({.period = 1min}, [] {});
  simulation.run_for(1h);
  simulation.scheduler().stop(Drain::run_pending);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(simulation.scheduler().stats().pending, 0u);
}

TEST(Simulation, MayBeDestroyedWithTimersPendingAndJobsQueued) {
  int runs = 0;
  TimerHandle outlives;
  {
    Simulation simulation(1, {.job_delay = 1s});
    outlives = simulation.scheduler().schedule_after(1h, [&] { ++runs; });
    simulation.scheduler().schedule_after(2s, [&] { ++runs; }).release();
    simulation.run_for(2s);
  }
  EXPECT_EQ(outlives.cancel(), CancelResult::not_pending);
  EXPECT_LE(runs, 1);
}

}  // namespace
}  // namespace detent

// Timer groups: their clock, and operations on all their timers.
#include "detent/timer_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr MonotonicTime at(nanoseconds since_start) { return MonotonicTime{since_start}; }

/// A simulation with a tick of one nanosecond.
class ExactSimulation : public Simulation {
 public:
  ExactSimulation() : Simulation(1, {.scheduler = {.resolution = 1ns}}) {}
};

/// Records the times of its calls.
class Runs {
 public:
  explicit Runs(Simulation& simulation) : clock_(simulation.clock()) {}
  Job job() {
    return [this] { times_.push_back(clock_.now()); };
  }
  const std::vector<MonotonicTime>& times() const { return times_; }

 private:
  const Clock& clock_;
  std::vector<MonotonicTime> times_;
};

// ---- The clock ----------------------------------------------------------------------------------

TEST(TimerGroup, RunsJobsAsTheSchedulerUntilItsClockIsChanged) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  simulation.run_for(1h);
  Runs runs(simulation);
  const TimerHandle a = group.schedule_after(3ms, runs.job());
  const TimerHandle b = group.schedule_at(at(1h + 1ms), runs.job());
  const TimerHandle c = group.schedule_after(-1s, runs.job());
  const TimerHandle d = group.schedule_every({.period = 2ms, .count = 2}, runs.job());
  simulation.run_for(1s);
  EXPECT_EQ(runs.times(),
            (std::vector{at(1h), at(1h + 1ms), at(1h + 2ms), at(1h + 3ms), at(1h + 4ms)}));
  EXPECT_EQ(group.now(), simulation.clock().now());
}

TEST(TimerGroup, PausedTimersKeepTheirRemainingDelay) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  Runs runs(simulation);
  const TimerHandle timer = group.schedule_after(10s, runs.job());
  simulation.run_for(4s);
  group.pause();
  group.pause();
  EXPECT_TRUE(group.is_paused());
  simulation.run_for(1h);
  EXPECT_TRUE(runs.times().empty());
  EXPECT_EQ(group.now(), at(4s));
  group.resume();
  group.resume();
  EXPECT_FALSE(group.is_paused());
  simulation.run_for(1min);
  EXPECT_EQ(runs.times(), (std::vector{at(1h + 10s)}));
}

TEST(TimerGroup, TimersScheduledWhilePausedWait) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  Runs runs(simulation);
  simulation.run_for(1s);
  group.pause();
  const TimerHandle timer = group.schedule_after(1s, runs.job());
  const TimerHandle at_once = group.schedule_after(0s, runs.job());
  simulation.run_for(1min);
  EXPECT_EQ(runs.times(), (std::vector{at(1s)})) << "a due timer runs";
  group.resume();
  simulation.run_for(1min);
  EXPECT_EQ(runs.times(), (std::vector{at(1s), at(1min + 2s)}));
}

TEST(TimerGroup, TheRateScalesTheRemainingDelay) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  Runs runs(simulation);
  const TimerHandle a = group.schedule_after(10s, runs.job());
  const TimerHandle b = group.schedule_after(12s, runs.job());
  simulation.run_for(2s);
  group.set_rate(4);
  simulation.run_for(2s);  // group time: 10 s
  EXPECT_EQ(runs.times(), (std::vector{at(4s)}));
  group.set_rate(0.25);
  simulation.run_for(1min);
  EXPECT_EQ(runs.times(), (std::vector{at(4s), at(12s)}));
}

TEST(TimerGroup, ARateSetWhilePausedHoldsOnceItIsResumed) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  Runs runs(simulation);
  const TimerHandle timer = group.schedule_after(10s, runs.job());
  group.pause();
  group.set_rate(2);
  EXPECT_EQ(group.rate(), 2);
  simulation.run_for(1min);
  EXPECT_TRUE(runs.times().empty());
  group.resume();
  simulation.run_for(1min);
  EXPECT_EQ(runs.times(), (std::vector{at(1min + 5s)}));
}

TEST(TimerGroup, AThousandPausesAndRatesStayExactToTheNanosecond) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  Runs runs(simulation);
  // Each round: 7 ns at rate 1, 5 ns paused, 8 ns at rate 1/4, 4 ns at rate 5/4. Together this is
  // 14 ns of group time in 24 ns.
  const TimerHandle timer = group.schedule_after(14'000ns, runs.job());
  const TimerHandle next = group.schedule_after(14'001ns, runs.job());
  for (int round = 0; round < 1'000; ++round) {
    group.set_rate(1);
    simulation.run_for(7ns);
    group.pause();
    simulation.run_for(5ns);
    group.set_rate(0.25);
    group.resume();
    simulation.run_for(8ns);
    group.set_rate(1.25);
    simulation.run_for(4ns);
  }
  EXPECT_EQ(runs.times(), (std::vector{at(24'000ns)}));
  simulation.run_for(1us);
  EXPECT_EQ(runs.times(), (std::vector{at(24'000ns), at(24'001ns)}));
}

TEST(TimerGroup, PeriodicTimersAndHandlesUseGroupTime) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  group.set_rate(2);
  Runs runs(simulation);
  Runs moved(simulation);
  const TimerHandle beat = group.schedule_every({.period = 10s}, runs.job());
  TimerHandle timer = group.schedule_after(1s, moved.job());
  EXPECT_TRUE(timer.expires_after(20s));
  simulation.run_for(12s);
  EXPECT_EQ(runs.times(), (std::vector{at(5s), at(10s)}));
  EXPECT_EQ(moved.times(), (std::vector{at(10s)}));
}

TEST(TimerGroup, AJobMayChangeTheClockItRunsOn) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  Runs runs(simulation);
  const TimerHandle slow = group.schedule_after(1s, [&] { group.set_rate(0.5); });
  const TimerHandle pause = group.schedule_after(2s, [&] { group.pause(); });
  const TimerHandle last = group.schedule_after(3s, runs.job());
  const TimerHandle resume = simulation.scheduler().schedule_after(1h, [&] { group.resume(); });
  simulation.run_for(2h);
  EXPECT_EQ(runs.times(), (std::vector{at(1h + 2s)}));
}

TEST(TimerGroup, DeadlinesAreRoundedUpToItsResolutionInGroupTime) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler(), {.resolution = 1ms});
  group.set_rate(0.5);
  Runs runs(simulation);
  const TimerHandle timer = group.schedule_after(1ns, runs.job());
  simulation.run_for(1s);
  EXPECT_EQ(runs.times(), (std::vector{at(2ms)}));
}

TEST(TimerGroup, ATimerMovedToADateIsNotEarlyByTheWallClock) {
  ExactSimulation simulation;
  const WallTime start =
      std::chrono::floor<std::chrono::milliseconds>(simulation.clock().wall_now());
  TimerGroup fast(simulation.scheduler());
  TimerGroup slow(simulation.scheduler());
  fast.set_rate(1000);
  slow.set_rate(0.5);
  Runs runs(simulation);
  TimerHandle a = fast.schedule_after(1h, runs.job());
  TimerHandle b = slow.schedule_after(1h, runs.job());
  a.expires_at(start + 1min);
  b.expires_at(start + 1min);
  simulation.run_for(1min - 1ns);
  EXPECT_TRUE(runs.times().empty());
  simulation.run_for(2s);  // the slow group checks the wall clock once per second of group time
  EXPECT_EQ(runs.times().size(), 2u);
}

TEST(TimerGroup, HugeDelaysNeverEndAndBlockNoCall) {
  ExactSimulation simulation;
  TimerGroup group(simulation.scheduler());
  group.set_rate(TimerGroup::kMinRate);
  Runs runs(simulation);
  const TimerHandle a = group.schedule_after(std::chrono::hours::max(), runs.job());
  const TimerHandle b = group.schedule_at(MonotonicTime::max(), runs.job());
  simulation.run_for(24h * 365);
  group.set_rate(TimerGroup::kMaxRate);
  simulation.run_for(24h);
  EXPECT_TRUE(runs.times().empty());
}

// ---- All at once --------------------------------------------------------------------------------

TEST(TimerGroup, CancelAllDestroysTheJobsAndCountsThem) {
  Simulation simulation(1);
  TimerGroup group(simulation.scheduler());
  int alive = 0;
  std::vector<TimerHandle> timers;
  for (int i = 0; i < 100; ++i) {
    timers.push_back(group.schedule_after(i * 1s, [token = LifeToken(alive)] {}));
  }
  timers.push_back(group.schedule_every({.period = 1s}, [token = LifeToken(alive)] {}));
  EXPECT_EQ(alive, 101);
  EXPECT_EQ(group.cancel_all(), 101u);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(timers[0].cancel(), CancelResult::not_pending);
  EXPECT_EQ(group.cancel_all(), 0u);
  EXPECT_EQ(group.stats().cancelled, 101u);
  EXPECT_EQ(group.stats().pending, 0u);
}

TEST(TimerGroup, CancelAllTakesJobsThatWaitForTheirExecutor) {
  Simulation simulation(1, {.job_delay = 1s});
  TimerGroup group(simulation.scheduler());
  int runs = 0;
  for (int i = 0; i < 1'000; ++i) group.schedule_after(1s, [&] { ++runs; }).release();
  simulation.run_for(2s);
  ASSERT_GT(runs, 0);
  ASSERT_LT(runs, 1'000);
  const int before = runs;
  EXPECT_EQ(group.cancel_all(), 1'000u - static_cast<unsigned>(runs));
  simulation.run_for(1min);
  EXPECT_EQ(runs, before);
}

TEST(TimerGroup, CancelAllEndsPeriodicTimersThatRunAfterThatRun) {
  ManualClock clock;
  ThreadPool pool({.threads = 2});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  TimerGroup group(scheduler);
  Gate began;
  Gate go_on;
  std::atomic<int> runs = 0;
  TimerHandle timer = group.schedule_every({.period = 1s}, [&] {
    ++runs;
    began.open();
    go_on.wait();
  });
  clock.advance(2s);
  began.wait();
  EXPECT_EQ(group.cancel_all(), 0u);
  EXPECT_EQ(group.stats().running, 1u);
  go_on.open();
  timer.cancel_and_wait();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(group.stats().cancelled, 1u);
}

TEST(TimerGroup, AJobMayCancelAll) {
  Simulation simulation(1);
  TimerGroup group(simulation.scheduler());
  int runs = 0;
  std::size_t cancelled = 0;
  const TimerHandle periodic = group.schedule_every({.period = 1s}, [&] {
    ++runs;
    cancelled = group.cancel_all();
  });
  const TimerHandle other = group.schedule_after(1min, [&] { ++runs; });
  simulation.run_for(1h);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(cancelled, 1u);
  EXPECT_EQ(group.stats().cancelled, 2u);
}

TEST(TimerGroupDeathTest, ARateOutsideTheBoundsIsABug) {
  Simulation simulation(1);
  TimerGroup group(simulation.scheduler());
  EXPECT_DEATH(group.set_rate(0), "kMinRate");
  EXPECT_DEATH(group.set_rate(-1), "kMinRate");
}

}  // namespace
}  // namespace detent

// The lateness ledger: the causes add up to the total, and each cause gets exactly its own delay.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ostream>
#include <thread>
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

/// The sums of a report, as durations.
struct Sums {
  nanoseconds total{};
  nanoseconds rounding{};
  nanoseconds slack{};
  nanoseconds wake_up{};
  nanoseconds budget{};
  nanoseconds executor{};

  friend bool operator==(const Sums&, const Sums&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Sums& sums) {
    return out << "total " << sums.total.count() << " rounding " << sums.rounding.count()
               << " slack " << sums.slack.count() << " wake_up " << sums.wake_up.count()
               << " budget " << sums.budget.count() << " executor " << sums.executor.count();
  }
};

nanoseconds sum_of(const HistogramSnapshot& histogram) {
  return nanoseconds{static_cast<nanoseconds::rep>(histogram.sum_ns)};
}

/// Returns the sums of the report. Checks that the parts add up, and that each part counts all
/// runs.
Sums sums_of(const Scheduler& scheduler) {
  const LatenessReport report = scheduler.lateness();
  const std::uint64_t runs = scheduler.stats().runs;
  for (const HistogramSnapshot* const part : {&report.total, &report.rounding, &report.slack,
                                              &report.wake_up, &report.budget, &report.executor}) {
    EXPECT_EQ(part->count, runs);
  }
  EXPECT_EQ(report.total.sum_ns, report.rounding.sum_ns + report.slack.sum_ns +
                                     report.wake_up.sum_ns + report.budget.sum_ns +
                                     report.executor.sum_ns);
  return {.total = sum_of(report.total),
          .rounding = sum_of(report.rounding),
          .slack = sum_of(report.slack),
          .wake_up = sum_of(report.wake_up),
          .budget = sum_of(report.budget),
          .executor = sum_of(report.executor)};
}

TEST(SchedulerLateness, ATimerOnTimeIsNotLate) {
  SchedulerRig rig;
  const TimerHandle once = rig.scheduler().schedule_after(1ms, [] {});
  const TimerHandle often = rig.scheduler().schedule_every({.period = 1ms, .count = 3}, [] {});
  rig.settle();
  for (int i = 0; i < 4; ++i) rig.advance(1ms);
  EXPECT_EQ(rig.scheduler().stats().runs, 4u);
  EXPECT_EQ(sums_of(rig.scheduler()), Sums{});
}

// ---- one cause at a time ------------------------------------------------------------------------

TEST(SchedulerLateness, RoundingIsFromTheDeadlineToItsTick) {
  SchedulerRig rig({.resolution = 10ms});
  const TimerHandle timer = rig.scheduler().schedule_after(13ms, [] {});
  rig.settle();
  rig.advance(20ms);
  EXPECT_EQ(sums_of(rig.scheduler()), (Sums{.total = 7ms, .rounding = 7ms}));
}

TEST(SchedulerLateness, SlackIsFromTheRoundedTickToTheChosenTick) {
  Simulation simulation(1);
  const auto start = simulation.clock().now();
  nanoseconds late{};
  const TimerHandle timer = simulation.scheduler().schedule_after(
      10ms, [&] { late = simulation.clock().now() - start - 10ms; }, {.slack = 10ms});
  simulation.run_for(1s);
  EXPECT_GT(late, 0ns);
  EXPECT_EQ(sums_of(simulation.scheduler()), (Sums{.total = late, .slack = late}));
}

TEST(SchedulerLateness, WakeUpIsFromTheTickToTheLookOfTheDriver) {
  SchedulerRig rig;
  const TimerHandle timer = rig.scheduler().schedule_after(1ms, [] {});
  rig.settle();
  rig.advance(5ms);
  EXPECT_EQ(sums_of(rig.scheduler()), (Sums{.total = 4ms, .wake_up = 4ms}));
}

TEST(SchedulerLateness, WakeUpIsTheWholeLatenessOfATimerThatIsAlreadyDue) {
  SchedulerRig rig;
  rig.settle();
  rig.advance(10ms);
  const TimerHandle past = rig.scheduler().schedule_at(rig.clock().now() - 3ms, [] {});
  rig.settle();
  EXPECT_EQ(sums_of(rig.scheduler()), (Sums{.total = 3ms, .wake_up = 3ms}));
}

// The last job of the first batch is slow, and the jobs of the second batch wait for it.
TEST(SchedulerLateness, BudgetIsTheWaitForTheNextBatch) {
  SchedulerRig rig;
  int runs = 0;
  for (int i = 0; i < 300; ++i) {
    rig.scheduler()
        .schedule_after(1ms,
                        [&] {
                          if (++runs == 256) rig.clock().advance(2ms);
                        })
        .release();
  }
  rig.settle();
  rig.advance(1ms);
  EXPECT_EQ(runs, 300);
  EXPECT_EQ(sums_of(rig.scheduler()), (Sums{.total = 44 * 2ms, .budget = 44 * 2ms}));
}

TEST(SchedulerLateness, BudgetIsTheWaitOfTimersThatBecomeDueDuringAJob) {
  SchedulerRig rig;
  const TimerHandle slow = rig.scheduler().schedule_after(1ms, [&] { rig.clock().advance(10ms); });
  const TimerHandle behind = rig.scheduler().schedule_after(4ms, [] {});
  rig.settle();
  rig.advance(1ms);
  EXPECT_EQ(sums_of(rig.scheduler()), (Sums{.total = 7ms, .budget = 7ms}));
}

TEST(SchedulerLateness, ExecutorIsTheWaitForASlowJobOfTheSameBatch) {
  SchedulerRig rig;
  for (int i = 0; i < 3; ++i) {
    rig.scheduler().schedule_after(1ms, [&] { rig.clock().advance(2ms); }).release();
  }
  rig.settle();
  rig.advance(1ms);
  EXPECT_EQ(sums_of(rig.scheduler()), (Sums{.total = 6ms, .executor = 6ms}));
}

TEST(SchedulerLateness, ExecutorIsTheWaitForABusyPool) {
  ManualClock clock;
  ThreadPool pool({.threads = 1});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  Gate busy;
  Gate go_on;
  pool.execute([&] {
    busy.open();
    go_on.wait();
  });
  busy.wait();
  scheduler.schedule_after(1ms, [] {}).release();
  clock.await_waiters(1);
  clock.advance(1ms);
  clock.await_waiters(1);
  clock.advance(4ms);
  go_on.open();
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(sums_of(scheduler), (Sums{.total = 4ms, .executor = 4ms}));
}

TEST(SchedulerLateness, ExecutorIsTheSimulationsDelayOfJobs) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Simulation simulation(seed, {.job_delay = 5ms});
  nanoseconds late{};
  for (int i = 0; i < 100; ++i) {
    const MonotonicTime due = simulation.clock().now() + i * 1ms;
    simulation.scheduler()
        .schedule_at(due, [&, due] { late += simulation.clock().now() - due; })
        .release();
  }
  simulation.run_for(1s);
  EXPECT_GT(late, 0ns);
  EXPECT_EQ(sums_of(simulation.scheduler()), (Sums{.total = late, .executor = late}));
}

TEST(SchedulerLateness, TheHistogramCountsEachRunInItsBin) {
  SchedulerRig rig;
  for (const auto late : {0us, 1us, 1000us, 1000us}) {
    rig.scheduler().schedule_after(10us, [] {}).release();
    rig.settle();
    rig.advance(10us + late);
    // Moves to a tick, so that the next deadline is not rounded.
    rig.advance(10us - late % 10us);
  }
  const HistogramSnapshot wake_up = rig.scheduler().lateness().wake_up;
  EXPECT_EQ(wake_up.count, 4u);
  EXPECT_EQ(wake_up.quantile(0.5), 1us);
  EXPECT_GE(wake_up.quantile(1.0), 1ms);
  EXPECT_LT(wake_up.quantile(1.0), 2ms);
}

// ---- extreme deadlines --------------------------------------------------------------------------

TEST(SchedulerLateness, TheCausesAddUpForDeadlinesAtBothEndsOfTime) {
  SchedulerRig rig;
  rig.settle();
  rig.advance(1ms);
  rig.scheduler().schedule_at(MonotonicTime::min(), [] {}).release();
  rig.scheduler().schedule_after(nanoseconds::min(), [] {}).release();
  rig.scheduler().schedule_after(-1h, [] {}, {.slack = 1h}).release();
  rig.scheduler().schedule_at(WallTime::min(), [] {}).release();
  rig.scheduler().schedule_at(MonotonicTime::max(), [] {}, {.slack = 1h}).release();
  rig.settle();
  rig.advance(2h);
  EXPECT_EQ(rig.scheduler().stats().runs, 4u);
  const Sums sums = sums_of(rig.scheduler());
  EXPECT_EQ(sums.rounding, 0ns) << "deadlines before the scheduler have no tick";
}

TEST(SchedulerLateness, ADateThatIsPutOffByAStepOfTheWallClockIsNotLate) {
  SchedulerRig rig;
  const WallTime start = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now());
  const TimerHandle timer = rig.scheduler().schedule_at(start + 10ms, [] {});
  rig.settle();
  rig.clock().step_wall(-50ms);
  rig.advance(10ms);
  rig.advance(50ms);
  EXPECT_EQ(rig.scheduler().stats().runs, 1u);
  EXPECT_EQ(sums_of(rig.scheduler()), Sums{});
}

// ---- all causes together ------------------------------------------------------------------------

/// The lateness of the runs of a timer, as its jobs measure it.
struct Told {
  nanoseconds late{};
  std::uint64_t runs = 0;
};

// Coarse ticks, both kinds of slack, slow jobs, a slow executor, and timers that are moved while
// they are queued. The total of the ledger must equal the measurements of the jobs, to the
// nanosecond.
TEST(SchedulerLateness, TheTotalIsTheLatenessThatTheJobsMeasure) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  Simulation simulation(seed, {.job_delay = 2ms, .scheduler = {.resolution = 300us}});
  std::array<TimerHandle, 200> timers;
  std::array<MonotonicTime, 200> due{};
  Told told;
  for (int step = 0; step < 3000; ++step) {
    const std::size_t i = rng.below(200);
    const MonotonicTime now = simulation.clock().now();
    const MonotonicTime next = now + nanoseconds{rng.below(20'000'000)} - 2ms;
    if (rng.below(4) == 0) {
      if (timers.at(i).expires_at(next)) due.at(i) = next;
    } else {
      timers.at(i) = {};
      due.at(i) = next;
      timers.at(i) = simulation.scheduler().schedule_at(
          next,
          [&, i] {
            // A deadline before the start of the scheduler counts as its start.
            told.late += simulation.clock().now() - std::max(due.at(i), MonotonicTime{});
            ++told.runs;
            if (i % 10 == 0) simulation.clock().advance(70us);
          },
          {.slack = i % 3 == 0 ? nanoseconds{rng.below(5'000'000)} : 0ns,
           .slack_use = i % 2 == 0 ? SlackUse::coalesce : SlackUse::fill_valleys});
    }
    simulation.run_for(nanoseconds{rng.below(300'000)});
  }
  simulation.run_for(1s);
  EXPECT_EQ(simulation.scheduler().stats().runs, told.runs);
  const Sums sums = sums_of(simulation.scheduler());
  EXPECT_EQ(sums.total, told.late);
  for (const nanoseconds part : {sums.rounding, sums.slack, sums.wake_up, sums.executor}) {
    EXPECT_GT(part, 0ns) << sums;
  }
}

TEST(SchedulerLateness, TheCausesAddUpOverShardsAndThreads) {
  ManualClock clock;
  ThreadPool pool({.threads = 2, .capacity = 8});
  Scheduler scheduler({.clock = &clock, .executor = &pool, .shards = 3});
  std::atomic<int> at_work = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 1000; ++n) {
        scheduler.schedule_after((n % 50) * 1us, [] {}, {.slack = i * 100us}).release();
        if (n % 100 == 0) scheduler.lateness();
      }
      --at_work;
    });
  }
  while (at_work > 0) {
    clock.advance(7us);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  clock.advance(10ms);
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(scheduler.stats().runs, 3000u);
  EXPECT_GT(sums_of(scheduler).total, 0ns);
}

// The driver wakes before the deadline, and spins until the test moves the clock.
TEST(SchedulerSpin, RunsJobsAtTheirDeadlinesAndTakesRings) {
  SchedulerRig rig({.spin = 1ms});
  Gate ran_at_deadline;
  Gate ran_while_spinning;
  std::atomic<bool> is_early = false;
  const MonotonicTime deadline = rig.clock().now() + 10ms;
  const TimerHandle timer = rig.scheduler().schedule_at(deadline, [&] {
    is_early = rig.clock().now() < deadline;
    ran_at_deadline.open();
  });
  rig.settle();
  rig.clock().advance(9500us);  // the driver spins from here on
  rig.scheduler().schedule_after(0s, [&] { ran_while_spinning.open(); }).release();
  ran_while_spinning.wait();
  EXPECT_TRUE(timer.is_pending());
  rig.clock().advance(500us);
  ran_at_deadline.wait();
  EXPECT_FALSE(is_early);
}

TEST(SchedulerSpin, EndsWithTheScheduler) {
  SchedulerRig rig({.spin = 1ms});
  const TimerHandle timer = rig.scheduler().schedule_after(10ms, [] {});
  rig.settle();
  rig.clock().advance(9500us);
  rig.scheduler().stop();  // must not wait for the deadline
}

}  // namespace
}  // namespace detent

#include "detent/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/simulation.h"
#include "detent/timer_group.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(Scheduler, FiresAtItsDeadlineAndNotANanosecondBefore) {
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_after(250ms, [&] { ++fired; });
  rig.advance(250ms - 1ns);
  EXPECT_EQ(fired, 0);
  EXPECT_TRUE(timer.is_pending());
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(timer.is_pending());
  rig.advance(24h);
  EXPECT_EQ(fired, 1);
}

TEST(Scheduler, RoundsADeadlineUpToItsResolution) {
  SchedulerRig rig({.resolution = 1ms});
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_after(1ms + 1ns, [&] { ++fired; });
  rig.advance(2ms - 1ns);
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
}

TEST(Scheduler, RunsJobsInTheOrderOfTheirDeadlines) {
  SchedulerRig rig;
  std::vector<int> order;
  std::vector<TimerHandle> timers;
  for (const int delay : {5, 1, 4, 2, 3}) {
    timers.push_back(rig.scheduler().schedule_after(std::chrono::milliseconds{delay},
                                                    [&, delay] { order.push_back(delay); }));
  }
  rig.advance(10ms);
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5}));
}

TEST(Scheduler, TreatsZeroAndNegativeDelaysAsDueImmediately) {
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle zero = rig.scheduler().schedule_after(0s, [&] { ++fired; });
  const TimerHandle negative = rig.scheduler().schedule_after(-1h, [&] { ++fired; });
  const TimerHandle past = rig.scheduler().schedule_at(MonotonicTime::min(), [&] { ++fired; });
  rig.settle();
  EXPECT_EQ(fired, 3);
}

// The present is between two ticks. If the deadlines were rounded up, they would be due at the next
// tick, which this clock never reaches.
TEST(Scheduler, FiresDelaysOfZeroImmediatelyBetweenTwoTicks) {
  SchedulerRig rig({.resolution = 1s});
  rig.advance(300ms);
  int fired = 0;
  const auto job = [&] { ++fired; };
  const WallTime past = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now()) - 1h;
  const TimerHandle zero = rig.scheduler().schedule_after(0s, job);
  const TimerHandle negative = rig.scheduler().schedule_after(-5ms, job);
  const TimerHandle date = rig.scheduler().schedule_at(past, job);
  TimerHandle moved = rig.scheduler().schedule_after(1h, job);
  EXPECT_TRUE(moved.expires_after(-1h));
  EXPECT_EQ(rig.scheduler().schedule_keyed("key", 0s, job), KeyedResult::scheduled);
  TimerGroup group(rig.scheduler());
  const TimerHandle grouped = group.schedule_after(-1s, job);
  rig.settle();
  EXPECT_EQ(fired, 6);
}

TEST(Scheduler, FiresPassedInstantsImmediatelyBetweenTwoTicks) {
  SchedulerRig rig({.resolution = 1s});
  rig.advance(10'500ms);
  const MonotonicTime now = rig.clock().now();
  int fired = 0;
  const auto job = [&] { ++fired; };
  const TimerHandle present = rig.scheduler().schedule_at(now, job);
  const TimerHandle past = rig.scheduler().schedule_at(now - 5ms, job);
  const TimerHandle long_past = rig.scheduler().schedule_at(now - 2s, job);
  TimerHandle moved = rig.scheduler().schedule_after(1h, job);
  EXPECT_TRUE(moved.expires_at(now - 5ms));
  TimerGroup group(rig.scheduler());
  const TimerHandle grouped = group.schedule_at(group.now() - 5ms, job);
  rig.settle();
  EXPECT_EQ(fired, 5);
  const TimerHandle next = rig.scheduler().schedule_at(now + 1ns, job);
  rig.advance(499ms);
  EXPECT_EQ(fired, 5) << "an instant to come is rounded up";
  rig.advance(1ms);
  EXPECT_EQ(fired, 6);
}

TEST(Scheduler, TheLastOfAllDatesIsNeverDueAlsoBefore1970) {
  Simulation simulation(1, {.start = WallInstant{-1h}});
  int fired = 0;
  const TimerHandle timer = simulation.scheduler().schedule_at(WallTime::max(), [&] { ++fired; });
  simulation.run_for(1h);
  EXPECT_EQ(fired, 0);
}

TEST(Scheduler, NeverFiresADelayThatIsLongerThanTime) {
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle hours =
      rig.scheduler().schedule_after(std::chrono::hours::max(), [&] { ++fired; });
  const TimerHandle end = rig.scheduler().schedule_at(MonotonicTime::max(), [&] { ++fired; });
  const TimerHandle date = rig.scheduler().schedule_at(WallTime::max(), [&] { ++fired; });
  rig.advance(200 * 365 * 24h);
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(rig.scheduler().stats().pending, 3u);
}

// A date in seconds or in fractions can lie further in the future than a date in milliseconds.
TEST(Scheduler, NeverFiresADateThatIsBeyondTime) {
  SchedulerRig rig;
  int fired = 0;
  const auto job = [&] { ++fired; };
  const auto fractional =
      std::chrono::sys_time<std::chrono::duration<double>>(std::chrono::duration<double>(1e300));
  const TimerHandle seconds = rig.scheduler().schedule_at(std::chrono::sys_seconds::max(), job);
  const TimerHandle fractions = rig.scheduler().schedule_at(fractional, job);
  TimerHandle moved = rig.scheduler().schedule_after(1h, job);
  EXPECT_TRUE(moved.expires_at(std::chrono::sys_seconds::max()));
  rig.advance(200 * 365 * 24h);
  EXPECT_EQ(fired, 0);
  const TimerHandle past = rig.scheduler().schedule_at(std::chrono::sys_seconds::min(), job);
  rig.settle();
  EXPECT_EQ(fired, 1);
}

// The driver sleeps for the later timer. The earlier timer must wake it. A lost wake-up would hang
// here.
TEST(Scheduler, AnEarlierTimerWakesTheSleepingDriver) {
  SchedulerRig rig;
  std::vector<int> order;
  const TimerHandle late = rig.scheduler().schedule_after(1h, [&] { order.push_back(2); });
  rig.settle();
  const TimerHandle early = rig.scheduler().schedule_after(1ms, [&] { order.push_back(1); });
  rig.advance(1ms);
  EXPECT_EQ(order, (std::vector{1}));
  rig.advance(1h);
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(Scheduler, AJobMaySchedule) {
  SchedulerRig rig;
  std::vector<std::string> order;
  rig.scheduler()
      .schedule_after(
          1ms,
          [&] {
            order.emplace_back("outer");
            rig.scheduler().schedule_after(0s, [&] { order.emplace_back("now"); }).release();
            rig.scheduler().schedule_after(1ms, [&] { order.emplace_back("later"); }).release();
          })
      .release();
  rig.advance(1ms);
  EXPECT_EQ(order, (std::vector<std::string>{"outer", "now"}));
  rig.advance(1ms);
  EXPECT_EQ(order.back(), "later");
}

TEST(Scheduler, DestroysAJobOnceItHasRun) {
  SchedulerRig rig;
  int alive = 0;
  const TimerHandle timer = rig.scheduler().schedule_after(1ms, [token = LifeToken(alive)] {});
  EXPECT_EQ(alive, 1);
  rig.advance(1ms);
  EXPECT_EQ(alive, 0);
}

TEST(Scheduler, PassesExceptionsOfJobsToTheErrorHandler) {
  std::vector<std::string> caught;
  SchedulerRig rig({.error_handler = [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      caught.emplace_back(exception.what());
    }
  }});
  int fired = 0;
  const TimerHandle bad =
      rig.scheduler().schedule_after(1ms, [] { throw std::runtime_error("broken"); });
  const TimerHandle good = rig.scheduler().schedule_after(2ms, [&] { ++fired; });
  rig.advance(2ms);
  EXPECT_EQ(caught, (std::vector<std::string>{"broken"}));
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(rig.scheduler().stats().completed, 2u);
}

TEST(SchedulerDeathTest, AnExceptionWithoutHandlerEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SchedulerRig rig;
        const TimerHandle timer =
            rig.scheduler().schedule_after(0s, [] { throw std::runtime_error("broken"); });
        rig.settle();
      },
      "broken");
}

TEST(SchedulerDeathTest, AnEmptyJobIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SchedulerRig rig;
        const TimerHandle timer = rig.scheduler().schedule_after(0s, Job());
      },
      "check failed: job_is_callable");
}

// ---- dates --------------------------------------------------------------------------------------

WallTime wall_of(SchedulerRig& rig) {
  return std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now());
}

TEST(SchedulerDates, FireWhenTheWallClockShowsThem) {
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_at(wall_of(rig) + 90min, [&] { ++fired; });
  rig.advance(90min - 1ns);
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
}

TEST(SchedulerDates, ThatAHandleIsMovedToAreRoundedUpToMilliseconds) {
  SchedulerRig rig;
  int fired = 0;
  TimerHandle timer = rig.scheduler().schedule_after(1h, [&] { ++fired; });
  EXPECT_TRUE(timer.expires_at(rig.clock().wall_now() + 5ms - 1us));
  rig.advance(5ms - 1ns);
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
}

TEST(SchedulerDates, AreNotEarlyWhenTheWallClockIsSteppedBack) {
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_at(wall_of(rig) + 10min, [&] { ++fired; });
  rig.clock().step_wall(-3min);
  rig.advance(10min);
  EXPECT_EQ(fired, 0);
  EXPECT_TRUE(timer.is_pending());
  rig.advance(3min - 1ns);
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
}

TEST(SchedulerDates, DelaysDoNotFollowTheWallClock) {
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_after(10min, [&] { ++fired; });
  rig.clock().step_wall(-24h);
  rig.advance(10min - 1ns);
  rig.clock().step_wall(48h);
  rig.settle();
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
}

// Timers at random times, and a clock that moves in random steps. Each timer must fire in the first
// step that reaches its rounded deadline, and in the order of deadlines.
TEST(Scheduler, FiresRandomTimersInTheStepThatReachesThem) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  SchedulerRig rig;
  struct Fired {
    nanoseconds deadline;
    MonotonicTime at;
  };
  std::vector<Fired> fired;
  std::vector<nanoseconds> pending;
  for (int step = 0; step < 300; ++step) {
    const nanoseconds now = rig.clock().now().time_since_epoch();
    for (int i = 0; i < 20; ++i) {
      const nanoseconds deadline = now + nanoseconds{rng.next() >> (20 + rng.below(30))};
      pending.push_back(deadline);
      rig.scheduler()
          .schedule_at(MonotonicTime{deadline},
                       [&, deadline] {
                         fired.push_back({deadline, rig.clock().now()});
                       })
          .release();
    }
    fired.clear();
    rig.advance(nanoseconds{rng.next() >> (20 + rng.below(30))});
    const nanoseconds reached = rig.clock().now().time_since_epoch();
    const nanoseconds last_tick = reached - reached % 10us;
    const auto due = std::partition(pending.begin(), pending.end(),
                                    [&](nanoseconds deadline) { return deadline > last_tick; });
    ASSERT_EQ(fired.size(), static_cast<std::size_t>(pending.end() - due));
    pending.erase(due, pending.end());
    for (const Fired& one : fired) ASSERT_GE(one.at, MonotonicTime{one.deadline});
    ASSERT_TRUE(std::is_sorted(fired.begin(), fired.end(), [](const Fired& a, const Fired& b) {
      return a.deadline + 10us <= b.deadline;
    }));
  }
  EXPECT_EQ(rig.scheduler().stats().pending, pending.size());
}

// More timers are due than fit into one batch. All of them must run, exactly once.
TEST(Scheduler, RunsAStormOfTheSameInstant) {
  SchedulerRig rig;
  std::vector<int> runs(10'000);
  for (int& count : runs) {
    rig.scheduler().schedule_after(1s, [&count] { ++count; }).release();
  }
  rig.advance(1s);
  EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), 10'000);
}

TEST(Scheduler, WorksOnTheMachinesClock) {
  Gate fired;
  Scheduler scheduler;
  const SystemClock clock;
  const MonotonicTime earliest = clock.now() + 1ms;
  MonotonicTime at;
  const TimerHandle timer = scheduler.schedule_after(1ms, [&] {
    at = clock.now();
    fired.open();
  });
  fired.wait();
  EXPECT_GE(at, earliest);
}

}  // namespace
}  // namespace detent

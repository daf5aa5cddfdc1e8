// One test for each bug that a review found, so that the bugs do not come back.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "detent/coroutine.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

WallTime start_of(const Clock& clock) {
  return std::chrono::floor<std::chrono::milliseconds>(clock.wall_now());
}

/// Calls a function when it is destroyed.
class AtTheEnd {
 public:
  explicit AtTheEnd(Job job) : job_(std::make_unique<Job>(std::move(job))) {}
  AtTheEnd(AtTheEnd&&) noexcept = default;
  AtTheEnd& operator=(AtTheEnd&&) = delete;
  ~AtTheEnd() {
    if (job_ != nullptr) (*job_)();
  }

 private:
  std::unique_ptr<Job> job_;
};

TEST(SchedulerRegress, APeriodicTimerMovedToADateFollowsTheWallClock) {
  for (const auto step : {30min, -30min}) {
    Simulation simulation(1);
    std::vector<WallTime> runs;
    TimerHandle timer = simulation.scheduler().schedule_every(
        {.period = 10h}, [&] { runs.push_back(start_of(simulation.clock())); });
    const WallTime date = start_of(simulation.clock()) + 1h;
    timer.expires_at(date);
    simulation.step_wall(step);
    simulation.run_for(2h);
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0], date);
    simulation.step_wall(-5s);  // the date has passed: the timer continues on the monotonic clock
    simulation.run_for(10h);
    EXPECT_EQ(runs.size(), 2u);
  }
}

TEST(SchedulerRegress, AJobThatIsDroppedMayStopTheScheduler) {
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::run_pending, Drain::hand_back}) {
    SchedulerRig rig;
    Scheduler& scheduler = rig.scheduler();
    const auto stop = [&] { scheduler.stop(drain); };
    scheduler.schedule_after(1h, [end = AtTheEnd(stop)] {}).release();
    scheduler.schedule_every({.period = 1h}, [end = AtTheEnd(stop)] {}).release();
    rig.settle();
    std::thread time([&] {
      if (drain != Drain::run_pending) return;
      rig.clock().await_waiters(1);
      rig.clock().advance(1h);
    });
    scheduler.stop(drain);
    time.join();
    EXPECT_EQ(scheduler.stats().pending, 0u);
  }
}

TEST(SchedulerRegress, PostponedTimersKeepTheOrderOfDeadlines) {
  SchedulerRig rig({.shards = 1});
  std::vector<char> order;
  TimerHandle a = rig.scheduler().schedule_after(5ms, [&] { order.push_back('a'); });
  const TimerHandle b = rig.scheduler().schedule_after(7ms, [&] { order.push_back('b'); });
  a.expires_after(10ms);
  rig.advance(20ms);
  EXPECT_EQ(order, (std::vector{'b', 'a'}));
}

// A job waits for its executor while the wall clock is stepped back to before its date.
TEST(SchedulerRegress, ADateThatWaitsForItsExecutorIsNotEarly) {
  Simulation simulation(1, {.job_delay = 1min});
  const WallTime date = start_of(simulation.clock()) + 1h;
  WallTime ran{};
  const TimerHandle timer =
      simulation.scheduler().schedule_at(date, [&] { ran = start_of(simulation.clock()); });
  simulation.run_for(1h);
  simulation.step_wall(-30min);
  simulation.run_for(29min);
  EXPECT_EQ(ran, WallTime{});
  simulation.run_for(5min);
  EXPECT_GE(ran, date);
}

// The same during the stop of the scheduler.
TEST(SchedulerRegress, ADateThatWaitsForItsExecutorAndIsTooEarlyIsNotDueAtTheEnd) {
  Simulation simulation(1, {.job_delay = 1min});
  TimerHandle timer = simulation.scheduler().schedule_at(start_of(simulation.clock()) + 1h,
                                                         [] { FAIL() << "it would be early"; });
  simulation.run_for(1h);
  simulation.step_wall(-30min);
  simulation.scheduler().stop(Drain::run_due);
  EXPECT_EQ(simulation.scheduler().stats().pending, 0u);
  EXPECT_EQ(simulation.scheduler().stats().dropped, 1u);
  EXPECT_FALSE(timer.expires_after(1s));
}

TEST(SchedulerRegress, ADateThatWaitsForItsExecutorAndIsTooEarlyRunsAtItsDateAtTheEnd) {
  Simulation simulation(1, {.job_delay = 1min});
  const WallTime date = start_of(simulation.clock()) + 1h;
  WallTime ran{};
  const TimerHandle timer =
      simulation.scheduler().schedule_at(date, [&] { ran = start_of(simulation.clock()); });
  simulation.run_for(1h);
  simulation.step_wall(-30min);
  simulation.scheduler().stop(Drain::run_pending);
  EXPECT_GE(ran, date);
  EXPECT_EQ(simulation.scheduler().stats().pending, 0u);
  EXPECT_EQ(simulation.scheduler().stats().dropped, 0u);
}

TEST(SchedulerRegress, ADateIsNotRunInTheCaller) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle only = rig.scheduler().schedule_after(1h, [] {});
  const WallTime date = start_of(rig.clock()) + 1h;
  EXPECT_FALSE(rig.scheduler().schedule_at(date, [] { FAIL() << "it could be early"; }));
  EXPECT_EQ(rig.scheduler().stats().rejected, 1u);
}

Task<void> sleep_ten_hours(Scheduler& scheduler, std::stop_token stop, std::atomic<bool>& over) {
  const bool slept = co_await sleep_for(scheduler, 10h, stop);
  over = !slept;
}

TEST(SchedulerRegress, ASleeperCanBeStoppedWhileTheSchedulerRunsPendingTimers) {
  SchedulerRig rig;
  std::stop_source source;
  std::atomic<bool> over = false;
  spawn(sleep_ten_hours(rig.scheduler(), source.get_token(), over), [](std::exception_ptr) {});
  rig.settle();
  std::thread stopper([&] { rig.scheduler().stop(Drain::run_pending); });
  while (rig.scheduler().is_running()) std::this_thread::yield();
  source.request_stop();
  stopper.join();  // not in ten hours, which this clock never reaches
  EXPECT_TRUE(over);
}

TEST(SchedulerRegress, ASimulationEndsWithATimerAtTheEndOfTime) {
  Simulation simulation(1);
  int runs = 0;
  const TimerHandle never =
      simulation.scheduler().schedule_after(std::chrono::hours::max(), [&] { ++runs; });
  simulation.run_for(24h);
  simulation.scheduler().stop(Drain::run_pending);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(simulation.scheduler().stats().dropped, 1u);
}

TEST(SchedulerRegressDeathTest, AKeyedJobFromANullFunctionIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SchedulerRig rig;
        rig.scheduler().schedule_keyed("k", 1s, std::function<void()>());
      },
      "job_is_callable");
}

}  // namespace
}  // namespace detent

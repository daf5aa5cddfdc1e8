// The life of timer groups in their scheduler: the end of each, and that no wake-up is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/simulation.h"
#include "detent/timer_group.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(TimerGroupLife, IsOneTimerOfItsSchedulerAndNeedsNoMoreRoom) {
  Simulation simulation(1, {.scheduler = {.capacity = 1}});
  TimerGroup group(simulation.scheduler());
  int runs = 0;
  for (int i = 0; i < 1'000; ++i) group.schedule_after(i * 1ms, [&] { ++runs; }).release();
  simulation.run_for(500ms);
  const SchedulerStats parent = simulation.scheduler().stats();
  EXPECT_EQ(parent.scheduled, 1u);
  EXPECT_EQ(parent.pending, 1u);
  EXPECT_EQ(group.stats().pending, 499u);
  EXPECT_EQ(runs, 501);
  const std::vector<TimerInfo> timers = simulation.scheduler().pending_timers();
  ASSERT_EQ(timers.size(), 1u);
  EXPECT_EQ(timers[0].name, "timer group");
  EXPECT_STREQ(timers[0].scheduled_at.file, __FILE__);
}

TEST(TimerGroupLife, CostsItsSchedulerNothingWhilePausedOrEmpty) {
  Simulation simulation(1, {.scheduler = {.resolution = 1ns}});
  TimerGroup empty(simulation.scheduler());
  TimerGroup paused(simulation.scheduler());
  const TimerHandle timer = paused.schedule_after(1s, [] {});
  simulation.run_for(1ms);
  paused.pause();
  const std::uint64_t runs = simulation.scheduler().stats().runs;
  simulation.run_for(24h * 365);
  EXPECT_EQ(simulation.scheduler().stats().runs, runs);
}

TEST(TimerGroupLife, RefusesAllWhenItsSchedulerHadNoRoomForIt) {
  Simulation simulation(1, {.scheduler = {.capacity = 1}});
  const TimerHandle first = simulation.scheduler().schedule_after(1h, [] {});
  TimerGroup group(simulation.scheduler());
  EXPECT_FALSE(group.schedule_after(1s, [] {}));
  EXPECT_EQ(group.stats().dropped, 1u);
  EXPECT_EQ(group.cancel_all(), 0u);
  group.set_rate(2);
  simulation.run_for(2h);
}

TEST(TimerGroupLife, GivesItsRoomBack) {
  Simulation simulation(1, {.scheduler = {.capacity = 1}});
  { const TimerGroup group(simulation.scheduler()); }
  EXPECT_TRUE(simulation.scheduler().schedule_after(1h, [] {}));
}

TEST(TimerGroupLife, NoTimerFiresAfterItsSchedulerHasStopped) {
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::run_pending, Drain::hand_back}) {
    SchedulerRig rig;
    int alive = 0;
    int runs = 0;
    {
      TimerGroup group(rig.scheduler());
      TimerHandle timer = group.schedule_after(1s, [&, token = LifeToken(alive)] { ++runs; });
      rig.settle();
      rig.scheduler().stop(drain);
      rig.clock().advance(1min);
      EXPECT_TRUE(group.schedule_after(0s, [&] { ++runs; }).is_pending());
      group.pause();
      group.resume();
      group.set_rate(10);
      EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
      timer = group.schedule_after(1s, [&, token = LifeToken(alive)] { ++runs; });
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(runs, 0);
  }
}

TEST(TimerGroupLife, ItsTimerMayBeHandedBackAndCalled) {
  Simulation simulation(1);
  std::vector<PendingJob> left;
  int runs = 0;
  {
    TimerGroup group(simulation.scheduler());
    const TimerHandle timer = group.schedule_after(1s, [&] { ++runs; });
    simulation.run_for(1ms);
    left = simulation.scheduler().stop(Drain::hand_back);
    ASSERT_EQ(left.size(), 1u);
    simulation.clock().advance(1min);
    left[0].job();
    simulation.run_for(1s);
    EXPECT_EQ(runs, 1);
  }
  left[0].job();
  EXPECT_EQ(runs, 1);
}

TEST(TimerGroupLife, AJobMayStopTheScheduler) {
  SchedulerRig rig;
  TimerGroup group(rig.scheduler());
  int runs = 0;
  const TimerHandle stop = group.schedule_after(1s, [&] { rig.scheduler().stop(); });
  const TimerHandle never = group.schedule_after(2s, [&] { ++runs; });
  rig.settle();
  rig.clock().advance(1s);
  rig.scheduler().stop();  // waits
  rig.clock().advance(1min);
  EXPECT_EQ(runs, 0);
}

TEST(TimerGroupLife, HandlesMayOutliveIt) {
  Simulation simulation(1);
  int alive = 0;
  TimerHandle timer;
  {
    TimerGroup group(simulation.scheduler());
    timer = group.schedule_after(1s, [token = LifeToken(alive)] {});
  }
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(timer.expires_after(1s));
  EXPECT_EQ(timer.cancel_and_wait(), CancelResult::not_pending);
  simulation.run_for(1min);
}

TEST(TimerGroupLife, MayBeDestroyedWithJobsQueued) {
  Simulation simulation(1, {.job_delay = 1s});
  int runs = 0;
  std::optional<TimerGroup> group(simulation.scheduler());
  for (int i = 0; i < 100; ++i) group->schedule_after(1s, [&] { ++runs; }).release();
  simulation.run_for(2s);
  const int before = runs;
  ASSERT_LT(runs, 100);
  group.reset();
  simulation.run_for(1min);
  EXPECT_EQ(runs, before);
}

TEST(TimerGroupLife, MayBeDestroyedInAJobOfItsSchedulerOrOfAnotherGroup) {
  SchedulerRig rig;  // jobs run on the thread that drives the group
  TimerGroup other(rig.scheduler());
  std::optional<TimerGroup> one(rig.scheduler());
  std::optional<TimerGroup> two(rig.scheduler());
  int runs = 0;
  const TimerHandle a = one->schedule_after(1s, [&] { ++runs; });
  const TimerHandle b = two->schedule_after(1s, [&] { ++runs; });
  const TimerHandle c = rig.scheduler().schedule_after(500ms, [&] { one.reset(); });
  const TimerHandle d = other.schedule_after(600ms, [&] { two.reset(); });
  rig.settle();
  rig.advance(700ms);
  EXPECT_FALSE(one);
  EXPECT_FALSE(two);
  rig.advance(1min);
  EXPECT_EQ(runs, 0);
}

TEST(TimerGroupLife, ExceptionsOfItsJobsGoToTheSchedulersHandlerUnlessItHasOne) {
  int to_scheduler = 0;
  int to_group = 0;
  Simulation simulation(
      1, {.scheduler = {.error_handler = [&](std::exception_ptr) { ++to_scheduler; }}});
  TimerGroup plain(simulation.scheduler());
  TimerGroup own(simulation.scheduler(),
                 {.error_handler = [&](std::exception_ptr) { ++to_group; }});
  const auto fail = [] { throw std::runtime_error("a job's"); };
  const TimerHandle a = plain.schedule_after(1s, fail);
  const TimerHandle b = own.schedule_every({.period = 1s, .count = 2}, fail);
  simulation.run_for(1min);
  EXPECT_EQ(to_scheduler, 1);
  EXPECT_EQ(to_group, 2);
  EXPECT_EQ(own.stats().errors, 2u);
}

TEST(TimerGroupLife, LetsOtherTimersRunWhenItAlwaysHasDueTimers) {
  constexpr int kMost = 100'000;
  SchedulerRig rig({.order = DueOrder::by_schedule});  // the timer of the group comes first
  TimerGroup group(rig.scheduler());
  int runs = 0;
  bool stop = false;
  const std::function<void()> again = [&] {
    if (!stop && ++runs < kMost) group.schedule_after(0s, again).release();
  };
  const TimerHandle first = group.schedule_after(1s, again);
  const TimerHandle other = rig.scheduler().schedule_after(1s, [&] { stop = true; });
  rig.settle();
  rig.advance(1s);
  EXPECT_LT(runs, kMost);
}

TEST(TimerGroupLifeDeathTest, DestroyingItInsideItsOwnJobIsABug) {
  EXPECT_DEATH(
      {
        Simulation simulation(1);
        std::optional<TimerGroup> group(simulation.scheduler());
        group->schedule_after(1s, [&] { group.reset(); }).release();
        simulation.run_for(1min);
      },
      "of_scheduler");
}

// ---- No lost wake-up ----------------------------------------------------------------------------

/// Keeps jobs until the test runs them.
class HoldingExecutor final : public Executor {
 public:
  void execute(Job job) override {
    MutexLock lock(mu_);
    jobs_.push_back(std::move(job));
  }
  std::size_t size() const {
    MutexLock lock(mu_);
    return jobs_.size();
  }
  void run_all() {
    std::vector<Job> jobs;
    {
      MutexLock lock(mu_);
      jobs.swap(jobs_);
    }
    for (Job& job : jobs) job();
  }

 private:
  mutable Mutex mu_;
  std::vector<Job> jobs_ DETENT_GUARDED_BY(mu_);
};

TEST(TimerGroupWakeUp, IsNotLostNorRepeatedWhileTheParentsTimerIsQueued) {
  HoldingExecutor executor;
  SchedulerRig rig({.executor = &executor});
  rig.advance(1s);
  TimerGroup group(rig.scheduler());
  int runs = 0;
  for (int i = 3; i > 0; --i) {
    group.schedule_after(i * 1s, [&] { ++runs; }).release();  // each timer is earlier
    rig.settle();
    EXPECT_EQ(executor.size(), 1u) << "the parent's timer waits, and keeps its place";
  }
  group.set_rate(1000);
  group.pause();
  group.resume();
  rig.advance(1s);
  EXPECT_EQ(executor.size(), 1u);
  executor.run_all();  // a step of the group: hands out three jobs
  EXPECT_EQ(executor.size(), 3u);
  executor.run_all();
  EXPECT_EQ(runs, 3);
}

TEST(TimerGroupWakeUp, IsNotLostWhileAStepIsUnderWay) {
  for (const bool change_rate : {false, true}) {
    SchedulerRig rig;
    TimerGroup group(rig.scheduler());
    Gate inside;
    Gate go_on;
    std::atomic<int> runs = 0;
    const TimerHandle slow = group.schedule_after(1s, [&] {
      inside.open();
      go_on.wait();
    });
    const TimerHandle far = group.schedule_after(1h, [&] { ++runs; });
    rig.settle();
    rig.clock().advance(1s);
    inside.wait();
    TimerHandle soon;
    if (change_rate) {
      group.set_rate(1000);
    } else {
      soon = group.schedule_after(1s, [&] { ++runs; });
    }
    go_on.open();
    rig.settle();
    rig.advance(4s);
    EXPECT_EQ(runs, 1);
  }
}

/// Calls a function during the n-th reading of the time.
class HookedClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override {
    if (counting_ && ++readings_ == hooked_) hook_();
    return clock_.now();
  }
  WallInstant wall_now() const noexcept override { return clock_.wall_now(); }
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override {
    counting_ = false;
    return clock_.wait(bell, until);
  }

  ManualClock& manual() { return clock_; }
  /// Called from a job on the driver's thread. Counts the readings until the driver sleeps.
  void count(int hooked, std::function<void()> hook) {
    hook_ = std::move(hook);
    hooked_ = hooked;
    readings_ = 0;
    counting_ = true;
  }
  int readings() const { return readings_; }

 private:
  ManualClock clock_;
  // Used by the driver's thread, and by other threads while the driver sleeps.
  mutable std::atomic<bool> counting_ = false;
  mutable int readings_ = 0;
  int hooked_ = 0;
  std::function<void()> hook_;
};

// Before the driver sleeps, it reads the time twice: at the end of a run (after the job has
// returned, before the timer is set again), and in the step after the run. At the first reading,
// the job has finished and the timer is not pending. A wake-up at this moment would be lost if it
// could only move pending timers. The first round counts the readings. The second round wakes the
// group during the first of these two readings.
TEST(TimerGroupWakeUp, IsNotLostBetweenTheJobsLastStepAndTheTimersNextRun) {
  int hooked = 0;
  for (const bool is_hooked : {false, true}) {
    HookedClock clock;
    Scheduler scheduler({.clock = &clock});
    TimerGroup group(scheduler);
    std::atomic<int> runs = 0;
    TimerHandle extra;
    const TimerHandle timer = group.schedule_after(1s, [&] {
      clock.count(hooked, [&] { extra = group.schedule_after(1s, [&] { ++runs; }); });
    });
    clock.manual().await_waiters(1);
    clock.manual().advance(1s);
    clock.manual().await_waiters(1);
    if (!is_hooked) {
      hooked = clock.readings() - 1;
      ASSERT_GT(hooked, 0);
      continue;
    }
    EXPECT_TRUE(extra.is_pending());
    clock.manual().advance(1s);
    clock.manual().await_waiters(1);
    EXPECT_EQ(runs, 1);
  }
}

}  // namespace
}  // namespace detent

// How a stop can be shortened: by a stronger stop, and by a deadline.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// Calls `stop` on its own thread. When the constructor returns, the scheduler is stopping.
class StopElsewhere {
 public:
  template <class... Bound>
  explicit StopElsewhere(Scheduler& scheduler, Drain drain, Bound... bound)
      : thread_([&scheduler, drain, bound...] { scheduler.stop(drain, bound...); }) {
    while (scheduler.is_running()) std::this_thread::yield();
  }
  ~StopElsewhere() { join(); }
  StopElsewhere(const StopElsewhere&) = delete;
  StopElsewhere& operator=(const StopElsewhere&) = delete;

  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

/// A pool whose only thread is blocked until this object is destroyed. Jobs that the scheduler
/// hands over stay queued.
class HeldPool {
 public:
  HeldPool() : pool_({.threads = 1}) {
    pool_.execute([this] {
      busy_.open();
      go_on_.wait();
    });
    busy_.wait();
  }
  ~HeldPool() { go_on_.open(); }
  HeldPool(const HeldPool&) = delete;
  HeldPool& operator=(const HeldPool&) = delete;

  Executor& pool() { return pool_; }

 private:
  Gate busy_;
  Gate go_on_;
  ThreadPool pool_;
};

// ---- a stronger stop ----------------------------------------------------------------------------

TEST(SchedulerStopAgain, DropEndsAStopThatWaitsForTheFarthestTimer) {
  SchedulerRig rig;
  int alive = 0;
  rig.scheduler().schedule_after(1h, [token = LifeToken(alive)] { FAIL(); }).release();
  StopElsewhere weaker(rig.scheduler(), Drain::run_pending);
  EXPECT_TRUE(rig.scheduler().stop(Drain::drop).empty());
  EXPECT_EQ(alive, 0);
  weaker.join();  // otherwise it returns after an hour
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

TEST(SchedulerStopAgain, HandBackReturnsTimersThatAnEarlierStopWouldStillRun) {
  SchedulerRig rig;
  rig.scheduler().schedule_after(1h, [] {}).release();
  const StopElsewhere weaker(rig.scheduler(), Drain::run_pending);
  EXPECT_EQ(rig.scheduler().stop(Drain::hand_back).size(), 1u);
}

TEST(SchedulerStopAgain, DropTakesJobsBackThatWaitForTheExecutor) {
  HeldPool held;
  SchedulerRig rig({.executor = &held.pool()});
  rig.scheduler()
      .schedule_after(1s, [] { FAIL() << "the pool's thread was never free"; })
      .release();
  rig.settle();
  rig.advance(1s);
  StopElsewhere weaker(rig.scheduler(), Drain::run_due);
  rig.scheduler().stop(Drain::drop);
  weaker.join();
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

TEST(SchedulerStopAgain, AWeakerOneOnlyWaits) {
  Simulation simulation(1, {.job_delay = 1min});
  int runs = 0;
  simulation.scheduler()
      .schedule_after(1s, [&] { simulation.scheduler().stop(Drain::run_due); })
      .release();
  simulation.scheduler().schedule_after(1h, [&] { ++runs; }).release();
  simulation.run_for(2min);
  simulation.scheduler().stop(Drain::run_pending);
  EXPECT_EQ(runs, 0) << "it was dropped, as the first stop said";
}

// ---- a deadline ---------------------------------------------------------------------------------

TEST(SchedulerStopDeadline, TimersDueBeforeItRunAndTheOthersAreDropped) {
  Simulation simulation(1);
  std::vector<nanoseconds> ran;
  for (const nanoseconds delay : {1h, 2h, 3h}) {
    simulation.scheduler().schedule_after(delay, [&, delay] { ran.push_back(delay); }).release();
  }
  EXPECT_TRUE(simulation.scheduler().stop(Drain::run_pending, 150min).empty());
  EXPECT_EQ(ran, (std::vector<nanoseconds>{1h, 2h}));
  EXPECT_EQ(simulation.clock().now(), MonotonicTime{150min});
  EXPECT_EQ(simulation.scheduler().stats().dropped, 1u);
}

TEST(SchedulerStopDeadline, ASimulationStopsAtTheDeadline) {
  for (const Drain drain : {Drain::run_due, Drain::run_pending}) {
    Simulation simulation(1, {.job_delay = 1h});
    simulation.scheduler().schedule_after(1ms, [] {}).release();
    simulation.run_for(10ms);
    const MonotonicTime deadline = simulation.clock().now() + 1s;
    simulation.scheduler().stop(drain, deadline);
    EXPECT_EQ(simulation.scheduler().stats().dropped, 1u);
    EXPECT_EQ(simulation.clock().now(), deadline);
  }
}

TEST(SchedulerStopDeadline, ALimitThatIsNotPositiveDropsImmediately) {
  for (const nanoseconds limit : {0ns, -1ns, nanoseconds::min()}) {
    SchedulerRig rig;
    rig.scheduler().schedule_after(1h, [] { FAIL(); }).release();
    rig.scheduler().stop(Drain::run_pending, limit);
    EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
  }
}

TEST(SchedulerStopDeadline, ALaterStopMaySetTheDeadline) {
  SchedulerRig rig;
  rig.scheduler().schedule_after(24h, [] { FAIL(); }).release();
  StopElsewhere unbounded(rig.scheduler(), Drain::run_pending);
  rig.settle();
  std::thread bounded([&] { rig.scheduler().stop(Drain::run_pending, MonotonicTime{1h}); });
  rig.clock().advance(1h);
  bounded.join();
  unbounded.join();
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

TEST(SchedulerStopDeadline, JobsThatWaitForTheExecutorAreDropped) {
  HeldPool held;
  SchedulerRig rig({.executor = &held.pool()});
  rig.scheduler()
      .schedule_after(1s, [] { FAIL() << "the pool's thread was never free"; })
      .release();
  rig.settle();
  rig.advance(1s);
  StopElsewhere stop(rig.scheduler(), Drain::run_due, MonotonicTime{1min});
  rig.clock().advance(1min);
  stop.join();
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

TEST(SchedulerStopDeadline, HoldsBetweenJobsThatTheDriverRunsOneAfterTheOther) {
  SchedulerRig rig({.shards = 1});
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    rig.scheduler()
        .schedule_after(1s,
                        [&] {
                          ++runs;
                          rig.scheduler().stop(Drain::run_due, 5s);  // inside a job: does not wait
                          rig.clock().advance(10s);
                        })
        .release();
  }
  rig.settle();
  rig.clock().advance(1s);
  while (rig.scheduler().is_running()) std::this_thread::yield();
  rig.scheduler().stop(Drain::run_pending);  // the weakest stop: only waits
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(rig.scheduler().stats().dropped, 2u);
}

}  // namespace
}  // namespace detent

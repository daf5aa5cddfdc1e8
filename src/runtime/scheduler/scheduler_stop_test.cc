// The end of a scheduler: what happens to pending, queued and running timers, from every thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

/// Keeps jobs until the test runs them.
class KeepingExecutor final : public Executor {
 public:
  void execute(Job job) override {
    const MutexLock lock(mu_);
    jobs_.push_back(std::move(job));
  }
  /// Runs the n-th job that the executor got.
  void run(std::size_t n) {
    Job job;
    {
      const MutexLock lock(mu_);
      job = std::move(jobs_.at(n));
    }
    job();
  }

 private:
  Mutex mu_;
  std::vector<Job> jobs_ DETENT_GUARDED_BY(mu_);
};

TEST(SchedulerStop, DestructionDropsPendingTimers) {
  int fired = 0;
  int alive = 0;
  {
    SchedulerRig rig;
    for (int i = 0; i < 1000; ++i) {
      rig.scheduler()
          .schedule_after(1h + i * 1s, [&fired, token = LifeToken(alive)] { ++fired; })
          .release();
    }
    EXPECT_EQ(alive, 1000);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(fired, 0);
}

TEST(SchedulerStop, DropDestroysPendingJobsBeforeItReturns) {
  SchedulerRig rig;
  int alive = 0;
  TimerHandle timer = rig.scheduler().schedule_after(1ms, [token = LifeToken(alive)] {});
  EXPECT_TRUE(rig.scheduler().stop(Drain::drop).empty());
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

// The executor still has the job for the old deadline. This run must do nothing.
TEST(SchedulerStop, RunPendingRunsATimerThatWasMovedWhileItWasQueued) {
  KeepingExecutor executor;
  SchedulerRig rig({.executor = &executor});
  int runs = 0;
  TimerHandle moved = rig.scheduler().schedule_after(1s, [&] { ++runs; });
  const TimerHandle stop =
      rig.scheduler().schedule_after(2s, [&] { rig.scheduler().stop(Drain::run_pending); });
  rig.settle();
  rig.advance(1s);
  EXPECT_TRUE(moved.expires_after(10s));
  rig.advance(1s);
  executor.run(1);
  executor.run(0);
  EXPECT_TRUE(moved.is_pending());
  rig.advance(9s);
  executor.run(2);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(rig.scheduler().stats().dropped, 0u);
}

TEST(SchedulerStop, RunDueRunsDueTimersAndDropsTheRest) {
  ManualClock clock;
  ThreadPool pool({.threads = 1});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  int due = 0;
  int later = 0;
  int periodic = 0;
  Gate busy;
  Gate go_on;
  // The only thread of the pool is blocked, so all timers below are still queued when the stop
  // begins.
  pool.execute([&] {
    busy.open();
    go_on.wait();
  });
  busy.wait();
  const TimerHandle a = scheduler.schedule_after(1ms, [&] { ++due; });
  const TimerHandle b = scheduler.schedule_after(2ms, [&] { ++later; });
  const TimerHandle c = scheduler.schedule_every({.period = 1ms}, [&] { ++periodic; });
  clock.advance(1ms);
  std::thread opener([&] { go_on.open(); });
  EXPECT_TRUE(scheduler.stop(Drain::run_due).empty());
  EXPECT_EQ(due, 1);
  EXPECT_EQ(later, 0);
  EXPECT_EQ(periodic, 1);
  EXPECT_EQ(scheduler.stats().dropped, 2u);
  EXPECT_EQ(scheduler.stats().completed, 1u);
  opener.join();
}

/// A clock that can block another thread after it has read the time.
class HoldingClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override {
    const MonotonicTime now = clock_.now();
    if (std::this_thread::get_id() != holder_ && holds_.exchange(false)) {
      held_.open();
      go_on_.wait();
    }
    return now;
  }
  WallInstant wall_now() const noexcept override { return clock_.wall_now(); }
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override {
    return clock_.wait(bell, until);
  }

  ManualClock& manual() { return clock_; }
  /// Blocks the next thread that reads the time until `release`. The thread that made the clock is
  /// never blocked.
  void hold_next_reader() { holds_ = true; }
  void await_reader() { held_.wait(); }
  void release() { go_on_.open(); }

 private:
  const std::thread::id holder_ = std::this_thread::get_id();
  ManualClock clock_;
  mutable std::atomic<bool> holds_ = false;
  mutable Gate held_;
  mutable Gate go_on_;
};

// The driver has read the time but has not looked at a shard yet. Then time passes and the stop
// begins.
TEST(SchedulerStop, RunDueRunsTimersThatBecameDueDuringALook) {
  HoldingClock clock;
  ThreadPool pool({.threads = 1});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  int ran = 0;
  Gate began;
  Gate may_stop;
  Gate stopped;
  const TimerHandle stopper = scheduler.schedule_after(0ms, [&] {
    began.open();
    may_stop.wait();
    scheduler.stop(Drain::run_due);  // inside a job it does not wait
    stopped.open();
  });
  began.wait();  // the pool reads the time no more, and the driver sleeps
  clock.manual().await_waiters(1);
  clock.hold_next_reader();
  scheduler.schedule_after(1ms, [&] { ++ran; }).release();
  clock.await_reader();
  clock.manual().advance(1ms);
  may_stop.open();
  stopped.wait();
  clock.release();
  scheduler.stop(Drain::run_due);  // waits for the end
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(scheduler.stats().dropped, 0u);
}

struct OpensWhenDestroyed {
  void operator()(Gate* gate) const { gate->open(); }
};

// A dropped job opens a gate when the driver thread ends. From then on, stop() waits only for the
// queued timer.
void cancel_the_last_queued_timer_while_stop_waits(int yields) {
  ManualClock clock;
  Gate busy;
  Gate go_on;
  Gate driver_ends;
  ThreadPool pool({.threads = 1});
  pool.execute([&] {
    busy.open();
    go_on.wait();
  });
  busy.wait();
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  TimerHandle queued = scheduler.schedule_after(1ms, [] { FAIL() << "it was cancelled"; });
  std::unique_ptr<Gate, OpensWhenDestroyed> token(&driver_ends);
  scheduler.schedule_after(1h, [token = std::move(token)] {}).release();
  clock.await_waiters(1);
  clock.advance(1ms);
  std::thread stopper([&] { scheduler.stop(Drain::run_due); });
  driver_ends.wait();
  for (int i = 0; i < yields; ++i) std::this_thread::yield();
  EXPECT_EQ(queued.cancel(), CancelResult::cancelled);
  stopper.join();
  go_on.open();
}

// A test cannot see from outside whether stop() has looked again, so it tries many moments.
TEST(SchedulerStop, CancellingTheLastQueuedTimerLetsStopReturn) {
  for (int yields = 0; yields < 200; ++yields) {
    cancel_the_last_queued_timer_while_stop_waits(yields);
  }
}

TEST(SchedulerStop, HandBackReturnsJobsThatStillWork) {
  SchedulerRig rig;
  int once = 0;
  int often = 0;
  rig.scheduler().schedule_after(5s, [&] { ++once; }).release();
  rig.scheduler().schedule_every({.period = 2s, .count = 5}, [&] { ++often; }).release();
  rig.advance(3s);
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  std::sort(left.begin(), left.end(),
            [](const PendingJob& a, const PendingJob& b) { return a.deadline < b.deadline; });
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].deadline, MonotonicTime{4s});
  ASSERT_TRUE(left[0].periodic.has_value());
  EXPECT_EQ(left[0].periodic->count, 4u);
  EXPECT_EQ(left[1].deadline, MonotonicTime{5s});
  EXPECT_FALSE(left[1].periodic.has_value());
  left[1].job();
  EXPECT_EQ(once, 1);
  EXPECT_EQ(often, 1);
}

TEST(SchedulerStop, IsIdempotent) {
  SchedulerRig rig;
  rig.scheduler().schedule_after(1h, [] {}).release();
  EXPECT_EQ(rig.scheduler().stop(Drain::hand_back).size(), 1u);
  EXPECT_TRUE(rig.scheduler().stop(Drain::hand_back).empty());
  EXPECT_TRUE(rig.scheduler().stop(Drain::drop).empty());
  EXPECT_TRUE(rig.scheduler().stop(Drain::run_due).empty());
}

TEST(SchedulerStop, RefusesTimersThatAreScheduledAfterwards) {
  SchedulerRig rig;
  rig.scheduler().stop();
  int alive = 0;
  int fired = 0;
  TimerHandle timer =
      rig.scheduler().schedule_after(0s, [&fired, token = LifeToken(alive)] { ++fired; });
  EXPECT_FALSE(timer);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

TEST(SchedulerStop, WaitsForTheJobThatRuns) {
  Gate began;
  Gate may_end;
  SchedulerRig rig;
  bool ended = false;
  rig.scheduler()
      .schedule_after(1ms,
                      [&] {
                        began.open();
                        may_end.wait();
                        ended = true;
                      })
      .release();
  rig.clock().advance(1ms);
  began.wait();
  std::thread opener([&] { may_end.open(); });
  rig.scheduler().stop();
  EXPECT_TRUE(ended);
  opener.join();
}

TEST(SchedulerStop, SeveralThreadsMayStopAtOnceAndAllOfThemWait) {
  for (int round = 0; round < 20; ++round) {
    Gate began;
    Gate may_end;
    SchedulerRig rig;
    bool ended = false;
    rig.scheduler()
        .schedule_after(1ms,
                        [&] {
                          began.open();
                          may_end.wait();
                          ended = true;
                        })
        .release();
    for (int i = 0; i < 10; ++i) rig.scheduler().schedule_after(1h, [] {}).release();
    rig.clock().advance(1ms);
    began.wait();
    std::atomic<std::size_t> handed_back = 0;
    std::vector<std::thread> stoppers;
    for (int i = 0; i < 4; ++i) {
      stoppers.emplace_back([&] {
        handed_back += rig.scheduler().stop(Drain::hand_back).size();
        EXPECT_TRUE(ended);
      });
    }
    may_end.open();
    for (std::thread& stopper : stoppers) stopper.join();
    EXPECT_EQ(handed_back, 10u);
  }
}

TEST(SchedulerStop, InsideAJobDoesNotWaitForItself) {
  Gate stopped;
  SchedulerRig rig;
  int alive = 0;
  int fired = 0;
  rig.scheduler()
      .schedule_after(1ms,
                      [&] {
                        rig.scheduler().stop(Drain::drop);
                        EXPECT_EQ(alive, 0);
                        stopped.open();
                      })
      .release();
  // Due in the same batch, so it is already queued when the job above stops the scheduler.
  rig.scheduler().schedule_after(2ms, [&fired, token = LifeToken(alive)] { ++fired; }).release();
  rig.clock().advance(2ms);
  stopped.wait();
  rig.scheduler().stop();
  EXPECT_EQ(fired, 0);
}

TEST(SchedulerStop, APeriodicJobThatRunsDuringAStopIsNotArmedAgain) {
  Gate began;
  Gate may_end;
  SchedulerRig rig;
  int runs = 0;
  rig.scheduler()
      .schedule_every({.period = 1ms},
                      [&] {
                        ++runs;
                        began.open();
                        may_end.wait();
                      })
      .release();
  rig.clock().advance(1ms);
  began.wait();
  std::thread opener([&] { may_end.open(); });
  rig.scheduler().stop();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
  EXPECT_EQ(rig.scheduler().stats().pending, 0u);
  opener.join();
}

TEST(SchedulerStopDeathTest, DestroyingTheSchedulerInsideItsOwnJobIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ManualClock clock;
        std::optional<Scheduler> scheduler;
        scheduler.emplace(SchedulerOptions{.clock = &clock});
        scheduler->schedule_after(0s, [&] { scheduler.reset(); }).release();
        Gate never;
        never.wait();
      },
      "of_scheduler");
}

}  // namespace
}  // namespace detent

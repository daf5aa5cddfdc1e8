// Executors: every job runs once. If the pool is full, it runs on the thread of the caller.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

TEST(InlineExecutor, RunsTheJobBeforeItReturns) {
  InlineExecutor executor;
  std::thread::id ran_on;
  executor.execute([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

/// Throws instead of running a job. May also keep the job and throw.
class ThrowingExecutor final : public Executor {
 public:
  enum class Kept { none, all };
  explicit ThrowingExecutor(Kept kept) : kept_(kept) {}

  void execute(Job job) override {
    if (kept_ == Kept::all) jobs_.push_back(std::move(job));
    throw std::runtime_error("no room");
  }
  void run_kept() {
    for (Job& job : jobs_) job();
  }

 private:
  const Kept kept_;
  std::vector<Job> jobs_;
};

TEST(SchedulerOnAnExecutor, ReportsItsExceptionAndRunsTheJobOnTheDriver) {
  for (const auto kept : {ThrowingExecutor::Kept::none, ThrowingExecutor::Kept::all}) {
    ThrowingExecutor executor(kept);
    int errors = 0;
    SchedulerRig rig({.executor = &executor, .error_handler = [&](auto) { ++errors; }});
    int once = 0;
    int often = 0;
    const TimerHandle one = rig.scheduler().schedule_after(1s, [&] { ++once; });
    const TimerHandle periodic = rig.scheduler().schedule_every({.period = 1s}, [&] { ++often; });
    for (int i = 0; i < 3; ++i) rig.advance(1s);
    EXPECT_EQ(errors, 4);
    EXPECT_EQ(once, 1);
    EXPECT_EQ(often, 3);
    EXPECT_EQ(rig.scheduler().stats().errors, 0u) << "no job threw";
    executor.run_kept();
    EXPECT_EQ(once, 1) << "a job runs once, also when the executor kept it";
    EXPECT_EQ(often, 3);
  }
}

TEST(SchedulerOnAnExecutorDeathTest, WithoutAnErrorHandlerItsExceptionEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThrowingExecutor executor(ThrowingExecutor::Kept::none);
        SchedulerRig rig({.executor = &executor});
        rig.scheduler().schedule_after(0s, [] {}).release();
        rig.settle();
      },
      "no room");
}

TEST(ThreadPool, RunsEveryJobOnceAndFinishesThemWhenDestroyed) {
  std::atomic<int> runs = 0;
  {
    ThreadPool pool({.threads = 3, .capacity = 10'000});
    for (int i = 0; i < 5000; ++i) pool.execute([&] { ++runs; });
  }
  EXPECT_EQ(runs, 5000);
}

TEST(ThreadPool, RunsJobsInParallel) {
  Gate first;
  Gate second;
  Gate done;
  ThreadPool pool({.threads = 2});
  pool.execute([&] {
    first.open();
    second.wait();
    done.open();
  });
  pool.execute([&] {
    first.wait();
    second.open();
  });
  done.wait();
}

TEST(ThreadPool, RunsAJobOnTheCallersThreadWhenItsQueueIsFull) {
  Gate busy;
  Gate go_on;
  std::atomic<int> queued = 0;
  ThreadPool pool({.threads = 1, .capacity = 2});  // destroyed first: its jobs use the others
  pool.execute([&] {
    busy.open();
    go_on.wait();
  });
  busy.wait();
  pool.execute([&] { ++queued; });
  pool.execute([&] { ++queued; });
  std::thread::id ran_on;
  pool.execute([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(queued, 0);
  go_on.open();
}

// The caller waits: its next step has not happened when the pool continues. The thread that ran the
// job shows whether the caller ran the job itself.
TEST(ThreadPool, WaitsForRoomWhenAskedTo) {
  Gate busy;
  Gate go_on;
  std::atomic<bool> handed_over = false;
  std::thread::id ran_on;
  std::thread caller;
  {
    ThreadPool pool({.threads = 1, .capacity = 1, .when_full = WhenPoolFull::block});
    pool.execute([&] {
      busy.open();
      go_on.wait();
      EXPECT_FALSE(handed_over);
    });
    busy.wait();
    pool.execute([] {});  // fills the queue
    caller = std::thread([&] {
      pool.execute([&] { ran_on = std::this_thread::get_id(); });
      handed_over = true;
    });
    go_on.open();
    while (!handed_over) std::this_thread::yield();
  }
  EXPECT_NE(ran_on, caller.get_id());
  EXPECT_NE(ran_on, std::thread::id());
  caller.join();
}

TEST(ThreadPool, AJobDoesNotWaitForRoomInItsOwnPool) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool({.threads = 1, .capacity = 1, .when_full = WhenPoolFull::block});
    pool.execute([&] {
      for (int i = 0; i < 10; ++i) pool.execute([&] { ++ran; });
    });
  }
  EXPECT_EQ(ran, 10);
}

TEST(ThreadPoolDeathTest, AnExceptionFromAPlainJobEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool({.threads = 1});
        pool.execute([] { throw std::runtime_error("loose"); });
      },
      "loose");
}

TEST(ThreadPoolDeathTest, MustNotBeDestroyedByItsOwnThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto pool = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = 1});
        std::promise<void> never;
        pool->execute([&] { pool.reset(); });
        never.get_future().wait();
      },
      "pool_of_this_thread != this");
}

TEST(SchedulerOnAPool, JobsLeaveTheDriverThread) {
  Gate began;
  Gate may_end;
  Gate other;
  ManualClock clock;
  ThreadPool pool({.threads = 2});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  const TimerHandle slow = scheduler.schedule_after(1ms, [&] {
    began.open();
    may_end.wait();
  });
  const TimerHandle quick = scheduler.schedule_after(2ms, [&] { other.open(); });
  clock.advance(1ms);
  began.wait();
  clock.advance(1ms);
  other.wait();  // while the slow job is still running
  may_end.open();
  scheduler.stop();
  EXPECT_EQ(scheduler.stats().completed, 2u);
}

TEST(SchedulerOnAPool, CancelReachesAJobThatWaitsInTheQueue) {
  Gate began;
  Gate may_end;
  ManualClock clock;
  ThreadPool pool({.threads = 1});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  int fired = 0;
  int alive = 0;
  const TimerHandle first = scheduler.schedule_after(1ms, [&] {
    began.open();
    may_end.wait();
  });
  TimerHandle second =
      scheduler.schedule_after(1ms, [&fired, token = LifeToken(alive)] { ++fired; });
  clock.advance(1ms);
  began.wait();
  clock.await_waiters(1);  // the driver has handed out both
  EXPECT_TRUE(second.is_pending());
  EXPECT_EQ(second.cancel(), CancelResult::cancelled);
  EXPECT_EQ(alive, 0);
  may_end.open();
  scheduler.stop();
  EXPECT_EQ(fired, 0);
}

// The period is far shorter than the job. Runs must not overlap, although threads are free.
TEST(SchedulerOnAPool, RunsOfOnePeriodicTimerNeverOverlap) {
  ManualClock clock;
  ThreadPool pool({.threads = 4});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  std::atomic<int> inside = 0;
  std::atomic<int> runs = 0;
  Gate done;
  const TimerHandle timer = scheduler.schedule_every({.period = 1ms, .count = 200}, [&] {
    EXPECT_EQ(++inside, 1);
    clock.advance(5ms);
    std::this_thread::yield();
    --inside;
    if (++runs == 200) done.open();
  });
  clock.advance(1ms);
  done.wait();
  scheduler.stop();
  EXPECT_EQ(runs, 200);
}

TEST(SchedulerOnAPool, TheErrorHandlerGetsEveryException) {
  ManualClock clock;
  ThreadPool pool({.threads = 4});
  std::atomic<int> caught = 0;
  Scheduler scheduler(
      {.clock = &clock, .executor = &pool, .error_handler = [&](std::exception_ptr) { ++caught; }});
  for (int i = 0; i < 100; ++i) {
    scheduler.schedule_after(1ms, [] { throw std::runtime_error("broken"); }).release();
  }
  clock.advance(1ms);
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(caught, 100);
}

}  // namespace
}  // namespace detent

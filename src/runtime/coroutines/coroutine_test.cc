// Sleeping coroutines on a clock that the test moves. task_test.cc tests tasks and time limits.
// coroutine_stress_test.cc tests races.
#include "detent/coroutine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "runtime/testing/coroutine_test_rig.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(Sleep, WakesWhenTheTimeHasComeAndNotBefore) {
  SchedulerRig rig;
  Waking waking;
  spawn(sleep_once(rig.scheduler(), 100ms, {}, waking), Forget());
  rig.advance(100ms - 1ns);
  EXPECT_EQ(waking.count, 0);
  rig.advance(1ns);
  EXPECT_EQ(waking.count, 1);
  EXPECT_TRUE(waking.slept);
}

TEST(Sleep, UntilAnInstantAndUntilADateWakesThen) {
  SchedulerRig rig;
  const WallInstant date = rig.clock().wall_now() + 20ms - 1ns;  // rounded up
  Waking instant;
  Waking dated;
  spawn(sleep_once(rig.scheduler(), rig.clock().now() + 10ms, {}, instant), Forget());
  spawn(sleep_once(rig.scheduler(), date, {}, dated), Forget());
  rig.advance(19ms);
  EXPECT_TRUE(instant.slept);
  EXPECT_EQ(dated.count, 0);
  rig.advance(1ms);
  EXPECT_TRUE(dated.slept);
}

Task<void> sleep_as_member(Scheduler& scheduler, MonotonicTime until, WallInstant date,
                           Waking& waking) {
  waking.note(co_await scheduler.sleep_for(5ms));
  waking.note(co_await scheduler.sleep_until(until));
  waking.note(co_await scheduler.sleep_until(date));
}

TEST(Sleep, IsAMemberOfTheSchedulerToo) {
  SchedulerRig rig;
  Waking waking;
  const WallInstant date = rig.clock().wall_now() + 10ms;
  spawn(sleep_as_member(rig.scheduler(), rig.clock().now() + 8ms, date, waking), Forget());
  rig.advance(5ms);
  EXPECT_EQ(waking.count, 1);
  rig.advance(3ms);
  EXPECT_EQ(waking.count, 2);
  rig.advance(2ms);
  EXPECT_EQ(waking.count, 3);
  EXPECT_TRUE(waking.slept);
}

TEST(Sleep, OfLengthZeroContinuesOnTheExecutor) {
  SchedulerRig rig;
  Waking none;
  Waking negative;
  spawn(sleep_once(rig.scheduler(), 0s, {}, none), Forget());
  spawn(sleep_once(rig.scheduler(), -1s, {}, negative), Forget());
  rig.settle();
  EXPECT_TRUE(none.slept && negative.slept);
  EXPECT_NE(none.thread, std::this_thread::get_id());
  EXPECT_EQ(none.thread, negative.thread);
}

TEST(Sleep, StopEndsItOnTheExecutorAndNotInsideRequestStop) {
  SchedulerRig rig;
  std::stop_source source;
  Waking waking;
  waking.slept = true;
  spawn(sleep_once(rig.scheduler(), 1h, source.get_token(), waking), Forget());
  rig.settle();
  source.request_stop();
  rig.settle();
  EXPECT_EQ(waking.count, 1);
  EXPECT_FALSE(waking.slept);
  EXPECT_NE(waking.thread, std::this_thread::get_id());
  EXPECT_EQ(rig.scheduler().stats().pending, 0U);
}

TEST(Sleep, StopEndsADatedSleepBeforeItsDate) {
  SchedulerRig rig;
  std::stop_source source;
  const auto date = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now()) + 1h;
  Waking waking;
  spawn(sleep_once(rig.scheduler(), date, source.get_token(), waking), Forget());
  rig.settle();
  source.request_stop();
  rig.settle();
  EXPECT_EQ(waking.count, 1);
  EXPECT_FALSE(waking.slept);
}

TEST(Sleep, StopAfterTheWakingChangesNothing) {
  SchedulerRig rig;
  std::stop_source source;
  Waking waking;
  spawn(sleep_once(rig.scheduler(), 1ms, source.get_token(), waking), Forget());
  rig.advance(1ms);
  source.request_stop();
  rig.settle();
  EXPECT_EQ(waking.count, 1);
  EXPECT_TRUE(waking.slept);
}

TEST(Sleep, WithAStoppedTokenEndsImmediatelyInPlace) {
  SchedulerRig rig;
  std::stop_source source;
  source.request_stop();
  Waking waking;
  spawn(sleep_once(rig.scheduler(), 1h, source.get_token(), waking), Forget());
  EXPECT_EQ(waking.count, 1);
  EXPECT_FALSE(waking.slept);
  EXPECT_EQ(rig.scheduler().stats().scheduled, 0U);
}

Task<void> wait_and_stop(Scheduler& scheduler, std::stop_source other) {
  co_await sleep_for(scheduler, 1ms);
  other.request_stop();
}

TEST(Sleep, ACoroutineMayStopAnotherOne) {
  SchedulerRig rig;
  std::stop_source source;
  Waking waking;
  spawn(sleep_once(rig.scheduler(), 1h, source.get_token(), waking), Forget());
  spawn(wait_and_stop(rig.scheduler(), source), Forget());
  rig.advance(1ms);
  EXPECT_EQ(waking.count, 1);
  EXPECT_FALSE(waking.slept);
}

// ---- The end of the scheduler -------------------------------------------------------------------

TEST(Sleep, StoppedSchedulerWakesItsSleepersInsideStop) {
  SchedulerRig rig;
  int alive = 0;
  Waking waking;
  waking.slept = true;
  spawn(holding(LifeToken(alive), sleep_once(rig.scheduler(), 1h, {}, waking)), Forget());
  EXPECT_EQ(alive, 1);
  rig.scheduler().stop();
  EXPECT_EQ(waking.count, 1);
  EXPECT_FALSE(waking.slept);
  EXPECT_EQ(waking.thread, std::this_thread::get_id());
  EXPECT_EQ(alive, 0);
}

TEST(Sleep, DestroyedSchedulerWakesItsSleepers) {
  int alive = 0;
  Waking waking;
  std::stop_source source;  // its callback outlives the scheduler, but not the sleep
  {
    SchedulerRig rig;
    spawn(holding(LifeToken(alive), sleep_once(rig.scheduler(), 1h, source.get_token(), waking)),
          Forget());
  }
  EXPECT_EQ(waking.count, 1);
  EXPECT_FALSE(waking.slept);
  EXPECT_EQ(alive, 0);
  source.request_stop();
}

Task<void> sleep_until_refused(Scheduler& scheduler, int& sleeps) {
  bool slept = co_await sleep_for(scheduler, 1ms);
  while (slept) {
    ++sleeps;
    slept = co_await sleep_for(scheduler, 1ms);
  }
}

TEST(Sleep, LoopThatLooksAtTheAnswerEndsWithTheScheduler) {
  SchedulerRig rig;
  int sleeps = 0;
  int alive = 0;
  spawn(holding(LifeToken(alive), sleep_until_refused(rig.scheduler(), sleeps)), Forget());
  rig.advance(1ms);
  rig.advance(1ms);
  rig.scheduler().stop();
  EXPECT_EQ(sleeps, 2);
  EXPECT_EQ(alive, 0);
}

Task<void> sleep_often(Scheduler& scheduler, int& refused) {
  for (int i = 0; i < 100'000; ++i) {
    if (!co_await sleep_for(scheduler, 1ms)) ++refused;
  }
}

// The loop sleeps so often that a stack overflow would show if each sleep used stack.
TEST(Sleep, OnAStoppedSchedulerEndsImmediatelyInPlace) {
  SchedulerRig rig;
  rig.scheduler().stop();
  int refused = 0;
  int alive = 0;
  spawn(holding(LifeToken(alive), sleep_often(rig.scheduler(), refused)), Forget());
  EXPECT_EQ(refused, 100'000);
  EXPECT_EQ(alive, 0);
}

TEST(Sleep, HandedBackJobStillWakesItsSleeper) {
  SchedulerRig rig;
  Waking run;
  Waking dropped;
  spawn(sleep_once(rig.scheduler(), 1h, {}, run), Forget());
  spawn(sleep_once(rig.scheduler(), 2h, {}, dropped), Forget());
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(run.count + dropped.count, 0);
  std::ranges::sort(left, {}, &PendingJob::deadline);
  left[0].job();
  EXPECT_EQ(run.count, 1);
  EXPECT_TRUE(run.slept);
  left.clear();
  EXPECT_EQ(run.count, 1);
  EXPECT_EQ(dropped.count, 1);
  EXPECT_FALSE(dropped.slept);
}

// ---- The end of the coroutine -------------------------------------------------------------------

TEST(Sleep, DestroyedCoroutineTakesItsTimerAlong) {
  SchedulerRig rig;
  std::stop_source source;
  Waking waking;
  {
    const HeldCoroutine held = hold(sleep_once(rig.scheduler(), 1ms, source.get_token(), waking));
    EXPECT_EQ(rig.scheduler().stats().pending, 1U);
  }
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1U);
  source.request_stop();
  rig.advance(1ms);
  EXPECT_EQ(waking.count, 0);
}

/// Keeps jobs until the test runs them.
class LaterExecutor final : public Executor {
 public:
  void execute(Job job) override { jobs_.push_back(std::move(job)); }
  void run_all() {
    for (Job& job : std::exchange(jobs_, {})) job();
  }

 private:
  std::vector<Job> jobs_;
};

TEST(Sleep, CoroutineMayBeDestroyedWhileItsWakingWaitsForTheExecutor) {
  LaterExecutor later;
  SchedulerRig rig({.executor = &later});
  std::stop_source source;
  Waking waking;
  {
    const HeldCoroutine due = hold(sleep_once(rig.scheduler(), 1ms, {}, waking));
    const HeldCoroutine stopped = hold(sleep_once(rig.scheduler(), 1h, source.get_token(), waking));
    rig.advance(1ms);
    source.request_stop();
    rig.settle();
  }
  later.run_all();
  EXPECT_EQ(waking.count, 0);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 2U);
}

TEST(Sleep, StopMayComeWhileItsWakingWaitsForTheExecutor) {
  LaterExecutor later;
  SchedulerRig rig({.executor = &later});
  std::stop_source source;
  Waking waking;
  spawn(sleep_once(rig.scheduler(), 1ms, source.get_token(), waking), Forget());
  rig.advance(1ms);
  source.request_stop();
  rig.settle();
  later.run_all();
  EXPECT_EQ(waking.count, 1);
}

// ---- Many ---------------------------------------------------------------------------------------

struct Woken {
  MonotonicTime deadline;
  MonotonicTime at;
};

Task<void> sleep_and_list(SchedulerRig& rig, nanoseconds delay, std::vector<Woken>& woken) {
  const MonotonicTime deadline = rig.clock().now() + delay;
  co_await sleep_for(rig.scheduler(), delay);
  Woken entry;
  entry.deadline = deadline;
  entry.at = rig.clock().now();
  woken.push_back(entry);
}

TEST(Sleep, AThousandWakeInTheOrderOfTheirDeadlines) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  SchedulerRig rig;
  std::vector<Woken> woken;
  int alive = 0;
  for (int i = 0; i < 1000; ++i) {
    const nanoseconds delay = std::chrono::microseconds(10 * rng.below(100'000));
    spawn(holding(LifeToken(alive), sleep_and_list(rig, delay, woken)), Forget());
  }
  for (int i = 0; i < 10; ++i) rig.advance(100ms);
  EXPECT_EQ(woken.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(woken, {}, &Woken::deadline));
  EXPECT_TRUE(std::ranges::all_of(woken, [](const Woken& w) { return w.at >= w.deadline; }));
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace detent

// Cancelling and moving timers: each result, from each place of the call.
#include <gtest/gtest.h>
#include <malloc.h>  // tidy-ok(third-party): glibc counts the bytes that a test is about

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

TEST(TimerHandle, CancelOfAPendingTimerDestroysItsJobAtOnce) {
  SchedulerRig rig;
  int alive = 0;
  int fired = 0;
  TimerHandle timer =
      rig.scheduler().schedule_after(1ms, [&fired, token = LifeToken(alive)] { ++fired; });
  EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  rig.advance(1h);
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
}

TEST(TimerHandle, CancelAfterTheTimerFiredAnswersNotPending) {
  SchedulerRig rig;
  TimerHandle timer = rig.scheduler().schedule_after(1ms, [] {});
  rig.advance(1ms);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  EXPECT_EQ(timer.cancel_and_wait(), CancelResult::not_pending);
}

TEST(TimerHandle, CancelInsideItsOwnJobAnswersRunning) {
  SchedulerRig rig;
  TimerHandle timer;
  std::vector<CancelResult> answers;
  timer = rig.scheduler().schedule_after(1ms, [&] {
    answers.push_back(timer.cancel());
    answers.push_back(timer.cancel_and_wait());  // must not wait for itself
  });
  rig.advance(1ms);
  EXPECT_EQ(answers, (std::vector{CancelResult::running, CancelResult::running}));
}

TEST(TimerHandle, CancelFromAnotherThreadWhileItRunsAnswersRunning) {
  Gate began;
  Gate may_end;
  SchedulerRig rig;
  TimerHandle timer = rig.scheduler().schedule_after(1ms, [&] {
    began.open();
    may_end.wait();
  });
  rig.clock().advance(1ms);
  began.wait();
  EXPECT_EQ(timer.cancel(), CancelResult::running);
  EXPECT_FALSE(timer.is_pending());
  may_end.open();
  rig.settle();
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
}

// The machine decides whether the call comes while the job runs or after it. The result must be
// correct in both cases. The loop ends after a round in which the call came while the job ran.
TEST(TimerHandle, CancelAndWaitReturnsWhenTheJobIsOverAndDestroyed) {
  CancelResult answer = CancelResult::not_pending;
  while (answer != CancelResult::running) {
    Gate began;
    Gate may_end;
    SchedulerRig rig;
    bool alive = true;
    bool ended = false;
    // The captured object takes a long time to be destroyed, so a call that does not wait for it is
    // detected.
    std::shared_ptr<bool> capture(&alive, [](bool* value) {
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      *value = false;
    });
    TimerHandle timer = rig.scheduler().schedule_after(1ms, [&, held = std::move(capture)] {
      began.open();
      may_end.wait();
      ended = true;
    });
    rig.clock().advance(1ms);
    began.wait();
    std::thread opener([&] { may_end.open(); });
    answer = timer.cancel_and_wait();
    EXPECT_NE(answer, CancelResult::cancelled);
    // Read without other synchronisation: cancel_and_wait must synchronise.
    EXPECT_TRUE(ended);
    EXPECT_FALSE(alive);
    opener.join();
  }
}

// Both timers are due in one batch. The first cancels the second before the second begins.
TEST(TimerHandle, AJobMayCancelOneThatIsDueWithIt) {
  SchedulerRig rig;
  TimerHandle second;
  int fired = 0;
  std::optional<CancelResult> answer;
  const TimerHandle first = rig.scheduler().schedule_after(1ms, [&] { answer = second.cancel(); });
  second = rig.scheduler().schedule_after(2ms, [&] { ++fired; });
  rig.advance(1s);
  EXPECT_EQ(answer, CancelResult::cancelled);
  EXPECT_EQ(fired, 0);
}

TEST(TimerHandle, DestroyingItCancels) {
  SchedulerRig rig;
  int fired = 0;
  {
    const TimerHandle timer = rig.scheduler().schedule_after(1ms, [&] { ++fired; });
  }
  rig.advance(1s);
  EXPECT_EQ(fired, 0);
}

TEST(TimerHandle, ReleasingItLetsTheTimerGoOn) {
  SchedulerRig rig;
  int fired = 0;
  {
    TimerHandle timer = rig.scheduler().schedule_after(1ms, [&] { ++fired; });
    timer.release();
    EXPECT_FALSE(timer);
    EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  }
  rig.advance(1s);
  EXPECT_EQ(fired, 1);
}

TEST(TimerHandle, MoveAssignmentCancelsTheOldTimer) {
  SchedulerRig rig;
  int first = 0;
  int second = 0;
  TimerHandle timer = rig.scheduler().schedule_after(1ms, [&] { ++first; });
  timer = rig.scheduler().schedule_after(1ms, [&] { ++second; });
  TimerHandle moved = std::move(timer);
  EXPECT_FALSE(timer);  // NOLINT(bugprone-use-after-move): the state after a move is the promise
  rig.advance(1s);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST(TimerHandle, IsSafeAfterTheSchedulerIsDestroyed) {
  TimerHandle pending;
  TimerHandle fired;
  {
    SchedulerRig rig;
    pending = rig.scheduler().schedule_after(1h, [] {});
    fired = rig.scheduler().schedule_after(1ms, [] {});
    rig.advance(1ms);
  }
  for (TimerHandle* timer : {&pending, &fired}) {
    EXPECT_FALSE(timer->is_pending());
    EXPECT_FALSE(timer->expires_after(1s));
    EXPECT_EQ(timer->cancel(), CancelResult::not_pending);
    EXPECT_EQ(timer->cancel_and_wait(), CancelResult::not_pending);
  }
}

TEST(TimerHandle, OfAnEndedTimerDoesNotAffectTheNextTimerInItsPlace) {
  SchedulerRig rig;
  TimerHandle old = rig.scheduler().schedule_after(1ms, [] {});
  rig.advance(1ms);
  int fired = 0;
  const TimerHandle next = rig.scheduler().schedule_after(1ms, [&] { ++fired; });
  EXPECT_EQ(old.cancel(), CancelResult::not_pending);
  EXPECT_FALSE(old.expires_after(1h));
  rig.advance(1ms);
  EXPECT_EQ(fired, 1);
}

TEST(TimerHandle, AnEmptyHandleAnswersNotPending) {
  TimerHandle empty;
  EXPECT_FALSE(empty);
  EXPECT_FALSE(empty.is_pending());
  EXPECT_FALSE(empty.expires_after(1s));
  EXPECT_EQ(empty.cancel(), CancelResult::not_pending);
}

// A job owns the handle of its own timer. When the job is destroyed, the handle cancels the timer.
TEST(TimerHandle, MayBeOwnedByItsOwnJob) {
  auto owner = std::make_shared<TimerHandle>();
  const std::weak_ptr<TimerHandle> watch = owner;
  SchedulerRig rig;
  int fired = 0;
  *owner = rig.scheduler().schedule_after(1ms, [&fired, owner] { ++fired; });
  owner.reset();
  rig.advance(1ms);
  EXPECT_EQ(fired, 1);
  EXPECT_TRUE(watch.expired());
}

TEST(ExpiresAfter, MovesATimerLater) {
  SchedulerRig rig;
  int fired = 0;
  TimerHandle timer = rig.scheduler().schedule_after(10ms, [&] { ++fired; });
  rig.advance(9ms);
  EXPECT_TRUE(timer.expires_after(10ms));
  rig.advance(10ms - 1ns);
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(timer.expires_after(10ms)) << "it is over";
}

TEST(ExpiresAfter, MovesATimerEarlierAndWakesTheDriver) {
  SchedulerRig rig;
  int fired = 0;
  TimerHandle timer = rig.scheduler().schedule_after(1h, [&] { ++fired; });
  rig.settle();
  EXPECT_TRUE(timer.expires_after(1ms));
  rig.advance(1ms);
  EXPECT_EQ(fired, 1);
}

/// The bytes that this thread's arena has from malloc. Zero with another allocator, for example
/// under sanitizers.
std::size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A million timers whose jobs allocate memory. A second round must not need more memory than the
// first.
TEST(TimerHandle, CancelledTimersGiveTheirMemoryBack) {
  constexpr std::size_t kCount = 1'000'000;
  SchedulerRig rig({.shards = 1});
  std::vector<TimerHandle> timers(kCount);
  const std::size_t before = bytes_in_use();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < kCount; ++i) {
      timers[i] =
          rig.scheduler().schedule_after(1h + i * 1ms, [held = std::make_unique<int>(1)] {});
    }
    const std::size_t full = bytes_in_use() - before;
    for (TimerHandle& timer : timers) timer.cancel();
    EXPECT_LE(bytes_in_use() - before, full / 10) << "of " << full;
  }
}

// The timer is due in the same batch as the timer that moves it. It goes back to the wheel and
// fires once, at the later time.
TEST(ExpiresAfter, MovesATimerThatWaitsForTheExecutor) {
  SchedulerRig rig;
  TimerHandle second;
  std::vector<MonotonicTime> fired;
  bool moved = false;
  const TimerHandle first =
      rig.scheduler().schedule_after(1ms, [&] { moved = second.expires_after(1s); });
  second = rig.scheduler().schedule_after(2ms, [&] { fired.push_back(rig.clock().now()); });
  rig.advance(2ms);
  EXPECT_TRUE(moved);
  EXPECT_TRUE(fired.empty());
  rig.advance(2s);
  EXPECT_EQ(fired.size(), 1u);
}

TEST(ExpiresAfter, InsideItsOwnJobReturnsFalse) {
  SchedulerRig rig;
  TimerHandle timer;
  bool moved = true;
  timer = rig.scheduler().schedule_after(1ms, [&] { moved = timer.expires_after(1ms); });
  rig.advance(1s);
  EXPECT_FALSE(moved);
}

}  // namespace
}  // namespace detent

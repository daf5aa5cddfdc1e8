// Tasks and time limits (detent/coroutine.h).
#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include "detent/coroutine.h"
#include "runtime/testing/coroutine_test_rig.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

Task<int> answer(int& starts) {
  ++starts;
  co_return 42;
}

Task<std::unique_ptr<int>> boxed(int& starts) {
  const int value = co_await answer(starts);
  co_return std::make_unique<int>(value);
}

Task<void> fail() {
  throw std::runtime_error("failed");
  co_return;
}

Task<int> fail_with_result() {
  co_await fail();
  co_return 1;
}

TEST(Task, StartsWhenAwaitedAndReturnsAMoveOnlyValue) {
  int starts = 0;
  Task<std::unique_ptr<int>> task = boxed(starts);
  EXPECT_EQ(starts, 0);
  const std::unique_ptr<int> box = sync_wait(std::move(task));
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(*box, 42);
}

TEST(Task, ExceptionGoesToTheOneThatAwaits) {
  EXPECT_THROW(sync_wait(fail()), std::runtime_error);
  EXPECT_THROW(sync_wait(fail_with_result()), std::runtime_error);
}

TEST(Task, ThatIsNeverAwaitedFreesItsFrame) {
  int alive = 0;
  int starts = 0;
  {
    const Task<void> task = holding(LifeToken(alive), Task<void>());
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
  Task<int> task = answer(starts);
  task = answer(starts);
  EXPECT_EQ(sync_wait(std::move(task)), 42);
  EXPECT_EQ(starts, 1);
}

// Symmetric transfer is a tail call. g++ makes it only in optimised builds, and sanitizers prevent
// it.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

[[gnu::noinline]] std::uintptr_t stack_pointer() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

Task<std::uintptr_t> stack_in_task() { co_return stack_pointer(); }

Task<std::uintptr_t> stack_growth(int loops) {
  const std::uintptr_t first = co_await stack_in_task();
  std::uintptr_t last = first;
  for (int i = 0; i < loops; ++i) last = co_await stack_in_task();
  co_return first - last;
}

TEST(Task, LoopOverTasksThatDoNotWaitUsesNoStack) { EXPECT_EQ(sync_wait(stack_growth(1000)), 0U); }

#endif

// ---- Starting -----------------------------------------------------------------------------------

TEST(Spawn, ReportsTheEndAfterTheTaskIsDestroyed) {
  SchedulerRig rig;
  int alive = 0;
  int alive_at_end = -1;
  Waking waking;
  const auto on_done = [&](const std::exception_ptr& error) { alive_at_end = error ? -1 : alive; };
  spawn(holding(LifeToken(alive), sleep_once(rig.scheduler(), 1ms, {}, waking)), on_done);
  rig.settle();
  EXPECT_EQ(alive_at_end, -1);
  rig.advance(1ms);
  EXPECT_EQ(alive_at_end, 0);
}

TEST(Spawn, PassesOnTheExceptionOfTheTask) {
  std::exception_ptr thrown;
  spawn(fail(), [&](std::exception_ptr error) { thrown = std::move(error); });
  EXPECT_THROW(std::rethrow_exception(thrown), std::runtime_error);
}

TEST(SyncWait, WaitsForATaskThatEndsOnAnotherThread) {
  SchedulerRig rig;
  int alive = 0;
  Waking waking;
  sync_wait(holding(LifeToken(alive), sleep_once(rig.scheduler(), 0ms, {}, waking)));
  EXPECT_TRUE(waking.slept);
  EXPECT_NE(waking.thread, std::this_thread::get_id());
  EXPECT_EQ(alive, 0);
}

// ---- timeout_after ------------------------------------------------------------------------------

/// The progress of a task with a time limit, and its result.
struct Limited {
  int alive = 0;  // frames of the work
  int ends = 0;
  std::optional<int> result;
  std::stop_token token;
};

/// Sleeps for `length` or until it is stopped. After that, always sleeps for `clean_up`.
Task<int> work_for(Scheduler& scheduler, std::stop_token stop, std::chrono::nanoseconds length,
                   std::chrono::nanoseconds clean_up) {
  const bool slept = co_await sleep_for(scheduler, length, std::move(stop));
  if (clean_up > 0ns) co_await sleep_for(scheduler, clean_up);
  co_return slept ? 1 : 2;
}

Task<int> holding_result(LifeToken life, Task<int> task) {
  const int result = co_await std::move(task);
  static_cast<void>(life);
  co_return result;
}

struct Work {
  std::chrono::nanoseconds length{};
  std::chrono::nanoseconds clean_up{};
};

Task<void> limit_work(Scheduler& scheduler, std::chrono::nanoseconds limit, Work work, Limited& out,
                      std::stop_token stop = {}) {
  auto start = [&scheduler, &out, work](std::stop_token token) {
    out.token = token;
    return holding_result(LifeToken(out.alive),
                          work_for(scheduler, std::move(token), work.length, work.clean_up));
  };
  out.result = co_await timeout_after(scheduler, limit, start, std::move(stop));
  EXPECT_EQ(out.alive, 0);
  ++out.ends;
}

TEST(TimeoutAfter, InTimeReturnsTheResultOfTheWorkAndCancelsTheTimer) {
  SchedulerRig rig;
  Limited limited;
  spawn(limit_work(rig.scheduler(), 10ms, {.length = 4ms}, limited), Forget());
  rig.settle();
  EXPECT_EQ(rig.scheduler().stats().pending, 2U);
  EXPECT_FALSE(limited.token.stop_requested());
  rig.advance(4ms);
  EXPECT_EQ(limited.ends, 1);
  EXPECT_EQ(limited.result, 1);
  EXPECT_EQ(rig.scheduler().stats().pending, 0U);
  EXPECT_TRUE(limited.token.stop_requested());
}

TEST(TimeoutAfter, AtTheLimitTheWorkIsStoppedAndItsCleanUpAwaited) {
  SchedulerRig rig;
  Limited limited;
  spawn(limit_work(rig.scheduler(), 10ms, {.length = 1h, .clean_up = 3ms}, limited), Forget());
  rig.advance(10ms);
  EXPECT_TRUE(limited.token.stop_requested());
  EXPECT_EQ(limited.ends, 0);
  EXPECT_EQ(limited.alive, 1);
  rig.advance(3ms);
  EXPECT_EQ(limited.ends, 1);
  EXPECT_EQ(limited.result, std::nullopt);
  EXPECT_EQ(rig.scheduler().stats().pending, 0U);
}

TEST(TimeoutAfter, WorkThatIgnoresItsTokenIsStillAwaited) {
  SchedulerRig rig;
  Limited limited;
  spawn(limit_work(rig.scheduler(), 10ms, {.length = 0ms, .clean_up = 1h}, limited), Forget());
  rig.advance(10ms);
  EXPECT_EQ(limited.ends, 0);
  rig.advance(1h);
  EXPECT_EQ(limited.ends, 1);
  EXPECT_EQ(limited.result, std::nullopt);
}

TEST(TimeoutAfter, OuterStopEndsTheWorkAndReturnsItsResult) {
  SchedulerRig rig;
  Limited limited;
  std::stop_source outer;
  spawn(limit_work(rig.scheduler(), 10ms, {.length = 1h}, limited, outer.get_token()), Forget());
  rig.settle();
  outer.request_stop();
  rig.settle();
  EXPECT_EQ(limited.ends, 1);
  EXPECT_EQ(limited.result, 2);
}

TEST(TimeoutAfter, EndsWithItsScheduler) {
  SchedulerRig rig;
  Limited limited;
  spawn(limit_work(rig.scheduler(), 10ms, {.length = 1h, .clean_up = 1h}, limited), Forget());
  rig.scheduler().stop();
  EXPECT_EQ(limited.ends, 1);
  EXPECT_EQ(limited.result, std::nullopt);
  Limited refused;
  spawn(limit_work(rig.scheduler(), 10ms, {.length = 1h}, refused), Forget());
  EXPECT_EQ(refused.ends, 1);
  EXPECT_EQ(refused.result, std::nullopt);
}

Task<void> nested(Scheduler& scheduler, std::optional<std::optional<int>>& result) {
  auto innermost = [&scheduler](std::stop_token token) {
    return work_for(scheduler, std::move(token), 1h, 0ms);
  };
  auto inner = [&scheduler, innermost](std::stop_token token) {
    return timeout_after(scheduler, 5ms, innermost, std::move(token));
  };
  result = co_await timeout_after(scheduler, 10ms, inner);
}

TEST(TimeoutAfter, InsideALongerLimitKeepsItsOwn) {
  SchedulerRig rig;
  std::optional<std::optional<int>> result;
  spawn(nested(rig.scheduler(), result), Forget());
  rig.advance(5ms);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, std::nullopt);
  EXPECT_EQ(rig.scheduler().stats().pending, 0U);
}

Task<void> limit_nothing(Scheduler& scheduler, std::chrono::nanoseconds limit, bool& in_time,
                         Waking& waking) {
  auto work = [&](std::stop_token token) {
    return sleep_once(scheduler, 5ms, std::move(token), waking);
  };
  in_time = co_await timeout_after(scheduler, limit, work);
}

TEST(TimeoutAfter, WorkWithoutResultReportsWhetherItWasInTime) {
  SchedulerRig rig;
  bool in_time = false;
  bool late = true;
  Waking finished;
  Waking stopped;
  spawn(limit_nothing(rig.scheduler(), 10ms, in_time, finished), Forget());
  spawn(limit_nothing(rig.scheduler(), 2ms, late, stopped), Forget());
  rig.advance(2ms);
  rig.advance(3ms);
  EXPECT_TRUE(in_time && finished.slept);
  EXPECT_FALSE(late || stopped.slept);
  EXPECT_EQ(finished.count + stopped.count, 2);
}

Task<int> throw_after(Scheduler& scheduler, std::chrono::nanoseconds delay) {
  co_await sleep_for(scheduler, delay);
  throw std::runtime_error("failed");
}

Task<void> limit_throwing(Scheduler& scheduler, std::chrono::nanoseconds delay, int& caught) {
  auto work = [&](const std::stop_token&) { return throw_after(scheduler, delay); };
  try {
    co_await timeout_after(scheduler, 10ms, work);
  } catch (const std::runtime_error&) {
    ++caught;
  }
}

TEST(TimeoutAfter, ThrowsTheExceptionOfTheWorkInTimeOrNot) {
  SchedulerRig rig;
  int caught = 0;
  spawn(limit_throwing(rig.scheduler(), 5ms, caught), Forget());
  spawn(limit_throwing(rig.scheduler(), 15ms, caught), Forget());
  rig.advance(5ms);
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(rig.scheduler().stats().pending, 2U);
  rig.advance(10ms);
  EXPECT_EQ(caught, 2);
}

/// Waits for a stop. Continues inside request_stop, unlike a sleep.
class UntilStopped {
 public:
  explicit UntilStopped(std::stop_token stop) : stop_(std::move(stop)) {}
  bool await_ready() const noexcept { return stop_.stop_requested(); }
  void await_suspend(std::coroutine_handle<> waiting) { on_stop_.emplace(stop_, waiting); }
  void await_resume() const noexcept {}

 private:
  std::stop_token stop_;
  std::optional<std::stop_callback<std::coroutine_handle<>>> on_stop_;
};

Task<int> wait_for_stop(std::stop_token stop) {
  // A second callback, so that request_stop still has work after the coroutine is gone.
  const std::stop_callback bystander(stop, [] {});
  co_await UntilStopped(std::move(stop));
  co_return 7;
}

Task<void> limit_waiting(Scheduler& scheduler, std::optional<int>& result, int& ends,
                         std::stop_token stop) {
  result = co_await timeout_after(scheduler, 10ms, wait_for_stop, std::move(stop));
  ++ends;
}

TEST(TimeoutAfter, MayEndInsideItsOwnRequestToStop) {
  SchedulerRig rig;
  std::stop_source outer;
  std::optional<int> by_limit = 1;
  std::optional<int> by_stop;
  int ends = 0;
  spawn(limit_waiting(rig.scheduler(), by_limit, ends, {}), Forget());
  rig.advance(10ms);
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(by_limit, std::nullopt);
  spawn(limit_waiting(rig.scheduler(), by_stop, ends, outer.get_token()), Forget());
  rig.settle();
  outer.request_stop();
  EXPECT_EQ(ends, 2);
  EXPECT_EQ(by_stop, 7);
}

}  // namespace
}  // namespace detent

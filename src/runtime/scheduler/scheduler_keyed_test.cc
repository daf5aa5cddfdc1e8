// Keyed timers: which timer has a key, and for how long. Also cancels and replacements of a job
// that waits, runs or has been handed back.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using Keys = std::vector<std::string>;

// ---- jobs ---------------------------------------------------------------------------------------

TEST(SchedulerKeyed, AJobIsGivenItsKeyIfItAsksForIt) {
  SchedulerRig rig;
  Keys keys;
  int runs = 0;
  rig.scheduler().schedule_keyed("a", 1ms, [&](std::string_view key) { keys.emplace_back(key); });
  rig.scheduler().schedule_keyed("", 1ms, [&](std::string_view key) { keys.emplace_back(key); });
  rig.scheduler().schedule_keyed("b", 1ms, [&] { ++runs; });
  rig.advance(1ms - 1ns);
  EXPECT_TRUE(keys.empty());
  rig.advance(1ns);
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_EQ((std::set<std::string>(keys.begin(), keys.end())), (std::set<std::string>{"", "a"}));
  EXPECT_EQ(runs, 1);
}

TEST(SchedulerKeyed, WithoutAJobOfItsOwnATimerRunsTheDefaultOne) {
  Keys keys;
  SchedulerRig rig({.default_job = [&](std::string_view key) { keys.emplace_back(key); }});
  const WallTime start = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now());
  Scheduler& scheduler = rig.scheduler();
  scheduler.schedule_keyed("thrice", {.period = 10s, .count = 3});
  // It was created 20 s ago with a period of 25 s, so its first tick is in 5 s.
  scheduler.schedule_keyed("created", {.period = 25s, .created = start - 20s});
  rig.settle();
  for (int second = 0; second < 45; ++second) rig.advance(1s);
  EXPECT_EQ(keys, (Keys{"created", "thrice", "thrice", "created", "thrice"}));
  EXPECT_EQ(scheduler.find_key("thrice"), std::nullopt) << "it ran for the last time";
  EXPECT_NE(scheduler.find_key("created"), std::nullopt);
}

TEST(SchedulerKeyedDeathTest, ATimerWithoutAnyJobIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SchedulerOptions options;
  EXPECT_DEATH(SchedulerRig().scheduler().schedule_keyed("a", {.period = 1s}), "check failed");
}

TEST(SchedulerKeyed, FindKeyDescribesTheTimerWithTheKey) {
  SchedulerRig rig;
  EXPECT_EQ(rig.scheduler().find_key("a"), std::nullopt);
  std::optional<TimerInfo> inside;
  const std::uint_least32_t line = __LINE__ + 1;
  rig.scheduler().schedule_keyed(
      "a", {.period = 2s}, [&](std::string_view key) { inside = rig.scheduler().find_key(key); });
  const std::optional<TimerInfo> info = rig.scheduler().find_key("a");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->name, "a");
  EXPECT_EQ(info->scheduled_at.line, line);
  EXPECT_EQ(std::string_view(info->scheduled_at.file), __FILE__);
  EXPECT_EQ(info->state, TimerState::pending);
  EXPECT_EQ(info->deadline, rig.clock().now() + 2s);
  EXPECT_EQ(info->period, 2s);
  rig.settle();
  rig.advance(2s);
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->state, TimerState::running);
  EXPECT_EQ(rig.scheduler().find_key("a")->deadline, rig.clock().now() + 2s);
}

// ---- a key that is taken ------------------------------------------------------------------------

TEST(SchedulerKeyed, KeepLeavesTheTimerThatHasTheKey) {
  SchedulerRig rig;
  int first = 0;
  int second = 0;
  int alive = 0;
  EXPECT_EQ(rig.scheduler().schedule_keyed("a", 1ms, [&] { ++first; }), KeyedResult::scheduled);
  EXPECT_EQ(rig.scheduler().schedule_keyed("a", 0s, [&, token = LifeToken(alive)] { ++second; }),
            KeyedResult::kept);
  EXPECT_EQ(alive, 0);
  rig.advance(1h);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  EXPECT_EQ(rig.scheduler().stats().scheduled, 1u);
}

TEST(SchedulerKeyed, ReplaceCancelsTheTimerThatHasTheKey) {
  SchedulerRig rig;
  int first = 0;
  int second = 0;
  int alive = 0;
  rig.scheduler().schedule_keyed("a", {.period = 1ms}, [&, token = LifeToken(alive)] { ++first; });
  EXPECT_EQ(rig.scheduler().schedule_keyed(
                "a", 2ms, [&] { ++second; }, SameKey::replace),
            KeyedResult::replaced);
  EXPECT_EQ(alive, 0);
  rig.advance(1h);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
  EXPECT_EQ(rig.scheduler().schedule_keyed(
                "a", 2ms, [] {}, SameKey::replace),
            KeyedResult::scheduled);
}

TEST(SchedulerKeyed, TheKeyIsFreeWhenTheTimerHasEndedAndNotInsideItsLastRun) {
  SchedulerRig rig;
  std::optional<KeyedResult> inside;
  int alive = 0;
  rig.scheduler().schedule_keyed("a", 1ms, [&, token = LifeToken(alive)] {
    inside = rig.scheduler().schedule_keyed("a", 0s, [] {});
  });
  rig.advance(1ms);
  EXPECT_EQ(inside, KeyedResult::kept);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::not_pending);
  EXPECT_EQ(rig.scheduler().schedule_keyed("a", 1ms, [] {}), KeyedResult::scheduled);
}

// ---- cancelling ---------------------------------------------------------------------------------

TEST(SchedulerKeyed, CancellingDestroysTheJobAndFreesTheKey) {
  SchedulerRig rig;
  int alive = 0;
  rig.scheduler().schedule_keyed("a", 1ms, [token = LifeToken(alive)] {});
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::cancelled);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::not_pending);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
}

TEST(SchedulerKeyed, InsideItsRunATimerMayBeCancelledAndItsKeyTakenAtOnce) {
  SchedulerRig rig;
  int runs = 0;
  int alive = 0;
  int others = 0;
  rig.scheduler().schedule_keyed("a", {.period = 1ms}, [&, token = LifeToken(alive)] {
    ++runs;
    EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::running);
    EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::not_pending);
    EXPECT_EQ(rig.scheduler().schedule_keyed("a", 1ms, [&] { ++others; }), KeyedResult::scheduled);
    EXPECT_EQ(alive, 1);
  });
  rig.advance(1ms);
  EXPECT_EQ(alive, 0);
  rig.advance(1h);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(others, 1) << "the end of the first left the second alone";
}

TEST(SchedulerKeyed, InsideItsRunATimerMayBeReplaced) {
  SchedulerRig rig;
  int runs = 0;
  int alive = 0;
  std::function<void()> again = [&] {
    if (++runs == 5) return;
    EXPECT_EQ(rig.scheduler().schedule_keyed(
                  "a", 1ms, [&, token = LifeToken(alive)] { again(); }, SameKey::replace),
              KeyedResult::replaced);
    EXPECT_EQ(alive, 2);
  };
  rig.scheduler().schedule_keyed("a", {.period = 1ms}, [&, token = LifeToken(alive)] { again(); });
  for (int i = 0; i < 10; ++i) rig.advance(1ms);
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().stats().pending, 0u);
}

TEST(SchedulerKeyed, AJobThatThrowsHasTheKeyUntilItsTimerEnds) {
  std::vector<CancelResult> cancelled_in_handler;
  SchedulerRig* rig_seen = nullptr;
  SchedulerRig rig({.error_handler = [&](const std::exception_ptr&) {
    cancelled_in_handler.push_back(rig_seen->scheduler().cancel_key("once"));
  }});
  rig_seen = &rig;
  rig.scheduler().schedule_keyed("once", 1ms, [] { throw std::runtime_error("broken"); });
  rig.advance(1ms);
  rig.scheduler().schedule_keyed("once", {.period = 1ms, .count = 1},
                                 [] { throw std::runtime_error("broken"); });
  rig.advance(1ms);
  EXPECT_EQ(cancelled_in_handler, (std::vector{CancelResult::running, CancelResult::running}))
      << "as TimerHandle::cancel: it ran";
  EXPECT_EQ(rig.scheduler().stats().completed, 2u);
  rig.scheduler().schedule_keyed("often", {.period = 1ms, .count = 2},
                                 [] { throw std::runtime_error("broken"); });
  rig.advance(1ms);
  EXPECT_EQ(rig.scheduler().schedule_keyed("often", 1ms, [] {}), KeyedResult::kept);
  rig.advance(1ms);
  EXPECT_EQ(rig.scheduler().schedule_keyed("often", 1ms, [] {}), KeyedResult::scheduled);
}

// The cancel comes between the start of the timer's run and the call of its job.
TEST(SchedulerKeyed, AJobThatIsCancelledJustBeforeItIsCalledIsNotCalled) {
  std::optional<CancelResult> answer;
  SchedulerRig* rig_seen = nullptr;
  const auto cancel = [&](const Alert&) { answer = rig_seen->scheduler().cancel_key("a"); };
  SchedulerRig rig({.alerts = {.lateness = 1ns, .on_alert = cancel}});
  rig_seen = &rig;
  int runs = 0;
  rig.scheduler().schedule_keyed("a", {.period = 1ms}, [&] { ++runs; });
  rig.settle();
  rig.advance(1s);
  rig.advance(1s);
  EXPECT_EQ(answer, CancelResult::cancelled);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(rig.scheduler().stats().pending, 0u);
}

TEST(SchedulerKeyed, AKeyIsTakenWhileItsTimerWaitsForRoom) {
  for (const WhenFull when_full : {WhenFull::block, WhenFull::run_in_caller}) {
    SchedulerRig rig({.capacity = 1, .when_full = when_full});
    TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
    std::atomic<int> runs = 0;
    std::thread caller([&] { rig.scheduler().schedule_keyed("a", 1ms, [&] { ++runs; }); });
    while (rig.scheduler().cancel_key("a") != CancelResult::cancelled) std::this_thread::yield();
    EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::not_pending);
    EXPECT_EQ(first.cancel(), CancelResult::cancelled);
    rig.clock().advance(1ms);
    caller.join();
    rig.clock().await_waiters(1);
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(rig.scheduler().stats().pending, 0u);
  }
}

// ---- the end ------------------------------------------------------------------------------------

TEST(SchedulerKeyed, JobsThatAreHandedBackOutliveTheSchedulerAndRunOnceCalled) {
  std::vector<PendingJob> left;
  Keys keys;
  int alive = 0;
  {
    SchedulerRig rig;
    const auto job = [&] {
      return [&, token = LifeToken(alive)](std::string_view key) { keys.emplace_back(key); };
    };
    rig.scheduler().schedule_keyed("once", 1h, job());
    rig.scheduler().schedule_keyed("often", {.period = 1min, .count = 3}, job());
    rig.advance(1min);
    left = rig.scheduler().stop(Drain::hand_back);
    EXPECT_EQ(rig.scheduler().find_key("once"), std::nullopt);
    EXPECT_EQ(rig.scheduler().cancel_key("once"), CancelResult::not_pending) << "it has stopped";
    EXPECT_EQ(rig.scheduler().schedule_keyed("once", 0s, job(), SameKey::replace),
              KeyedResult::refused);
    EXPECT_EQ(rig.scheduler().schedule_keyed("new", 0s, job()), KeyedResult::refused);
  }
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(alive, 2);
  keys.clear();
  for (PendingJob& one : left) {
    one.job();
    EXPECT_EQ(keys.back(), one.name);
    EXPECT_EQ(one.periodic ? one.periodic->count : 2, 2u);
  }
  EXPECT_EQ(keys.size(), 2u);
  left.clear();
  EXPECT_EQ(alive, 0);
}

TEST(SchedulerKeyed, StopDropsThem) {
  SchedulerRig rig;
  int alive = 0;
  for (const char* const key : {"a", "b"}) {
    rig.scheduler().schedule_keyed(key, {.period = 1h}, [token = LifeToken(alive)] {});
  }
  rig.scheduler().stop();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().stats().dropped, 2u);
  EXPECT_EQ(rig.scheduler().schedule_keyed("a", 0s, [] {}), KeyedResult::refused);
}

TEST(SchedulerKeyed, APeriodicOneThatRunsWhenItIsStoppedCountsAsDropped) {
  SchedulerRig rig;
  Gate stopped;
  rig.scheduler().schedule_keyed("a", {.period = 1ms}, [&] {
    rig.scheduler().stop();
    stopped.open();
  });
  rig.clock().advance(1ms);
  stopped.wait();
  rig.scheduler().stop();
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
  EXPECT_EQ(rig.scheduler().stats().cancelled, 0u);
}

}  // namespace
}  // namespace detent

#include "runtime/collections/wakeup_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;

/// Counts its wake-ups. Read it while the driver sleeps.
class WakeCounter final : public WakeupTimer::Owner {
 public:
  std::optional<MonotonicTime> on_wakeup() noexcept override {
    ++wakeups;
    return next ? next() : std::nullopt;
  }

  int wakeups = 0;
  std::function<std::optional<MonotonicTime>()> next = nullptr;
};

TEST(WakeupTimer, WakesAtTheEarliestRequestedTimeAndOnlyThen) {
  SchedulerRig rig;
  WakeCounter sleeper;
  WakeupTimer timer(rig.scheduler(), sleeper);
  const MonotonicTime start = rig.clock().now();
  EXPECT_FALSE(timer.is_set_by(start + 1h));
  for (const auto delay : {3s, 5s, 2s, 4s}) timer.wake_by(start + delay);
  EXPECT_TRUE(timer.is_set_by(start + 2s));
  EXPECT_FALSE(timer.is_set_by(start + 2s - 1ns));
  EXPECT_EQ(rig.scheduler().stats().pending, 1u);
  rig.advance(2s - 1ns);
  EXPECT_EQ(sleeper.wakeups, 0);
  rig.advance(1ns);
  EXPECT_EQ(sleeper.wakeups, 1);
  EXPECT_FALSE(timer.is_set_by(MonotonicTime::max() - 1ns));
  rig.advance(1h);
  EXPECT_EQ(sleeper.wakeups, 1) << "it did not ask for more";
}

TEST(WakeupTimer, WakesAgainAtTheTimeThatTheOwnerReturns) {
  SchedulerRig rig;
  WakeCounter sleeper;
  sleeper.next = [&] { return rig.clock().now() + 1s; };
  WakeupTimer timer(rig.scheduler(), sleeper);
  timer.wake_by(rig.clock().now());
  rig.settle();
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(sleeper.wakeups, i);
    rig.advance(1s);
  }
}

TEST(WakeupTimer, KeepsRequestsThatComeWhileTheOwnerRuns) {
  SchedulerRig rig;
  WakeCounter sleeper;
  std::optional<WakeupTimer> timer;
  sleeper.next = [&] {
    if (sleeper.wakeups == 1) timer->wake_by(rig.clock().now() + 1s);
    return sleeper.wakeups == 1 ? std::optional(rig.clock().now() + 1h) : std::nullopt;
  };
  timer.emplace(rig.scheduler(), sleeper);
  timer->wake_by(rig.clock().now());
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(sleeper.wakeups, 2);
}

TEST(WakeupTimer, IsNotSetAfterARefusal) {
  SchedulerRig rig;
  WakeCounter sleeper;
  WakeupTimer timer(rig.scheduler(), sleeper);
  rig.scheduler().stop();
  timer.wake_by(rig.clock().now());
  EXPECT_FALSE(timer.is_set_by(MonotonicTime::max() - 1ns)) << "so that it is asked again";
}

// ---- a scheduler that is full -------------------------------------------------------------------

TEST(WakeupTimer, IsSetByTheNextRequestWhenThereIsRoom) {
  SchedulerRig rig({.capacity = 1});
  WakeCounter sleeper;
  WakeupTimer timer(rig.scheduler(), sleeper);
  TimerHandle other = rig.scheduler().schedule_after(1h, [] {});
  const MonotonicTime due = rig.clock().now() + 1s;
  timer.wake_by(due);
  EXPECT_FALSE(timer.is_set_by(due));
  other.cancel();
  timer.wake_by(due);
  EXPECT_TRUE(timer.is_set_by(due));
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(sleeper.wakeups, 1);
}

TEST(WakeupTimer, KeepsRequestsWhileAnotherThreadWaitsForRoom) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::block});
  WakeCounter sleeper;
  WakeupTimer timer(rig.scheduler(), sleeper);
  TimerHandle other = rig.scheduler().schedule_after(1h, [] {});
  const MonotonicTime now = rig.clock().now();
  std::thread waiting([&] { timer.wake_by(now + 30min); });
  while (!timer.is_set_by(now + 30min)) std::this_thread::yield();
  timer.wake_by(now + 1s);  // does not wait: the other thread will set the timer
  other.cancel();
  waiting.join();
  EXPECT_TRUE(timer.is_set_by(now + 1s));
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(sleeper.wakeups, 1);
}

TEST(WakeupTimer, MayRunInTheThreadThatAsks) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  WakeCounter sleeper;
  WakeupTimer timer(rig.scheduler(), sleeper);
  const TimerHandle other = rig.scheduler().schedule_after(1h, [] {});
  std::thread asking([&, due = rig.clock().now() + 1s] { timer.wake_by(due); });
  rig.clock().await_waiters(2);
  EXPECT_EQ(sleeper.wakeups, 0);
  rig.clock().advance(1s);
  asking.join();
  EXPECT_EQ(sleeper.wakeups, 1);
}

// ---- many threads -------------------------------------------------------------------------------

// Each thread asks while another thread may be scheduling the timer.
TEST(WakeupTimer, IsSetForTheEarliestOfManyThreads) {
  SchedulerRig rig;
  WakeCounter sleeper;
  for (int round = 1; round <= 2000; ++round) {
    WakeupTimer timer(rig.scheduler(), sleeper);
    const MonotonicTime now = rig.clock().now();
    std::vector<std::thread> threads;
    for (const auto delay : {4ms, 3ms, 2ms, 1ms}) {
      threads.emplace_back([&timer, now, delay] { timer.wake_by(now + delay); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(timer.is_set_by(now + 1ms));
    rig.settle();
    rig.advance(1ms);
    ASSERT_EQ(sleeper.wakeups, round);
  }
}

}  // namespace
}  // namespace detent::internal

// Bugs of the hashed wheel with circles, and the correct results of Detent. cases.md lists all
// cases.
#include "tests/regress/classic/circle_wheel_port.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "detent/queues/hashed_wheel.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"
#include "tests/regress/classic/our_queues.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kNotFired = -1;

/// The HashedWheel with the size of the port.
struct TenSlotsCase : RingCase<HashedWheel, 10, QueueNature{}> {
  static constexpr const char* kName = "HashedWheel of 10";
};
using OurQueues = Joined<EveryQueue, testing::Types<TenSlotsCase>>::Types;

/// A running port with ten slots of one second.
CircleWheelPort running_port() {
  CircleWheelPort port(10, 1'000);
  port.start();
  port.start_thread();
  return port;
}

std::int64_t port_fires_at(const CircleWheelPort::Timing& timing) {
  CircleWheelPort port = running_port();
  std::int64_t fired = kNotFired;
  port.add("a", timing, [&] { fired = port.now(); });
  port.run_until(1'000);
  return fired;
}

TEST(CircleWheelPort, LK_FULL_TURN) {
  EXPECT_EQ(port_fires_at({.delay_ms = 10'000}), 1);
  EXPECT_EQ(port_fires_at({.delay_ms = 20'000}), 11);

  for (Tick start = 0; start < 12; ++start) {
    expect_on_time<OurQueues>(start, {start + 10, start + 20, start + 100});
  }
  // The turns of Detent's own wheels: deadlines at the first and the last tick of their slots.
  expect_on_time(0, {63, 64, 255, 256, 511, 512, 513, 4'095, 4'096, 8'192, 65'535, 65'536});
}

TEST(CircleWheelPort, LK_PERIOD_EQ_TURN) {
  const auto endless_ticks = [](int tasks) {
    CircleWheelPort port = running_port();
    for (int i = 0; i < tasks; ++i) {
      const CircleWheelPort::Timing timing{.delay_ms = 10'000, .times = CircleWheelPort::kForEver};
      port.add(std::to_string(i), timing, [] {});
    }
    port.run_until(1);
    return port.endless_ticks();
  };
  EXPECT_EQ(endless_ticks(1), 0);
  EXPECT_EQ(endless_ticks(2), 1)
      << "bug of the port: two tasks follow each other forever in one tick";

  // Two timers that schedule themselves again after a turn of the port, after a turn of 256 slots,
  // and with no delay at all. Each must fire once in a pass.
  for_each_queue<OurQueues>([]<class Case>(Case) {
    for (const Tick period : {Tick{10}, Tick{256}, Tick{0}}) {
      auto queue = Case::make(0);
      std::vector<TimerOf<Case>> timers(2);
      for (auto& timer : timers) ASSERT_TRUE(queue->schedule(timer, period));
      for (Tick turn = 1; turn <= 50; ++turn) {
        const AdvanceResult result = queue->advance(
            turn * period,
            [&](TimerOf<Case>& timer) noexcept { queue->schedule(timer, queue->now() + period); });
        ASSERT_EQ(result.fired, 2u) << "turn " << turn << " of " << period;
      }
    }
  });
  SchedulerRig rig;
  int runs = 0;
  const TimerHandle first = rig.scheduler().schedule_every({.period = 10s}, [&] { ++runs; });
  const TimerHandle second = rig.scheduler().schedule_every({.period = 10s}, [&] { ++runs; });
  for (int turn = 1; turn <= 5; ++turn) {
    rig.advance(10s);
    EXPECT_EQ(runs, 2 * turn);
  }
}

TEST(CircleWheelPort, LK_TIMES_PLUS1) {
  CircleWheelPort port = running_port();
  int port_runs = 0;
  port.add("a", {.delay_ms = 2'000, .times = 3}, [&] { ++port_runs; });
  port.run_until(1'000);
  EXPECT_EQ(port_runs, 4);

  SchedulerRig rig;
  int runs = 0;
  const TimerHandle timer =
      rig.scheduler().schedule_every({.period = 2s, .count = 3}, [&] { ++runs; });
  for (int second = 0; second < 1'000; ++second) rig.advance(1s);
  EXPECT_EQ(runs, 3);
  EXPECT_FALSE(timer.is_pending());
}

// A periodic timer has an option for the creation time. For a single run, the caller computes the
// deadline from the creation time, even if the deadline has passed.
TEST(CircleWheelPort, LK_CREATED_CIRCLE) {
  EXPECT_EQ(port_fires_at({.delay_ms = 25'000, .created_ms_ago = 20'000}), 26);

  expect_on_time(20, {0 + 25});
  SchedulerRig rig;
  const MonotonicTime created = rig.clock().now();
  rig.advance(20s);
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_at(created + 25s, [&] { ++fired; });
  const TimerHandle passed = rig.scheduler().schedule_at(created + 15s, [&] { fired += 10; });
  const auto wall = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now());
  const TimerHandle periodic = rig.scheduler().schedule_every(
      {.period = 25s, .count = 1, .created = wall - 20s}, [&] { fired += 100; });
  rig.settle();
  EXPECT_EQ(fired, 10) << "a deadline that has passed fires immediately";
  rig.advance(5s - 1ns);
  EXPECT_EQ(fired, 10);
  rig.advance(1ns);
  EXPECT_EQ(fired, 111);
}

TEST(CircleWheelPort, LK_SUBSEC_DIV0) {
  const CircleWheelPort port(10, 500);
  EXPECT_THROW(port.choose({.delay_ms = 2'000}), std::domain_error);

  std::string error;
  EXPECT_FALSE(HashedWheel::make({.slot_count = 10, .slot_width = 0}, &error).has_value());
  EXPECT_EQ(error, "slot_width is 0: a slot is at least one tick wide");
  EXPECT_EQ(worst_lateness(500ms, 0ms, 2'000ms), 0ms);
  SchedulerRig rig({.resolution = 500ms});
  bool fired = false;
  const TimerHandle timer = rig.scheduler().schedule_after(1'500ms, [&] { fired = true; });
  rig.advance(1'500ms - 1ns);
  EXPECT_FALSE(fired);
  rig.advance(1ns);
  EXPECT_TRUE(fired);
}

TEST(CircleWheelPort, LK_INT_TRUNC) {
  EXPECT_EQ(port_fires_at({.delay_ms = 1'500}), port_fires_at({.delay_ms = 1'000}));
  EXPECT_EQ(port_fires_at({.delay_ms = 1'500}), 2);
  // The task is added just before the first tick, and the loop carries out the order before this
  // tick. So it fires after 1 s instead of 1.5 s.

  EXPECT_EQ(worst_lateness(1s, 999ms, 999ms + 1'500ms), 501ms);
  EXPECT_EQ(worst_lateness(1ms, 999ms, 999ms + 1'500ms), 0ms);
}

TEST(CircleWheelPort, LK_REMOVE_MISSING) {
  CircleWheelPort port = running_port();
  port.add("a", {.delay_ms = 1'000}, [] {});
  port.carry_out_orders();
  // Two callers remove the key, and both find it. Then the loop carries out both orders.
  EXPECT_TRUE(port.remove("a"));
  EXPECT_TRUE(port.remove("a"));
  EXPECT_THROW(port.carry_out_orders(), std::logic_error);

  for_each_queue([]<class Case>(Case) {
    auto queue = Case::make(0);
    TimerOf<Case> timer;
    EXPECT_FALSE(queue->cancel(timer)) << "never scheduled";
    ASSERT_TRUE(queue->schedule(timer, 1));
    EXPECT_TRUE(queue->cancel(timer));
    EXPECT_FALSE(queue->cancel(timer)) << "cancelled before";
    ASSERT_TRUE(queue->schedule(timer, 1));
    EXPECT_EQ(count_fired(*queue, 1), 1u);
    EXPECT_FALSE(queue->cancel(timer)) << "fired";
    queue->check_invariants();
  });
  SchedulerRig rig;
  TimerHandle timer = rig.scheduler().schedule_after(1s, [] {});
  EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  EXPECT_EQ(TimerHandle().cancel(), CancelResult::not_pending);
}

// The queues have no keys. The timer takes the place of the key, and scheduling it again moves it.
TEST(CircleWheelPort, LK_DUP_KEY) {
  CircleWheelPort port = running_port();
  int port_fired = 0;
  EXPECT_TRUE(port.add("a", {.delay_ms = 5'000}, [&] { ++port_fired; }));
  EXPECT_TRUE(port.add("a", {.delay_ms = 7'000}, [&] { ++port_fired; })) << "before the loop ran";
  port.carry_out_orders();
  EXPECT_TRUE(port.remove("a"));
  port.run_until(1'000);
  EXPECT_EQ(port_fired, 1) << "bug of the port: the first fires although its key was removed";

  for_each_queue([]<class Case>(Case) {
    auto queue = Case::make(0);
    TimerOf<Case> timer;
    ASSERT_TRUE(queue->schedule(timer, 5));
    ASSERT_TRUE(queue->schedule(timer, 7));
    EXPECT_EQ(queue->size(), 1u);
    EXPECT_EQ(count_fired(*queue, 6), 0u);
    EXPECT_EQ(count_fired(*queue, 7), 1u);
    ASSERT_TRUE(queue->schedule(timer, 15));
    ASSERT_TRUE(queue->schedule(timer, 17));
    EXPECT_TRUE(queue->cancel(timer));
    EXPECT_EQ(count_fired(*queue, 100), 0u);
  });
}

TEST(CircleWheelPort, LK_RACE) {
  CircleWheelPort port = running_port();
  std::int64_t fired = kNotFired;
  const CircleWheelPort::Timing timing{.delay_ms = 1'000};
  // The adding thread reads the hand, and is then held up while the hand passes the slot.
  const CircleWheelPort::Place place = port.choose(timing);
  port.run_until(2);
  port.insert({"a", timing, place, [&] { fired = port.now(); }});
  port.run_until(1'000);
  EXPECT_EQ(fired, 12) << "bug of the port: a turn late";
}

// Several threads schedule timers for the next tick while time passes. No timer may fire early, and
// all must have fired when time stands at the last deadline.
TEST(SchedulerUnderThreads, LK_RACE) {
  constexpr int kThreads = 3;
  constexpr int kTimers = 2'000;
  ManualClock clock;
  Scheduler scheduler({.resolution = 1ms, .clock = &clock});
  std::atomic<int> fired = 0;
  std::atomic<int> early = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kTimers; ++n) {
        const MonotonicTime deadline = clock.now() + 1ms;
        scheduler
            .schedule_at(deadline,
                         [&, deadline] {
                           ++fired;
                           if (clock.now() < deadline) ++early;
                         })
            .release();
        if (n % 4 == 0) clock.advance(1ms);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  clock.advance(1ms);
  clock.await_waiters(1);
  EXPECT_EQ(fired, kThreads * kTimers);
  EXPECT_EQ(early, 0);
}

TEST(CircleWheelPort, LK_NO_THREAD) {
  CircleWheelPort port(10, 1'000);
  int port_fired = 0;
  port.start();
  port.add("a", {.delay_ms = 1'000}, [&] { ++port_fired; });
  port.run_until(1'000);
  EXPECT_TRUE(port.is_running());
  EXPECT_EQ(port_fired, 0);

  // Detent's scheduler runs from its constructor on, on its own thread.
  ManualClock clock;
  Scheduler scheduler({.clock = &clock});
  std::thread::id ran_on;
  scheduler.schedule_after(1s, [&] { ran_on = std::this_thread::get_id(); }).release();
  clock.advance(1s);
  clock.await_waiters(1);
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

}  // namespace
}  // namespace detent::classic

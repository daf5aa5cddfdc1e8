// Bugs of the fixed wheel of 60 s, 60 min and 24 h with rounds, and the correct results of Detent.
// cases.md lists all cases.
#include "tests/regress/classic/fixed_wheel_port.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "detent/executor.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"
#include "tests/regress/classic/our_queues.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kLost = -1;

/// Every queue, and HierarchicalWheel with the sizes of the port.
using OurQueues = Joined<EveryQueue, LevelsUnderBothDrives<60, 60, 24>>::Types;

/// The second when the port fires a timer that is added at 0. kLost if it does not fire within ten
/// days.
std::int64_t port_fires_at(std::int64_t delay, SlotPath path = SlotPath::single) {
  FixedWheelPort port(path);
  std::int64_t fired = kLost;
  port.add(1, delay, [&] { fired = port.now(); });
  port.start();
  while (fired == kLost && port.now() < 10 * kDay) port.run_until(port.now() + kHour);
  return fired;
}

TEST(FixedWheelPort, HW_OWN_EXAMPLE) {
  EXPECT_EQ(port_fires_at(5), 6);
  EXPECT_EQ(port_fires_at(2 * kMinute), 3 * kMinute);
  EXPECT_EQ(port_fires_at(1 * kHour), 2 * kHour);

  expect_on_time<OurQueues>(0, {5, 2 * kMinute, 1 * kHour});
}

TEST(FixedWheelPort, HW_NO_CASCADE) {
  for (std::int64_t delay = 60; delay <= 119; ++delay) {
    EXPECT_EQ(port_fires_at(delay), 120) << delay;
  }

  std::vector<Tick> seconds(60);
  std::iota(seconds.begin(), seconds.end(), Tick{60});
  expect_on_time<OurQueues>(0, seconds);
}

TEST(FixedWheelPort, HW_SILENT_LOSS) {
  EXPECT_EQ(port_fires_at(kDay + 1), kLost);

  expect_on_time<OurQueues>(0, {kDay + 1});
}

TEST(FixedWheelPort, HW_CANCEL_AFTER_PROMOTE) {
  FixedWheelPort port(SlotPath::single, Promotion::to_seconds);
  std::int64_t fired = kLost;
  port.add(1, 90, [&] { fired = port.now(); });
  port.start();
  port.run_until(130);
  EXPECT_FALSE(port.cancel(1)) << "bug of the port: its index still names the minute slot";
  port.run_until(kHour);
  EXPECT_EQ(fired, 150) << "bug of the port: it fires although it was cancelled";

  for_each_queue<OurQueues>([]<class Case>(Case) {
    for (Tick cancel_at = 1; cancel_at < 90; ++cancel_at) {
      auto queue = Case::make(0);
      TimerOf<Case> timer;
      ASSERT_TRUE(queue->schedule(timer, 90));
      ASSERT_EQ(count_fired(*queue, cancel_at), 0u);
      ASSERT_TRUE(queue->cancel(timer));
      ASSERT_FALSE(queue->cancel(timer));
      ASSERT_EQ(count_fired(*queue, kHour), 0u);
    }
  });
}

TEST(FixedWheelPort, HW_BATCH_DROP) {
  EXPECT_EQ(port_fires_at(kDay), kDay + kHour) << "a round more, and a slot late";
  EXPECT_EQ(port_fires_at(kDay, SlotPath::batch), kLost);

  // In Detent, a batch is one advance over many slots. Timers after its last slot must stay.
  expect_on_time<OurQueues>(0, {kDay});
  for_each_queue<OurQueues>([]<class Case>(Case) {
    auto queue = Case::make(0);
    std::vector<TimerOf<Case>> timers(100);
    for (std::size_t i = 0; i < timers.size(); ++i) {
      ASSERT_TRUE(queue->schedule(timers[i], Tick{60} * (i + 1)));
    }
    EXPECT_EQ(count_fired(*queue, 60 * 60), 60u);
    EXPECT_EQ(queue->size(), 40u);
    EXPECT_EQ(count_fired(*queue, 60 * 100), 40u);
  });
}

TEST(FixedWheelPort, HW_POOL_RACE) {
  PooledTasksPort port;
  int first = 0;
  int second = 0;
  PooledTasksPort::Task& task = port.make([&] { ++first; });
  // The loop fires the task. Before the task's thread runs, the task is cleared and used for
  // another job.
  port.fire(task);
  port.make([&] { ++second; });
  EXPECT_EQ(port.run_handed_over(), 0);
  EXPECT_EQ(first, 0) << "bug of the port: the due task does not run";
  EXPECT_EQ(second, 1) << "bug of the port: a task that is not due runs";

  port.fire(port.make([] {}));
  EXPECT_EQ(port.run_handed_over(), 1) << "cleared and not given out: there is no job";
}

// Three threads reuse a few timer entries while a pool runs the jobs. Every job must run once or be
// cancelled, and never run in place of another job.
TEST(SchedulerUnderThreads, HW_POOL_RACE) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 3'000;
  ManualClock clock;
  ThreadPool pool({.threads = 2, .capacity = 8});
  std::vector<std::atomic<int>> runs(kThreads * kRounds);
  std::vector<bool> cancelled[kThreads];
  {
    Scheduler scheduler({.clock = &clock, .executor = &pool});
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < kRounds; ++n) {
          const int run = i * kRounds + n;
          std::atomic<int>& own = runs[static_cast<std::size_t>(run)];
          TimerHandle timer = scheduler.schedule_after(10us, [&own] { ++own; });
          clock.advance(10us);
          const bool give_up = n % 2 == 0;
          cancelled[i].push_back(give_up && timer.cancel() == CancelResult::cancelled);
          timer.release();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    clock.advance(10us);
    scheduler.stop(Drain::run_due);
  }
  for (int i = 0; i < kThreads; ++i) {
    for (int n = 0; n < kRounds; ++n) {
      const bool was_cancelled = cancelled[i][static_cast<std::size_t>(n)];
      ASSERT_EQ(runs[static_cast<std::size_t>(i * kRounds + n)], was_cancelled ? 0 : 1);
    }
  }
}

TEST(FixedWheelPort, HW_DOUBLE_START) {
  const auto fires_at = [](int starts) {
    FixedWheelPort port;
    std::int64_t fired = kLost;
    port.add(1, 9, [&] { fired = port.now(); });
    for (int i = 0; i < starts; ++i) port.start();
    port.run_until(kHour);
    return fired;
  };
  EXPECT_EQ(fires_at(1), 10);
  EXPECT_EQ(fires_at(2), 5) << "at double speed";

  // The caller passes the time to a queue, so telling the same time twice has no second effect. The
  // scheduler starts only in its constructor.
  for_each_queue<OurQueues>([]<class Case>(Case) {
    auto queue = Case::make(0);
    TimerOf<Case> timer;
    ASSERT_TRUE(queue->schedule(timer, 9));
    for (Tick now = 1; now < 9; ++now) {
      EXPECT_EQ(count_fired(*queue, now), 0u);
      EXPECT_EQ(count_fired(*queue, now), 0u);
    }
    EXPECT_EQ(count_fired(*queue, 9), 1u);
    EXPECT_EQ(count_fired(*queue, 9), 0u);
  });
  SchedulerRig rig;
  int fired = 0;
  const TimerHandle timer = rig.scheduler().schedule_after(9s, [&] { ++fired; });
  rig.advance(9s - 1ns);
  EXPECT_EQ(fired, 0);
  rig.advance(1ns);
  EXPECT_EQ(fired, 1);
}

}  // namespace
}  // namespace detent::classic

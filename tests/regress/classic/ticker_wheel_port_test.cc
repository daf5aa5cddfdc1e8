// Bugs of the simple wheel with a ticker, and the correct results of Detent. cases.md lists all
// cases.
#include "tests/regress/classic/ticker_wheel_port.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "detent/queues/simple_wheel.h"
#include "detent/scheduler.h"
#include "tests/regress/classic/our_queues.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;

/// The SimpleWheel with the size of the port.
struct EightSlotsCase : RingCase<SimpleWheel, 8, QueueNature{.span = 8}> {
  static constexpr const char* kName = "SimpleWheel of 8";
};

std::int64_t port_fires_after(std::int64_t delay_ms, std::int64_t added_at_ms = 0) {
  TickerWheelPort port(8, 1'000);
  port.run_until(added_at_ms);
  std::int64_t fired = -1;
  port.add(delay_ms, [&]() -> std::int64_t {
    fired = port.now_ms();
    return 0;
  });
  port.run_until(100'000);
  return fired - added_at_ms;
}

TEST(TickerWheelPort, SW_ALIAS) {
  EXPECT_EQ(port_fires_after(8'000), 1'000);
  EXPECT_EQ(port_fires_after(9'000), 2'000);
  EXPECT_EQ(port_fires_after(10'000), 3'000);
  EXPECT_EQ(port_fires_after(16'000), 1'000);
  EXPECT_EQ(port_fires_after(17'000), 2'000);

  for (Tick start = 0; start < 10; ++start) {
    const std::vector<Tick> deadlines{start + 8, start + 9, start + 10, start + 16, start + 17};
    expect_on_time(start, deadlines);
    expect_on_time<testing::Types<EightSlotsCase>>(start, deadlines);
  }
  // SimpleWheel with the size of the port accepts one turn, and refuses more.
  auto wheel = SimpleWheel::make({.slot_count = 8});
  SimpleWheel::Timer timer;
  EXPECT_TRUE(wheel->schedule(timer, 8));
  EXPECT_FALSE(wheel->schedule(timer, 9));
  EXPECT_EQ(count_fired(*wheel, 7), 0u);
  EXPECT_EQ(count_fired(*wheel, 8), 1u);
}

TEST(TickerWheelPort, SW_TRUNC) {
  EXPECT_EQ(port_fires_after(1'900, 950), 1'050);

  // Due at 2.85 s. With ticks of 1 s it fires at 3 s, with finer ticks exact to the millisecond.
  EXPECT_EQ(worst_lateness(1s, 950ms, 950ms + 1'900ms), 150ms);
  EXPECT_EQ(worst_lateness(1ms, 950ms, 950ms + 1'900ms), 0ms);
}

TEST(TickerWheelPort, SW_RACE) {
  TickerWheelPort port(8, 1'000);
  int fired = 0;
  const TickerWheelPort::Job count = [&]() -> std::int64_t {
    ++fired;
    return 0;
  };
  port.add(0, count);
  // The ticker's thread reads the slot. Another thread adds to the slot. Then the ticker's thread
  // clears the slot.
  const std::vector<TickerWheelPort::Job> due = port.hands_slot();
  port.add(0, count);
  for (const TickerWheelPort::Job& job : due) job();
  port.clear_hands_slot_and_step();
  port.run_until(100'000);
  EXPECT_EQ(fired, 1) << "bug of the port: the second is lost";

  // On one thread, the same order occurs if a callback schedules a timer for the tick that is
  // firing.
  for_each_queue([]<class Case>(Case) {
    auto queue = Case::make(0);
    TimerOf<Case> first;
    TimerOf<Case> second;
    ASSERT_TRUE(queue->schedule(first, 1));
    queue->advance(1, [&](auto&) noexcept { queue->schedule(second, 1); });
    EXPECT_TRUE(second.is_pending());
    EXPECT_EQ(count_fired(*queue, 1), 1u);
  });
}

// Jobs and other threads schedule timers with delay 0 while time passes. All timers must fire.
TEST(SchedulerUnderThreads, SW_RACE) {
  constexpr int kTimers = 2'000;
  ManualClock clock;
  Scheduler scheduler({.clock = &clock});
  std::atomic<int> fired = 0;
  const auto add = [&] {
    for (int n = 0; n < kTimers; ++n) {
      scheduler
          .schedule_after(0s,
                          [&] {
                            ++fired;
                            scheduler.schedule_after(0s, [&] { ++fired; }).release();
                          })
          .release();
      clock.advance(1us);
    }
  };
  std::thread first(add);
  std::thread second(add);
  first.join();
  second.join();
  clock.advance(1ms);
  clock.await_waiters(1);
  EXPECT_EQ(fired, 4 * kTimers);
}

TEST(TickerWheelPort, SW_TICKER_DROP) {
  TickerWheelPort port(8, 1'000);
  std::int64_t fired = -1;
  // The job at 2 s is busy until 5.5 s. The tick of 3 s waits, and the ticks of 4 s and 5 s are
  // dropped.
  port.add(1'000, []() -> std::int64_t { return 3'500; });
  port.add(6'000, [&]() -> std::int64_t {
    fired = port.now_ms();
    return 0;
  });
  port.run_until(100'000);
  EXPECT_EQ(port.dropped_ticks(), 2);
  EXPECT_EQ(port_fires_after(6'000), 7'000);
  EXPECT_EQ(fired, 7'000 + 2 * 1'000) << "bug of the port: late by the dropped ticks";

  // The caller passes the time to Detent's queues, not single ticks. So they are on time after the
  // same pause.
  for_each_queue([]<class Case>(Case) {
    auto queue = Case::make(0);
    TimerOf<Case> slow;
    TimerOf<Case> next;
    ASSERT_TRUE(queue->schedule(slow, 1));
    ASSERT_TRUE(queue->schedule(next, 6));
    EXPECT_EQ(count_fired(*queue, 1), 1u);
    EXPECT_EQ(count_fired(*queue, 5), 0u) << "ticks 2 to 4 were never called";
    EXPECT_EQ(count_fired(*queue, 6), 1u);
  });
}

}  // namespace
}  // namespace detent::classic

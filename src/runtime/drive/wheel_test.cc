#include "detent/wheel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>

#include "detent/dense_wheel.h"
#include "detent/fifo_timer_wheel.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

// A clock as std::chrono has it, which the test moves. Each test has its own, by a number.
template <class Duration, int kTest>
struct HandClock {
  using duration = Duration;
  using rep = typename duration::rep;
  using period = typename duration::period;
  using time_point = std::chrono::time_point<HandClock>;
  static constexpr bool is_steady = false;

  static time_point now() noexcept { return present; }
  static inline time_point present{};
};

template <class W>
std::size_t fired_by(W& wheel) {
  return wheel.run_ready({}, [](auto&&) noexcept {}).fired;
}

TEST(Wheel, FiresWhenTheDelayHasPassedAndNotBefore) {
  using TestClock = HandClock<std::chrono::nanoseconds, 1>;
  TestClock::present += 1h + 300us;  // the epoch of a clock has no meaning for a wheel
  Wheel<TestClock> wheel;
  Timer timer;
  wheel.schedule_after(timer, 5ms);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(wheel.next_wakeup(), TestClock::now() + 5ms);
  TestClock::present += 5ms - 1ns;
  EXPECT_EQ(fired_by(wheel), 0u);
  TestClock::present += 1ns;
  EXPECT_EQ(fired_by(wheel), 1u);
  EXPECT_TRUE(wheel.empty());
}

TEST(Wheel, InstantsOfAFloatingClockAreRoundedUp) {
  using TestClock = HandClock<std::chrono::duration<double>, 2>;
  Wheel<TestClock> wheel;
  Timer timer;
  const TestClock::time_point deadline{std::chrono::duration<double>(0.0105)};
  wheel.schedule_at(timer, deadline);
  TestClock::present = TestClock::time_point{std::chrono::duration<double>(0.010'999)};
  EXPECT_EQ(fired_by(wheel), 0u) << "the deadline is rounded up to a tick";
  TestClock::present = TestClock::time_point{std::chrono::duration<double>(0.011)};
  EXPECT_EQ(fired_by(wheel), 1u);
}

// A loop that sleeps until next_wakeup() finds work.
TEST(Wheel, TheNextWakeupOfACoarseClockIsRoundedUp) {
  using TestClock = HandClock<std::chrono::seconds, 3>;
  Wheel<TestClock, std::chrono::duration<int, std::ratio<3, 10>>> wheel;
  Timer timer;
  wheel.schedule_after(timer, 1s);  // tick 4, at 1.2 s
  EXPECT_EQ(wheel.time_to_next(), 1200ms);
  ASSERT_EQ(wheel.next_wakeup(), TestClock::now() + 2s);
  TestClock::present = *wheel.next_wakeup();
  EXPECT_EQ(fired_by(wheel), 1u);
}

TEST(Wheel, TheEndsOfAWideClockAreNeverAndNow) {
  using TestClock = HandClock<std::chrono::duration<std::int64_t, std::ratio<86'400>>, 4>;
  Wheel<TestClock, std::chrono::hours> wheel;
  Timer never;
  Timer now;
  wheel.schedule_at(never, TestClock::time_point::max());
  wheel.schedule_at(now, TestClock::time_point::min());
  EXPECT_EQ(fired_by(wheel), 1u);
  EXPECT_TRUE(never.is_pending());
  TestClock::present += std::chrono::days(100);
  EXPECT_EQ(fired_by(wheel), 0u);
}

TEST(Wheel, OtherQueuesCanBeDriven) {
  using TestClock = HandClock<std::chrono::microseconds, 5>;
  Wheel<TestClock, std::chrono::seconds, DenseWheel> numbers;
  Wheel<TestClock, std::chrono::seconds, FifoTimerWheel> fifo;
  FifoTimerWheel::Timer timer;
  EXPECT_TRUE(numbers.schedule_after(7, 3s));
  EXPECT_TRUE(numbers.postpone_after(7, 4s));
  EXPECT_TRUE(fifo.schedule_after(timer, 3s));
  EXPECT_TRUE(fifo.cancel(timer));
  TestClock::present += 4s;
  EXPECT_EQ(fired_by(numbers), 1u);
  EXPECT_EQ(fired_by(fifo), 0u);
}

}  // namespace
}  // namespace detent

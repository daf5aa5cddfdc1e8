#include "detent/internal/tick_scale.h"

#include <gtest/gtest.h>

#include "base/test_seed.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr MonotonicTime kStart{100s};

TEST(TickScale, RoundsDeadlinesUpAndThePresentDown) {
  const TickScale scale(kStart, 10us);
  EXPECT_EQ(scale.tick_at_or_after(kStart), 0u);
  EXPECT_EQ(scale.tick_at_or_after(kStart + 1ns), 1u);
  EXPECT_EQ(scale.tick_at_or_after(kStart + 10us), 1u);
  EXPECT_EQ(scale.tick_at_or_after(kStart + 10us + 1ns), 2u);
  EXPECT_EQ(scale.tick_at_or_before(kStart + 10us - 1ns), 0u);
  EXPECT_EQ(scale.tick_at_or_before(kStart + 10us), 1u);
  EXPECT_EQ(scale.time_of(2), kStart + 20us);
}

TEST(TickScale, CountsInstantsBeforeTheStartAsTheStart) {
  const TickScale scale(kStart, 1ms);
  EXPECT_EQ(scale.tick_at_or_after(kStart - 1ns), 0u);
  EXPECT_EQ(scale.tick_at_or_before(MonotonicTime::min()), 0u);
}

TEST(TickScale, SaturatesAtTheEndOfTime) {
  for (const nanoseconds resolution : {nanoseconds{1}, nanoseconds{7}, nanoseconds{1h}}) {
    const TickScale scale(kStart, resolution);
    const Tick last = scale.tick_at_or_after(MonotonicTime::max());
    EXPECT_GE(scale.time_of(last), MonotonicTime::max() - resolution);
    EXPECT_EQ(scale.time_of(~Tick{0}), MonotonicTime::max());
  }
  const TickScale far(MonotonicTime::min(), 1ns);
  EXPECT_EQ(far.tick_at_or_after(MonotonicTime::max()), ~Tick{0});
}

// The rule that no timer fires early: once the tick of a deadline has come, the deadline has
// passed.
TEST(TickScale, ATickThatHasComeMeansTheDeadlineHasCome) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int i = 0; i < 100'000; ++i) {
    const nanoseconds resolution{1 + rng.below(1'000'000)};
    const TickScale scale(kStart, resolution);
    const MonotonicTime deadline = kStart + nanoseconds{1 + (rng.next() >> (2 + rng.below(50)))};
    const Tick tick = scale.tick_at_or_after(deadline);
    const MonotonicTime fires = scale.time_of(tick);
    ASSERT_GE(fires, deadline);
    ASSERT_LT(fires - deadline, resolution);
    ASSERT_EQ(scale.tick_at_or_before(fires), tick);
    ASSERT_TRUE(scale.tick_at_or_before(fires - 1ns) < tick);
  }
}

TEST(TickScaleDeathTest, RefusesAResolutionOfZero) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(TickScale(kStart, 0ns), "resolution > ");
}

// The division by a reciprocal, at multiples, close to multiples, and at the ends of the range.
TEST(TickScale, DividesAsDivisionDoes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 100'000; ++round) {
    const auto unit = static_cast<std::int64_t>((rng.next() >> 1) >> rng.below(63)) | 1;
    const std::int64_t units = [&] {
      const std::int64_t most = std::numeric_limits<std::int64_t>::max() / unit / 2;
      return static_cast<std::int64_t>(rng.unit() * static_cast<double>(most));
    }();
    const TickScale scale(MonotonicTime{}, std::chrono::nanoseconds{unit});
    for (const std::int64_t off : {-1, 0, 1}) {
      const std::int64_t at = std::max<std::int64_t>(0, units * unit + off);
      ASSERT_EQ(scale.tick_at_or_before(MonotonicTime{std::chrono::nanoseconds{at}}),
                static_cast<Tick>(at / unit))
          << at << " / " << unit;
    }
    ASSERT_EQ(scale.tick_at_or_before(MonotonicTime::max()),
              static_cast<Tick>(std::numeric_limits<std::int64_t>::max() / unit));
  }
}

}  // namespace
}  // namespace detent::internal

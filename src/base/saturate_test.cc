#include "detent/internal/saturate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <ratio>

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(SaturateToNanoseconds, KeepsWhatFits) {
  EXPECT_EQ(saturate_to_nanoseconds(250ms), 250ms);
  EXPECT_EQ(saturate_to_nanoseconds(1ns), 1ns);
  EXPECT_EQ(saturate_to_nanoseconds(nanoseconds::max()), nanoseconds::max());
  EXPECT_EQ(saturate_to_nanoseconds(nanoseconds::max() - 1ns), nanoseconds::max() - 1ns);
}

TEST(SaturateToNanoseconds, RoundsUp) {
  using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
  EXPECT_EQ(saturate_to_nanoseconds(Picoseconds{1}), 1ns);
  EXPECT_EQ(saturate_to_nanoseconds(Picoseconds{2001}), 3ns);
  EXPECT_EQ(saturate_to_nanoseconds(std::chrono::duration<double>{1e-10}), 1ns);
  EXPECT_EQ(saturate_to_nanoseconds(std::chrono::duration<double>{1.5}), 1500ms);
}

TEST(SaturateToNanoseconds, StopsAtBothEnds) {
  EXPECT_EQ(saturate_to_nanoseconds(std::chrono::hours::max()), nanoseconds::max());
  EXPECT_EQ(saturate_to_nanoseconds(std::chrono::hours::min()), 0ns);
  EXPECT_EQ(saturate_to_nanoseconds(-1ns), 0ns);
  EXPECT_EQ(saturate_to_nanoseconds(std::chrono::duration<double>{1e30}), nanoseconds::max());
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(saturate_to_nanoseconds(std::chrono::duration<double>{not_a_number}), 0ns);
}

TEST(SaturateToNanoseconds, TakesWholeNumbersOfEachUnit) {
  using Small = std::chrono::duration<std::uint8_t>;
  using Unsigned = std::chrono::duration<std::uint64_t, std::micro>;
  EXPECT_EQ(saturate_to_nanoseconds(Small{255}), 255s);
  EXPECT_EQ(saturate_to_nanoseconds(Unsigned{7}), 7us);
  EXPECT_EQ(saturate_to_nanoseconds(Unsigned::max()), nanoseconds::max());
  const std::chrono::microseconds most{nanoseconds::max().count() / 1'000};
  EXPECT_EQ(saturate_to_nanoseconds(most), nanoseconds{most});
  EXPECT_EQ(saturate_to_nanoseconds(most + 1us), nanoseconds::max());
}

TEST(TimeBetween, StopsAtZeroAndAtTheLongestTime) {
  constexpr MonotonicTime kZero{};
  EXPECT_EQ(time_between(kZero, kZero + 5ns), 5ns);
  EXPECT_EQ(time_between(kZero + 5ns, kZero), 0ns);
  EXPECT_EQ(time_between(MonotonicTime::min(), MonotonicTime::max()), nanoseconds::max());
}

TEST(SaturatingSubtract, StopsAtTheBeginning) {
  EXPECT_EQ(saturating_subtract(MonotonicTime{5ns}, 7ns), MonotonicTime{-2ns});
  EXPECT_EQ(saturating_subtract(MonotonicTime::min() + 5ns, 7ns), MonotonicTime::min());
}

TEST(ToMonotonicTime, RoundsToNanoseconds) {
  using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
  EXPECT_EQ(floor_to_monotonic_time(7ns), MonotonicTime{7ns});
  EXPECT_EQ(ceil_to_monotonic_time(7ns), MonotonicTime{7ns});
  EXPECT_EQ(floor_to_monotonic_time(Picoseconds{1500}), MonotonicTime{1ns});
  EXPECT_EQ(ceil_to_monotonic_time(Picoseconds{1500}), MonotonicTime{2ns});
  EXPECT_EQ(floor_to_monotonic_time(Picoseconds{-1500}), MonotonicTime{-2ns});
  EXPECT_EQ(ceil_to_monotonic_time(Picoseconds{-1500}), MonotonicTime{-1ns});
}

TEST(ToMonotonicTime, StopsAtBothEnds) {
  EXPECT_EQ(ceil_to_monotonic_time(std::chrono::hours::max()), MonotonicTime::max());
  EXPECT_EQ(floor_to_monotonic_time(std::chrono::hours::min()), MonotonicTime::min());
  EXPECT_EQ(ceil_to_monotonic_time(nanoseconds::max()), MonotonicTime::max());
  EXPECT_EQ(ceil_to_monotonic_time(nanoseconds::min()), MonotonicTime::min());
}

TEST(ToWallTime, RoundsToMilliseconds) {
  EXPECT_EQ(floor_to_wall_time(WallInstant{1500us}), WallTime{1ms});
  EXPECT_EQ(ceil_to_wall_time(WallInstant{1500us}), WallTime{2ms});
  EXPECT_EQ(floor_to_wall_time(WallInstant{-1500us}), WallTime{-2ms});
  EXPECT_EQ(ceil_to_wall_time(WallInstant{-1500us}), WallTime{-1ms});
  EXPECT_EQ(ceil_to_wall_time(std::chrono::sys_seconds{2s}), WallTime{2s});
  EXPECT_EQ(ceil_to_wall_time(WallTime::max()), WallTime::max());
  EXPECT_EQ(floor_to_wall_time(WallTime::min()), WallTime::min());
}

TEST(ToWallTime, StopsAtBothEnds) {
  using std::chrono::sys_days;
  using std::chrono::sys_seconds;
  using Fractional = std::chrono::sys_time<std::chrono::duration<double>>;
  EXPECT_EQ(ceil_to_wall_time(sys_seconds::max()), WallTime::max());
  EXPECT_EQ(floor_to_wall_time(sys_seconds::max()), WallTime::max());
  EXPECT_EQ(ceil_to_wall_time(sys_seconds::min()), WallTime::min());
  EXPECT_EQ(floor_to_wall_time(sys_seconds::min()), WallTime::min());
  EXPECT_EQ(ceil_to_wall_time(sys_days::max()), WallTime::max());
  EXPECT_EQ(ceil_to_wall_time(Fractional{std::chrono::duration<double>{1e300}}), WallTime::max());
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ceil_to_wall_time(Fractional{std::chrono::duration<double>{not_a_number}}),
            WallTime::min());
}

TEST(SaturatingAdd, StopsAtTheEndOfTime) {
  EXPECT_EQ(saturating_add(MonotonicTime{5s}, 1s), MonotonicTime{6s});
  EXPECT_EQ(saturating_add(MonotonicTime{5s}, nanoseconds::max()), MonotonicTime::max());
  EXPECT_EQ(saturating_add(MonotonicTime::max(), 0ns), MonotonicTime::max());
  EXPECT_EQ(saturating_add(MonotonicTime{-5s}, nanoseconds::max()), MonotonicTime::max() - 5s);
}

}  // namespace
}  // namespace detent::internal

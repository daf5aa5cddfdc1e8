#include "detent/internal/saturate.h"

#include <gtest/gtest.h>

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

TEST(SaturatingAdd, StopsAtTheEndOfTime) {
  EXPECT_EQ(saturating_add(MonotonicTime{5s}, 1s), MonotonicTime{6s});
  EXPECT_EQ(saturating_add(MonotonicTime{5s}, nanoseconds::max()), MonotonicTime::max());
  EXPECT_EQ(saturating_add(MonotonicTime::max(), 0ns), MonotonicTime::max());
  EXPECT_EQ(saturating_add(MonotonicTime{-5s}, nanoseconds::max()), MonotonicTime::max() - 5s);
}

}  // namespace
}  // namespace detent::internal

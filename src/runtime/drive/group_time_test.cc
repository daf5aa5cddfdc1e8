// Compares the arithmetic of group time with sums of whole numbers.
#include "runtime/drive/group_time.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/test_seed.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Wide = Uint128;

constexpr MonotonicTime at(std::int64_t ns) { return MonotonicTime{nanoseconds{ns}}; }

/// The exact value of a double in units of 2^-62.
Wide parts_of(double rate) {
  int exponent = 0;
  const auto digits = static_cast<std::uint64_t>(std::ldexp(std::frexp(rate, &exponent), 53));
  return Wide{digits} << (62 - 53 + exponent);
}

TEST(GroupTime, StartsAsTheParentsTime) {
  const GroupTime time(at(5'000));
  EXPECT_EQ(time.at(at(5'000)), at(5'000));
  EXPECT_EQ(time.at(at(7'777)), at(7'777));
  EXPECT_EQ(time.parent_time_of(at(9'000), at(6'000)), at(9'000));
  EXPECT_EQ(time.rate(), 1);
}

TEST(GroupTime, StandsStillWhilePausedAndRemembersTheRate) {
  GroupTime time(at(0));
  time.set_rate(at(0), 4);
  time.pause(at(10));
  EXPECT_EQ(time.at(at(1'000)), at(40));
  EXPECT_EQ(time.rate(), 4);
  EXPECT_EQ(time.parent_time_of(at(41), at(1'000)), MonotonicTime::max());
  EXPECT_EQ(time.parent_time_of(at(40), at(1'000)), at(1'000)) << "it is then already";
  time.resume(at(2'000));
  EXPECT_EQ(time.at(at(2'001)), at(44));
}

TEST(GroupTime, ARateSetWhilePausedCountsFromTheResume) {
  GroupTime time(at(0));
  time.pause(at(100));
  time.set_rate(at(200), 0.5);
  EXPECT_EQ(time.at(at(300)), at(100));
  time.resume(at(300));
  EXPECT_EQ(time.at(at(400)), at(150));
}

TEST(GroupTime, AMillionPausesAreExact) {
  GroupTime time(at(0));
  std::int64_t now = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    time.pause(at(now += 7));
    time.resume(at(now += 5));
  }
  EXPECT_EQ(time.at(at(now)), at(7'000'000));
}

TEST(GroupTime, AMillionChangesOfRateAreExact) {
  constexpr std::array kRates{0.1, 0.7, 1.0 / 3, 1.0 / 1024, 1023.9, 2.5};
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  GroupTime time(at(0));
  Wide sum = 0;
  std::int64_t now = 0;
  double rate = 1;
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint32_t step = rng.below(1'000);
    now += step;
    sum = sum + step * parts_of(rate);
    rate = kRates.at(rng.below(kRates.size()));
    time.set_rate(at(now), rate);
    if (i % 1024 == 0) {
      ASSERT_EQ(time.at(at(now)), at(static_cast<std::int64_t>(sum >> 62))) << i;
    }
  }
  EXPECT_EQ(time.at(at(now)), at(static_cast<std::int64_t>(sum >> 62)));
}

TEST(GroupTime, ParentTimeIsTheFirstInstantAtWhichItIsReached) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int i = 0; i < 100'000; ++i) {
    GroupTime time(at(rng.below(1'000)));
    std::int64_t now = 1'000;
    for (int change = 0; change < 3; ++change) {
      const double rate = std::exp2(20 * rng.unit() - 10);  // from 2^-10 to 2^10
      time.set_rate(at(now += rng.below(1'000)), rate);
    }
    const MonotonicTime target = time.at(at(now)) + nanoseconds{1 + rng.below(100'000)};
    const MonotonicTime reached = time.parent_time_of(target, at(now));
    ASSERT_GE(time.at(reached), target);
    ASSERT_LT(time.at(reached - 1ns), target);
  }
}

TEST(GroupTime, TheBoundsOfTheRateAreExact) {
  GroupTime time(at(0));
  time.set_rate(at(0), TimerGroup::kMinRate);
  EXPECT_EQ(time.at(at(1'023)), at(0));
  EXPECT_EQ(time.at(at(1'024)), at(1));
  EXPECT_EQ(time.parent_time_of(at(1), at(0)), at(1'024));
  time.set_rate(at(1'024), TimerGroup::kMaxRate);
  EXPECT_EQ(time.at(at(1'025)), at(1'025));
}

TEST(GroupTime, StopsAtTheEndOfTime) {
  GroupTime fast(at(0));
  fast.set_rate(at(0), TimerGroup::kMaxRate);
  EXPECT_EQ(fast.at(at(std::numeric_limits<std::int64_t>::max() / 2)), MonotonicTime::max());
  fast.pause(MonotonicTime::max());
  fast.resume(MonotonicTime::max());
  EXPECT_EQ(fast.at(MonotonicTime::max()), MonotonicTime::max());

  GroupTime slow(at(1'000));
  slow.set_rate(at(1'000), TimerGroup::kMinRate);
  const MonotonicTime far = MonotonicTime::max() - 1ns;
  EXPECT_EQ(slow.parent_time_of(far, at(1'000)), MonotonicTime::max());
  EXPECT_EQ(slow.parent_time_of(MonotonicTime::max(), at(1'000)), MonotonicTime::max());
}

TEST(GroupTime, ReachesFromTheFirstInstantToTheLast) {
  GroupTime time(MonotonicTime::min());
  EXPECT_EQ(time.at(MonotonicTime::max()), MonotonicTime::max());
  time.set_rate(MonotonicTime::min(), 0.5);
  EXPECT_EQ(time.at(at(0)), MonotonicTime::min() + nanoseconds{std::int64_t{1} << 62});
}

TEST(GroupTimeDeathTest, ARateOutsideTheBoundsIsABug) {
  GroupTime time(at(0));
  for (const double rate : {0.0, -1.0, 1.0 / 1025, 1024.5, std::nan(""), HUGE_VAL}) {
    EXPECT_DEATH(time.set_rate(at(0), rate), "check failed");
  }
}

}  // namespace
}  // namespace detent::internal

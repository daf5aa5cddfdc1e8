#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>

namespace detent {
namespace {

TEST(Rng, FollowsTheReferenceSequenceOfSplitMix64) {
  Rng rng(1234567);  // the vector given with the reference implementation (prng.di.unimi.it)
  EXPECT_EQ(rng.next(), 6457827717110365317u);
  EXPECT_EQ(rng.next(), 3203168211198807973u);
  EXPECT_EQ(rng.next(), 9817491932198370423u);
}

TEST(Rng, BelowStaysBelowAndReachesEveryValue) {
  Rng rng(1);
  std::array<int, 5> seen{};
  for (int i = 0; i < 5000; ++i) ++seen.at(rng.below(5));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 200);
}

TEST(Rng, UnitIsInTheHalfOpenInterval) {
  Rng rng(2);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = rng.unit();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(RandomSeed, DiffersFromCallToCall) { EXPECT_NE(random_seed(), random_seed()); }

}  // namespace
}  // namespace detent

#include "task/retry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kManyAttempts = std::numeric_limits<std::uint32_t>::max();

/// 0.8 × base ≤ delay < 1.2 × base, in exact integers.
void expect_within_jitter(milliseconds delay, milliseconds base) {
  EXPECT_GE(delay.count() * 5, base.count() * 4) << "base " << base.count();
  EXPECT_LT(delay.count() * 5, base.count() * 6) << "base " << base.count();
}

TEST(RetryDelay, DoublesFromTheFirstUpToTheLongest) {
  const Backoff backoff{.initial = milliseconds{1'000}, .max = milliseconds{3'600'000}};
  Rng rng(1);
  milliseconds base = backoff.initial;
  for (std::uint32_t attempts = 1; attempts <= 40; ++attempts) {
    expect_within_jitter(retry_delay(backoff, attempts, rng), base);
    base = std::min(base * 2, backoff.max);
  }
}

TEST(RetryDelay, JitterCoversExactlyItsRange) {
  const Backoff backoff{.initial = milliseconds{10}, .max = milliseconds{10}};
  Rng rng(2);
  std::set<milliseconds> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(retry_delay(backoff, 1, rng));
  EXPECT_EQ(seen, (std::set<milliseconds>{milliseconds{8}, milliseconds{9}, milliseconds{10},
                                          milliseconds{11}}));
}

TEST(RetryDelay, SmallBasesStayInTheirRange) {
  Rng rng(3);
  for (milliseconds base{1}; base < milliseconds{50}; ++base) {
    for (int i = 0; i < 100; ++i) {
      expect_within_jitter(retry_delay({.initial = base, .max = base}, 1, rng), base);
    }
  }
}

TEST(RetryDelay, NoNumberOfAttemptsOverflows) {
  Rng rng(4);
  const milliseconds longest = kMaxDelay;
  for (const milliseconds initial : {milliseconds{1}, milliseconds{1'000}, longest}) {
    for (const std::uint32_t attempts :
         {std::uint32_t{43}, std::uint32_t{63}, std::uint32_t{64}, std::uint32_t{65},
          std::uint32_t{1} << 31, kManyAttempts}) {
      expect_within_jitter(retry_delay({.initial = initial, .max = longest}, attempts, rng),
                           longest);
    }
  }
}

TEST(RetryDelay, DurationsAreClampedToTheirLimits) {
  Rng rng(5);
  const Backoff endless{.initial = milliseconds::max(), .max = milliseconds::max()};
  expect_within_jitter(retry_delay(endless, kManyAttempts, rng), kMaxDelay);
  const Backoff negative{.initial = milliseconds::min(), .max = milliseconds::min()};
  EXPECT_EQ(retry_delay(negative, 1, rng), milliseconds{0});
}

TEST(RetryDelay, AZeroBackoffIsAlwaysZero) {
  Rng rng(6);
  const Backoff none{.initial = milliseconds{0}, .max = milliseconds{3'600'000}};
  EXPECT_EQ(retry_delay(none, 1, rng), milliseconds{0});
  EXPECT_EQ(retry_delay(none, kManyAttempts, rng), milliseconds{0});
}

TEST(RetryDelay, SameSeedGivesTheSameDelays) {
  Rng one(7);
  Rng two(7);
  for (std::uint32_t attempts = 1; attempts < 20; ++attempts) {
    EXPECT_EQ(retry_delay({}, attempts, one), retry_delay({}, attempts, two));
  }
}

TEST(RetryDelayDeathTest, ATaskWithoutAttemptsStopsTheProcess) {
  Rng rng(8);
  EXPECT_DEATH(retry_delay({}, 0, rng), "attempts >= 1");
}

TEST(MaxAttempts, TheTaskDecidesThenTheDefault) {
  EXPECT_EQ(max_attempts_of({}), kDefaultMaxAttempts);
  EXPECT_EQ(max_attempts_of({.max_attempts = 3}), 3u);
}

}  // namespace
}  // namespace detent

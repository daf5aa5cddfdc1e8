// The jitter of periodic timers: how long after their ticks the runs are due.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "runtime/dates/periodic_ticks.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr WallInstant kWall{std::chrono::seconds{1'577'836'800}};  // 2020-01-01T00:00:00Z

constexpr MonotonicTime at(nanoseconds since_start) { return MonotonicTime{since_start}; }

PeriodicTicks from_zero(const PeriodicOptions& options, std::uint64_t seed) {
  return {options, at(0ns), kWall, seed};
}

/// Makes a run at `now` that takes no time.
bool run(PeriodicTicks& ticks, MonotonicTime now) {
  ticks.begin(now);
  return ticks.end(now);
}

/// The due times of the first ticks, measured with a timer that runs every tick.
std::vector<MonotonicTime> due_times(PeriodicOptions options, std::uint64_t seed, int count) {
  options.missed = MissedTick::burst;
  PeriodicTicks ticks = from_zero(options, seed);
  std::vector<MonotonicTime> due;
  while (static_cast<int>(due.size()) < count) {
    due.push_back(ticks.due_at());
    run(ticks, ticks.due_at());
  }
  return due;
}

TEST(PeriodicJitter, IsWithinItsPartOfThePeriodAndSpreadOverAllOfIt) {
  for (const double jitter : {0.01, 0.2, 1.0}) {
    constexpr int kTicks = 20'000;
    const std::vector<MonotonicTime> due = due_times({.period = 1s, .jitter = jitter}, 42, kTicks);
    std::vector<int> tenths(10);
    for (int k = 0; k < kTicks; ++k) {
      const nanoseconds late = due[static_cast<std::size_t>(k)] - at((k + 1) * 1s);
      ASSERT_GE(late, 0ns);
      const double part = std::chrono::duration<double>(late).count() / jitter;
      ASSERT_LE(part, 1);
      ++tenths[std::min<std::size_t>(9, static_cast<std::size_t>(part * 10))];
    }
    for (const int tenth : tenths) EXPECT_NEAR(tenth, kTicks / 10.0, 250) << "jitter " << jitter;
  }
}

TEST(PeriodicJitter, IsTheSameWithTheSameSeedAndAnotherWithAnother) {
  const PeriodicOptions options{.period = 1s, .jitter = 0.5};
  EXPECT_EQ(due_times(options, 7, 100), due_times(options, 7, 100));
  const std::vector<MonotonicTime> one = due_times(options, 7, 100);
  const std::vector<MonotonicTime> other = due_times(options, 8, 100);
  for (std::size_t k = 0; k < one.size(); ++k) EXPECT_NE(one[k], other[k]);
}

/// Zero in two of three cases, otherwise up to 20 periods.
nanoseconds some_lateness(nanoseconds period, Rng& rng) {
  if (rng.below(3) > 0) return 0ns;
  return nanoseconds{rng.below(20 * static_cast<std::uint32_t>(period.count()))};
}

TEST(PeriodicJitter, ARunStandsForTheTicksWhoseOwnDueTimeHasPassed) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 2'000; ++round) {
    const PeriodicOptions options{.period = nanoseconds{1 + rng.below(1'000)},
                                  .missed = rng.below(2) ? MissedTick::skip : MissedTick::coalesce,
                                  .jitter = rng.below(2) ? 1 : rng.unit()};
    const std::vector<MonotonicTime> due = due_times(options, seed, 1'500);
    PeriodicTicks ticks = from_zero(options, seed);
    MonotonicTime now = at(0ns);
    for (int i = 0; i < 20; ++i) {
      now = std::max(now, ticks.due_at()) + some_lateness(options.period, rng);
      ticks.begin(now);
      auto next = std::upper_bound(due.begin(), due.end(), now);
      now += some_lateness(options.period, rng);
      ticks.end(now);
      if (options.missed == MissedTick::skip) next = std::lower_bound(next, due.end(), now);
      ASSERT_NE(next, due.end());
      ASSERT_EQ(ticks.due_at(), *next) << "run " << i << " of round " << round;
    }
  }
}

TEST(PeriodicJitter, DoesNotTouchATimeTheTimerIsMovedTo) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    PeriodicTicks ticks = from_zero({.period = 10ms, .jitter = 1}, seed);
    ticks.move(at(14ms));
    ASSERT_EQ(ticks.due_at(), at(14ms));
    run(ticks, at(14ms));
    ASSERT_GE(ticks.due_at(), at(24ms)) << "the tick at 14 ms has had its run";
    ASSERT_LE(ticks.due_at(), at(34ms));
  }
}

TEST(PeriodicJitter, ComesOnTopOfThePhase) {
  const PeriodicOptions options{.period = 1h, .jitter = 0.1, .phase_key = "host-1"};
  bool any = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const nanoseconds late = from_zero(options, seed).due_at() - at(0ns) - phase_of("host-1", 1h);
    EXPECT_GE(late, 0ns);
    EXPECT_LE(late, 6min);
    any |= late > 3min;
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace detent::internal

// The phase of periodic timers: the position of the ticks in the period, given by a creation time
// or a key.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/rng.h"
#include "base/test_seed.h"
#include "runtime/dates/periodic_ticks.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr WallInstant kWall{std::chrono::seconds{1'577'836'800}};  // 2020-01-01T00:00:00Z
constexpr WallTime kWallMs{std::chrono::floor<milliseconds>(kWall)};
constexpr MonotonicTime kNow{123'456'789ns};

/// The time from `wall` until the first tick, without saturation.
nanoseconds first_wait(const PeriodicOptions& options, WallInstant wall) {
  return PeriodicTicks(options, kNow, wall, 0).due_at() - kNow;
}

PeriodicOptions created_at(nanoseconds period, WallTime created) {
  return {.period = period, .created = created};
}

PeriodicOptions keyed(nanoseconds period, const std::string& key) {
  return {.period = period, .phase_key = key};
}

// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST(PeriodicPhase, LK_CREATED_CIRCLE) {
  PeriodicTicks ticks(created_at(25s, kWallMs - 20s), kNow, kWall, 0);
  EXPECT_EQ(ticks.due_at(), kNow + 5s);
  ticks.begin(kNow + 5s);
  ticks.end(kNow + 5s);
  EXPECT_EQ(ticks.due_at(), kNow + 30s);
}

TEST(PeriodicPhase, TheFirstTickIsTheFirstAfterNow) {
  EXPECT_EQ(first_wait(created_at(25s, kWallMs), kWall), 25s);
  EXPECT_EQ(first_wait(created_at(25s, kWallMs - 24s), kWall), 1s);
  EXPECT_EQ(first_wait(created_at(25s, kWallMs - 25s), kWall - 1ns), 1ns);
  EXPECT_EQ(first_wait(created_at(25s, kWallMs - 25s), kWall), 25s)
      << "that tick is at now, not after now";
  EXPECT_EQ(first_wait(created_at(25s, kWallMs - 25s), kWall + 1ns), 25s - 1ns);
  EXPECT_EQ(first_wait(created_at(25s, kWallMs - 1'000'000s - 7s), kWall), 18s);
  EXPECT_EQ(first_wait(created_at(300ms, kWallMs - 100ms), kWall), 200ms);
}

TEST(PeriodicPhase, ATimerCreatedInTheFutureTicksOnePeriodAfterItsCreation) {
  EXPECT_EQ(first_wait(created_at(25s, kWallMs + 1ms), kWall), 25s + 1ms);
  EXPECT_EQ(first_wait(created_at(25s, kWallMs + 100s), kWall), 125s);
  EXPECT_EQ(first_wait(created_at(25s, kWallMs + 1ms), kWall + 400us), 25s + 600us);
}

TEST(PeriodicPhase, DatesFarAwayDontOverflow) {
  const WallTime year_9999{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};
  EXPECT_EQ(PeriodicTicks(created_at(1s, year_9999), kNow, kWall, 0).due_at(),
            MonotonicTime::max());
  EXPECT_EQ(PeriodicTicks(created_at(1s, WallTime::max()), kNow, kWall, 0).due_at(),
            MonotonicTime::max());
  EXPECT_EQ(first_wait(created_at(24h, WallTime{}), kWall + 1h), 23h);
  EXPECT_EQ(first_wait(created_at(24h, WallTime{} - 10'000 * 24h), kWall + 1h), 23h);
  // The earliest possible millisecond is 808 ms before a whole second.
  EXPECT_EQ(first_wait(created_at(1s, WallTime::min()), kWall), 192ms);
  EXPECT_EQ(first_wait(created_at(1s, WallTime{}), WallInstant::max()), 1s - 854'775'807ns);
  EXPECT_EQ(first_wait(created_at(1s, WallTime::min()), WallInstant::min()), 46'775'808ns);
}

TEST(PeriodicPhase, ALongPeriodIsCountedFromTheTimeOfCreation) {
  constexpr nanoseconds kLongest = nanoseconds::max();
  EXPECT_EQ(first_wait(created_at(kLongest, kWallMs - 1s), kWall), kLongest - 1s);
  const WallTime two_periods_ago = kWallMs - 2 * std::chrono::floor<milliseconds>(kLongest);
  EXPECT_EQ(first_wait(created_at(kLongest, two_periods_ago), kWall), 2 * 775'807ns)
      << "the part of two periods that milliseconds cannot express";
}

// The values are a promise: no version of the library may move the ticks of its users.
TEST(PeriodicPhase, AKeyKeepsItsPlaceForever) {
  struct Place {
    const char* key;
    std::int64_t in_an_hour;
    std::int64_t in_the_longest_period;
  };
  constexpr Place kPlaces[] = {
      {"", 2'749'300'290'344, 7'043'838'727'467'204'503},
      {"a", 1'338'231'468'367, 3'428'612'973'383'238'290},
      {"host-1", 2'082'954'896'798, 5'336'629'985'877'025'024},
      {"host-2", 3'151'411'349'039, 8'074'066'475'933'303'100},
      {"backup/eu-west", 3'039'262'362'834, 7'786'735'413'898'934'176},
      {"z\xC3\xBCrich", 1'232'332'345'125, 3'157'294'358'927'876'278},
  };
  for (const Place& place : kPlaces) {
    EXPECT_EQ(phase_of(place.key, 1h).count(), place.in_an_hour) << place.key;
    EXPECT_EQ(phase_of(place.key, nanoseconds::max()).count(), place.in_the_longest_period);
    EXPECT_EQ(phase_of(place.key, 1ns), 0ns);
  }
}

TEST(PeriodicPhase, ThePlaceOfAKeyIsCountedFrom1970) {
  const nanoseconds phase = phase_of("host-1", 1h);
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), WallInstant{}), phase);
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), kWall), phase) << "2020 began with a whole hour";
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), kWall + phase - 1ns), 1ns);
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), kWall + phase), 1h);
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), kWall + phase + 1ns), 1h - 1ns);
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), WallInstant{} - 7h), phase) << "before 1970";
  EXPECT_EQ(first_wait(keyed(1h, "host-1"), WallInstant{} - 7h + phase), 1h);
}

TEST(PeriodicPhase, AKeyWorksAtTheEndsOfTheCalendar) {
  for (const nanoseconds period : {nanoseconds{1ns}, nanoseconds{7h}, nanoseconds::max()}) {
    for (const WallInstant wall : {WallInstant::min(), WallInstant{}, WallInstant::max()}) {
      const PeriodicTicks ticks(keyed(period, "host-1"), MonotonicTime{}, wall, 0);
      EXPECT_GT(ticks.due_at(), MonotonicTime{});
      EXPECT_LE(ticks.due_at(), MonotonicTime{period});
    }
  }
}

TEST(PeriodicPhase, KeysAreEvenlySpread) {
  constexpr int kKeys = 100'000;
  for (const char* prefix : {"", "host-", "a rather long name of a job, and its number: "}) {
    std::array<int, 100> parts{};
    for (int i = 0; i < kKeys; ++i) {
      ++parts[static_cast<std::size_t>(phase_of(prefix + std::to_string(i), 100s) / 1s)];
    }
    double chi_square = 0;
    for (const int part : parts) {
      const double off = part - kKeys / 100.0;
      chi_square += off * off / (kKeys / 100.0);
    }
    // With 99 degrees of freedom, chi-square is 99 ± 14. Five times this deviation cannot be
    // chance.
    EXPECT_GT(chi_square, 99 - 5 * 14) << prefix;
    EXPECT_LT(chi_square, 99 + 5 * 14) << prefix;
  }
}

// One timer runs without a break. In each period, a second timer is created at a random moment.
TEST(PeriodicPhase, ARestartAtAnyMomentKeepsThePhase) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 500; ++round) {
    const nanoseconds period{1 + (rng.next() >> (24 + rng.below(40)))};
    const WallInstant start{nanoseconds{static_cast<std::int64_t>(rng.next() >> 4)}};
    const PeriodicOptions options =
        rng.below(2) ? keyed(period, std::to_string(round))
                     : created_at(period, WallTime{milliseconds{rng.below(2'000'000'000)}});
    PeriodicTicks unbroken(options, MonotonicTime{}, start, 0);
    MonotonicTime last{};
    for (int i = 0; i < 20; ++i) {
      const auto share = static_cast<double>((unbroken.due_at() - last).count()) * rng.unit();
      const nanoseconds now =
          last.time_since_epoch() + nanoseconds{static_cast<std::int64_t>(share)};
      // The restarted process has its own monotonic clock with another zero.
      const PeriodicTicks restarted(options, kNow, start + now, 1);
      ASSERT_EQ(restarted.due_at() - kNow, unbroken.due_at() - MonotonicTime{now});
      last = unbroken.due_at();
      unbroken.begin(last);
      unbroken.end(last);
    }
  }
}

}  // namespace
}  // namespace detent::internal

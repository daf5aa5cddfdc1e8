// The ticks and runs of periodic timers: policies, counts, and both ends of time. See
// periodic_phase_test.cc for the position of ticks in the period, and periodic_jitter_test.cc for
// the delay between ticks and runs.
#include "runtime/dates/periodic_ticks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr WallInstant kWall{std::chrono::seconds{1'577'836'800}};
constexpr MissedTick kPolicies[] = {MissedTick::coalesce, MissedTick::skip, MissedTick::delay,
                                    MissedTick::burst, MissedTick::spread};

constexpr MonotonicTime at(nanoseconds since_start) { return MonotonicTime{since_start}; }

PeriodicTicks from_zero(const PeriodicOptions& options, std::uint64_t seed = 0) {
  return {options, at(0ns), kWall, seed};
}

/// Makes a run at `now` that takes no time.
bool run(PeriodicTicks& ticks, MonotonicTime now) {
  ticks.begin(now);
  return ticks.end(now);
}

/// The driver sleeps between these two seconds.
struct Asleep {
  int from = 0;
  int to = 0;
};

/// A picture of the runs with a period of 4 s. Each character is one second: the number of runs
/// that began in it, or `=` while a run continues. The first run takes `first_takes` seconds, the
/// others no time.
std::string picture(const PeriodicOptions& options, int first_takes, Asleep asleep = {}) {
  PeriodicTicks ticks = from_zero(options);
  std::string seconds(28, ' ');
  int busy_until = 0;
  bool is_running = false;
  for (int second = 0; second < 28; ++second) {
    char& here = seconds[static_cast<std::size_t>(second)];
    const MonotonicTime now = at(std::chrono::seconds{second});
    if (asleep.from < second && second < asleep.to) continue;
    if (second < busy_until) {
      here = '=';
      continue;
    }
    if (std::exchange(is_running, false)) ticks.end(now);
    while (ticks.due_at() <= now) {
      here = here == ' ' ? '1' : static_cast<char>(here + 1);
      ticks.begin(now);
      busy_until = second + std::exchange(first_takes, 0);
      is_running = busy_until > second;
      if (is_running) break;
      ticks.end(now);
    }
  }
  return seconds;
}

struct Line {
  PeriodicOptions options;
  const char* runs = "";
};

PeriodicOptions every_4s(MissedTick missed) {
  return {.period = 4s, .missed = missed, .catch_up = 1s};
}

TEST(PeriodicTicks, AllPoliciesAreEqualWhileNoRunIsLate) {
  for (const MissedTick missed : kPolicies) {
    EXPECT_EQ(picture(every_4s(missed), 0), "    1   1   1   1   1   1   ");
    EXPECT_EQ(picture(every_4s(missed), 3), "    1== 1   1   1   1   1   ");
  }
}

TEST(PeriodicTicks, EachPolicyHandlesALongRun) {
  const Line table[] = {
      //                                     4   8   12  16  20  24
      {every_4s(MissedTick::coalesce), "    1=========1 1   1   1   "},
      {every_4s(MissedTick::skip), "    1=========  1   1   1   "},
      {every_4s(MissedTick::delay), "    1=========1   1   1   1 "},
      {every_4s(MissedTick::burst), "    1=========2 1   1   1   "},
      {every_4s(MissedTick::spread), "    1=========111   1   1   "},
      {{.period = 4s, .pace = Pace::fixed_delay}, "    1=========    1   1   1 "},
  };
  for (const Line& line : table) EXPECT_EQ(picture(line.options, 10), line.runs);
}

TEST(PeriodicTicks, EachPolicyHandlesAJump) {
  const Line table[] = {
      //                                     4   8   12  16  20  24
      {every_4s(MissedTick::coalesce), "    1             1 1   1   "},
      {every_4s(MissedTick::skip), "    1             1 1   1   "},
      {every_4s(MissedTick::delay), "    1             1   1   1 "},
      {every_4s(MissedTick::burst), "    1             3 1   1   "},
      {every_4s(MissedTick::spread), "    1             1111  1   "},
      {{.period = 4s, .pace = Pace::fixed_delay}, "    1             1   1   1 "},
  };
  for (const Line& line : table) EXPECT_EQ(picture(line.options, 0, {5, 18}), line.runs);
}

TEST(PeriodicTicks, EachPolicyHandlesALongRunAndAJump) {
  const Line table[] = {
      //                                     4   8   12  16  20  24
      {every_4s(MissedTick::coalesce), "    1=====1        11   1   "},
      {every_4s(MissedTick::skip), "    1=====         11   1   "},
      {every_4s(MissedTick::delay), "    1=====1        1   1   1"},
      {every_4s(MissedTick::burst), "    1=====1        21   1   "},
      {every_4s(MissedTick::spread), "    1=====1        111  1   "},
      {{.period = 4s, .pace = Pace::fixed_delay}, "    1=====         1   1   1"},
  };
  for (const Line& line : table) EXPECT_EQ(picture(line.options, 6, {10, 19}), line.runs);
}

TEST(PeriodicTicks, ATickOnTheEndOfARunIsNotMissed) {
  for (const MissedTick missed : kPolicies) {
    if (missed == MissedTick::burst || missed == MissedTick::spread) continue;
    EXPECT_EQ(picture(every_4s(missed), 8), "    1=======1   1   1   1   ");
    EXPECT_EQ(picture(every_4s(missed), 4), "    1===1   1   1   1   1   ");
  }
}

TEST(PeriodicTicks, ARunThatIsLateByLessThanAPeriodKeepsThePhase) {
  for (const MissedTick missed : kPolicies) {
    PeriodicTicks ticks = from_zero({.period = 10ms, .missed = missed});
    ASSERT_TRUE(run(ticks, at(20ms - 1ns)));
    EXPECT_EQ(ticks.due_at(), missed == MissedTick::spread ? at(21ms - 1ns) : at(20ms));
  }
}

TEST(PeriodicTicks, ADelayedRunStandsForTheTicksUntilItBegins) {
  PeriodicTicks ticks = from_zero({.period = 10ms});
  ticks.begin(at(15ms));
  EXPECT_EQ(ticks.due_at(), at(10ms)) << "how late it is can be told while it runs";
  ticks.begin(at(34ms));
  ASSERT_TRUE(ticks.end(at(34ms)));
  EXPECT_EQ(ticks.due_at(), at(40ms));
}

TEST(PeriodicTicks, SpreadKeepsATenthOfAPeriodUnlessToldAndNeverMoreThanHalf) {
  const auto second_due = [](nanoseconds period, nanoseconds catch_up) {
    PeriodicTicks ticks =
        from_zero({.period = period, .missed = MissedTick::spread, .catch_up = catch_up});
    run(ticks, at(1s));
    return ticks.due_at() - at(1s);
  };
  EXPECT_EQ(second_due(100ms, 0ms), 10ms);
  EXPECT_EQ(second_due(100ms, 30ms), 30ms);
  EXPECT_EQ(second_due(100ms, 50ms), 50ms);
  EXPECT_EQ(second_due(100ms, 100ms), 50ms);
  EXPECT_EQ(second_due(100ms, nanoseconds::max()), 50ms);
}

TEST(PeriodicTicks, SpreadCatchesUpWhateverItsPace) {
  for (const nanoseconds catch_up : {0ms, 1ms, 50ms, 100ms, 1'000ms}) {
    PeriodicTicks ticks =
        from_zero({.period = 100ms, .missed = MissedTick::spread, .catch_up = catch_up});
    run(ticks, at(10s));
    int runs = 1;
    const auto own_tick = [&] { return at((runs + 1) * 100ms); };
    for (; ticks.due_at() > own_tick(); ++runs) {
      ASSERT_LT(runs, 300);
      run(ticks, ticks.due_at());
    }
    EXPECT_EQ(ticks.due_at(), own_tick()) << "no tick was lost";
  }
}

// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST(PeriodicTicks, LK_TIMES_PLUS1) {
  for (const Pace pace : {Pace::fixed_rate, Pace::fixed_delay}) {
    for (const MissedTick missed : kPolicies) {
      PeriodicTicks ticks = from_zero({.period = 2s, .count = 3, .missed = missed, .pace = pace});
      EXPECT_EQ(ticks.left().count, 3u);
      ticks.begin(at(11s));
      EXPECT_EQ(ticks.left().count, 3u) << "the run is not over yet";
      EXPECT_TRUE(ticks.end(at(11s)));
      EXPECT_EQ(ticks.left().count, 2u);
      EXPECT_TRUE(run(ticks, ticks.due_at() + 9s));
      EXPECT_EQ(ticks.left().count, 1u);
      EXPECT_FALSE(run(ticks, ticks.due_at()));
    }
  }
}

TEST(PeriodicTicks, ACountOfZeroHasNoEnd) {
  PeriodicTicks ticks = from_zero({.period = 1ms});
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(run(ticks, ticks.due_at()));
  EXPECT_EQ(ticks.left().count, 0u);
}

TEST(PeriodicTicks, TheRemainingOptionsAreTheGivenOptions) {
  PeriodicTicks ticks = from_zero({.period = 7s,
                                   .count = 5,
                                   .missed = MissedTick::spread,
                                   .jitter = 0.25,
                                   .catch_up = 2s,
                                   .phase_key = "host-1"});
  run(ticks, ticks.due_at());
  ticks.move(at(99s));
  const PeriodicOptions& left = ticks.left();
  EXPECT_EQ(left.period, 7s);
  EXPECT_EQ(left.count, 4u);
  EXPECT_EQ(left.missed, MissedTick::spread);
  EXPECT_EQ(left.jitter, 0.25);
  EXPECT_EQ(left.catch_up, 2s);
  EXPECT_EQ(left.phase_key, "host-1");
}

// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST(PeriodicTicks, LK_INT_TRUNC) {
  PeriodicTicks ticks = from_zero({.period = 1'500ms});
  EXPECT_EQ(ticks.due_at(), at(1'500ms));
  run(ticks, at(1'500ms));
  EXPECT_EQ(ticks.due_at(), at(3s));
}

// A known wrong answer: NOLINTNEXTLINE(google-readability-avoid-underscore-in-googletest-name)
TEST(PeriodicTicks, LK_SUBSEC_DIV0) {
  for (const MissedTick missed : kPolicies) {
    for (const nanoseconds period : {nanoseconds{1ns}, nanoseconds{2ns}, nanoseconds{500ms}}) {
      PeriodicTicks ticks = from_zero({.period = period, .missed = missed, .jitter = 0.5});
      for (int i = 0; i < 10; ++i) {
        const MonotonicTime before = ticks.due_at();
        run(ticks, before);
        EXPECT_GE(ticks.due_at(), before);
        EXPECT_LE(ticks.due_at(), before + 2 * period);
      }
    }
  }
}

TEST(PeriodicTicks, ContinuesFromTheTimeItWasMovedTo) {
  for (const MissedTick missed : kPolicies) {
    PeriodicTicks ticks = from_zero({.period = 10ms, .missed = missed});
    ticks.move(at(14ms));
    EXPECT_EQ(ticks.due_at(), at(14ms));
    run(ticks, at(14ms));
    EXPECT_EQ(ticks.due_at(), at(24ms));
    ticks.begin(at(24ms));
    ticks.move(at(27ms));
    EXPECT_EQ(ticks.due_at(), at(27ms)) << "also when it had been taken to be run";
    run(ticks, at(27ms));
    EXPECT_EQ(ticks.due_at(), at(37ms));
  }
}

TEST(PeriodicTicks, AFixedDelayCountsFromTheEndOfTheRun) {
  PeriodicTicks ticks = from_zero({.period = 10ms, .pace = Pace::fixed_delay});
  EXPECT_EQ(ticks.due_at(), at(10ms));
  ticks.begin(at(12ms));
  ticks.end(at(17ms));
  EXPECT_EQ(ticks.due_at(), at(27ms));
}

TEST(PeriodicTicks, DoesNotDriftInAYear) {
  constexpr nanoseconds kYear = 365 * 24h;
  struct Rate {
    nanoseconds period;
    std::int64_t runs;
  };
  for (const Rate rate : {Rate{1h, 8'760}, Rate{7s, 4'505'142}}) {
    PeriodicTicks ticks = from_zero({.period = rate.period});
    std::int64_t runs = 0;
    while (ticks.due_at() <= at(kYear)) {
      ASSERT_EQ(ticks.due_at(), at(++runs * rate.period));
      const MonotonicTime begins = ticks.due_at() + nanoseconds{runs % 3'000'000'000};
      ticks.begin(begins);
      ticks.end(begins + 2s);
    }
    EXPECT_EQ(runs, rate.runs);
  }
}

TEST(PeriodicTicks, TheLongestPeriodNeverRuns) {
  for (const nanoseconds start : {nanoseconds{0}, nanoseconds{1h}, nanoseconds::max()}) {
    for (const double jitter : {0.0, 1.0}) {
      const PeriodicTicks ticks({.period = nanoseconds::max(), .jitter = jitter}, at(start), kWall,
                                0);
      EXPECT_EQ(ticks.due_at(), MonotonicTime::max());
    }
  }
}

TEST(PeriodicTicks, StopsAtTheEndOfTimeFromWhereverItStarts) {
  for (const MissedTick missed : kPolicies) {
    for (const nanoseconds period : {nanoseconds{1}, nanoseconds{7h}, nanoseconds::max()}) {
      PeriodicTicks ticks({.period = period, .missed = missed, .jitter = 0.5}, MonotonicTime::min(),
                          kWall, 3);
      EXPECT_GE(ticks.due_at(), MonotonicTime::min() + period);
      run(ticks, MonotonicTime::max());
      if (missed == MissedTick::burst || missed == MissedTick::spread) continue;
      EXPECT_GE(ticks.due_at(), MonotonicTime::max() - period);
      run(ticks, MonotonicTime::max());
      EXPECT_EQ(ticks.due_at(), MonotonicTime::max());
    }
  }
}

TEST(PeriodicTicks, CountsThroughNegativeTime) {
  PeriodicTicks ticks({.period = 10s}, at(-25s), kWall, 0);
  EXPECT_EQ(ticks.due_at(), at(-15s));
  run(ticks, at(-4s));
  EXPECT_EQ(ticks.due_at(), at(5s)) << "stood for the tick at -5 s";
}

// A model that goes from tick to tick. PeriodicTicks divides instead.
struct Model {
  PeriodicOptions options;
  nanoseconds tick = options.period;
  nanoseconds due = tick;
  nanoseconds began{};

  void begin(nanoseconds now) {
    began = now;
    if (options.pace == Pace::fixed_delay) return;
    const bool is_one =
        options.missed == MissedTick::coalesce || options.missed == MissedTick::skip;
    while (is_one && tick + options.period <= now) tick += options.period;
    if (options.missed == MissedTick::delay && tick + options.period <= now) tick = now;
  }

  void end(nanoseconds now) {
    tick += options.period;
    while (options.missed == MissedTick::skip && tick < now) tick += options.period;
    if (options.pace == Pace::fixed_delay) tick = now + options.period;
    due = tick;
    if (options.missed != MissedTick::spread || options.pace == Pace::fixed_delay) return;
    due = std::max(due, began + std::min(options.catch_up, options.period / 2));
  }
};

/// A random delay: mostly zero, often less than a period, rarely many periods, sometimes exactly on
/// a tick.
nanoseconds some_delay(nanoseconds period, Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return nanoseconds{rng.below(static_cast<std::uint32_t>(period.count()))};
    case 1:
      return period * rng.below(4);
    case 2:
      return nanoseconds{rng.below(30 * static_cast<std::uint32_t>(period.count()))};
    default:
      return 0ns;
  }
}

TEST(PeriodicTicks, BehavesLikeAModelThatGoesFromTickToTick) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 3'000; ++round) {
    const PeriodicOptions options{.period = nanoseconds{1 + rng.below(rng.below(2) ? 20 : 20'000)},
                                  .missed = kPolicies[rng.below(5)],
                                  .pace = rng.below(6) == 0 ? Pace::fixed_delay : Pace::fixed_rate,
                                  .catch_up = nanoseconds{1 + rng.below(10'000)}};
    PeriodicTicks ticks = from_zero(options);
    Model model{.options = options};
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(ticks.due_at(), at(model.due)) << "run " << i << " of round " << round;
      const nanoseconds begins = std::max(model.began, model.due) + some_delay(options.period, rng);
      const nanoseconds ends = begins + some_delay(options.period, rng);
      ticks.begin(at(begins));
      ticks.end(at(ends));
      model.begin(begins);
      model.end(ends);
    }
  }
}

// One thread runs the timer and is sometimes late. A due run waits for the end of the previous run.
TEST(PeriodicTicks, BurstRunsOncePerTickAndOtherPoliciesAtMostOnce) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 2'000; ++round) {
    const MissedTick missed = kPolicies[rng.below(5)];
    const nanoseconds period{10 + rng.below(5'000)};  // so a tenth of it is not zero
    PeriodicTicks ticks = from_zero({.period = period, .missed = missed});
    MonotonicTime now = at(0ns);
    std::int64_t runs = 0;
    for (int i = 0; i < 100; ++i, ++runs) {
      const MonotonicTime due = ticks.due_at();
      now = std::max(now, due) + some_delay(period, rng);
      ticks.begin(now);
      now += some_delay(period, rng);
      ticks.end(now);
      ASSERT_GT(ticks.due_at(), due) << "one tick is not run twice";
    }
    for (; ticks.due_at() <= now; ++runs) run(ticks, now);
    const std::int64_t ticks_passed = now.time_since_epoch() / period;
    if (missed == MissedTick::burst) {
      EXPECT_EQ(runs, ticks_passed);
    } else {
      EXPECT_LE(runs, ticks_passed);
    }
  }
}

TEST(PeriodicTicks, NamesTheRequirementThatOptionsBreak) {
  EXPECT_EQ(problem_of({.period = 1ns}), nullptr);
  EXPECT_EQ(problem_of({.period = 1ns, .jitter = 1}), nullptr);
  EXPECT_STREQ(problem_of({}), "options.period > 0");
  EXPECT_STREQ(problem_of({.period = -1s}), "options.period > 0");
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (const double jitter : {-0.1, 1.1, not_a_number}) {
    EXPECT_STREQ(problem_of({.period = 1s, .jitter = jitter}), "0 <= options.jitter <= 1");
  }
  EXPECT_STREQ(problem_of({.period = 1s, .catch_up = -1ns}), "options.catch_up >= 0");
  EXPECT_STREQ(problem_of({.period = 1s, .created = WallTime{}, .phase_key = "a"}),
               "options.created or options.phase_key, not both");
}

TEST(PeriodicTicksDeathTest, WrongOptionsAndAnEarlyRunAreBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(from_zero({.period = 0ns}), "options.period > 0");
  EXPECT_DEATH(from_zero({.period = 1s, .jitter = 2}), "options.jitter");
  PeriodicTicks ticks = from_zero({.period = 1s});
  EXPECT_DEATH(ticks.begin(at(1s - 1ns)), "now >= due_");
}

}  // namespace
}  // namespace detent::internal

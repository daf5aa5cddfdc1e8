// Compares RecurringDates with a linear search in a list of all dates, and tests its limits.
#include "runtime/dates/recurring_dates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::internal {
namespace {

using namespace std::chrono_literals;
using Dates = std::vector<WallTime>;

constexpr WallTime kStart{1'577'836'800'000ms};

/// A rule with a fixed list of dates.
struct Listed {
  Dates dates;  // in rising order

  std::optional<WallTime> next_after(WallTime time) const {
    const auto next = std::upper_bound(dates.begin(), dates.end(), time);
    return next == dates.end() ? std::nullopt : std::optional(*next);
  }
};

Dates random_dates(Rng& rng) {
  Dates dates;
  WallTime date = kStart;
  for (int i = 0; i < 60; ++i) {
    const std::uint32_t most = rng.below(2) == 0 ? 3 : 3'000'000;
    dates.push_back(date += std::chrono::milliseconds{1 + rng.below(most)});
  }
  return dates;
}

/// The dates in (last, now] that must run, found by a search through all dates.
Dates expected(const Dates& all, WallTime last, WallTime now, const RecurringOptions& options) {
  Dates passed;
  for (const WallTime date : all) {
    if (date <= last || date > now) continue;
    if (!options.grace || now - date <= *options.grace) passed.push_back(date);
  }
  const std::size_t most = options.missed == MissedOccurrence::all ? options.most_missed : 1;
  const std::size_t left_out = passed.size() - std::min(passed.size(), most);
  passed.erase(passed.begin(), passed.begin() + static_cast<std::ptrdiff_t>(left_out));
  return passed;
}

RecurringOptions random_options(Rng& rng) {
  RecurringOptions options;
  options.missed = rng.below(2) == 0 ? MissedOccurrence::all : MissedOccurrence::once;
  options.most_missed = 1 + rng.below(8);
  if (rng.below(2) == 0) options.grace = std::chrono::milliseconds{rng.below(5'000'000)};
  return options;
}

TEST(RecurringDates, RunsWhatASearchThroughAllDatesFinds) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 2'000; ++round) {
    const Listed rule{random_dates(rng)};
    const RecurringOptions options = random_options(rng);
    RecurringDates dates(rule, options, 0);
    WallTime last = kStart;
    WallTime now = kStart;
    std::optional<WallTime> due = dates.first(now);
    while (due) {
      now = std::max(now, *due) + std::chrono::milliseconds{rng.below(rng.below(20'000'000) + 1)};
      Dates runs;
      while (due && *due <= now) {
        if (dates.begin(now)) runs.push_back(dates.occurrence());
        due = dates.end(now);
      }
      ASSERT_EQ(runs, expected(rule.dates, last, now, options)) << "round " << round;
      last = now;
    }
    EXPECT_GE(last, rule.dates.back());
  }
}

TEST(RecurringDates, AYearOfMissedSecondsIsSettledInAFewQuestions) {
  for (const MissedOccurrence missed : {MissedOccurrence::once, MissedOccurrence::all}) {
    int questions = 0;
    const auto every_second = [&questions](WallTime time) -> std::optional<WallTime> {
      ++questions;
      return std::chrono::floor<std::chrono::seconds>(time) + 1s;
    };
    RecurringDates dates(every_second, {.missed = missed, .most_missed = 3}, 0);
    dates.first(kStart);
    EXPECT_TRUE(dates.begin(kStart + 24h * 365));
    EXPECT_EQ(dates.occurrence(), kStart + 24h * 365 - (missed == MissedOccurrence::all ? 2s : 0s));
    EXPECT_LT(questions, 150);
  }
}

TEST(RecurringDates, NeitherEndOfTimeWraps) {
  const auto last_instant = [](WallTime time) {
    return time < WallTime::max() ? std::optional(WallTime::max()) : std::nullopt;
  };
  RecurringDates plain(last_instant, {.start = WallTime::min(), .end = WallTime::max()}, 0);
  EXPECT_EQ(plain.first(kStart), WallTime::max());
  RecurringDates late(last_instant, {.jitter = std::chrono::milliseconds::max()}, 1);
  EXPECT_EQ(late.first(kStart), std::nullopt);
  RecurringDates patient(last_instant, {.grace = std::chrono::milliseconds::max()}, 0);
  EXPECT_EQ(patient.first(WallTime::min()), WallTime::max());
  EXPECT_TRUE(patient.begin(WallTime::max()));
  EXPECT_EQ(patient.end(WallTime::max()), std::nullopt);
}

TEST(RecurringDatesDeathTest, RefusesOptionsAndRulesThatBreakTheirRequirements) {
  const auto stands_still = [](WallTime time) { return std::optional(time); };
  const auto make = [&](const RecurringOptions& options) {
    RecurringDates(stands_still, options, 0).first(kStart);
  };
  EXPECT_DEATH(make({}), "rule_goes_forward");
  EXPECT_DEATH(make({.most_missed = 0}), "most_missed");
  EXPECT_DEATH(make({.grace = -1ms}), "grace");
  EXPECT_DEATH(make({.jitter = -1ms}), "jitter");
}

}  // namespace
}  // namespace detent::internal

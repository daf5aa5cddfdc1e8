#include "detent/calendar_interval.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/wall_time.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

WallTime at(std::string_view text) { return parse_rfc3339(text).value(); }

std::string next_three(const CalendarIntervalOptions& options, std::string_view zone = "UTC") {
  std::string text;
  const auto interval = CalendarInterval::make(options, zone).value();
  for (const WallTime time : interval.next(3, options.anchor)) {
    text += (text.empty() ? "" : " ") + format_rfc3339(time).substr(0, 16);
  }
  return text;
}

TEST(CalendarInterval, MonthEndsAreCountedFromTheAnchor) {
  const WallTime anchor = at("2023-01-31T18:00:00Z");
  EXPECT_EQ(next_three({.anchor = anchor}), "2023-02-28T18:00 2023-03-31T18:00 2023-04-30T18:00");
  EXPECT_EQ(next_three({.anchor = anchor, .month_end = MonthEnd::skip}),
            "2023-03-31T18:00 2023-05-31T18:00 2023-07-31T18:00");
  EXPECT_EQ(next_three({.anchor = anchor, .every = 3}),
            "2023-04-30T18:00 2023-07-31T18:00 2023-10-31T18:00");
}

TEST(CalendarInterval, February29IsClampedOrSkipped) {
  const WallTime anchor = at("2024-02-29T00:00:00Z");
  EXPECT_EQ(next_three({.anchor = anchor, .unit = CalendarUnit::year}),
            "2025-02-28T00:00 2026-02-28T00:00 2027-02-28T00:00");
  EXPECT_EQ(next_three({.anchor = anchor, .unit = CalendarUnit::year, .month_end = MonthEnd::skip}),
            "2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00");
}

TEST(CalendarInterval, DaysAndWeeksKeepTheLocalTime) {
  const WallTime anchor = at("2025-03-28T08:00:00Z");  // Friday, 09:00 in Berlin
  EXPECT_EQ(next_three({.anchor = anchor, .unit = CalendarUnit::day, .every = 2}, "Europe/Berlin"),
            "2025-03-30T07:00 2025-04-01T07:00 2025-04-03T07:00");
  EXPECT_EQ(next_three({.anchor = anchor, .unit = CalendarUnit::week}, "Europe/Berlin"),
            "2025-04-04T07:00 2025-04-11T07:00 2025-04-18T07:00");
}

TEST(CalendarInterval, GapAndRepeatAreAsForCron) {
  CalendarIntervalOptions gap{.anchor = at("2025-03-29T01:30:00Z"), .unit = CalendarUnit::day};
  EXPECT_EQ(next_three(gap, "Europe/Berlin"), "2025-03-30T01:00 2025-03-31T00:30 2025-04-01T00:30");
  gap.gap = Gap::skip;
  EXPECT_EQ(next_three(gap, "Europe/Berlin"), "2025-03-31T00:30 2025-04-01T00:30 2025-04-02T00:30");
  CalendarIntervalOptions twice{.anchor = at("2025-10-25T00:30:00Z"), .unit = CalendarUnit::day};
  EXPECT_EQ(next_three(twice, "Europe/Berlin"),
            "2025-10-26T00:30 2025-10-27T01:30 2025-10-28T01:30");
  twice.repeat = Repeat::second;
  EXPECT_EQ(next_three(twice, "Europe/Berlin"),
            "2025-10-26T01:30 2025-10-27T01:30 2025-10-28T01:30");
  twice.repeat = Repeat::both;
  EXPECT_EQ(next_three(twice, "Europe/Berlin"),
            "2025-10-26T00:30 2025-10-26T01:30 2025-10-27T01:30");
}

TEST(CalendarInterval, BeginsWithItsAnchorAndEndsWith9999) {
  const WallTime anchor = at("2024-05-05T05:05:05Z");
  const auto yearly =
      CalendarInterval::make({.anchor = anchor, .unit = CalendarUnit::year}).value();
  EXPECT_EQ(yearly.next_after(WallTime::min()), anchor);
  EXPECT_EQ(yearly.prev_before(anchor), std::nullopt);
  EXPECT_EQ(yearly.prev_before(anchor + 1ms), anchor);
  EXPECT_EQ(yearly.prev_before(WallTime::max()), at("9999-05-05T05:05:05Z"));
  EXPECT_EQ(yearly.next_after(at("9999-05-05T05:05:05Z")), std::nullopt);
  EXPECT_EQ(yearly.next_after(WallTime::max()), std::nullopt);
  EXPECT_EQ(yearly.next_after(std::chrono::sys_seconds::max()), std::nullopt);
  EXPECT_EQ(yearly.prev_before(std::chrono::sys_seconds::max()), at("9999-05-05T05:05:05Z"));
  EXPECT_EQ(yearly.next(1, std::chrono::sys_seconds::min()), std::vector{anchor});
  const auto rare =
      CalendarInterval::make({.anchor = anchor, .unit = CalendarUnit::year, .every = 100'000});
  EXPECT_EQ(rare.value().next_after(anchor), std::nullopt);
}

TEST(CalendarInterval, AcceptsTimesOfAnyPrecision) {
  const WallTime anchor = at("2024-05-05T05:05:05Z");
  const auto daily = CalendarInterval::make({.anchor = anchor, .unit = CalendarUnit::day}).value();
  const WallInstant second = anchor + 24h;
  EXPECT_EQ(daily.next_after(second - 1ns), second);
  EXPECT_EQ(daily.prev_before(second + 1ns), second);
  EXPECT_EQ(daily.next(1, second - 1ns), (std::vector<WallTime>{anchor + 24h}));
}

TEST(CalendarInterval, TheYear9999EndsInUtcNotInLocalTime) {
  const auto daily = CalendarInterval::make(
      {.anchor = at("9999-12-28T20:00:00Z"), .unit = CalendarUnit::day}, "Asia/Tokyo");
  EXPECT_EQ(daily.value().prev_before(WallTime::max()), at("9999-12-31T20:00:00Z"));
}

TEST(CalendarInterval, RefusesWhatIsOutOfRange) {
  EXPECT_FALSE(CalendarInterval::make({.every = 0}));
  EXPECT_FALSE(CalendarInterval::make({.every = 100'001}));
  EXPECT_FALSE(CalendarInterval::make({.anchor = WallTime{-1ms}}));
  EXPECT_FALSE(CalendarInterval::make({.anchor = kWallTimeEnd}));
  EXPECT_FALSE(CalendarInterval::make({}, "No/Zone"));
}

// A search that begins at any time finds the same occurrences as a walk from the anchor.
TEST(CalendarInterval, TheStartOfTheSearchMakesNoDifference) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  constexpr const char* kZones[] = {"UTC", "Europe/Berlin", "Australia/Lord_Howe"};
  for (int round = 0; round < 60; ++round) {
    const CalendarIntervalOptions options{
        .anchor = WallTime{std::chrono::seconds{rng.below(2'000'000'000)}},
        .unit = static_cast<CalendarUnit>(rng.below(4)),
        .every = 1 + rng.below(20),
        .month_end = static_cast<MonthEnd>(rng.below(2)),
        .gap = static_cast<Gap>(rng.below(2)),
        .repeat = static_cast<Repeat>(rng.below(3))};
    const auto interval = CalendarInterval::make(options, kZones[rng.below(3)]).value();
    const auto times = interval.next(100, WallTime::min());
    ASSERT_EQ(times.front(), options.anchor);
    for (std::size_t i = 1; i < times.size(); ++i) {
      ASSERT_LT(times[i - 1], times[i]);
      const auto length = static_cast<std::uint32_t>((times[i] - times[i - 1]) / 1s);
      const WallTime between = times[i - 1] + std::chrono::seconds{rng.below(length)};
      ASSERT_EQ(interval.next_after(between), times[i]);
      ASSERT_EQ(interval.prev_before(between + 1s), times[i - 1]);
    }
  }
}

}  // namespace
}  // namespace detent

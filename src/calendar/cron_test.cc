#include "detent/cron.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/wall_time.h"
#include "calendar/cron_parser.h"
#include "calendar/occurrences.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

WallTime at(std::string_view text) { return parse_rfc3339(text).value(); }

Cron cron(std::string_view expression, std::string_view zone = "UTC", CronOptions options = {}) {
  auto parsed = Cron::parse(expression, zone, options);
  EXPECT_TRUE(parsed) << expression << ": " << parsed.error().message;
  return std::move(parsed).value();
}

std::string shown(const std::vector<WallTime>& times) {
  std::string text;
  for (const WallTime time : times) text += (text.empty() ? "" : " ") + format_rfc3339(time);
  return text;
}

struct Expected {
  const char* expression;
  const char* from;
  const char* next;  // the three occurrences after `from`, as UTC dates with the time left out
};

// January 2024 begins on a Monday; February has 29 days and ends on a Thursday.
constexpr Expected kDays[] = {
    {"0 0 * * *", "2024-02-28T00:00:00Z", "2024-02-29 2024-03-01 2024-03-02"},
    {"0 0 15 * ?", "2024-01-15T00:00:00Z", "2024-02-15 2024-03-15 2024-04-15"},
    {"0 0 10-12 * *", "2024-01-11T00:00:00Z", "2024-01-12 2024-02-10 2024-02-11"},
    {"0 0 */10 * *", "2024-01-01T00:00:00Z", "2024-01-11 2024-01-21 2024-01-31"},
    {"0 0 20/5 * *", "2024-01-26T00:00:00Z", "2024-01-30 2024-02-20 2024-02-25"},
    {"0 0 31 * *", "2024-01-31T00:00:00Z", "2024-03-31 2024-05-31 2024-07-31"},
    {"0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29 2032-02-29 2036-02-29"},
    {"0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29 2108-02-29 2112-02-29"},
    {"0 0 L * *", "2023-01-31T00:00:00Z", "2023-02-28 2023-03-31 2023-04-30"},
    {"0 0 L 2 *", "2023-01-31T00:00:00Z", "2023-02-28 2024-02-29 2025-02-28"},
    {"0 0 L-2 * *", "2024-02-01T00:00:00Z", "2024-02-27 2024-03-29 2024-04-28"},
    {"0 0 L-30 * *", "2024-01-01T00:00:00Z", "2024-03-01 2024-05-01 2024-07-01"},
    {"0 0 1W * *", "2024-05-02T00:00:00Z", "2024-06-03 2024-07-01 2024-08-01"},
    {"0 0 15W * *", "2024-05-31T00:00:00Z", "2024-06-14 2024-07-15 2024-08-15"},
    {"0 0 15W 9,12 *", "2024-08-31T00:00:00Z", "2024-09-16 2024-12-16 2025-09-15"},
    {"0 0 31W * *", "2024-03-01T00:00:00Z", "2024-03-29 2024-05-31 2024-07-31"},
    {"0 0 LW * *", "2024-03-01T00:00:00Z", "2024-03-29 2024-04-30 2024-05-31"},
    {"0 0 * * FRI#2", "2024-01-12T00:00:00Z", "2024-02-09 2024-03-08 2024-04-12"},
    {"0 0 * * 4#5", "2024-01-01T00:00:00Z", "2024-02-29 2024-05-30 2024-08-29"},
    {"0 0 * * 5L", "2024-01-01T00:00:00Z", "2024-01-26 2024-02-23 2024-03-29"},
    {"0 0 ? * MON-FRI", "2024-01-04T00:00:00Z", "2024-01-05 2024-01-08 2024-01-09"},
    {"0 0 * * 7", "2024-01-01T00:00:00Z", "2024-01-07 2024-01-14 2024-01-21"},
    {"0 0 * JUN,DEC SAT-SUN", "2024-06-29T00:00:00Z", "2024-06-30 2024-12-01 2024-12-07"},
    // Vixie's rule: a day matches one of the day fields, or both if one of them has a star.
    {"0 0 13 * FRI", "2024-09-06T00:00:00Z", "2024-09-13 2024-09-20 2024-09-27"},
    {"0 0 13 * SUN", "2024-09-08T00:00:00Z", "2024-09-13 2024-09-15 2024-09-22"},
    {"0 0 */13 * SUN", "2024-01-01T00:00:00Z", "2024-01-14 2024-04-14 2024-07-14"},
    {"0 0 1 * */2", "2024-01-01T00:00:00Z", "2024-02-01 2024-06-01 2024-08-01"},
    {"@yearly", "2024-01-01T00:00:00Z", "2025-01-01 2026-01-01 2027-01-01"},
    {"@annually", "2024-01-01T00:00:00Z", "2025-01-01 2026-01-01 2027-01-01"},
    {"@Monthly", "2024-01-01T00:00:00Z", "2024-02-01 2024-03-01 2024-04-01"},
    {"@weekly", "2024-01-01T00:00:00Z", "2024-01-07 2024-01-14 2024-01-21"},
    {"@daily", "2024-02-28T00:00:00Z", "2024-02-29 2024-03-01 2024-03-02"},
    {"@midnight", "2024-02-28T00:00:00Z", "2024-02-29 2024-03-01 2024-03-02"},
};

TEST(Cron, EachElementSelectsItsDays) {
  for (const Expected& expected : kDays) {
    std::string dates;
    for (const WallTime time : cron(expected.expression).next(3, at(expected.from))) {
      const std::string text = format_rfc3339(time);
      EXPECT_EQ(text.substr(10), "T00:00:00.000Z") << expected.expression;
      dates += (dates.empty() ? "" : " ") + text.substr(0, 10);
    }
    EXPECT_EQ(dates, expected.next) << expected.expression;
  }
}

/// The times of day of the three occurrences after 2024-01-01T10:20:30Z.
TEST(Cron, EachElementSelectsItsTimesOfDay) {
  constexpr Expected kTimes[] = {
      {"* * * * *", "", "10:21:00 10:22:00 10:23:00"},
      {"* * * * * *", "", "10:20:31 10:20:32 10:20:33"},
      {"30 * * * * *", "", "10:21:30 10:22:30 10:23:30"},
      {"*/20 20 * * * *", "", "10:20:40 11:20:00 11:20:20"},
      {"*/15 * * * *", "", "10:30:00 10:45:00 11:00:00"},
      {"20 9-11 * * *", "", "11:20:00 09:20:00 10:20:00"},
      {"10-12 * * * *", "", "11:10:00 11:11:00 11:12:00"},
      {"59 59 23 * * *", "", "23:59:59 23:59:59 23:59:59"},
      {"5,50 12/6 * * *", "", "12:05:00 12:50:00 18:05:00"},
      {"@hourly", "", "11:00:00 12:00:00 13:00:00"},
      {"@every 90s", "", "10:21:00 10:22:30 10:24:00"},
      {"@every 1h", "", "11:00:00 12:00:00 13:00:00"},
  };
  for (const Expected& expected : kTimes) {
    std::string times;
    for (const WallTime time : cron(expected.expression).next(3, at("2024-01-01T10:20:30Z"))) {
      times += (times.empty() ? "" : " ") + format_rfc3339(time).substr(11, 8);
    }
    EXPECT_EQ(times, expected.next) << expected.expression;
  }
}

TEST(Cron, AnOccurrenceIsNotAfterItself) {
  const Cron daily = cron("0 9 * * *");
  EXPECT_EQ(daily.next_after(at("2024-01-01T08:59:59.999Z")), at("2024-01-01T09:00:00Z"));
  EXPECT_EQ(daily.next_after(at("2024-01-01T09:00:00Z")), at("2024-01-02T09:00:00Z"));
  EXPECT_EQ(daily.prev_before(at("2024-01-01T09:00:00Z")), at("2023-12-31T09:00:00Z"));
  EXPECT_EQ(daily.prev_before(at("2024-01-01T09:00:00.001Z")), at("2024-01-01T09:00:00Z"));
}

TEST(Cron, AcceptsTimesOfAnyPrecision) {
  const Cron daily = cron("0 9 * * *");
  const WallTime nine = at("2024-01-01T09:00:00Z");
  const WallInstant exact = nine;
  EXPECT_EQ(daily.next_after(exact - 1ns), nine);
  EXPECT_EQ(daily.next_after(exact), nine + 24h);
  EXPECT_EQ(daily.prev_before(exact + 1ns), nine);
  EXPECT_EQ(daily.prev_before(exact), nine - 24h);
  EXPECT_EQ(daily.next(2, exact - 1ns), (std::vector<WallTime>{nine, nine + 24h}));
}

// The clock goes back from 00:01 on Sunday to 23:01 on Saturday, so 23:43 on Saturday comes twice.
// The search must find the second 23:43.
TEST(Cron, PrevBeforeFindsATimeInARepeatThatCrossesMidnight) {
  const auto hourly =
      Cron::parse("43 * * * 4-6", "America/St_Johns", {.repeat = Repeat::both}).value();
  for (const char* text :
       {"2006-10-29T03:14:00Z", "2006-10-29T12:00:00Z", "2006-11-02T04:13:00Z"}) {
    EXPECT_EQ(hourly.prev_before(at(text)), at("2006-10-29T03:13:00Z")) << text;
  }
}

TEST(Cron, TimesAreThoseOfTheZone) {
  const Cron report = Cron::parse("0 9 1 * *", "Asia/Shanghai").value();
  EXPECT_EQ(shown(report.next(2, at("2024-01-20T00:00:00Z"))),
            "2024-02-01T01:00:00.000Z 2024-03-01T01:00:00.000Z");
  EXPECT_EQ(shown(cron("0 9 * 3 *", "America/New_York").next(2, at("2050-03-12T00:00:00Z"))),
            "2050-03-12T14:00:00.000Z 2050-03-13T13:00:00.000Z")
      << "daylight saving goes on after the zone's table ends in 2037";
}

TEST(Cron, ATimeInTheGapRunsAfterItOrIsSkipped) {
  const WallTime from = at("2025-03-29T12:00:00Z");
  const auto times = [&](std::string_view expression, std::optional<Gap> gap) {
    return shown(cron(expression, "Europe/Berlin", {.gap = gap}).next(2, from));
  };
  const std::string after = "2025-03-30T01:00:00.000Z 2025-03-31T00:30:00.000Z";
  EXPECT_EQ(times("30 2 * * *", std::nullopt), after);
  EXPECT_EQ(times("30 2 * * *", Gap::run_after), after);
  EXPECT_EQ(times("30 2 * * *", Gap::skip), "2025-03-31T00:30:00.000Z 2025-04-01T00:30:00.000Z");
  EXPECT_EQ(times("*/10 2 * * *", std::nullopt),
            "2025-03-30T01:00:00.000Z 2025-03-31T00:00:00.000Z")
      << "six that fall into the gap are one after it";
  EXPECT_EQ(times("30 2,3 * * *", std::nullopt),
            "2025-03-30T01:00:00.000Z 2025-03-30T01:30:00.000Z");
  EXPECT_EQ(times("0 2,3 * * *", std::nullopt), "2025-03-30T01:00:00.000Z 2025-03-31T00:00:00.000Z")
      << "03:00 itself comes once";
}

// A fuzzer found this case: a search that begins with the first instant after the gap.
TEST(Cron, ATimeInTheGapIsFoundFromTheLastSecondBeforeIt) {
  const Cron night = cron("29 2 9 3 *", "America/New_York");
  const WallTime after_gap = at("2025-03-09T07:00:00Z");
  EXPECT_EQ(night.next_after(after_gap - 1s), after_gap);
  EXPECT_EQ(night.next_after(after_gap - 1ms), after_gap);
  EXPECT_EQ(night.next_after(after_gap), at("2026-03-09T06:29:00Z"));
  EXPECT_EQ(night.prev_before(after_gap + 1ms), after_gap);
  const Cron other_day = cron("29 2 8 3 *", "America/New_York");
  EXPECT_EQ(other_day.next_after(after_gap - 1s), at("2026-03-08T07:00:00Z"));
  const Cron skipping = cron("29 2 9 3 *", "America/New_York", {.gap = Gap::skip});
  EXPECT_EQ(skipping.next_after(after_gap - 1s), at("2026-03-09T06:29:00Z"));
}

TEST(Cron, ARepeatedTimeFollowsThePolicy) {
  const WallTime from = at("2025-11-01T12:00:00Z");
  const auto times = [&](std::optional<Repeat> repeat) {
    return shown(cron("30 1 * * *", "America/New_York", {.repeat = repeat}).next(2, from));
  };
  EXPECT_EQ(times(std::nullopt), "2025-11-02T05:30:00.000Z 2025-11-03T06:30:00.000Z");
  EXPECT_EQ(times(Repeat::first), times(std::nullopt));
  EXPECT_EQ(times(Repeat::second), "2025-11-02T06:30:00.000Z 2025-11-03T06:30:00.000Z");
  EXPECT_EQ(times(Repeat::both), "2025-11-02T05:30:00.000Z 2025-11-02T06:30:00.000Z");
}

TEST(Cron, TheSecondOfTwoEqualTimesIsFoundFromBetweenThem) {
  const Cron yearly = cron("30 1 2 11 *", "America/New_York", {.repeat = Repeat::both});
  EXPECT_EQ(yearly.next_after(at("2025-11-02T05:45:00Z")), at("2025-11-02T06:30:00Z"));
}

TEST(Cron, EveryHourFollowsRealTimeAcrossBothChanges) {
  for (const char* day : {"2025-03-30T00:00:00Z", "2025-10-26T00:00:00Z"}) {
    const auto times = cron("*/15 * * * *", "Europe/Berlin").next(20, at(day));
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i], at(day) + 15min * (static_cast<int>(i) + 1));
    }
  }
  EXPECT_EQ(cron("*/15 * * * *", "Europe/Berlin", {.repeat = Repeat::first})
                .next_after(at("2025-10-26T00:45:00Z")),
            at("2025-10-26T02:00:00Z"));
}

TEST(Cron, OccurrencesAreInTheYears1970To9999) {
  const Cron yearly = cron("@yearly");
  EXPECT_EQ(yearly.next_after(WallTime::min()), WallTime{});
  EXPECT_EQ(yearly.prev_before(WallTime{}), std::nullopt);
  EXPECT_EQ(yearly.prev_before(WallTime{1ms}), WallTime{});
  EXPECT_EQ(yearly.prev_before(WallTime::max()), at("9999-01-01T00:00:00Z"));
  EXPECT_EQ(yearly.next_after(at("9998-12-31T23:59:59Z")), at("9999-01-01T00:00:00Z"));
  EXPECT_EQ(yearly.next_after(at("9999-01-01T00:00:00Z")), std::nullopt);
  EXPECT_EQ(yearly.next_after(WallTime::max()), std::nullopt);
  EXPECT_EQ(cron("* * * * * *", "Asia/Shanghai").next_after(at("9999-12-31T23:59:59Z")),
            std::nullopt);
  EXPECT_EQ(yearly.next_after(std::chrono::sys_seconds::max()), std::nullopt);
  EXPECT_EQ(yearly.prev_before(std::chrono::sys_seconds::max()), at("9999-01-01T00:00:00Z"));
  EXPECT_EQ(yearly.next(1, std::chrono::sys_seconds::min()), std::vector{WallTime{}});
  EXPECT_EQ(yearly.next(5, at("9997-06-01T00:00:00Z")).size(), 2U);
  const Cron every = cron("@every 1h");
  EXPECT_EQ(every.next_after(WallTime::min()), WallTime{});
  EXPECT_EQ(every.next_after(at("9999-12-31T23:00:00Z")), std::nullopt);
  EXPECT_EQ(every.next_after(WallTime::max()), std::nullopt);
  EXPECT_EQ(every.prev_before(WallTime::max()), at("9999-12-31T23:00:00Z"));
  EXPECT_EQ(every.prev_before(WallTime{}), std::nullopt);
  EXPECT_EQ(every.prev_before(WallTime{1h}), WallTime{});
}

TEST(Cron, AnyTextIsParsedOrRefusedWithAColumn) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  constexpr std::string_view kCharacters = "0123456789*,-/?#LW@ MONFEBevry\t\xFF";
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = rng.below(2) == 0 ? "0 0 1,L-3 2-8/2 FRI#2" : "*/5 8-10 15W * 5L,2";
    for (std::uint32_t edits = 1 + rng.below(4); edits > 0; --edits) {
      const char c = kCharacters[rng.below(static_cast<std::uint32_t>(kCharacters.size()))];
      text[rng.below(static_cast<std::uint32_t>(text.size()))] = c;
    }
    const auto parsed = Cron::parse(text);
    if (parsed) {
      ++read;
      const auto next = parsed.value().next_after(at("2024-01-01T00:00:00Z"));
      ASSERT_TRUE(next) << text;
      ASSERT_FALSE(parsed.value().explain().empty());
    } else {
      ASSERT_GE(parsed.error().column, 1U) << text;
      ASSERT_LE(parsed.error().column, text.size() + 1) << text;
      ASSERT_FALSE(parsed.error().message.empty());
    }
  }
  EXPECT_GT(read, 100);
}

TEST(Cron, AnUnknownZoneIsAnErrorOutsideTheExpression) {
  const auto parsed = Cron::parse("* * * * *", "Europe/Nowhere");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().column, 0U);
  EXPECT_NE(parsed.error().message.find("'Europe/Nowhere'"), std::string::npos);
}

TEST(Cron, KeepsItsExpressionAndZone) {
  const Cron daily = cron("0 9 * * *", "Asia/Shanghai");
  EXPECT_EQ(daily.expression(), "0 9 * * *");
  EXPECT_EQ(daily.zone(), "Asia/Shanghai");
}

// Counts the steps of searches over years. A search looks once at each month that can match, and at
// few spans of the zone. The slowest search here looks at 100 months; minute by minute it would
// take 21 million steps.
TEST(Cron, AFarOccurrenceCostsFewSteps) {
  struct Far {
    const char* expression;
    const char* from;
    unsigned months;
  };
  constexpr Far kFar[] = {{"0 0 29 2 *", "2096-02-29T12:00:00Z", 10},
                          {"0 0 */28 2 MON#5", "2000-03-01T00:00:00Z", 60},
                          {"30 2 29 2 *", "1970-01-01T00:00:00Z", 4},
                          {"0 0 31W 12 *", "2024-12-31T12:00:00Z", 4},
                          {"59 59 23 31 12 *", "9998-12-31T23:59:59Z", 4}};
  for (const Far& far : kFar) {
    for (const char* zone : {"UTC", "Europe/Berlin", "Australia/Lord_Howe"}) {
      const LocalSchedule schedule{std::get<CronFields>(parse_cron(far.expression).value()),
                                   TimeZone::load(zone).value(), Gap::skip, Repeat::first};
      const auto from = std::chrono::floor<std::chrono::seconds>(at(far.from));
      SearchCost cost;
      EXPECT_TRUE(next_occurrence(schedule, from, kEndOfTime, cost))
          << far.expression << " " << zone;
      EXPECT_LE(cost.spans, 3U) << far.expression << " " << zone;
      EXPECT_LE(cost.months, far.months * 3) << far.expression << " " << zone;
    }
  }
}

/// A schedule in New York's gap: since 2007, this hour never exists on the second Sunday of March.
LocalSchedule never_kept() {
  return {std::get<CronFields>(parse_cron("30 2 * 3 SUN#2").value()),
          TimeZone::load("America/New_York").value(), Gap::skip, Repeat::first};
}

// The rule of New York repeats after 400 years, so the search ends there. It looks at two spans per
// year, and at three months or fewer for both.
TEST(Cron, ASearchWithoutResultEndsInBoundedSteps) {
  SearchCost cost;
  const std::chrono::sys_days from{std::chrono::year{2008} / 1 / 1};
  EXPECT_FALSE(next_occurrence(never_kept(), from, kEndOfTime, cost));
  EXPECT_LE(cost.spans, 2U * 450U);
  EXPECT_LE(cost.months, 3U * 450U);
  EXPECT_FALSE(cron("30 2 * 3 SUN#2", "America/New_York", {.gap = Gap::skip})
                   .next_after(at("2008-01-01T00:00:00Z")));
}

TEST(Cron, ABackwardSearchOverAllYearsCostsBoundedSteps) {
  SearchCost cost;
  const auto last = last_occurrence(never_kept(), kEndOfTime, cost);
  ASSERT_TRUE(last);
  EXPECT_EQ(format_rfc3339(*last), "2006-03-12T07:30:00.000Z");
  EXPECT_LE(cost.spans, 3U * 2U * 450U);
  EXPECT_LE(cost.months, 3U * 3U * 450U);
}

// February 29 on a Monday, across 2100, which is not a leap year.
TEST(Cron, TheRarestDayIsFoundFortyYearsAwayInBothDirections) {
  const Cron rarest = cron("0 0 */28 2 MON#5", "UTC");
  EXPECT_EQ(rarest.next_after(at("2072-02-29T00:00:00Z")), at("2112-02-29T00:00:00Z"));
  EXPECT_EQ(rarest.prev_before(at("2112-02-29T00:00:00Z")), at("2072-02-29T00:00:00Z"));
}

// The rarest day that does occur: February 29 on a Monday, once in 28 or 40 years.
TEST(Cron, ABackwardSearchOverYearsCostsFewSteps) {
  for (const char* zone : {"UTC", "Europe/Berlin", "Australia/Lord_Howe"}) {
    const LocalSchedule schedule{std::get<CronFields>(parse_cron("0 0 */28 2 MON#5").value()),
                                 TimeZone::load(zone).value(), Gap::skip, Repeat::first};
    for (const char* before : {"2112-02-29T00:00:00Z", "2016-02-01T00:00:00Z"}) {
      SearchCost cost;
      const std::chrono::sys_seconds end = std::chrono::floor<std::chrono::seconds>(at(before));
      const auto last = last_occurrence(schedule, end, cost);
      ASSERT_TRUE(last) << zone;
      EXPECT_LE(cost.months, 250U) << zone << " " << before;
      EXPECT_LE(cost.spans, 100U) << zone << " " << before;
    }
  }
}

}  // namespace
}  // namespace detent

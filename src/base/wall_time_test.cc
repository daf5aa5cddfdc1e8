#include "base/wall_time.h"

#include <gtest/gtest.h>

#include <string>

#include "base/test_seed.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

WallTime ms(std::int64_t since_1970) { return WallTime{milliseconds{since_1970}}; }

TEST(FormatRfc3339, WritesUtcWithMilliseconds) {
  EXPECT_EQ(format_rfc3339(ms(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(ms(1'767'323'045'678)), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(format_rfc3339(kWallTimeEnd - 1ms), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_rfc3339(ms(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(FormatRfc3339, FillsEveryFieldWithZeros) {
  EXPECT_EQ(format_rfc3339(std::chrono::sys_days{std::chrono::year{7} / 3 / 4} + 5ms),
            "0007-03-04T00:00:00.005Z");
  EXPECT_EQ(format_rfc3339(std::chrono::sys_days{std::chrono::year{0} / 1 / 1} + 1h + 2min + 3s),
            "0000-01-01T01:02:03.000Z");
}

TEST(FormatRfc3339, YearsBeyondFourDigitsComeOutLonger) {
  EXPECT_EQ(format_rfc3339(kWallTimeEnd), "10000-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(kWallTimeEnd + std::chrono::days{31} + 23h + 59min + 58s + 87ms),
            "10000-02-01T23:59:58.087Z");
  EXPECT_EQ(format_rfc3339(std::chrono::sys_days{std::chrono::year{-1} / 12 / 31}),
            "-001-12-31T00:00:00.000Z");
}

TEST(ParseRfc3339, ReadsOffsetsAndFractions) {
  const WallTime expected = ms(1'767'323'045'678);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05.678Z").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02t03:04:05.678z").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02T11:04:05.678+08:00").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-01T22:34:05.678-04:30").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05.678-00:00").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05Z").value(), expected - 678ms);
  EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00Z").value(), ms(1'709'164'800'000));
}

TEST(ParseRfc3339, RoundsFractionsUp) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.5Z").value(), ms(500));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.0010000Z").value(), ms(1));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.0000000001Z").value(), ms(1));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:59.9991Z").value(), ms(60'000));
}

TEST(ParseRfc3339, KeepsToTheYears1970To9999) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00Z").value(), ms(0));
  EXPECT_EQ(parse_rfc3339("9999-12-31T23:59:59.999Z").value(), kWallTimeEnd - 1ms);
  EXPECT_EQ(parse_rfc3339("1969-12-31T23:00:00-01:00").value(), ms(0));
  for (const char* text :
       {"1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59.9991Z", "0000-01-01T00:00:00Z",
        "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:00-00:01"}) {
    ASSERT_FALSE(parse_rfc3339(text).has_value()) << text;
    EXPECT_EQ(parse_rfc3339(text).error().code, ErrorCode::invalid_argument);
    EXPECT_NE(parse_rfc3339(text).error().message.find("1970 to 9999"), std::string::npos);
  }
}

TEST(ParseRfc3339, RefusesLeapSecondsByName) {
  const auto result = parse_rfc3339("2016-12-31T23:59:60Z");
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("leap second"), std::string::npos);
}

TEST(ParseRfc3339, RefusesOtherTexts) {
  for (const char* text : {"",
                           "Z",
                           "2026",
                           "2026-01-02",
                           "2026-01-02T03:04Z",
                           "2026-01-02T03:04:05",
                           "2026-01-02 03:04:05Z",
                           "2026-1-02T03:04:05Z",
                           "26-01-02T03:04:05Z",
                           "+2026-01-02T03:04:05Z",
                           "2026-13-02T03:04:05Z",
                           "2026-00-02T03:04:05Z",
                           "2026-02-29T03:04:05Z",
                           "2026-01-32T03:04:05Z",
                           "2026-01-00T03:04:05Z",
                           "2026-01-02T24:00:00Z",
                           "2026-01-02T03:60:05Z",
                           "2026-01-02T03:04:61Z",
                           "2026-01-02T03:04:05.Z",
                           "2026-01-02T03:04:05,5Z",
                           "2026-01-02T03:04:05+8:00",
                           "2026-01-02T03:04:05+0800",
                           "2026-01-02T03:04:05+24:00",
                           "2026-01-02T03:04:05+08:60",
                           "2026-01-02T03:04:05ZZ",
                           " 2026-01-02T03:04:05Z",
                           "2026-01-02T03:04:05Z ",
                           "2026-01-0aT03:04:05Z"}) {
    ASSERT_FALSE(parse_rfc3339(text).has_value()) << text;
    EXPECT_EQ(parse_rfc3339(text).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(parse_rfc3339("2026-01-02T03:04:05." + std::string(100, '1') + "Z").has_value());
  EXPECT_FALSE(parse_rfc3339(std::string_view("2026-01-02T03:04:05Z\0", 21)).has_value());
}

TEST(ParseRfc3339, ReadsBackWhatFormatWrites) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const auto end = static_cast<std::uint64_t>(kWallTimeEnd.time_since_epoch().count());
  for (int i = 0; i < 20'000; ++i) {
    const WallTime time = ms(static_cast<std::int64_t>(rng.next() % end));
    ASSERT_EQ(parse_rfc3339(format_rfc3339(time)).value(), time) << format_rfc3339(time);
  }
}

TEST(CeilToMs, IsNeverEarlier) {
  EXPECT_EQ(ceil_to_ms(WallInstant{5ms}), ms(5));
  EXPECT_EQ(ceil_to_ms(WallInstant{5ms + 1ns}), ms(6));
  EXPECT_EQ(ceil_to_ms(WallInstant{-1ns}), ms(0));
}

TEST(ParseDuration, ReadsANumberWithAUnit) {
  EXPECT_EQ(parse_duration("0s").value(), 0ms);
  EXPECT_EQ(parse_duration("1500ms").value(), 1500ms);
  EXPECT_EQ(parse_duration("30s").value(), 30s);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("2h").value(), 2h);
  EXPECT_EQ(parse_duration("30d").value(), 30 * 24h);
  EXPECT_EQ(parse_duration("007s").value(), 7s);
}

TEST(ParseDuration, ReadsIso8601) {
  EXPECT_EQ(parse_duration("P30D").value(), 30 * 24h);
  EXPECT_EQ(parse_duration("P2W").value(), 14 * 24h);
  EXPECT_EQ(parse_duration("PT1H30M").value(), 90min);
  EXPECT_EQ(parse_duration("P1DT2H").value(), 26h);
  EXPECT_EQ(parse_duration("P1DT2H3M4S").value(), 26h + 3min + 4s);
  EXPECT_EQ(parse_duration("PT0.5S").value(), 500ms);
  EXPECT_EQ(parse_duration("PT0,5S").value(), 500ms);
  EXPECT_EQ(parse_duration("PT0S").value(), 0ms);
  EXPECT_EQ(parse_duration("PT1.0001S").value(), 1001ms);
}

TEST(ShowDuration, IsReadBackAsTheSameDuration) {
  for (const char* text : {"0ms", "1ms", "1500ms", "90s", "61m", "25h", "30d", "4294967295s"}) {
    EXPECT_EQ(show_duration(parse_duration(text).value()), text);
  }
  EXPECT_EQ(show_duration(60s), "1m");
}

TEST(ShowAge, HasTheTwoLargestUnits) {
  EXPECT_EQ(show_age(0ms), "0ms");
  EXPECT_EQ(show_age(999ms), "999ms");
  EXPECT_EQ(show_age(1'500ms), "1s 500ms");
  EXPECT_EQ(show_age(3h + 12min + 59s), "3h 12m");
  EXPECT_EQ(show_age(24h), "1d");
}

TEST(ParseDuration, StopsAtTheLimitAndNeverWraps) {
  EXPECT_EQ(parse_duration("4294967295s").value(), kLongestDuration);
  EXPECT_EQ(parse_duration("4294967295000ms").value(), kLongestDuration);
  EXPECT_EQ(parse_duration("PT4294967295S").value(), kLongestDuration);
  EXPECT_EQ(parse_duration("49710d").value(), 49710 * 24h);
  EXPECT_EQ(parse_duration("P49710DT6H28M15S").value(), kLongestDuration);
  for (const char* text :
       {"4294967296s", "4294967295001ms", "PT4294967295.0001S", "PT4294967296S", "49711d",
        "P49710DT6H28M16S", "9223372036854775807ms", "9223372036854775808ms",
        "18446744073709551616s", "99999999999999999999999999999999d", "P7102W"}) {
    ASSERT_FALSE(parse_duration(text).has_value()) << text;
    EXPECT_NE(parse_duration(text).error().message.find("at most 4294967295 seconds"),
              std::string::npos)
        << text;
  }
}

TEST(ParseDuration, RefusesYearsAndMonthsByName) {
  for (const char* text : {"P1Y", "P1M", "P1Y2M", "P1M1D", "P1DT1M1Y", "P0.5Y"}) {
    ASSERT_FALSE(parse_duration(text).has_value()) << text;
    EXPECT_EQ(parse_duration(text).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_NE(parse_duration("P1M").error().message.find("months"), std::string::npos);
  EXPECT_NE(parse_duration("P1Y").error().message.find("years"), std::string::npos);
}

TEST(ParseDuration, RefusesNegativeDurationsByName) {
  for (const char* text : {"-1s", "-P1D", "P-1D", "PT-1S"}) {
    ASSERT_FALSE(parse_duration(text).has_value()) << text;
    EXPECT_NE(parse_duration(text).error().message.find("negative"), std::string::npos) << text;
  }
}

TEST(ParseDuration, RefusesOtherTexts) {
  for (const char* text :
       {"",      "s",     "ms",     "10",   "10 s",  " 10s",    "10s ",   "10S",
        "1.5s",  "1h30m", "1w",     "10us", "+1s",   "1e3s",    "0x10s",  "P",
        "PT",    "P1",    "P1DT",   "P1H",  "PT1D",  "PT1H1H",  "PT1S1M", "P1D1W",
        "PT.5S", "PT1.S", "PT0.5M", "p1d",  "P1DT2", "PT1HT1M", "PP1D"}) {
    ASSERT_FALSE(parse_duration(text).has_value()) << text;
    EXPECT_EQ(parse_duration(text).error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace detent

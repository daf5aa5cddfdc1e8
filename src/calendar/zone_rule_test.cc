#include "calendar/zone_rule.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::local_days;
using std::chrono::sys_days;
using std::chrono::year;

TEST(ZoneRule, ARuleCanBeOneOffset) {
  const auto rule = parse_zone_rule("CST-8");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->standard, 8h);
  EXPECT_FALSE(rule->saving);
  EXPECT_EQ(parse_zone_rule("<+0545>-5:45")->standard, 5h + 45min);
  EXPECT_EQ(parse_zone_rule("<-0330>3:30:15")->standard, -(3h + 30min + 15s));
}

TEST(ZoneRule, ChangesComeOnTheNamedWeekdaysInUtc) {
  const auto changes = parse_zone_rule("CET-1CEST,M3.5.0,M10.5.0/3")->changes_in(year{2050});
  EXPECT_EQ(changes[0].at, sys_days{year{2050} / 3 / 27} + 1h);
  EXPECT_EQ(changes[0].offset, 2h);
  EXPECT_EQ(changes[1].at, sys_days{year{2050} / 10 / 30} + 1h);
  EXPECT_EQ(changes[1].offset, 1h);
}

TEST(ZoneRule, SouthernDaylightSavingSpansTheNewYear) {
  const auto rule = parse_zone_rule("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0");
  const auto changes = rule->changes_in(year{2040});
  EXPECT_EQ(changes[0].at, sys_days{year{2040} / 4 / 1} + 2h - 11h);
  EXPECT_EQ(changes[0].offset, 10h + 30min);
  EXPECT_EQ(changes[1].offset, 11h);
}

TEST(ZoneRule, DatesHaveThreeForms) {
  using Kind = RuleDate::Kind;
  const RuleDate julian{.kind = Kind::julian, .day = 60, .time_of_day = 0s};
  EXPECT_EQ(julian.in(year{2023}), local_days{year{2023} / 3 / 1});
  EXPECT_EQ(julian.in(year{2024}), local_days{year{2024} / 3 / 1});
  const RuleDate counted{.kind = Kind::day_of_year, .day = 59, .time_of_day = 0s};
  EXPECT_EQ(counted.in(year{2023}), local_days{year{2023} / 3 / 1});
  EXPECT_EQ(counted.in(year{2024}), local_days{year{2024} / 2 / 29});
  const auto rule = parse_zone_rule("EET-2EEST,M3.4.4/50,J300/-1:30");
  ASSERT_TRUE(rule && rule->saving);
  EXPECT_EQ(rule->saving->begin.time_of_day, 50h);
  EXPECT_EQ(rule->saving->end.time_of_day, -90min);
  EXPECT_EQ(rule->saving->end.day, 300);
}

TEST(ZoneRule, OtherTextsAreRefused) {
  for (const char* text :
       {"", "CET", "C-1", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,M3.5.0,J366",
        "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,M3.5.0,M10.5.0x", "<+01-1", "CET-1:60",
        "CET-0001"}) {
    EXPECT_FALSE(parse_zone_rule(text)) << text;
  }
}

}  // namespace
}  // namespace detent

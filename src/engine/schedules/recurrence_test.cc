#include "engine/schedules/recurrence.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/wall_time.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

WallTime at(const std::string& text) { return parse_rfc3339(text).value(); }

RecurringSchedule every(std::chrono::milliseconds period, const std::string& anchor) {
  return {.name = "s", .rule = IntervalRule{.period = period, .anchor = at(anchor)}, .queue = "q"};
}

TEST(Recurrence, IntervalsCountFromTheirAnchor) {
  const Recurrence rule = Recurrence::make(every(90s, "2026-01-01T00:00:10Z")).value();
  EXPECT_EQ(rule.next_after(at("2025-01-01T00:00:00Z")), at("2026-01-01T00:00:10Z"));
  EXPECT_EQ(rule.next_after(at("2026-01-01T00:00:10Z")), at("2026-01-01T00:01:40Z"));
  EXPECT_EQ(rule.next_after(at("2026-01-01T00:01:39.999Z")), at("2026-01-01T00:01:40Z"));
  EXPECT_EQ(rule.last_before(at("2026-01-01T00:01:40Z")), at("2026-01-01T00:00:10Z"));
  EXPECT_EQ(rule.last_before(at("2026-01-01T00:01:40.001Z")), at("2026-01-01T00:01:40Z"));
  EXPECT_EQ(rule.last_before(at("2026-01-01T00:00:10Z")), std::nullopt);
  EXPECT_EQ(rule.next_after(at("9999-12-31T23:59:59Z")), std::nullopt);
  EXPECT_EQ(rule.explain(), "Every 90 seconds from 2026-01-01T00:00:10.000Z on");
}

TEST(Recurrence, NothingOccursOutsideStartAndEnd) {
  RecurringSchedule schedule{.name = "s", .rule = CronRule{"0 9 * * *"}, .queue = "q"};
  schedule.start = at("2026-01-03T09:00:00Z");
  schedule.end = at("2026-01-05T09:00:00Z");
  const Recurrence rule = Recurrence::make(schedule).value();
  const std::vector<WallTime> both{at("2026-01-03T09:00:00Z"), at("2026-01-04T09:00:00Z")};
  EXPECT_EQ(rule.next(5, at("2025-01-01T00:00:00Z")), both);
  EXPECT_EQ(rule.last_before(at("2030-01-01T00:00:00Z")), both[1]);
  EXPECT_EQ(rule.last_before(both[0]), std::nullopt);
}

TEST(Recurrence, CalendarsKeepTheTimeOfDayOfTheirZone) {
  const RecurringSchedule schedule{
      .name = "s",
      .rule = CalendarRule{.anchor = at("2026-01-31T14:00:00Z"), .every = 1},
      .time_zone = "America/New_York",
      .queue = "q"};
  const Recurrence rule = Recurrence::make(schedule).value();
  EXPECT_EQ(rule.next(3, at("2026-01-01T00:00:00Z")),
            (std::vector<WallTime>{at("2026-01-31T14:00:00Z"), at("2026-02-28T14:00:00Z"),
                                   at("2026-03-31T13:00:00Z")}));
  EXPECT_EQ(rule.explain(), "Every month from 2026-01-31T14:00:00.000Z on (America/New_York)");
}

TEST(Recurrence, PoliciesReachTheRule) {
  RecurringSchedule schedule{.name = "s",
                             .rule = CronRule{"30 2 * * *"},
                             .time_zone = "Europe/Berlin",
                             .gap = ScheduleGap::skip,
                             .repeat = ScheduleRepeat::both,
                             .queue = "q"};
  const Recurrence strict = Recurrence::make(schedule).value();
  EXPECT_EQ(strict.next_after(at("2026-03-28T12:00:00Z")), at("2026-03-30T00:30:00Z"));
  EXPECT_EQ(strict.next(2, at("2026-10-24T12:00:00Z")),
            (std::vector<WallTime>{at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z")}));
  schedule.gap.reset();
  schedule.repeat = ScheduleRepeat::second;
  const Recurrence other = Recurrence::make(schedule).value();
  EXPECT_EQ(other.next_after(at("2026-03-28T12:00:00Z")), at("2026-03-29T01:00:00Z"));
  EXPECT_EQ(other.next_after(at("2026-10-24T12:00:00Z")), at("2026-10-25T01:30:00Z"));
}

TEST(Recurrence, ErrorsNameTheFieldAndTheColumn) {
  RecurringSchedule schedule{.name = "s", .rule = CronRule{"0 0 30 2 *"}, .queue = "q"};
  EXPECT_EQ(Recurrence::make(schedule).error().field, "cron");
  schedule.rule = CronRule{"0 9 * * *"};
  schedule.time_zone = "Mars/Olympus";
  EXPECT_EQ(Recurrence::make(schedule).error().field, "time_zone");
  schedule.rule = CalendarRule{.anchor = at("2026-01-31T14:00:00Z")};
  EXPECT_EQ(Recurrence::make(schedule).error().field, "time_zone");
}

}  // namespace
}  // namespace detent

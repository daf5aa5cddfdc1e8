#include "task/recurring_schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace detent {
namespace {

using namespace std::chrono_literals;

RecurringSchedule valid() {
  return {.name = "report", .rule = CronRule{"0 9 1 * *"}, .queue = "reports"};
}

void expect_refused(const RecurringSchedule& schedule, const std::string& field) {
  const Result<void> result = validate(schedule);
  ASSERT_FALSE(result) << field;
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(result.error().field, field);
}

TEST(RecurringSchedule, ValidSchedulesPass) {
  EXPECT_TRUE(validate(valid()));
  RecurringSchedule interval = valid();
  interval.rule = IntervalRule{.period = 1s};
  EXPECT_TRUE(validate(interval));
  interval.rule = CalendarRule{.every = 100'000};
  EXPECT_TRUE(validate(interval));
}

TEST(RecurringSchedule, RefusesInvalidNames) {
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("a b"), std::string(151, 'a')}) {
    RecurringSchedule schedule = valid();
    schedule.name = name;
    expect_refused(schedule, "name");
  }
  RecurringSchedule longest = valid();
  longest.name = std::string(150, 'a');
  EXPECT_TRUE(validate(longest));
  EXPECT_LE(occurrence_key(longest, WallTime{253'402'300'799'999ms}).size(), kMaxKeyBytes);
}

TEST(RecurringSchedule, RefusesValuesOutOfRangeAndNamesTheField) {
  RecurringSchedule schedule = valid();
  schedule.rule = IntervalRule{.period = 999ms};
  expect_refused(schedule, "every");
  schedule.rule = IntervalRule{.period = 1s, .anchor = WallTime{-1ms}};
  expect_refused(schedule, "anchor");
  schedule.rule = CalendarRule{.every = 0};
  expect_refused(schedule, "calendar");
  schedule = valid();
  schedule.rule = CronRule{std::string(1'001, '1')};
  expect_refused(schedule, "cron");
  schedule = valid();
  schedule.time_zone = std::string(101, 'a');
  expect_refused(schedule, "time_zone");
  schedule = valid();
  schedule.queue = "";
  expect_refused(schedule, "queue");
  schedule = valid();
  schedule.count = 0;
  expect_refused(schedule, "count");
  schedule = valid();
  schedule.start = WallTime{-1ms};
  expect_refused(schedule, "start");
  schedule.start = WallTime{5s};
  schedule.end = WallTime{5s};
  expect_refused(schedule, "end");
  schedule = valid();
  schedule.jitter = 24h + 1ms;
  expect_refused(schedule, "jitter");
  schedule = valid();
  schedule.misfire_grace = -1ms;
  expect_refused(schedule, "misfire_grace");
  schedule = valid();
  schedule.misfire_limit = 1'001;
  expect_refused(schedule, "misfire_limit");
}

TEST(RecurringSchedule, ItsEnumsHaveTheNamesOfTheInterface) {
  EXPECT_EQ(to_string(CalendarRule::Unit::day), "day");
  EXPECT_EQ(to_string(CalendarRule::Unit::week), "week");
  EXPECT_EQ(to_string(CalendarRule::Unit::month), "month");
  EXPECT_EQ(to_string(CalendarRule::Unit::year), "year");
  EXPECT_EQ(to_string(CalendarRule::MonthEnd::clamp), "clamp");
  EXPECT_EQ(to_string(CalendarRule::MonthEnd::skip), "skip");
  EXPECT_EQ(to_string(ScheduleGap::skip), "skip");
  EXPECT_EQ(to_string(ScheduleGap::run_after), "run_after");
  EXPECT_EQ(to_string(ScheduleRepeat::first), "first");
  EXPECT_EQ(to_string(ScheduleRepeat::second), "second");
  EXPECT_EQ(to_string(ScheduleRepeat::both), "both");
  EXPECT_EQ(to_string(Misfire::skip), "skip");
  EXPECT_EQ(to_string(Misfire::once), "once");
  EXPECT_EQ(to_string(Misfire::all), "all");
  EXPECT_EQ(to_string(ScheduleOverlap::allow), "allow");
  EXPECT_EQ(to_string(ScheduleOverlap::skip), "skip");
  EXPECT_EQ(to_string(ScheduleOverlap::queue_one), "queue_one");
}

TEST(RecurringSchedule, ItIsBrokenBeforeItIsPausedAndPausedBeforeItIsOver) {
  ScheduleView view{.record = {}, .next_at = WallTime{1ms}, .words = ""};
  EXPECT_EQ(state_of(view), "active");
  view.next_at.reset();
  EXPECT_EQ(state_of(view), "over");
  view.record.progress.paused = true;
  EXPECT_EQ(state_of(view), "paused");
  view.broken = "no such zone";
  EXPECT_EQ(state_of(view), "broken");
}

TEST(RecurringSchedule, KeysNameScheduleAndOccurrence) {
  EXPECT_EQ(occurrence_key(valid(), WallTime{86'400'000ms}), "report@1970-01-02T00:00:00.000Z");
}

TEST(RecurringSchedule, PhasesAreWithinTheJitterStableAndSpread) {
  RecurringSchedule schedule = valid();
  EXPECT_EQ(phase_of(schedule), 0ms);
  schedule.jitter = 9ms;
  std::set<std::chrono::milliseconds> phases;
  for (int i = 0; i < 200; ++i) {
    schedule.name = "s" + std::to_string(i);
    EXPECT_EQ(phase_of(schedule), phase_of(schedule));
    EXPECT_GE(phase_of(schedule), 0ms);
    EXPECT_LE(phase_of(schedule), 9ms);
    phases.insert(phase_of(schedule));
  }
  EXPECT_EQ(phases.size(), 10u);
  schedule.name = "report";
  schedule.jitter = 24h;
  EXPECT_EQ(phase_of(schedule), 44'463'684ms) << "written down: it may never change";
}

}  // namespace
}  // namespace detent

// Recurring schedules as JSON: written bodies are read back into equal values, the error of a wrong
// body names the member, and most members are optional.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/wall_time.h"
#include "protocol/json/schedule_codec.h"

namespace detent::json {
namespace {

using namespace std::chrono_literals;

WallTime at(const std::string& text) { return parse_rfc3339(text).value(); }

RecurringSchedule full() {
  return {.name = "report",
          .rule = CronRule{"0 9 LW * *"},
          .time_zone = "Asia/Shanghai",
          .gap = ScheduleGap::skip,
          .repeat = ScheduleRepeat::both,
          .queue = "reports",
          .payload = {.kind = Payload::Kind::bytes, .data = std::string("\0\xff", 2)},
          .rules = {.priority = 5,
                    .max_attempts = 3,
                    .visibility_timeout = 90s,
                    .backoff = Backoff{.initial = 2s, .max = 8s}},
          .count = 12,
          .start = at("2026-01-01T00:00:00Z"),
          .end = at("2027-01-01T00:00:00Z"),
          .jitter = 30s,
          .misfire = Misfire::all,
          .misfire_grace = 5min,
          .misfire_limit = 7,
          .overlap = ScheduleOverlap::queue_one};
}

ScheduleView full_view() {
  return {.record = {.schedule = full(),
                     .progress = {.created_at = at("2026-01-02T03:04:05.678Z"),
                                  .decided_to = at("2026-02-02T03:04:05.678Z"),
                                  .made = 3,
                                  .overlapped = 1,
                                  .last_at = at("2026-02-01T00:00:00Z"),
                                  .last_task = TaskId{512},
                                  .queued_at = at("2026-02-02T00:00:00Z"),
                                  .paused = true}},
          .next_at = at("2026-03-01T00:00:00Z"),
          .words = "At 09:00",
          .broken = "no such zone"};
}

void expect_refused(const std::string& body, const std::string& field) {
  const Result<RecurringSchedule> schedule = parse_schedule_rule("s", body);
  ASSERT_FALSE(schedule) << body;
  EXPECT_EQ(schedule.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(schedule.error().field, field) << schedule.error().message;
}

TEST(ScheduleJson, WhatIsWrittenIsReadBack) {
  RecurringSchedule schedule = full();
  EXPECT_EQ(parse_schedule_rule("report", render_schedule_rule(schedule)).value(), schedule);
  schedule.rule = IntervalRule{.period = 90s, .anchor = at("2026-01-05T00:00:00Z")};
  EXPECT_EQ(parse_schedule_rule("report", render_schedule_rule(schedule)).value(), schedule);
  schedule.rule = IntervalRule{.period = 90s, .anchor = WallTime{}};
  EXPECT_EQ(parse_schedule_rule("report", render_schedule_rule(schedule)).value(), schedule);
  schedule.rule = CalendarRule{.anchor = at("2026-01-31T09:00:00Z"),
                               .unit = CalendarRule::Unit::year,
                               .every = 3,
                               .month_end = CalendarRule::MonthEnd::skip};
  EXPECT_EQ(parse_schedule_rule("report", render_schedule_rule(schedule)).value(), schedule);
  const RecurringSchedule plain{.name = "s", .rule = IntervalRule{.period = 1s}, .queue = "q"};
  EXPECT_EQ(parse_schedule_rule("s", render_schedule_rule(plain)).value(), plain);
  EXPECT_EQ(parse_schedule_view(render_schedule_view(full_view())).value(), full_view());
}

TEST(ScheduleJson, ARuleAndAQueueAreEnough) {
  const RecurringSchedule schedule =
      parse_schedule_rule("s", R"({"every":"90s","queue":"q"})").value();
  EXPECT_EQ(schedule,
            (RecurringSchedule{.name = "s", .rule = IntervalRule{.period = 90s}, .queue = "q"}));
  const RecurringSchedule calendar =
      parse_schedule_rule("s", R"({"calendar":{"unit":"month"},"queue":"q","anchor":0})").value();
  EXPECT_EQ(calendar.rule, decltype(calendar.rule)(CalendarRule{.anchor = WallTime{}}));
  EXPECT_NE(calendar.rule, decltype(calendar.rule)(CalendarRule{})) << "which counts from now on";
}

TEST(ScheduleJson, ErrorsNameTheMember) {
  expect_refused(R"({"queue":"q"})", "cron");
  expect_refused(R"({"cron":"* * * * *","every":"1s","queue":"q"})", "cron");
  expect_refused(R"({"cron":"* * * * *"})", "queue");
  expect_refused(R"({"cron":7,"queue":"q"})", "cron");
  expect_refused(R"({"cron":"* * * * *","anchor":0,"queue":"q"})", "anchor");
  expect_refused(R"({"every":"-1s","queue":"q"})", "every");
  expect_refused(R"({"calendar":"monthly","queue":"q"})", "calendar");
  expect_refused(R"({"calendar":{"every":1},"queue":"q"})", "calendar.unit");
  expect_refused(R"({"calendar":{"unit":"fortnight"},"queue":"q"})", "calendar.unit");
  expect_refused(R"({"calendar":{"unit":"day","every":4294967296},"queue":"q"})", "calendar.every");
  expect_refused(R"({"every":"1s","queue":"q","gap":"leap"})", "gap");
  expect_refused(R"({"every":"1s","queue":"q","overlap":"queue"})", "overlap");
  expect_refused(R"({"every":"1s","queue":"q","misfire":"never"})", "misfire");
  expect_refused(R"({"every":"1s","queue":"q","count":0})", "count");
  expect_refused(R"({"every":"1s","queue":"q","start":"soon"})", "start");
  expect_refused(R"({"every":"1s","queue":"q","jitter":"25h"})", "jitter");
  expect_refused(R"({"every":"1s","queue":"q","payload":1,"payload_base64":""})", "payload_base64");
  expect_refused(R"({"every":"1s","queue":"q","name":"s"})", "name");
}

TEST(ScheduleJson, ListsNextAndBackfillsAreReadBack) {
  const std::vector<ScheduleView> views{full_view(), full_view()};
  const ScheduleList list = parse_schedule_list(render_schedule_list(views, "report")).value();
  EXPECT_EQ(list.schedules, views);
  EXPECT_EQ(list.cursor, "report");
  EXPECT_EQ(parse_schedule_list(render_schedule_list({}, "")).value().cursor, "");
  const std::vector<WallTime> next{at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z")};
  EXPECT_EQ(parse_next_occurrences(render_next_occurrences("s", next)).value(), next);
  const BackfillRange range = parse_backfill(render_backfill({next[0], next[1], 7})).value();
  EXPECT_EQ(range.from, next[0]);
  EXPECT_EQ(range.to, next[1]);
  EXPECT_EQ(range.limit, 7u);
  EXPECT_EQ(parse_backfill(render_backfill({next[0], next[1]}))->limit, kMaxBackfill);
  for (const char* const limit : {"0", "20001", "-1", "1.5"}) {
    const std::string body = std::string(R"({"from":0,"to":1,"limit":)") + limit + "}";
    EXPECT_EQ(parse_backfill(body).error().field, "limit") << limit;
  }
  EXPECT_EQ(parse_backfill(R"({"from":0})").error().field, "to");
  const BackfillCounts counts =
      parse_backfill_counts(render_backfill_counts({.made = 3, .there = 4})).value();
  EXPECT_EQ(counts.made, 3u);
  EXPECT_EQ(counts.there, 4u);
  EXPECT_EQ(counts.next, std::nullopt);
  EXPECT_EQ(parse_backfill_counts(render_backfill_counts({.next = next[1]}))->next, next[1]);
}

}  // namespace
}  // namespace detent::json

// Recurring schedules over HTTP (routes_fixture.h).
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/wall_time.h"
#include "protocol/json/schedule_codec.h"
#include "server/testing/routes_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

using net::HttpResponse;

class RoutesSchedulesTest : public RoutesTest {
 protected:
  HttpResponse put(const std::string& name, const std::string& body) {
    return send("PUT", "/v1/schedules/" + name, body);
  }
  ScheduleView view(const std::string& name) {
    const HttpResponse answer = send("GET", "/v1/schedules/" + name);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse_schedule_view(answer.body).value();
  }
  json::ScheduleList list(const std::string& query) {
    return json::parse_schedule_list(send("GET", "/v1/schedules" + query).body).value();
  }
  std::vector<WallTime> next(const std::string& name, const std::string& query) {
    return json::parse_next_occurrences(send("GET", "/v1/schedules/" + name + "/next" + query).body)
        .value();
  }
  /// The first of the 1,440 minutes of a back-fill, and its body.
  WallTime first() {
    return std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now()) - 24h;
  }
  std::string last_day() {
    return R"({"from":")" + format_rfc3339(first()) + R"(","to":")" +
           format_rfc3339(first() + 24h) + R"("})";
  }
  static bool has_made_some(const Engine& engine) { return engine.stats().counters.scheduled > 0; }
  static constexpr const char* kMinutely =
      R"({"cron":"* * * * *","queue":"q","payload":{"n":1},"time_zone":"Asia/Shanghai"})";
};

TEST_F(RoutesSchedulesTest, OneIsMadeReadChangedAndRemoved) {
  const HttpResponse made = put("s", kMinutely);
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(json::parse_schedule_view(made.body).value(), view("s"));
  EXPECT_EQ(put("s", kMinutely).status, 200);
  EXPECT_EQ(view("s").record.schedule.rule,
            decltype(RecurringSchedule::rule)(CronRule{"* * * * *"}));
  EXPECT_EQ(view("s").words, "Every minute (Asia/Shanghai)");
  EXPECT_EQ(put("s", R"({"every":"90s","queue":"q"})").status, 200);
  EXPECT_EQ(view("s").words.substr(0, 16), "Every 90 seconds");
  EXPECT_EQ(send("DELETE", "/v1/schedules/s").body, R"({"name":"s","removed":true})");
  expect_problem(send("GET", "/v1/schedules/s"), 404, {"'s'"});
  expect_problem(send("DELETE", "/v1/schedules/s"), 404, {"'s'"});
}

TEST_F(RoutesSchedulesTest, ItsTasksComeToWorkers) {
  put("s", kMinutely);
  advance(1min);
  const auto tasks = lease("q", R"({"max":10})");
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].payload.data, R"({"n":1})");
  EXPECT_EQ(view("s").record.progress.made, 1u);
  EXPECT_EQ(view("s").record.progress.last_task, tasks[0].id);
}

TEST_F(RoutesSchedulesTest, PausedOnesMakeNothingUntilTheyAreResumed) {
  put("s", kMinutely);
  const HttpResponse paused = post("/v1/schedules/s/pause", "");
  EXPECT_EQ(paused.status, 200);
  EXPECT_NE(paused.body.find(R"("state":"paused")"), std::string::npos) << paused.body;
  advance(2min);
  EXPECT_EQ(lease("q").size(), 0u);
  EXPECT_EQ(post("/v1/schedules/s/resume", "{}").status, 200);
  advance(1min);
  EXPECT_EQ(lease("q").size(), 1u);
  expect_problem(post("/v1/schedules/s/pause", R"({"for":"1h"})"), 400, {"for"});
}

TEST_F(RoutesSchedulesTest, TriggerMakesATaskNow) {
  put("s", kMinutely);
  const HttpResponse answer = post("/v1/schedules/s/trigger", "");
  EXPECT_EQ(answer.status, 201) << answer.body;
  const auto tasks = lease("q");
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(json::parse_accepted(answer.body).value().id, tasks[0].id);
  EXPECT_EQ(answer.header("location"), "/v1/tasks/" + to_string(tasks[0].id));
  expect_problem(post("/v1/schedules/none/trigger", ""), 404, {"none"});
}

TEST_F(RoutesSchedulesTest, NextAnswersAsManyAsAreAskedFor) {
  put("s", kMinutely);
  const WallTime first = *view("s").next_at;
  EXPECT_EQ(next("s", "?count=2"), (std::vector<WallTime>{first, first + 1min}));
  EXPECT_EQ(next("s", "").size(), 10u);
  expect_problem(send("GET", "/v1/schedules/s/next?count=1001"), 400, {"count"});
  expect_problem(send("GET", "/v1/schedules/s/next?number=1"), 400, {"number"});
}

TEST_F(RoutesSchedulesTest, ListsGoOnWithTheirCursor) {
  for (const char* name : {"c", "a", "b"}) put(name, kMinutely);
  const json::ScheduleList first = list("?limit=2");
  ASSERT_EQ(first.schedules.size(), 2u);
  EXPECT_EQ(first.schedules[0].record.schedule.name, "a");
  const json::ScheduleList rest = list("?limit=2&cursor=" + first.cursor);
  ASSERT_EQ(rest.schedules.size(), 1u);
  EXPECT_EQ(rest.schedules[0].record.schedule.name, "c");
  EXPECT_EQ(rest.cursor, "");
}

TEST_F(RoutesSchedulesTest, BackfillGoesOnUntilItIsDone) {
  put("s", kMinutely);
  const std::string body = last_day();
  const HttpResponse answer = post("/v1/schedules/s/backfill", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json::parse_backfill_counts(answer.body).value().made, 1'440u);
  EXPECT_EQ(json::parse_backfill_counts(post("/v1/schedules/s/backfill", body).body).value().there,
            1'440u);
  EXPECT_EQ(engine_stats().queues.at(0).ready, 1'440u);
}

TEST_F(RoutesSchedulesTest, ABackfillOfTooManyOccurrencesIsRefusedBeforeTheFirstTask) {
  put("s", R"({"every":"1s","anchor":0,"queue":"q"})");
  expect_problem(post("/v1/schedules/s/backfill", R"({"from":0,"to":"2026-01-01T00:00:00Z"})"), 400,
                 {"\"to\"", "more than 20000 occurrences", "1970-01-01T05:33:20.000Z"});
  EXPECT_TRUE(engine_stats().queues.empty());
  const std::string part = R"({"from":0,"to":"1970-01-01T05:33:20.000Z"})";
  EXPECT_EQ(post("/v1/schedules/s/backfill", part).body, R"({"made":20000,"there":0})");
}

TEST_F(RoutesSchedulesTest, ABackfillIsDoneInPartsAndTellsWhereToGoOn) {
  put("s", R"({"every":"1s","anchor":0,"queue":"q"})");
  EXPECT_EQ(post("/v1/schedules/s/backfill", R"({"from":0,"to":1800000,"limit":1500})").body,
            R"({"made":1500,"there":0,"next":"1970-01-01T00:25:00.000Z"})");
  EXPECT_EQ(post("/v1/schedules/s/backfill", R"({"from":1500000,"to":1800000,"limit":1500})").body,
            R"({"made":300,"there":0})");
}

TEST_F(RoutesSchedulesTest, APauseStopsABackfill) {
  put("s", kMinutely);
  between_steps(has_made_some, [](Engine& engine) { ASSERT_TRUE(engine.pause_schedule("s")); });
  expect_problem(
      post("/v1/schedules/s/backfill", last_day()), 409,
      {"is paused", "created 1000 tasks", "continue from " + format_rfc3339(first() + 1000min)});
  EXPECT_EQ(engine_stats().queues.at(0).ready, 1'000u);
  expect_problem(post("/v1/schedules/s/backfill", last_day()), 409, {"'s' is paused: resume it"});
  EXPECT_EQ(engine_stats().queues.at(0).ready, 1'000u);
}

TEST_F(RoutesSchedulesTest, AStopOfTheServerEndsABackfill) {
  put("s", kMinutely);
  between_steps(has_made_some, [](Engine& engine) { engine.end_waits(); });
  expect_problem(post("/v1/schedules/s/backfill", last_day()), 503,
                 {"is stopping", "created 1000 tasks", "continue from"});
  EXPECT_EQ(engine_stats().queues.at(0).ready, 1'000u);
}

TEST_F(RoutesSchedulesTest, ABackfillStopsWhenItsClientGoesAway) {
  put("s", kMinutely);
  std::promise<void> has_begun;
  std::promise<void> has_gone;
  between_steps(has_made_some, [&](Engine&) {
    has_begun.set_value();
    has_gone.get_future().wait();
  });
  {
    const std::string body = last_day();
    test::RawSocket client(http_->port());
    client.send("POST /v1/schedules/s/backfill HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    has_begun.get_future().wait();
  }
  while (http_->connections() > 1) std::this_thread::yield();
  has_gone.set_value();
  await_rest();
  EXPECT_EQ(engine_stats().queues.at(0).ready, 1'000u);
}

TEST_F(RoutesSchedulesTest, AFullQueueEndsABackfillWhichTellsHowFarItCame) {
  put("s", kMinutely);
  ASSERT_EQ(send("PATCH", "/v1/queues/q", R"({"max_tasks":1200})").status, 200);
  expect_problem(post("/v1/schedules/s/backfill", last_day()), 429,
                 {"created 1200 tasks (already there: 0)",
                  "continue from " + format_rfc3339(first() + 1200min)});
  EXPECT_EQ(engine_stats().queues.at(0).ready, 1'200u);
}

TEST_F(RoutesSchedulesTest, BadOnesAreRefusedWithTheFieldAndTheColumn) {
  expect_problem(put("s", R"({"cron":"0 25 * * *","queue":"q"})"), 400, {"cron", "column 3"});
  expect_problem(put("s", R"({"cron":"0 0 30 2 *","queue":"q"})"), 400, {"cron"});
  expect_problem(put("s", R"({"cron":"* * * * *","queue":"q","time_zone":"Mars/X"})"), 400,
                 {"time_zone"});
  expect_problem(put("s", R"({"cron":"* * * * *"})"), 400, {"queue"});
  expect_problem(put("a%20b", kMinutely), 400, {"name"});
  expect_problem(put("s", R"({"cron":"* * * * *","queue":"q","colour":1})"), 400, {"colour"});
  EXPECT_EQ(list("").schedules.size(), 0u);
}

}  // namespace
}  // namespace detent::server

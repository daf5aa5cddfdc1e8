// Forecast, dump and restore over HTTP (routes_fixture.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "protocol/json/dump_codec.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using net::HttpResponse;

class RoutesWholeTest : public RoutesTest {
 protected:
  /// Runs `verb` on the engine's thread, and waits for it.
  void on_engine(const std::function<void(Engine&)>& verb) {
    ASSERT_TRUE(engine_->post([&verb](Engine& engine) { verb(engine); }));
    send("GET", "/v1/stats");  // is answered after it
  }
  std::string schedule_at(const std::string& queue, const std::string& rest) {
    return schedule(R"({"queue":")" + queue + R"(",)" + rest + "}");
  }
  /// Creates a task in each state, with every field that a task can have, and queues with settings.
  void fill() {
    on_engine([](Engine& engine) {
      ASSERT_TRUE(engine.set_queue("b", {.paused = true, .max_tasks = 1'000'000, .rate = 5}));
      ASSERT_TRUE(engine.set_queue("empty", {.visibility_timeout = 5s}));
    });
    schedule_at("a", R"("delay":"1h","key":"k-1","payload":{ "n": 1.0 },"priority":7)");
    schedule_at("b", R"("delay":"100d","payload_base64":"AP8K","visibility_timeout":"5s")");
    schedule_at("dead", "\"max_attempts\":1,\"payload\":{\n\"to\":\"ada\"}");
    const std::string token = lease("dead", R"({"worker":"w-1"})").at(0).lease;
    post("/v1/leases/fail", R"({"leases":[")" + token + R"("],"error":"no \u0001route"})");
    schedule_at("leased", R"("backoff":{"initial":"5s","max":"1h"})");
    lease("leased");
    schedule_at("a", R"("payload":null)");
  }
  /// All pages of the dump, joined.
  std::string dump(const std::string& limit = "") {
    std::string all;
    std::string after;
    std::string schedule;
    while (true) {
      std::string query = after + schedule;
      if (!limit.empty()) query += "limit=" + limit;
      const HttpResponse page = send("GET", "/v1/dump?" + query);
      EXPECT_EQ(page.status, 200) << page.body;
      EXPECT_EQ(page.content_type, "application/x-ndjson");
      const std::size_t last = page.body.rfind('\n', page.body.size() - 2) + 1;
      all += page.body.substr(0, last);
      const json::DumpLine end = json::parse_dump_line(page.body.substr(last)).value();
      if (const auto* next = std::get_if<json::DumpNext>(&end)) {
        if (next->after != TaskId{}) after = "after=" + to_string(next->after) + "&";
        if (!next->schedule.empty()) schedule = "after_schedule=" + next->schedule + "&";
      } else {
        EXPECT_TRUE(std::holds_alternative<json::DumpEnd>(end));
        return all;
      }
    }
  }
  json::RestoreAnswer restore(std::string lines) {
    const HttpResponse answer = post("/v1/restore", std::move(lines));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse_restored(answer.body).value();
  }
};

TEST_F(RoutesWholeTest, ADumpThatIsRestoredIsDumpedAsTheSameBytes) {
  fill();
  const std::string all = dump();
  EXPECT_NE(all.find(R"("error":"no \u0001route")"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("payload_text":"{\n\"to\":\"ada\"}")"), std::string::npos) << all;
  begin_anew();
  const json::RestoreAnswer answer = restore(all);
  EXPECT_EQ(answer, (json::RestoreAnswer{.restored = 5, .there = 0, .queues = 5}));
  EXPECT_EQ(dump(), all);
  EXPECT_TRUE(lease("b").empty());
}

TEST_F(RoutesWholeTest, SchedulesGoOnWhereTheDumpStood) {
  const char* body = R"({"cron":"* * * * *","queue":"q","overlap":"queue_one",)"
                     "\"payload\":{\n\"n\":1}}";
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(send("PUT", std::string("/v1/schedules/") + name, body).status, 201);
  }
  advance(1min);
  post("/v1/schedules/c/pause", "");
  const std::string all = dump();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 7) << all;  // a queue, 3 tasks, 3 schedules
  for (const char* limit : {"1", "2", "3", "5", "6", "7"}) EXPECT_EQ(dump(limit), all) << limit;
  const std::string view = send("GET", "/v1/schedules/a").body;
  begin_anew();
  EXPECT_EQ(restore(all), (json::RestoreAnswer{.restored = 3, .queues = 1, .schedules = 3}));
  EXPECT_EQ(dump(), all);
  EXPECT_EQ(send("GET", "/v1/schedules/a").body, view);
  EXPECT_EQ(engine_stats().schedules, 3U);
  EXPECT_EQ(restore(all), (json::RestoreAnswer{.there = 3, .schedules_there = 3}));
  EXPECT_EQ(lease("q", R"({"max":10})").size(), 3U) << "an occurrence has a second task";
  advance(1min);
  EXPECT_EQ(lease("q", R"({"max":10})").size(), 0U) << "the tasks before live";
  EXPECT_NE(send("GET", "/v1/schedules/a").body.find("queued_at"), std::string::npos);
}

TEST_F(RoutesWholeTest, PagesOfSchedulesAloneGoOn) {
  for (const char* name : {"a", "b", "c"}) {
    send("PUT", std::string("/v1/schedules/") + name, R"({"every":"100d","queue":"q"})");
  }
  const HttpResponse first = send("GET", "/v1/dump?limit=2");
  EXPECT_TRUE(first.body.ends_with(R"({"next":null,"next_schedule":"b","queues":0,"tasks":0,)"
                                   R"("schedules":2,"damaged_tasks":0})"
                                   "\n"))
      << first.body;
  const HttpResponse rest = send("GET", "/v1/dump?after_schedule=b");
  EXPECT_EQ(std::count(rest.body.begin(), rest.body.end(), '\n'), 2) << rest.body;
  EXPECT_TRUE(
      rest.body.ends_with(R"({"end":true,"queues":0,"tasks":0,"schedules":1,"damaged_tasks":0})"
                          "\n"))
      << rest.body;
}

TEST_F(RoutesWholeTest, AScheduleThatIsNoneIsRefusedByLine) {
  const json::RestoreAnswer answer = restore(
      R"({"schedule":{"name":"a b","every_ms":1000,"queue":"q","created_at":0,"decided_to":0,)"
      R"("paused":false,"made":0,"overlapped":0}})");
  ASSERT_EQ(answer.errors.size(), 1U);
  EXPECT_EQ(answer.errors[0].error.field, "schedule.name");
}

TEST_F(RoutesWholeTest, ADumpBeginsWithTheQueuesByNameAndHasItsTasksById) {
  fill();
  const std::string all = dump();
  std::vector<std::string> queues;
  std::vector<TaskId> ids;
  const auto lines = json::take_numbered_lines(all, 100);
  ASSERT_TRUE(lines);
  for (const json::NumberedLine& text : *lines) {
    const json::DumpLine line = json::parse_dump_line(text.text).value();
    if (const auto* queue = std::get_if<json::DumpedQueue>(&line)) {
      EXPECT_TRUE(ids.empty());
      queues.push_back(queue->queue);
    } else {
      ids.push_back(std::get<Task>(line).id);
    }
  }
  EXPECT_EQ(queues, (std::vector<std::string>{"a", "b", "dead", "empty", "leased"}));
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

TEST_F(RoutesWholeTest, PagesOfAnySizeAreTheSameDump) {
  fill();
  const std::string all = dump();
  for (const char* limit : {"1", "2", "5", "6"}) EXPECT_EQ(dump(limit), all) << limit;
}

TEST_F(RoutesWholeTest, TheLastLineCountsTheLinesOfItsPage) {
  const auto last_line = [this](const std::string& query) {
    const std::string body = send("GET", "/v1/dump" + query).body;
    const std::size_t before = body.rfind('\n', body.size() - 2);
    return before == std::string::npos ? body : body.substr(before + 1);
  };
  EXPECT_EQ(last_line(""),
            "{\"end\":true,\"queues\":0,\"tasks\":0,\"schedules\":0,\"damaged_tasks\":0}\n");
  const std::string first = schedule_at("q", R"("delay":"1h")");
  schedule_at("q", R"("delay":"1h")");
  EXPECT_EQ(last_line("?limit=1"), "{\"next\":\"" + first +
                                       "\",\"queues\":1,\"tasks\":1,\"schedules\":0,"
                                       "\"damaged_tasks\":0}\n");
  EXPECT_EQ(last_line("?after=" + first),
            "{\"end\":true,\"queues\":0,\"tasks\":1,\"schedules\":0,\"damaged_tasks\":0}\n");
}

TEST_F(RoutesWholeTest, APageOfLargePayloadsEndsEarly) {
  const std::string large = R"("delay":"1h","payload":")" + std::string(60'000, 'x') + "\"";
  for (int i = 0; i < 250; ++i) schedule_at("q", large);
  const HttpResponse page = send("GET", "/v1/dump");
  EXPECT_NE(page.body.find("{\"next\":"), std::string::npos);
  EXPECT_LT(page.body.size(), 13'000'000U);
  const std::string all = dump();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 251);
}

TEST_F(RoutesWholeTest, TasksThatHaveEndedAreLeftOut) {
  on_engine([](Engine& engine) { ASSERT_TRUE(engine.set_queue("q", {.retention = 1h})); });
  const std::string id = schedule_at("q", R"("delay":"1h")");
  EXPECT_EQ(send("DELETE", "/v1/tasks/" + id).status, 200);
  EXPECT_EQ(dump().find("task"), std::string::npos);
}

TEST_F(RoutesWholeTest, ADamagedTaskIsSaidWhereItWouldStand) {
  const std::string before = schedule_at("q", R"("delay":"1h")");
  const std::string damaged = schedule_at("q", R"("delay":"100d")");
  const std::string after = schedule_at("q", R"("delay":"1h")");
  on_engine([this, id = *parse_task_id(damaged)](Engine& engine) {
    const WallTime at = engine.get(id).value().task.due_at;
    disk_->flip_bit({.lane = Lane::due, .at = at, .id = id}, 80);
  });
  const std::string all = dump();
  const std::size_t place = all.find("{\"damaged\":\"" + damaged + "\"}\n");
  ASSERT_NE(place, std::string::npos) << all;
  EXPECT_LT(all.find("\"id\":\"" + before), place);
  EXPECT_GT(all.find("\"id\":\"" + after), place);
}

TEST_F(RoutesWholeTest, ARestoreThatIsRepeatedChangesNothing) {
  fill();
  const std::string all = dump();
  begin_anew();
  restore(all);
  EXPECT_EQ(restore(all), (json::RestoreAnswer{.restored = 0, .there = 5, .queues = 0}));
  EXPECT_EQ(dump(), all);
}

// A server with a new, empty store also gives ids from 1 on.
TEST_F(RoutesWholeTest, ATaskWhoseIdAnotherHasIsNotSaidToBeThere) {
  schedule_at("q", R"("delay":"1h","payload":"of the dump")");
  const std::string all = dump();
  begin_anew();
  const std::string id = schedule_at("other", R"("delay":"1h")");
  for (const char* once_more : {"in memory", "leased"}) {
    const json::RestoreAnswer answer = restore(all);
    EXPECT_EQ(answer.there, 0U) << once_more;
    ASSERT_EQ(answer.errors.size(), 1U) << once_more;
    EXPECT_EQ(answer.errors[0].error.code, ErrorCode::conflict);
    EXPECT_EQ(answer.errors[0].error.field, "task.id");
    post("/v1/tasks/" + id + "/run", "");
    lease("other");
  }
}

TEST_F(RoutesWholeTest, TheSettingsOfAQueueThatIsThereStay) {
  schedule_at("q", R"("delay":"1h")");
  const std::string all = dump();
  std::string line;
  json::append_dump_line(line, json::DumpedQueue{"q", {.paused = true}});
  EXPECT_EQ(restore(line).queues, 0U);
  EXPECT_EQ(dump(), all);
}

TEST_F(RoutesWholeTest, NewTasksGoOnAfterTheRestoredOnes) {
  std::string line;
  json::append_dump_line(line, Task{.id = TaskId{1'000'000}, .queue = "q"});
  EXPECT_EQ(restore(line).restored, 1U);
  EXPECT_GT(parse_task_id(schedule_at("q", R"("delay":"1h")"))->value, 1'000'000U);
  EXPECT_EQ(lease("q").at(0).id, TaskId{1'000'000});
}

TEST_F(RoutesWholeTest, LinesThatAreWrongFailAloneAndAreNumbered) {
  std::string good;
  json::append_dump_line(good, Task{.id = TaskId{256}, .queue = "q"});
  std::string no_queue;
  json::append_dump_line(no_queue, Task{.id = TaskId{512}, .queue = "no spaces"});
  std::string too_large;
  json::append_dump_line(
      too_large, Task{.id = TaskId{768},
                      .queue = "q",
                      .payload = {Payload::Kind::bytes, std::string(kMaxPayloadBytes + 1, 'x')}});
  std::string bad_queue;
  json::append_dump_line(bad_queue, json::DumpedQueue{"-x", {}});
  const json::RestoreAnswer answer = restore(
      no_queue + "\n{\"colour\":1}\n" + good + too_large + bad_queue + "{\"damaged\":\"1024\"}\n" +
      R"({"next":"256","queues":1,"tasks":1,"schedules":0,"damaged_tasks":0})" + "\n" +
      R"({"end":true,"queues":0,"tasks":9,"schedules":0,"damaged_tasks":0})");
  EXPECT_EQ(answer.restored, 1U);
  ASSERT_EQ(answer.errors.size(), 4U);
  EXPECT_EQ(answer.errors[0].line, 1U);
  EXPECT_EQ(answer.errors[0].error.field, "task.queue");
  EXPECT_EQ(answer.errors[1].line, 3U);
  EXPECT_EQ(answer.errors[1].error.field, "colour");
  EXPECT_EQ(answer.errors[2].line, 5U);
  EXPECT_EQ(answer.errors[2].error.code, ErrorCode::too_large);
  EXPECT_EQ(answer.errors[3].line, 6U);
  EXPECT_EQ(answer.errors[3].error.field, "queue.queue");
}

TEST_F(RoutesWholeTest, TooManyLinesAreRefusedAsAWhole) {
  std::string lines;
  for (std::size_t i = 0; i < kMaxBatchTasks; ++i) lines += "{\"damaged\":\"256\"}\n";
  EXPECT_EQ(restore(lines), json::RestoreAnswer{});
  expect_problem(post("/v1/restore", lines + lines), 413, {"10000 lines"});
}

TEST_F(RoutesWholeTest, AForecastCountsWhatIsDue) {
  await_rest();
  schedule_at("q", R"("delay":"90s")");
  schedule_at("q", R"("delay":"90m")");
  const HttpResponse answer = send("GET", "/v1/forecast");
  EXPECT_EQ(answer.status, 200);
  const Forecast hour = json::parse_forecast(answer.body).value();
  EXPECT_EQ(hour.bin, 1min);
  EXPECT_EQ(hour.counts.size(), 60U);
  EXPECT_EQ(std::count(hour.counts.begin(), hour.counts.end(), 1U), 1);
  EXPECT_EQ(hour.later, 1U);
  const Forecast day =
      json::parse_forecast(send("GET", "/v1/forecast?span=P1D&bins=24").body).value();
  EXPECT_EQ(day.bin, 1h);
  EXPECT_EQ(day.counts.size(), 24U);
  EXPECT_EQ(day.later, 0U);
}

TEST_F(RoutesWholeTest, AForecastOfAQueueCountsOnlyItsTasks) {
  await_rest();
  schedule_at("q", R"("delay":"90s")");
  schedule_at("q", R"("delay":"90s")");
  schedule_at("q", R"("delay":"90m")");
  schedule_at("q", R"("max_attempts":3)");
  schedule_at("other", R"("delay":"90s")");
  await_rest();
  const HttpResponse answer = send("GET", "/v1/forecast?queue=q");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Forecast hour = json::parse_forecast(answer.body).value();
  EXPECT_EQ(hour.counts.size(), 60U);
  EXPECT_EQ(hour.counts[1], 2U);
  EXPECT_EQ(std::accumulate(hour.counts.begin(), hour.counts.end(), std::uint64_t{0}), 2U);
  EXPECT_EQ(hour.later, 1U);
  EXPECT_EQ(hour.overdue, 1U) << "a task that is ready";
  EXPECT_FALSE(hour.counted_to);
  EXPECT_EQ(send("GET", "/v1/forecast?queue=unknown").status, 404);
}

// The records of other queues count as work, too.
TEST_F(RoutesWholeTest, AForecastOfAQueueSaysHowFarItHasCounted) {
  const std::size_t tasks = 25 * kMaxBatchTasks;
  for (std::size_t sent = 0; sent < tasks; sent += kMaxBatchTasks) {
    std::string batch;
    for (std::size_t i = 0; i < kMaxBatchTasks; ++i) {
      batch += R"({"queue":")" + std::string(i % 1'000 == 0 ? "q" : "other") + R"(","delay_ms":)" +
               std::to_string(60'000 + (sent + i) * 10) + "}\n";
    }
    ASSERT_EQ(post("/v1/tasks/batch", batch).status, 200);
  }
  const Forecast forecast = json::parse_forecast(send("GET", "/v1/forecast?queue=q").body).value();
  const std::uint64_t counted =
      std::accumulate(forecast.counts.begin(), forecast.counts.end(), std::uint64_t{0});
  ASSERT_TRUE(forecast.counted_to);
  EXPECT_GT(*forecast.counted_to, forecast.from + 20min);
  EXPECT_GT(counted, 0U);
  EXPECT_LT(counted, 250U);
  EXPECT_EQ(counted + forecast.later, 250U);
}

TEST_F(RoutesWholeTest, ParametersAreReadStrictly) {
  const struct {
    const char* target;
    std::vector<std::string> words;
  } kCases[] = {{"/v1/forecast?bins=0", {"bins"}},
                {"/v1/forecast?bins=10001", {"bins", "10000"}},
                {"/v1/forecast?bins=1&bins=2", {"bins", "twice"}},
                {"/v1/forecast?span=1h&colour=red", {"colour"}},
                {"/v1/forecast?span=59s", {"span", "1 minute"}},
                {"/v1/forecast?span=1y", {"span"}},
                {"/v1/forecast?queue=q&bins=0", {"bins"}},
                {"/v1/forecast?span=", {"span"}},
                {"/v1/dump?after=0", {"after"}},
                {"/v1/dump?after=x", {"after"}},
                {"/v1/dump?limit=1001", {"limit", "1000"}},
                {"/v1/dump?from=1", {"from"}}};
  for (const auto& refused : kCases)
    expect_problem(send("GET", refused.target), 400, refused.words);
}

TEST_F(RoutesWholeTest, TheWheelShowsItsSlotsAndHowManyTimersTheyHold) {
  EXPECT_EQ(send("GET", "/v1/wheel")
                .body.find(R"({"now":"2020-01-01T00:00:00.000Z","tick_ms":1,)"
                           R"("slots_per_level":256,"timers":0,"levels":[)"
                           R"({"level":0,"slot_ms":1,"slots":[]},)"),
            0U);
  schedule(R"({"queue":"q","delay":"5m"})");
  schedule(R"({"queue":"q","delay":"5m"})");
  schedule(R"({"queue":"q","delay":"30d"})");  // beyond the load window: on disk only
  const std::string body = send("GET", "/v1/wheel").body;
  EXPECT_NE(body.find("\"timers\":2"), std::string::npos) << body;
  EXPECT_NE(body.find("\"count\":2}"), std::string::npos) << body;
  EXPECT_EQ(body.find("\"count\":1}"), std::string::npos) << body;
}

TEST_F(RoutesWholeTest, StatsWithoutAnExternalSchedulerDoNotSpeakOfOne) {
  EXPECT_EQ(send("GET", "/v1/stats").body.find("external"), std::string::npos);
}

}  // namespace
}  // namespace detent::server

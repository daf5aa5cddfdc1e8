// Writes and reads lines of a dump, and checks that invalid lines are refused.
#include "protocol/json/dump_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "base/rng.h"
#include "base/test_seed.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/stats_codec.h"
#include "task/request.h"

namespace detent::json {
namespace {

using std::chrono::milliseconds;

std::string rendered(const DumpLine& line) {
  std::string out;
  append_dump_line(out, line);
  return out;
}

Task example_task() {
  return {.id = TaskId{512},
          .queue = "mail",
          .payload = {.kind = Payload::Kind::json, .data = "{ \"n\": 1.0 }"},
          .rules = {.priority = 7,
                    .max_attempts = 3,
                    .visibility_timeout = milliseconds{1'500},
                    .backoff = Backoff{milliseconds{5}, milliseconds{50}}},
          .due_at = WallTime{milliseconds{1'767'323'045'678}},
          .created_at = WallTime{milliseconds{1'767'323'045'000}},
          .attempts = 2,
          .standing = Standing::dead,
          .key = "o-1",
          .history = {
              {.started_at = WallTime{milliseconds{1'000}},
               .ended_at = WallTime{milliseconds{2'000}},
               .worker = "w",
               .error = "no route",
               .late = {milliseconds{0}, milliseconds{1'200}, milliseconds{0}, milliseconds{34}}}}};
}

/// The line of the example task, with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string line = rendered(example_task());
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? line : line.replace(at, from.size(), to);
}

void expect_there_and_back(const DumpLine& line) {
  const std::string text = rendered(line);
  ASSERT_EQ(text.find('\n'), text.size() - 1) << text;
  ASSERT_LT(text.size(), kMaxDumpLineBytes);
  const Result<DumpLine> read = parse_dump_line(text);
  ASSERT_TRUE(read) << read.error().message << ' ' << read.error().field << " in " << text;
  EXPECT_EQ(*read, line) << text;
  EXPECT_EQ(rendered(*read), text);
}

TEST(Dump, ATaskIsALineWithAllStoredFields) {
  EXPECT_EQ(rendered(example_task()),
            R"({"task":{"id":"512","queue":"mail","state":"dead",)"
            R"("due_at":"2026-01-02T03:04:05.678Z","created_at":"2026-01-02T03:04:05.000Z",)"
            R"("priority":7,"max_attempts":3,"visibility_timeout_ms":1500,)"
            R"("backoff":{"initial_ms":5,"max_ms":50},"attempts":2,"key":"o-1",)"
            R"("history":[{"started_at":"1970-01-01T00:00:01.000Z",)"
            R"("ended_at":"1970-01-01T00:00:02.000Z","worker":"w","error":"no route",)"
            R"("late_ms":{"before_start":0,"engine":1200,"limit":0,"worker":34}}],)"
            R"("payload":{ "n": 1.0 }}})"
            "\n");
  expect_there_and_back(example_task());
}

TEST(Dump, WebhooksAndHeadersComeBackWithTheKeysOfTheirQueues) {
  Task task = example_task();
  task.webhook = "https://a/b";
  task.headers = {{"X-A", "\"1\""}, {"b", ""}};
  EXPECT_NE(rendered(task).find(R"("webhook":"https://a/b","headers":{"X-A":"\"1\"","b":""})"),
            std::string::npos);
  expect_there_and_back(task);
  const QueueWebhook webhook{.url = "https://q", .keys = {"whsec_1", "whsec_2"}};
  expect_there_and_back(DumpedQueue{.queue = "q", .settings = {.webhook = webhook}});
  expect_there_and_back(
      DumpedQueue{.queue = "q", .settings = {.webhook = QueueWebhook{.url = "https://q"}}});
}

TEST(Dump, UnsetFieldsOfATaskAreLeftOut) {
  const Task task{.id = TaskId{256}, .queue = "q"};
  const std::string line = rendered(task);
  for (const char* name :
       {"max_attempts", "visibility", "backoff", "key", "history", "webhook", "headers"}) {
    EXPECT_EQ(line.find(name), std::string::npos) << line;
  }
  expect_there_and_back(task);
}

TEST(Dump, AQueueIsALineWithItsSettings) {
  EXPECT_EQ(rendered(DumpedQueue{.queue = "q"}),
            R"({"queue":{"queue":"q","paused":false,"retention_ms":0,"key_retention_ms":600000}})"
            "\n");
  expect_there_and_back(DumpedQueue{.queue = "q"});
  expect_there_and_back(
      DumpedQueue{.queue = "a/b",
                  .settings = {.paused = true,
                               .max_attempts = kMaxAttempts,
                               .visibility_timeout = milliseconds{1},
                               .backoff = Backoff{milliseconds{0}, milliseconds{1}},
                               .retention = kMaxRetention,
                               .key_retention = milliseconds{0},
                               .max_tasks = ~std::uint64_t{0},
                               .max_bytes = 0,
                               .rate = kMaxRate,
                               .concurrency = 1,
                               .partitions = kMaxPartitions}});
}

TEST(Dump, DamagedNextAndEndLines) {
  EXPECT_EQ(rendered(DamagedTask{TaskId{256}}), "{\"damaged\":\"256\"}\n");
  const LineCounts counts{.queues = 1, .tasks = 2, .schedules = 3, .damaged = 4};
  const std::string counted = R"("queues":1,"tasks":2,"schedules":3,"damaged_tasks":4)";
  EXPECT_EQ(rendered(DumpNext{TaskId{512}, "", counts}), R"({"next":"512",)" + counted + "}\n");
  EXPECT_EQ(rendered(DumpNext{TaskId{512}, "s", counts}),
            R"({"next":"512","next_schedule":"s",)" + counted + "}\n");
  EXPECT_EQ(rendered(DumpEnd{counts}), R"({"end":true,)" + counted + "}\n");
  EXPECT_EQ(rendered(DumpEnd{counts, 3}), R"({"end":true,)" + counted + ",\"external\":3}\n");
  expect_there_and_back(DumpNext{TaskId{512}, "s", counts});
  expect_there_and_back(DumpNext{TaskId{512}});
  expect_there_and_back(DamagedTask{TaskId{256}});
  expect_there_and_back(DumpEnd{counts, 3});
  expect_there_and_back(DumpEnd{});
}

TEST(Dump, AScheduleIsALineWithItsProgress) {
  ScheduleRecord record{
      .schedule = {.name = "report",
                   .rule = CronRule{"0 9 LW * *"},
                   .time_zone = "Asia/Shanghai",
                   .queue = "reports",
                   .payload = {.kind = Payload::Kind::json, .data = "{ \"n\": 1 }"},
                   .rules = {.priority = 7, .max_attempts = 3},
                   .count = 12,
                   .start = WallTime{milliseconds{1'000}},
                   .overlap = ScheduleOverlap::queue_one},
      .progress = {.created_at = WallTime{milliseconds{1'000}},
                   .decided_to = WallTime{milliseconds{2'000}},
                   .made = 3,
                   .overlapped = 1,
                   .last_at = WallTime{milliseconds{1'500}},
                   .last_task = TaskId{512},
                   .queued_at = WallTime{milliseconds{2'000}},
                   .paused = true}};
  expect_there_and_back(record);
  EXPECT_EQ(kind_of_dump_line(rendered(record)).value(), DumpLineKind::schedule);
  for (const char* json : {"{\n  \"n\": [1,\r\n 2]\n}", "null"}) {
    record.schedule.payload.data = json;
    expect_there_and_back(record);
  }
  record.schedule.payload = {.kind = Payload::Kind::bytes, .data = std::string("\0\xFF", 2)};
  expect_there_and_back(record);
  record.schedule.rule =
      IntervalRule{.period = milliseconds{90'000}, .anchor = WallTime{milliseconds{500}}};
  expect_there_and_back(record);
  record = {.schedule = {.name = "s", .rule = CalendarRule{.every = 3}, .queue = "q"},
            .progress = {}};
  expect_there_and_back(record);
}

TEST(Dump, APayloadWithLineBreaksStaysOnOneLine) {
  Task task = example_task();
  for (const char* json : {"{\n  \"n\": [1,\r\n 2]\n}", "[\"\\n\"]", "[1,\r2]"}) {
    task.payload.data = json;
    expect_there_and_back(task);
  }
}

TEST(Dump, APayloadAsDeepAsATaskMayHaveItComesBack) {
  Task task = example_task();
  for (const std::size_t depth : {96U, 97U, 98U, 99U}) {
    task.payload.data = std::string(depth, '[') + "\"]\\\"]\"" + std::string(depth, ']');
    ASSERT_TRUE(read_json(task.payload.data));
    expect_there_and_back(task);
  }
}

TEST(Dump, BytesThatAreNotUtf8ComeBackUnchanged) {
  Task task = example_task();
  task.payload = {.kind = Payload::Kind::bytes, .data = std::string("\0\xFF\n", 3)};
  task.history[0].worker = "\xC3\x28";
  task.history[0].error = "half a character: \xE2\x82";
  expect_there_and_back(task);
  task.payload.data.clear();
  task.history[0].worker =
      "Gr\xC3\xBC\xC3\x9F"
      "e\n";
  expect_there_and_back(task);
}

TEST(Dump, TheLargestTaskFitsIntoTheLongestLine) {
  Task task = example_task();
  task.payload.data = "[\n" + std::string(kMaxPayloadBytes - 5, '\n') + "\"\"]";
  task.key = std::string(kMaxKeyBytes, '"');
  task.history.assign(kMaxHistory, {.worker = std::string(kMaxWorkerBytes, '\x01'),
                                    .error = std::string(kMaxErrorBytes, '\x02')});
  task.webhook = "http://" + std::string(kMaxWebhookBytes - 7, '\'');
  task.headers.assign(4, {"n", std::string(1'023, '"')});
  expect_there_and_back(task);
}

TEST(Dump, RandomTasksComeBackByteForByte) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const auto bytes = [&rng](std::uint32_t most) {
    std::string text(rng.below(most + 1), '\0');
    for (char& c : text) c = static_cast<char>(rng.below(rng.below(2) == 0 ? 128 : 256));
    return text;
  };
  for (int i = 0; i < 2'000; ++i) {
    Task task{.id = TaskId{1 + rng.below(1'000'000)}, .queue = "q"};
    task.payload = {.kind = Payload::Kind::bytes, .data = bytes(40)};
    task.rules.priority = rng.below(~std::uint32_t{0});
    task.due_at = WallTime{milliseconds{std::int64_t{rng.below(2'000'000'000)} * 1'001}};
    task.attempts = rng.below(~std::uint32_t{0});
    for (std::uint32_t n = rng.below(kMaxHistory + 1); n > 0; --n) {
      task.history.push_back({.worker = bytes(20), .error = bytes(20)});
    }
    expect_there_and_back(task);
  }
}

TEST(Dump, WrongTaskAndQueueLinesNameTheField) {
  const struct {
    std::string line;
    const char* field;
  } kCases[] = {
      {changed("\"id\":\"512\"", "\"id\":512"), "task.id"},
      {changed("\"512\"", "\"0512\""), "task.id"},
      {changed("\"512\"", "\"9007199254740992\""), "task.id"},
      {changed("\"id\":\"512\",", ""), "task.id"},
      {changed("\"queue\":\"mail\",", ""), "task.queue"},
      {changed("dead", "leased"), "task.state"},
      {changed("dead", "completed"), "task.state"},
      {changed("2026-01-02", "1969-01-02"), "task.due_at"},
      {changed("\"created_at\":\"2026", "\"created_at\":\"12026"), "task.created_at"},
      {changed("\"priority\":7", "\"priority\":4294967296"), "task.priority"},
      {changed("\"priority\":7", "\"priority\":7,\"priority\":7"), "task.priority"},
      {changed("\"priority\":7,", ""), "task.priority"},
      {changed("\"max_attempts\":3", "\"max_attempts\":0"), "task.max_attempts"},
      {changed("\"max_attempts\":3", "\"max_attempts\":1000001"), "task.max_attempts"},
      {changed("_ms\":1500", "_ms\":2592000001"), "task.visibility_timeout_ms"},
      {changed("\"initial_ms\":5", "\"initial_ms\":-5"), "task.backoff.initial_ms"},
      {changed("\"initial_ms\":5,", ""), "task.backoff.initial_ms"},
      {changed("\"max_ms\":50", "\"max_ms\":50,\"x\":1"), "task.backoff.x"},
      {changed("\"attempts\":2", "\"attempts\":4294967296"), "task.attempts"},
      {changed("\"attempts\":2", "\"attempts\":2.0"), "task.attempts"},
      {changed("\"attempts\":2", "\"attempt\":2"), "task.attempt"},
      {changed("\"key\":\"o-1\"", "\"key\":1"), "task.key"},
      {changed("\"key\":\"o-1\"", "\"webhook\":null"), "task.webhook"},
      {changed("\"key\":\"o-1\"", "\"headers\":[]"), "task.headers"},
      {changed("\"started_at\"", "\"started\""), "task.history.started"},
      {changed("\"limit\":0", "\"limit\":-1"), "task.history.limit"},
      {changed("no route", std::string(kMaxErrorBytes + 1, 'x')), "task.history.error"},
      {changed("\"worker\":\"w\"", "\"worker\":\"" + std::string(201, 'x') + "\""),
       "task.history.worker"},
      {changed("\"worker\":\"w\"", "\"worker\":\"w\",\"worker_base64\":\"AA==\""),
       "task.history.worker_base64"},
      {changed("\"payload\":{ \"n\": 1.0 }", "\"x\":1"), "task.x"},
      {changed(",\"payload\":{ \"n\": 1.0 }", ""), "task.payload"},
      {changed("{ \"n\": 1.0 }", "1,\"payload_base64\":\"\""), "task.payload_base64"},
      {changed("\"payload\":{ \"n\": 1.0 }", "\"payload_base64\":\"A\""), "task.payload_base64"},
      {changed("\"payload\":{ \"n\": 1.0 }", "\"payload_text\":\"{\""), "task.payload_text"},
      {changed("\"payload\":{ \"n\": 1.0 }", "\"payload_text\":\" 1\""), "task.payload_text"},
      {"{\"damaged\":\"0\"}", "damaged"},
      {"{\"next\":256}", "next"},
      {"{\"end\":false,\"tasks\":1}", "end"},
      {"{\"next\":\"256\",\"end\":true,\"tasks\":1}", "end"},
      {"{\"ende\":true}", "ende"},
      {"{\"queue\":{\"queue\":\"q\",\"paused\":1}}", "queue.paused"},
      {"{\"queue\":{\"paused\":false}}", "queue.queue"},
      {"{\"queue\":{\"queue\":\"q\",\"paused\":false,\"retention_ms\":31536000001}}",
       "queue.retention_ms"},
      {"{\"queue\":{\"queue\":\"q\",\"paused\":false,\"retention_ms\":0}}",
       "queue.key_retention_ms"},
      {"{\"queue\":{\"queue\":\"q\",\"paused\":false,\"retention_ms\":0,\"key_retention_ms\":0,"
       "\"rate\":0}}",
       "queue.rate"},
  };
  for (const auto& refused : kCases) {
    const Result<DumpLine> line = parse_dump_line(refused.line);
    ASSERT_FALSE(line) << refused.line;
    EXPECT_EQ(line.error().field, refused.field) << refused.line;
    EXPECT_EQ(line.error().code, ErrorCode::invalid_argument) << refused.line;
  }
  for (const char* text : {"", "{}", "[]", "{\"tasks\":1}", "{\"task\":1}", "{\"end\":true,"}) {
    EXPECT_FALSE(parse_dump_line(text)) << text;
  }
}

TEST(Dump, WrongScheduleNextAndEndLinesNameTheField) {
  const struct {
    std::string line;
    const char* field;
  } kCases[] = {
      {"{\"end\":true}", "queues"},
      {"{\"end\":true,\"tasks\":1,\"schedules\":1}", "queues"},  // no count of queues
      {"{\"end\":true,\"queues\":0,\"tasks\":1,\"schedules\":1}", "damaged_tasks"},
      {"{\"next\":\"256\",\"tasks\":1}", "queues"},
      {"{\"next\":\"256\",\"external\":1}", "external"},
      {"{\"damaged\":\"256\",\"tasks\":1}", "tasks"},
      {"{\"damaged\":\"256\",\"schedules\":1}", "schedules"},
      {"{\"end\":true,\"tasks\":1,\"next_schedule\":\"s\"}", "next_schedule"},
      {"{\"schedule\":{\"queue\":\"q\",\"every_ms\":1}}", "schedule.name"},
      {"{\"schedule\":{\"name\":\"s\",\"queue\":\"q\",\"every_ms\":1}}", "schedule.created_at"},
      {"{\"schedule\":{\"name\":\"s\",\"state\":\"active\"}}", "schedule.state"},
  };
  for (const auto& refused : kCases) {
    EXPECT_EQ(parse_dump_line(refused.line).error().field, refused.field) << refused.line;
  }
}

TEST(Dump, MoreAttemptsThanATaskRemembersAreRefused) {
  Task task = example_task();
  task.history.assign(kMaxHistory + 1, {});
  EXPECT_EQ(parse_dump_line(rendered(task)).error().field, "task.history");
}

TEST(Dump, TheKindOfALineIgnoresMembersOfNewerPrograms) {
  EXPECT_EQ(kind_of_dump_line(rendered(example_task())).value(), DumpLineKind::task);
  EXPECT_EQ(kind_of_dump_line(R"({"task":{"id":7,"new":1},"more":2})").value(), DumpLineKind::task);
  EXPECT_EQ(kind_of_dump_line(rendered(DumpedQueue{.queue = "q"})).value(), DumpLineKind::queue);
  EXPECT_EQ(kind_of_dump_line(rendered(DamagedTask{TaskId{1}})).value(), DumpLineKind::damaged);
  EXPECT_EQ(kind_of_dump_line(rendered(DumpNext{TaskId{1}})).value(), DumpLineKind::next);
  EXPECT_EQ(kind_of_dump_line(rendered(DumpEnd{})).value(), DumpLineKind::end);
  std::string cut = rendered(example_task());
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(kind_of_dump_line(cut));
  EXPECT_FALSE(kind_of_dump_line(R"({"other":1})"));
}

TEST(Dump, LineNumbersCountBlankLines) {
  const auto lines = take_numbered_lines("\n{1}\r\n \t\n{2}", 2);
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2U);
  EXPECT_EQ((*lines)[0].number, 2U);
  EXPECT_EQ((*lines)[1].number, 4U);
  EXPECT_EQ((*lines)[1].text, "{2}");
  EXPECT_EQ(take_numbered_lines("1\n2\n3", 2).error().code, ErrorCode::too_large);
  EXPECT_TRUE(take_numbered_lines("", 1).value().empty());
}

TEST(Dump, TheAnswerToARestoreIsReadBack) {
  const RestoreAnswer answer{.restored = 5,
                             .there = 2,
                             .queues = 1,
                             .schedules = 4,
                             .schedules_there = 3,
                             .errors = {{3, {ErrorCode::invalid_argument, "no", "task.id"}},
                                        {9, {ErrorCode::too_large, "too large", "task.payload"}}}};
  EXPECT_EQ(parse_restored(render_restored(answer)).value(), answer);
  for (const char* body : {"", "{}", R"({"restored":1,"there":0,"queues":0})",
                           R"({"restored":1,"there":0,"queues":0,"errors":[{"line":0}]})",
                           R"({"restored":1,"there":0,"queues":0,"errors":[{"line":1}]})"}) {
    EXPECT_EQ(parse_restored(body).error().code, ErrorCode::internal) << body;
  }
}

}  // namespace
}  // namespace detent::json

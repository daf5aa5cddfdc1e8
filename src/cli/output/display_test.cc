#include "cli/output/display.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

constexpr WallTime kAt{milliseconds{1'767'323'045'678}};

TEST(Display, ATerminalGetsPrintableBytesOnOneLine) {
  EXPECT_EQ(printable({client::Payload::Kind::json, "{\n\t\"a\": 1\r}"}), "{  \"a\": 1 }");
  EXPECT_EQ(printable({client::Payload::Kind::bytes, std::string("a\0\x1B[31m\xFF\\", 9)}),
            "a\\x00\\x1b[31m\\xff\\x5c");
}

TEST(Display, ValidUtf8IsShownAsText) {
  for (const char* text : {"ключ", "订单", "é", "👍", "a\xC2\xA0z"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable({client::Payload::Kind::bytes, text}), text);
    EXPECT_EQ(printable({client::Payload::Kind::json, text}), text);
  }
  // Truncated, overlong and surrogate bytes, and a control character of the upper half.
  EXPECT_EQ(printable("\xD0"), "\\xd0");
  EXPECT_EQ(printable("\xC0\x80z"), "\\xc0\\x80z");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");
  // Characters that break a line, or show the following text from right to left.
  EXPECT_EQ(printable("\xE2\x80\xA8"), "\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("a\xE2\x80\xAEz"), "a\\xe2\\x80\\xaez");
  EXPECT_EQ(printable("\xE2\x81\xA6"), "\\xe2\\x81\\xa6");
  EXPECT_EQ(printable({client::Payload::Kind::json, "\"\xC2\x9B\x7F\\n\""}),
            "\"\\xc2\\x9b\\x7f\\n\"");
}

TEST(Display, ANarrowListLeavesOutPriorityAndAttemptsBeforeItCutsThePayload) {
  const client::Task task{.id = 256,
                          .queue = "mail",
                          .state = client::TaskState::dead,
                          .due_at = kAt,
                          .payload = {.data = R"({"to":"ada@example.org","n":12345})"},
                          .priority = 1024,
                          .attempts = 25};
  const auto shown = [&task](std::size_t columns) {
    std::ostringstream out;
    show_tasks(out, std::array{task}, columns);
    return out.str();
  };
  EXPECT_EQ(
      shown(80),
      "ID   QUEUE  STATE  DUE AT                    KEY  PAYLOAD\n"
      "256  mail   dead   2026-01-02T03:04:05.678Z  -    {\"to\":\"ada@example.org\",\"n\":1…\n");
  EXPECT_EQ(shown(85),
            "ID   QUEUE  STATE  DUE AT                    ATTEMPTS  KEY  PAYLOAD\n"
            "256  mail   dead   2026-01-02T03:04:05.678Z  25        -    "
            "{\"to\":\"ada@example.org\",…\n");
  EXPECT_NE(shown(94).find("PRIORITY"), std::string::npos);
  EXPECT_NE(shown(0).find("PRIORITY"), std::string::npos);
}

TEST(Display, AnAcceptedTaskIsOneLineThatBeginsWithItsId) {
  std::ostringstream out;
  show_accepted(out, {256, "q", client::TaskState::scheduled, kAt});
  EXPECT_EQ(out.str(), "256  scheduled  2026-01-02T03:04:05.678Z\n");
}

TEST(Display, ATaskHasOneLinePerKnownField) {
  const client::Task task{.id = 256,
                          .queue = "mail",
                          .state = client::TaskState::dead,
                          .due_at = kAt,
                          .created_at = kAt,
                          .payload = {.data = "[1]"},
                          .key = "order 7",
                          .priority = 5,
                          .attempts = 3,
                          .last_error = "no\nroute",
                          .max_attempts = 3,
                          .visibility_timeout = milliseconds{90'000},
                          .backoff = client::Backoff{milliseconds{250}, milliseconds{7'200'000}}};
  std::ostringstream out;
  show_task(out, task, 0);
  EXPECT_EQ(out.str(),
            "id                  256\n"
            "queue               mail\n"
            "state               dead\n"
            "due at              2026-01-02T03:04:05.678Z\n"
            "created at          2026-01-02T03:04:05.678Z\n"
            "priority            5\n"
            "key                 order 7\n"
            "attempts            3 of 3\n"
            "visibility timeout  90s\n"
            "backoff             250ms to 2h\n"
            "last error          no\\x0aroute\n"
            "payload             [1]\n");
}

TEST(Display, LeasedTasksAreATableAndNoTasksPrintNothing) {
  client::LeasedTask task;
  task.id = 256;
  task.lease = "3-17";
  task.attempt = 2;
  task.payload.data = "{\"a\":1}";
  task.lateness = milliseconds{3};
  std::ostringstream out;
  show_leased(out, std::array{task}, 0);
  EXPECT_EQ(out.str(),
            "LEASE  ID   ATTEMPT  LATE  PAYLOAD\n"
            "3-17   256  2        3ms   {\"a\":1}\n");
  std::ostringstream nothing;
  show_leased(nothing, {}, 0);
  EXPECT_EQ(nothing.str(), "");
}

TEST(Display, OutcomesStandBesideTheirLeases) {
  const std::array<std::string, 4> leases{"3-17", "x\n", "3-18", "3-19"};
  using Code = ClientError::Code;
  const std::vector<ClientResult<client::LeaseStatus>> outcomes{
      client::LeaseStatus::done, client::LeaseStatus::conflict,
      ClientError{.code = Code::data_loss, .message = "bad record"},
      ClientError{.code = Code::unavailable, .message = "shard 3 is away"}};
  std::ostringstream out;
  show_outcomes(out, leases, outcomes);
  EXPECT_EQ(out.str(),
            "3-17   done\nx\\x0a  not held (expired, finished or unknown)\n"
            "3-18   error: bad record\n"
            "3-19   unavailable: shard 3 is away\n");
}

TEST(Display, StatsAreTables) {
  json::ServerStats stats;
  stats.version = "0.1.0";
  stats.uptime = milliseconds{11'539'999};
  stats.loaded = 12;
  stats.counters.scheduled = 7;
  stats.queues = {{.queue = "mail",
                   .scheduled = 5,
                   .ready = 2,
                   .leased = 0,
                   .dead = 0,
                   .oldest_ready_age = milliseconds{1'500}},
                  {.queue = "b"}};
  std::ostringstream out;
  show_stats(out, stats, 0);
  EXPECT_EQ(out.str(),
            "detent 0.1.0, up 3h 12m\n"
            "12 tasks in memory, 0 workers waiting\n\n"
            "SCHEDULED  FIRED  LEASED  COMPLETED  FAILED  CANCELLED  DEAD\n"
            "7          0      0       0          0       0          0\n\n"
            "QUEUE  SCHEDULED  READY  LEASED  DEAD  OLDEST READY\n"
            "mail   5          2      0       0     1s 500ms\n"
            "b      0          0      0       0     -\n");
}

TEST(Display, StatsTellThatNewTasksAreRefused) {
  json::ServerStats stats;
  stats.refuses_tasks = true;
  std::ostringstream out;
  show_stats(out, stats, 0);
  EXPECT_NE(out.str().find("\nNew tasks are refused: the disk of the data folder is nearly full\n"),
            std::string::npos)
      << out.str();
}

TEST(Display, ATokenForSomeQueuesSeesNoCountersOfTheServer) {
  std::ostringstream out;
  show_stats(out,
             {.version = "0.1.0",
              .uptime = milliseconds{1'000},
              .scope = json::StatsScope::some_queues,
              .queues = {{"mail", 5, 2, 0, 0, std::nullopt}}},
             0);
  EXPECT_EQ(
      out.str(),
      "detent 0.1.0, up 1s\n"
      "figures of the whole server are not shown, because the token is for some queues only\n\n"
      "QUEUE  SCHEDULED  READY  LEASED  DEAD  OLDEST READY\n"
      "mail   5          2      0       0     -\n");
}

TEST(Display, AForecastHasOneRowPerBin) {
  const Forecast forecast{.from = WallTime{milliseconds{1'767'323'040'000}},
                          .bin = milliseconds{3'600'000},
                          .counts = {3, 0, 1'000'000},
                          .overdue = 7,
                          .later = 8};
  std::ostringstream out;
  show_forecast(out, forecast, 0);
  EXPECT_EQ(out.str(),
            "FROM               TASKS\n"
            "2026-01-02T03:04Z  3\n"
            "2026-01-02T04:04Z  0\n"
            "2026-01-02T05:04Z  1000000\n"
            "\noverdue: 7 tasks; due later: 8 tasks\n");
}

TEST(Display, AForecastOnATerminalHasBarsThatFillIt) {
  Forecast forecast{.bin = milliseconds{60'000}, .counts = {1, 50, 100}, .coarse = 2};
  std::ostringstream out;
  show_forecast(out, forecast, 36);
  EXPECT_EQ(out.str(),
            "FROM               TASKS\n"
            "1970-01-01T00:00Z  1      #\n"
            "1970-01-01T00:01Z  50     #####\n"
            "1970-01-01T00:02Z  100    ##########\n"
            "\noverdue: 0 tasks; due later: 0 tasks\n"
            "2 of these tasks are counted per day only, and are spread evenly over their day\n");
  for (const std::size_t columns : {1U, 25U, 26U, 27U, 40U, 200U}) {
    for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      forecast.counts = {most, 0};
      std::istringstream lines;
      std::ostringstream some;
      show_forecast(some, forecast, columns);
      lines.str(some.str());
      for (std::string line; std::getline(lines, line) && !line.empty();) {
        EXPECT_LE(line.size(), std::max<std::size_t>(columns, 40)) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
      }
    }
  }
}

TEST(Display, AnErrorNamesItsField) {
  std::ostringstream err;
  show_error(err, {ErrorCode::invalid_argument, "must be positive\x1B", "delay"});
  show_error(err, {ErrorCode::unavailable, "gone", ""});
  show_error(err, {ErrorCode::not_found, "no queue named 'nope'", "queue"});
  EXPECT_EQ(err.str(),
            "detent: must be positive\\x1b (delay)\ndetent: gone\ndetent: no queue named 'nope'\n");
}

TEST(Display, AMissingTokenIsExplained) {
  std::ostringstream err;
  show_error(err, {ErrorCode::forbidden, "a token is needed: Authorization: Bearer dt_...", ""});
  EXPECT_TRUE(err.str().starts_with("detent: token required: set DETENT_TOKEN or --token\n"));
  err.str("");
  show_error(err, {ErrorCode::forbidden, "the token does not allow this", ""});
  EXPECT_EQ(err.str(), "detent: the token does not allow this\n");
}

}  // namespace
}  // namespace detent::cli

#include "cli/display.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(printable({Payload::Kind::json, "{\n\t\"a\": 1\r}"}), "{  \"a\": 1 }");
  EXPECT_EQ(printable({Payload::Kind::bytes, std::string("a\0\x1B[31m\xFF\\", 9)}),
            "a\\x00\\x1b[31m\\xff\\x5c");
}

TEST(Display, AnAcceptedTaskIsOneLineThatBeginsWithItsId) {
  std::ostringstream out;
  show_accepted(out, {TaskId{256}, "q", TaskState::scheduled, kAt});
  EXPECT_EQ(out.str(), "256  scheduled  2026-01-02T03:04:05.678Z\n");
}

TEST(Display, ATaskIsALineForEachThingKnown) {
  TaskView view;
  view.state = TaskState::dead;
  view.task.id = TaskId{256};
  view.task.queue = "mail";
  view.task.payload.data = "[1]";
  view.task.rules = {.priority = 5,
                     .max_attempts = 3,
                     .visibility_timeout = milliseconds{90'000},
                     .backoff = Backoff{milliseconds{250}, milliseconds{7'200'000}}};
  view.task.due_at = kAt;
  view.task.created_at = kAt;
  view.task.attempts = 3;
  view.task.last_error = "no\nroute";
  std::ostringstream out;
  show_task(out, view);
  EXPECT_EQ(out.str(),
            "id                  256\n"
            "queue               mail\n"
            "state               dead\n"
            "due at              2026-01-02T03:04:05.678Z\n"
            "created at          2026-01-02T03:04:05.678Z\n"
            "priority            5\n"
            "attempts            3 of 3\n"
            "visibility timeout  90s\n"
            "backoff             250ms to 2h\n"
            "last error          no\\x0aroute\n"
            "payload             [1]\n");
}

TEST(Display, LeasedTasksAreATableAndNothingIsNothing) {
  Client::LeasedTask task;
  task.id = TaskId{256};
  task.lease = "3-17";
  task.attempt = 2;
  task.payload.data = "{\"a\":1}";
  task.lateness = milliseconds{3};
  std::ostringstream out;
  show_leased(out, std::array{task});
  EXPECT_EQ(out.str(),
            "LEASE  ID   ATTEMPT  LATE  PAYLOAD\n"
            "3-17   256  2        3ms   {\"a\":1}\n");
  std::ostringstream nothing;
  show_leased(nothing, {});
  EXPECT_EQ(nothing.str(), "");
}

TEST(Display, OutcomesStandBesideTheirLeases) {
  const std::array<std::string, 3> leases{"3-17", "x\n", "3-18"};
  const std::vector<Result<LeaseOutcome>> outcomes{LeaseOutcome::done, LeaseOutcome::conflict,
                                                   Error{ErrorCode::data_loss, "bad record", ""}};
  std::ostringstream out;
  show_outcomes(out, leases, outcomes);
  EXPECT_EQ(out.str(), "3-17   done\nx\\x0a  conflict\n3-18   bad record\n");
}

TEST(Display, StatsAreTables) {
  Client::Stats stats;
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
  show_stats(out, stats);
  EXPECT_EQ(out.str(),
            "detent 0.1.0, up 3h 12m\n"
            "12 tasks in memory, 0 workers waiting\n\n"
            "SCHEDULED  FIRED  LEASED  COMPLETED  FAILED  CANCELLED  DEAD\n"
            "7          0      0       0          0       0          0\n\n"
            "QUEUE  SCHEDULED  READY  LEASED  DEAD  OLDEST READY\n"
            "mail   5          2      0       0     1s 500ms\n"
            "b      0          0      0       0     -\n");
}

TEST(Display, AnErrorNamesItsField) {
  std::ostringstream err;
  show_error(err, {ErrorCode::invalid_argument, "must be positive\x1B", "delay"});
  show_error(err, {ErrorCode::unavailable, "gone", ""});
  EXPECT_EQ(err.str(), "detent: must be positive\\x1b (delay)\ndetent: gone\n");
}

}  // namespace
}  // namespace detent::cli

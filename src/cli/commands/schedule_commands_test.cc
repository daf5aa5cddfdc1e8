// Tests `detent schedule`: the parsing of its command line, and over a scripted connection its
// requests, output and exit codes.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/wall_time.h"
#include "cli/arguments/arguments.h"
#include "cli/output/text_table.h"
#include "cli/testing/scripted_commands_fixture.h"
#include "protocol/json/schedule_codec.h"

namespace detent::cli {
namespace {

using namespace std::chrono_literals;

using Verb = ChangeScheduleCommand::Verb;

WallTime at(const std::string& text) { return parse_rfc3339(text).value(); }

Invocation parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"detent", "schedule"});
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

template <class Command>
Command command_of(const std::vector<const char*>& words) {
  const Invocation invocation = parse(words);
  if (const auto* nothing = std::get_if<NothingToRun>(&invocation)) {
    ADD_FAILURE() << nothing->text;
    return {};
  }
  return std::get<Command>(std::get<ScheduleCommand>(std::get<ClientCall>(invocation).command));
}

std::string complaint_about(const std::vector<const char*>& words) {
  const Invocation invocation = parse(words);
  const auto* nothing = std::get_if<NothingToRun>(&invocation);
  if (nothing == nullptr) {
    ADD_FAILURE() << "accepted: " << testing::PrintToString(words);
    return {};
  }
  EXPECT_EQ(nothing->exit_code, ExitCode::usage);
  return nothing->text;
}

client::NewSchedule report() {
  return {.rule = client::CronRule{"0 9 LW * *"},
          .time_zone = "Asia/Shanghai",
          .queue = "reports",
          .payload = {.data = R"({"n":1})"}};
}

/// The `report` as the server knows it.
RecurringSchedule report_record() { return from_client("report", report()); }

ScheduleView report_view() {
  return {.record = {.schedule = report_record(),
                     .progress = {.created_at = at("2026-01-01T00:00:00Z"),
                                  .decided_to = at("2026-01-30T01:00:00Z"),
                                  .made = 1,
                                  .last_at = at("2026-01-30T01:00:00Z"),
                                  .last_task = TaskId{512}}},
          .next_at = at("2026-02-27T01:00:00Z"),
          .words = "At 09:00"};
}

// ---- the command line ----

TEST(ScheduleArguments, PutReadsEveryOption) {
  const auto put = command_of<PutScheduleCommand>({"put",
                                                   "report",
                                                   "--cron",
                                                   "0 9 LW * *",
                                                   "--zone",
                                                   "Asia/Shanghai",
                                                   "--queue",
                                                   "reports",
                                                   "--payload",
                                                   "{}",
                                                   "--bytes",
                                                   "--start",
                                                   "2026-01-01T00:00:00Z",
                                                   "--end",
                                                   "2027-01-01T00:00:00Z",
                                                   "--count",
                                                   "12",
                                                   "--jitter",
                                                   "30s",
                                                   "--misfire",
                                                   "all",
                                                   "--misfire-grace",
                                                   "90s",
                                                   "--misfire-limit",
                                                   "7",
                                                   "--overlap",
                                                   "queue_one",
                                                   "--gap",
                                                   "skip",
                                                   "--repeat",
                                                   "both",
                                                   "--priority",
                                                   "5",
                                                   "--max-attempts",
                                                   "3",
                                                   "--visibility-timeout",
                                                   "2m"});
  client::NewSchedule expected = report();
  expected.payload = {};
  expected.start = at("2026-01-01T00:00:00Z");
  expected.end = at("2027-01-01T00:00:00Z");
  expected.count = 12;
  expected.jitter = 30s;
  expected.misfire = client::NewSchedule::Misfire::all;
  expected.misfire_grace = 90s;
  expected.misfire_limit = 7;
  expected.overlap = client::NewSchedule::Overlap::queue_one;
  expected.gap = client::NewSchedule::Gap::skip;
  expected.repeat = client::NewSchedule::Repeat::both;
  expected.priority = 5;
  expected.max_attempts = 3;
  expected.visibility_timeout = 2min;
  EXPECT_EQ(put.name, "report");
  EXPECT_EQ(put.schedule, expected);
  EXPECT_EQ(put.payload, "{}");
  EXPECT_TRUE(put.bytes);
}

TEST(ScheduleArguments, ARuleIsACronExpressionAnIntervalOrACalendar) {
  using client::CalendarRule;
  using client::IntervalRule;
  using Rule = decltype(client::NewSchedule::rule);
  const auto rule_of = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"put", "s", "--queue", "q"});
    return command_of<PutScheduleCommand>(words).schedule.rule;
  };
  const WallTime anchor = at("2026-01-31T00:00:00Z");
  EXPECT_EQ(rule_of({"--every", "90s"}), Rule(IntervalRule{.every = 90s}));
  EXPECT_EQ(rule_of({"--anchor", "2026-01-31T00:00:00Z", "--every", "4h"}),
            Rule(IntervalRule{.every = 4h, .anchor = anchor}));
  EXPECT_EQ(rule_of({"--calendar", "month"}), Rule(CalendarRule{}));
  EXPECT_EQ(rule_of({"--calendar", "2weeks"}),
            Rule(CalendarRule{.every = 2, .unit = CalendarRule::Unit::week}));
  EXPECT_EQ(
      rule_of(
          {"--month-end", "skip", "--anchor", "2026-01-31T00:00:00Z", "--calendar", "3 months"}),
      Rule(CalendarRule{.every = 3, .month_end = CalendarRule::MonthEnd::skip, .anchor = anchor}));
}

TEST(ScheduleArguments, AnInvalidScheduleIsWrongUsage) {
  const auto complaint = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"put", "s", "--queue", "q"});
    return complaint_about(words);
  };
  EXPECT_NE(complaint({}).find("--cron"), std::string::npos);
  EXPECT_NE(complaint({"--cron", "* * * * *", "--every", "1s"}).find("--cron"), std::string::npos);
  EXPECT_NE(complaint({"--cron", "* * * * *", "--anchor", "0"}).find("--anchor"),
            std::string::npos);
  EXPECT_NE(complaint({"--every", "1s", "--month-end", "skip"}).find("--calendar"),
            std::string::npos);
  for (const char* calendar : {"", "3", "fortnight", "-1 days", "99999999999 days", "3 months x"}) {
    EXPECT_NE(complaint({"--calendar", calendar}).find("\"3 months\""), std::string::npos)
        << calendar;
  }
  EXPECT_NE(complaint({"--every", "0s"}).find("--every"), std::string::npos);
  EXPECT_NE(complaint({"--every", "1s", "--overlap", "queue"}).find("queue_one"),
            std::string::npos);
  EXPECT_NE(complaint({"--every", "1s", "--misfire", "never"}).find("once"), std::string::npos);
  EXPECT_NE(complaint({"--every", "1s", "--count", "0"}).find("--count"), std::string::npos);
  EXPECT_NE(complaint_about({"put", "s", "--every", "1s"}).find("--queue"), std::string::npos);
  EXPECT_NE(complaint_about({}).find("schedule: a command is required: put, "), std::string::npos);
  EXPECT_NE(complaint_about({"next", "s", "--count", "1001"}).find("--count"), std::string::npos);
  EXPECT_NE(complaint_about({"backfill", "s", "--from", "0"}).find("--to"), std::string::npos);
}

TEST(ScheduleArguments, TheOtherCommandsTakeAName) {
  command_of<ListSchedulesCommand>({"list"});
  EXPECT_EQ(command_of<GetScheduleCommand>({"get", "s"}).name, "s");
  EXPECT_EQ(command_of<NextOccurrencesCommand>({"next", "s"}).count, 10U);
  EXPECT_EQ(command_of<NextOccurrencesCommand>({"next", "s", "--count", "3"}).count, 3U);
  EXPECT_EQ(command_of<ChangeScheduleCommand>({"pause", "s"}).verb, Verb::pause);
  EXPECT_EQ(command_of<ChangeScheduleCommand>({"resume", "s"}).verb, Verb::resume);
  EXPECT_EQ(command_of<ChangeScheduleCommand>({"trigger", "s"}).verb, Verb::trigger);
  EXPECT_EQ(command_of<ChangeScheduleCommand>({"remove", "s"}).name, "s");
  const auto backfill = command_of<BackfillCommand>(
      {"backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to", "2026-02-01T00:00:00Z"});
  EXPECT_EQ(backfill.from, at("2026-01-01T00:00:00Z"));
  EXPECT_EQ(backfill.to, at("2026-02-01T00:00:00Z"));
  const Invocation call = parse({"list", "--json", "--server", "http://h:1"});
  EXPECT_EQ(std::get<ClientCall>(call).format, OutputFormat::json);
  EXPECT_EQ(std::get<ClientCall>(call).server, "http://h:1");
}

// ---- requests and output ----

class ScheduleCommandsTest : public ScriptedCommands {
 protected:
  ExitCode run(ScheduleCommand command, OutputFormat format = OutputFormat::people) {
    return ScriptedCommands::run(std::move(command), format);
  }
};

TEST_F(ScheduleCommandsTest, PutReadsThePayloadFromStandardInput) {
  answer(201, json::render_schedule_view(report_view()));
  in_.str(R"( {"n":1} )");
  PutScheduleCommand put{.name = "report", .schedule = report(), .payload = "-"};
  put.schedule.payload = {};
  EXPECT_EQ(run(put), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "report  active  next 2026-02-27T01:00:00.000Z  At 09:00\n");
  EXPECT_EQ(asked(),
            Lines{"PUT /v1/schedules/report " + json::render_schedule_rule(report_record())});
  EXPECT_EQ(run(put, OutputFormat::json), ExitCode::done);
  EXPECT_EQ(out_.str(), json::render_schedule_view(report_view()) + "\n");
}

TEST_F(ScheduleCommandsTest, ACaretPointsToAnErrorInACronExpression) {
  answer(400, R"({"type":"urn:detent:error:invalid_argument",)"
              R"("detail":"column 3: 25 is no hour","field":"cron"})");
  PutScheduleCommand put{.name = "report", .schedule = report(), .payload = {}};
  put.schedule.rule = client::CronRule{"0 25 * * *"};
  EXPECT_EQ(run(put), ExitCode::usage);
  EXPECT_EQ(err_.str(),
            "detent: column 3: 25 is no hour (cron)\n"
            "  0 25 * * *\n"
            "    ^\n");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ScheduleCommandsTest, WithoutAColumnThereIsNoCaret) {
  const auto said_about = [this](const std::string& detail, const std::string& field,
                                 const std::string& cron) {
    answer(400, R"({"type":"urn:detent:error:invalid_argument","detail":")" + detail +
                    R"(","field":")" + field + "\"}");
    PutScheduleCommand put{.name = "report", .schedule = report(), .payload = {}};
    put.schedule.rule = client::CronRule{cron};
    run(put);
    return err_.str();
  };
  for (const char* detail : {"column 0: x", "column 99: x", "column: x", "column 3 x", "no"}) {
    EXPECT_EQ(said_about(detail, "cron", "* *"), std::string("detent: ") + detail + " (cron)\n");
  }
  EXPECT_EQ(said_about("column 1: x", "queue", "* *"), "detent: column 1: x (queue)\n");
  EXPECT_EQ(said_about("column 1: x", "cron", "*\t*"), "detent: column 1: x (cron)\n");
  EXPECT_EQ(said_about("column 4: x", "cron", "* *"),
            "detent: column 4: x (cron)\n  * *\n     ^\n");
}

TEST_F(ScheduleCommandsTest, AnInvalidNameIsRejectedWithoutARequest) {
  PutScheduleCommand put{.name = "report", .schedule = report(), .payload = {}};
  put.name = "a b";
  EXPECT_EQ(run(put), ExitCode::usage);
  EXPECT_EQ(asked(), Lines{});
}

TEST_F(ScheduleCommandsTest, SchedulesOfAllPagesAreATable) {
  ScheduleView idle = report_view();
  idle.record.schedule.name = "z";
  idle.record.progress = {.paused = true};
  idle.next_at.reset();
  script_.respond = [&](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    const bool is_first = request.target == "/v1/schedules";
    const std::vector<ScheduleView> page{is_first ? report_view() : idle};
    return net::HttpResponse{.body = json::render_schedule_list(page, is_first ? "report" : "")};
  };
  EXPECT_EQ(run(ListSchedulesCommand{}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(),
            "NAME    STATE   NEXT                      LAST                      MADE  RULE\n"
            "report  active  2026-02-27T01:00:00.000Z  2026-01-30T01:00:00.000Z  1     At 09:00\n"
            "z       paused  -                         -                         0     At 09:00\n");
  EXPECT_EQ(asked(), (Lines{"GET /v1/schedules", "GET /v1/schedules?cursor=report"}));
  terminal_.columns = 40;
  run(ListSchedulesCommand{});
  std::istringstream lines(out_.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 40U) << line;
  EXPECT_EQ(run(ListSchedulesCommand{}, OutputFormat::json), ExitCode::done);
  EXPECT_EQ(out_.str(), json::render_schedule_list(std::vector{report_view()}, "report") + "\n" +
                            json::render_schedule_list(std::vector{idle}, "") + "\n");
}

TEST_F(ScheduleCommandsTest, AListThatRepeatsAPageIsAnError) {
  answer(200, json::render_schedule_list(std::vector{report_view()}, "report"));
  EXPECT_EQ(run(ListSchedulesCommand{}), ExitCode::failed);
}

TEST_F(ScheduleCommandsTest, AScheduleIsShownWithItsRule) {
  ScheduleView view = report_view();
  view.record.schedule.misfire = Misfire::all;
  view.record.schedule.count = 12;
  answer(200, json::render_schedule_view(view));
  EXPECT_EQ(run(GetScheduleCommand{"report"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(),
            "schedule    report\n"
            "state       active\n"
            "rule        At 09:00\n"
            "next        2026-02-27T01:00:00.000Z\n"
            "last        2026-01-30T01:00:00.000Z\n"
            "made        1\n"
            "overlapped  0\n"
            "last task   512\n"
            "cron        0 9 LW * *\n"
            "zone        Asia/Shanghai\n"
            "count       12\n"
            "jitter      0ms\n"
            "misfire     all, at most 100, after 1m\n"
            "overlap     allow\n"
            "queue       reports\n"
            "payload     {\"n\":1}\n");
  EXPECT_EQ(asked(), Lines{"GET /v1/schedules/report"});
  view.record.schedule.rule = CalendarRule{
      .anchor = at("2026-01-31T00:00:00Z"), .unit = CalendarRule::Unit::week, .every = 2};
  view.broken = "there is no time zone 'Mars/X'";
  answer(200, json::render_schedule_view(view));
  run(GetScheduleCommand{"report"});
  for (const char* line :
       {"state       broken\n", "rule        there is no time zone", "calendar    2 weeks\n",
        "anchor      2026-01-31T00:00:00.000Z\n", "month end   clamp\n"}) {
    EXPECT_NE(out_.str().find(line), std::string::npos) << line << out_.str();
  }
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"there is no schedule 's'"})");
  EXPECT_EQ(run(GetScheduleCommand{"s"}), ExitCode::not_found);
  EXPECT_EQ(err_.str(), "detent: there is no schedule 's'\n");
}

TEST_F(ScheduleCommandsTest, NextPrintsOneLinePerOccurrence) {
  answer(200, json::render_next_occurrences(
                  "s", std::vector{at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z")}));
  EXPECT_EQ(run(NextOccurrencesCommand{.name = "s", .count = 2}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "2026-01-01T00:00:00.000Z\n2026-01-02T00:00:00.000Z\n");
  EXPECT_EQ(asked(), Lines{"GET /v1/schedules/s/next?count=2"});
}

TEST_F(ScheduleCommandsTest, AScheduleIsPausedResumedAndRemoved) {
  ScheduleView view = report_view();
  answer(200, json::render_schedule_view(view));
  EXPECT_EQ(run(ChangeScheduleCommand{Verb::resume, "report"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "report  active  next 2026-02-27T01:00:00.000Z  At 09:00\n");
  view.record.progress.paused = true;
  view.next_at.reset();
  answer(200, json::render_schedule_view(view));
  EXPECT_EQ(run(ChangeScheduleCommand{Verb::pause, "report"}), ExitCode::done);
  EXPECT_EQ(out_.str(), "report  paused  next -  At 09:00\n");
  answer(200, json::render_removed_schedule("report"));
  EXPECT_EQ(run(ChangeScheduleCommand{Verb::remove, "report"}), ExitCode::done);
  EXPECT_EQ(out_.str(), "removed report\n");
  EXPECT_EQ(asked(), (Lines{"POST /v1/schedules/report/resume", "POST /v1/schedules/report/pause",
                            "DELETE /v1/schedules/report"}));
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"there is no schedule 's'"})");
  for (const Verb verb : {Verb::pause, Verb::resume, Verb::trigger, Verb::remove}) {
    EXPECT_EQ(run(ChangeScheduleCommand{verb, "s"}), ExitCode::not_found);
  }
}

TEST_F(ScheduleCommandsTest, TriggerShowsTheTaskAndBackfillShowsTheCounts) {
  answer(201, R"({"id":"256","queue":"q","state":"ready","due_at":0})");
  EXPECT_EQ(run(ChangeScheduleCommand{Verb::trigger, "s"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "256  ready  1970-01-01T00:00:00.000Z\n");
  answer(200, json::render_backfill_counts({.made = 3, .there = 4}));
  EXPECT_EQ(run(BackfillCommand{"s", at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z")}),
            ExitCode::done);
  EXPECT_EQ(out_.str(), "made 3 tasks, there before: 4\n");
  EXPECT_EQ(asked(), (Lines{"POST /v1/schedules/s/trigger",
                            "POST /v1/schedules/s/backfill "
                            R"({"from":"2026-01-01T00:00:00.000Z","to":"2026-02-01T00:00:00.000Z",)"
                            R"("limit":1000})"}));
  answer(409, R"({"type":"urn:detent:error:conflict","detail":"no zone","field":"name"})");
  EXPECT_EQ(run(BackfillCommand{"s", {}, {}}), ExitCode::failed);
}

TEST_F(ScheduleCommandsTest, ABackfillRunsInPartsAndReportsWhereItStopped) {
  const BackfillCommand command{"s", at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z")};
  net::HttpResponse second{.status = 200,
                           .body = json::render_backfill_counts({.made = 1, .there = 2})};
  script_.respond = [&second](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    if (request.body.find("2026-01-11") != std::string::npos) return second;
    return net::HttpResponse{
        .status = 200,
        .body = json::render_backfill_counts({.made = 3, .next = at("2026-01-11T00:00:00Z")})};
  };
  EXPECT_EQ(run(command), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "made 4 tasks, there before: 2\n");
  EXPECT_NE(asked().at(1).find(R"({"from":"2026-01-11T00:00:00.000Z")"), std::string::npos);
  second = {.status = 409,
            .body = R"({"type":"urn:detent:error:conflict","detail":"it is paused"})"};
  EXPECT_EQ(run(command), ExitCode::failed);
  EXPECT_NE(err_.str().find("it is paused"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("made 3 tasks, there before: 0; continue with --from "
                            "2026-01-11T00:00:00.000Z"),
            std::string::npos)
      << err_.str();
}

}  // namespace
}  // namespace detent::cli

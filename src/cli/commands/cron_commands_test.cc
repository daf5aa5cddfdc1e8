#include "cli/commands/cron_commands.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/wall_time.h"

namespace detent::cli {
namespace {

struct Ended {
  ExitCode exit_code = ExitCode::done;
  std::string out;
  std::string err;
};

/// Runs a command line at a fixed time in 2026.
Ended run_cron_line(std::vector<const char*> words) {
  words.insert(words.begin(), "detent");
  const Invocation invocation = parse_arguments(static_cast<int>(words.size()), words.data());
  if (const auto* nothing = std::get_if<NothingToRun>(&invocation)) {
    return {nothing->exit_code, "", nothing->text};
  }
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const WallTime now = parse_rfc3339("2026-11-22T03:33:38.250Z").value();
  const ExitCode exit_code = run_cron(std::get<CronCall>(invocation), now, {in, out, err});
  return {exit_code, out.str(), err.str()};
}

TEST(CronCommands, NextPrintsLocalTimesAndTheirInstants) {
  const Ended ended =
      run_cron_line({"cron", "next", "0 9 LW * *", "--zone", "Asia/Shanghai", "--count", "2"});
  EXPECT_EQ(ended.exit_code, ExitCode::done) << ended.err;
  EXPECT_EQ(ended.out,
            "Mon 2026-11-30T09:00:00+08:00  2026-11-30T01:00:00.000Z\n"
            "Thu 2026-12-31T09:00:00+08:00  2026-12-31T01:00:00.000Z\n");
  EXPECT_EQ(ended.err, "");
}

TEST(CronCommands, NextPrintsFiveTimesInUtcByDefault) {
  const Ended ended = run_cron_line({"cron", "next", "@every 1500ms"});
  EXPECT_EQ(ended.out,
            "Sun 2026-11-22T03:33:39+00:00  2026-11-22T03:33:39.000Z\n"
            "Sun 2026-11-22T03:33:40.500+00:00  2026-11-22T03:33:40.500Z\n"
            "Sun 2026-11-22T03:33:42+00:00  2026-11-22T03:33:42.000Z\n"
            "Sun 2026-11-22T03:33:43.500+00:00  2026-11-22T03:33:43.500Z\n"
            "Sun 2026-11-22T03:33:45+00:00  2026-11-22T03:33:45.000Z\n");
}

TEST(CronCommands, NextBeginsAfterAnyTime) {
  EXPECT_EQ(run_cron_line({"cron", "next", "0 0 29 2 *", "--after", "2096-03-01T00:00:00Z",
                           "--count", "1", "--zone", "America/New_York"})
                .out,
            "Fri 2104-02-29T00:00:00-05:00  2104-02-29T05:00:00.000Z\n");
  EXPECT_EQ(run_cron_line({"cron", "next", "0 0 * * *", "--after", "0", "--count", "1", "--zone",
                           "Africa/Monrovia"})
                .out,
            "Thu 1970-01-01T00:00:00-00:44:30  1970-01-01T00:44:30.000Z\n");
}

TEST(CronCommands, NextAsJsonIsOneLine) {
  const Ended ended = run_cron_line({"cron", "next", "0\t9 * * *", "--zone", "Asia/Shanghai",
                                     "--count", "2", "--after", "2026-01-01T00:00:00Z", "--json"});
  EXPECT_EQ(ended.out,
            "{\"expression\":\"0\\t9 * * *\",\"zone\":\"Asia/Shanghai\",\"next\":["
            "\"2026-01-01T01:00:00.000Z\",\"2026-01-02T01:00:00.000Z\"]}\n");
}

TEST(CronCommands, NoTimeLeftIsNotFound) {
  const Ended ended = run_cron_line({"cron", "next", "@yearly", "--after", "9999-06-01T00:00:00Z"});
  EXPECT_EQ(ended.exit_code, ExitCode::not_found);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, "detent: the expression has no date after 9999-06-01T00:00:00.000Z\n");
  EXPECT_EQ(
      run_cron_line({"--json", "cron", "next", "@yearly", "--after", "9999-06-01T00:00:00Z"}).out,
      "{\"expression\":\"@yearly\",\"zone\":\"UTC\",\"next\":[]}\n");
}

TEST(CronCommands, ExplainSaysItInWords) {
  EXPECT_EQ(
      run_cron_line({"cron", "explain", "*/15 9-17 * * MON-FRI", "--zone", "Europe/Berlin"}).out,
      "Every 15 minutes, in hours 9 to 17 on Monday to Friday (Europe/Berlin)\n");
  EXPECT_EQ(run_cron_line({"cron", "explain", "@daily", "--json"}).out,
            "{\"expression\":\"@daily\",\"zone\":\"UTC\",\"text\":\"At 00:00 (UTC)\"}\n");
}

TEST(CronCommands, ACaretPointsToTheColumnOfAnError) {
  for (const char* command : {"next", "explain"}) {
    const Ended ended = run_cron_line({"cron", command, "0 25 * * *"});
    EXPECT_EQ(ended.exit_code, ExitCode::usage);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err,
              "detent: '25' is not allowed as hour; allowed are 0-23, *, ranges a-b, steps */n and "
              "lists a,b (column 3)\n"
              "  0 25 * * *\n"
              "    ^\n");
  }
}

TEST(CronCommands, TheCaretIsRightAfterUnprintableCharacters) {
  const Ended ended = run_cron_line({"cron", "explain", "0\t0 \xC3\xA9 * *"});
  EXPECT_NE(ended.err.find("(column 5)\n"
                           "  0\\x090 \xC3\xA9 * *\n"
                           "         ^\n"),
            std::string::npos)
      << ended.err;
}

TEST(CronCommands, AWrongZoneIsWrongUsage) {
  const Ended ended = run_cron_line({"cron", "next", "0 9 * * *", "--zone", "Mars/Olympus"});
  EXPECT_EQ(ended.exit_code, ExitCode::usage);
  EXPECT_EQ(ended.err,
            "detent: no time zone 'Mars/Olympus' in /usr/share/zoneinfo; use a name of the tz "
            "database, such as Europe/Berlin (--zone)\n");
}

TEST(CronCommands, MissingOrExtraArgumentsAreWrongUsage) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"cron"},
                                             {"cron", "next"},
                                             {"cron", "explain"},
                                             {"cron", "last", "@daily"},
                                             {"cron", "next", "0", "9", "*", "*", "*"},
                                             {"cron", "next", "@daily", "--count", "0"},
                                             {"cron", "next", "@daily", "--count", "10001"},
                                             {"cron", "next", "@daily", "--after", "yesterday"},
                                             {"cron", "explain", "@daily", "--count", "1"}}) {
    EXPECT_EQ(run_cron_line(words).exit_code, ExitCode::usage) << testing::PrintToString(words);
  }
}

TEST(CronCommands, HelpHasExamples) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {"cron", "--help"}, {"cron", "next", "--help"}, {"cron", "explain", "--help"}}) {
    const Ended ended = run_cron_line(words);
    EXPECT_EQ(ended.exit_code, ExitCode::done);
    EXPECT_NE(ended.err.find("\n  detent cron "), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace detent::cli

#include "cli/arguments/arguments.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "cli/testing/arguments_fixture.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

/// Sets an environment variable for one test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

TEST(Arguments, HelpAndVersionExitWithSuccess) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {"--help"}, {"--version"}, {"put", "--help"}, {"serve", "--help"}, {"help"}}) {
    const Invocation invocation = parse(words);
    ASSERT_TRUE(std::holds_alternative<NothingToRun>(invocation));
    EXPECT_EQ(std::get<NothingToRun>(invocation).exit_code, ExitCode::done);
    EXPECT_FALSE(std::get<NothingToRun>(invocation).text.empty());
  }
  const Invocation version = parse({"--version"});
  EXPECT_EQ(std::get<NothingToRun>(version).text.rfind("detent ", 0), 0U);
}

TEST(Arguments, EveryCommandHasHelpWithAnExample) {
  for (const char* command : {"serve", "put", "get", "cancel", "move", "run", "lease", "complete",
                              "fail", "queues", "pause", "resume", "purge", "redrive", "stats"}) {
    const Invocation invocation = parse({command, "--help"});
    const std::string& text = std::get<NothingToRun>(invocation).text;
    EXPECT_NE(text.find(std::string("\n  detent ") + command), std::string::npos) << text;
    EXPECT_NE(std::get<NothingToRun>(parse({"--help"})).text.find(command), std::string::npos);
  }
}

TEST(Arguments, HelpMayStandBeforeTheCommand) {
  const auto text_of = [](const std::vector<const char*>& words) {
    return std::get<NothingToRun>(parse(words)).text;
  };
  EXPECT_EQ(text_of({"help"}), text_of({"--help"}));
  EXPECT_EQ(text_of({"help", "put"}), text_of({"put", "--help"}));
  EXPECT_EQ(text_of({"help", "queue", "set"}), text_of({"queue", "set", "--help"}));
  EXPECT_EQ(text_of({"help", "putt"}), text_of({"putt"}));
}

TEST(Arguments, AMissingCommandIsReportedWithTheKnownCommands) {
  EXPECT_NE(complaint_about({"token"}).find("token: a command is required: new\n"),
            std::string::npos);
  EXPECT_NE(complaint_about({"cron"}).find("cron: a command is required: next, explain\n"),
            std::string::npos);
  EXPECT_NE(complaint_about({"--json"}).find("detent: a command is required: put, get, "),
            std::string::npos);
}

TEST(Arguments, TheProgramAloneShowsItsHelp) {
  const auto alone = std::get<NothingToRun>(parse({}));
  EXPECT_EQ(alone.exit_code, ExitCode::done);
  EXPECT_EQ(alone.text, std::get<NothingToRun>(parse({"--help"})).text);
}

TEST(Arguments, TheHelpShowsTheCommandsInGroups) {
  const std::string text = std::get<NothingToRun>(parse({"--help"})).text;
  std::size_t at = 0;
  for (const char* line :
       {"\nTasks:\n", "  put ", "  list ", "\nWorkers:\n", "  lease ", "  release ", "\nQueues:\n",
        "  queues ", "  redrive ", "\nSchedules:\n", "  schedule ", "\nServer:\n", "  serve ",
        "  token ", "\nTools:\n", "  cron ", "  completion "}) {
    const std::size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << text;
    at = found;
  }
  EXPECT_EQ(text.find("\n  man "), std::string::npos) << "it is for the package";
}

TEST(Arguments, TheHelpOfACommandIsPlainEnglish) {
  const std::string put = std::get<NothingToRun>(parse({"put", "--help"})).text;
  EXPECT_NE(put.find("Usage: detent put QUEUE [PAYLOAD] [OPTIONS]\n"), std::string::npos) << put;
  EXPECT_NE(put.find("Priority; a lower number is more urgent (0 to\n"), std::string::npos) << put;
  EXPECT_NE(put.find("default 1024)"), std::string::npos) << put;
  EXPECT_LT(put.find("--priority N"), put.find("Options of all commands to a server:")) << put;
  const std::string schedule = std::get<NothingToRun>(parse({"schedule", "put", "--help"})).text;
  EXPECT_NE(schedule.find("give one of these options:\n  --cron EXPR"), std::string::npos);
  for (const std::string& text : {put, schedule}) {
    for (const char* noise : {"UINT", "TEXT", "REQUIRED", "Excludes", "Needs", "Env:", "Positional",
                              "Subcommand", " in ["}) {
      EXPECT_EQ(text.find(noise), std::string::npos) << noise << text;
    }
  }
}

TEST(Arguments, AWordOfAnotherProgramLeadsToTheRightCommand) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{"delete", "256"}, "'delete'; did you mean 'cancel'?"},
      {{"rm", "256"}, "'rm'; did you mean 'cancel'?"},
      {{"ls"}, "'ls'; did you mean 'list'?"},
      {{"ack", "1-2"}, "'ack'; did you mean 'complete'?"},
      {{"version"}, "'version'; did you mean '--version'?"},
      {{"queue", "rm", "mail"}, "'rm'; did you mean 'remove'?"},
      {{"schedule", "delete", "s"}, "'delete'; did you mean 'remove'?"},
      {{"schedule", "ls"}, "'ls'; did you mean 'list'?"},
      {{"gett", "256"}, "'gett'; did you mean 'get'?"}};
  for (const auto& [words, hint] : cases) {
    EXPECT_NE(complaint_about(words).find(std::string("there is no command ") + hint),
              std::string::npos)
        << complaint_about(words);
  }
}

TEST(Arguments, AnErrorAboutANumberNamesItsRange) {
  for (const char* priority : {"-1", "4294967296", "high", "0x10", "1.5", ""}) {
    EXPECT_NE(complaint_about({"put", "q", "--priority", priority})
                  .find("--priority: must be a whole number from 0 to 4294967295"),
              std::string::npos);
  }
  EXPECT_EQ(command_of<PutCommand>({"put", "q", "--priority", "010"}).task.priority, 10U);
  EXPECT_EQ(command_of<PutCommand>({"put", "q", "--priority", "4294967295"}).task.priority,
            4'294'967'295U);
  for (const char* limit : {"0", "-1", "1.5", "many", "18446744073709551616"}) {
    EXPECT_NE(complaint_about({"list", "--limit", limit})
                  .find("--limit: must be a whole number of at least 1"),
              std::string::npos);
  }
  EXPECT_EQ(command_of<ListCommand>({"list", "--limit", "5000"}).options.limit, 5'000U);
  EXPECT_NE(complaint_about({"queue", "set", "q", "--rate", "4294967296"})
                .find("--rate: must be a whole number from 0 to 4294967295"),
            std::string::npos);
}

TEST(Arguments, ANumberKeepsAllItsBits) {
  EXPECT_EQ(command_of<ListCommand>({"list", "--limit", "4294967297"}).options.limit,
            4'294'967'297U);
  EXPECT_EQ(serve_of({"serve", "--alert-dead", "18446744073709551615"}).alert_dead,
            18'446'744'073'709'551'615U);
}

TEST(Arguments, TheHelpOfEachTimeSaysThatADateIsInUtc) {
  const Invocation invocation = parse({"man"});
  const std::string& page = std::get<NothingToRun>(invocation).text;
  const std::string value = "\" \"TIME\"\n";
  std::size_t times = 0;
  for (std::size_t at = page.find(value); at != std::string::npos; at = page.find(value, at + 1)) {
    const std::string entry = page.substr(at, page.find("\n.TP", at) - at);
    EXPECT_NE(entry.find("a date is its start in UTC"), std::string::npos) << entry;
    ++times;
  }
  EXPECT_GE(times, 9U);
}

TEST(Arguments, AnErrorNamesARepeatedOptionAndAMissingValue) {
  const std::string rest =
      " is given more than once; it may be given once\nRun with --help for more information.\n";
  EXPECT_EQ(complaint_about({"serve", "--data", "a", "--data", "b"}), "detent: --data" + rest);
  EXPECT_EQ(complaint_about({"serve", "--sync", "always", "--http", "[::1]:1", "--sync=always"}),
            "detent: --sync" + rest);
  EXPECT_EQ(complaint_about({"--server", "http://a", "--server", "http://b", "stats"}),
            "detent: --server" + rest);
  EXPECT_EQ(complaint_about({"put", "q", "--delay", "1s", "--delay", "2s"}),
            "detent: --delay" + rest);
  EXPECT_EQ(complaint_about({"put", "q", "--delay"}),
            "detent: --delay needs a value: DURATION\nRun with --help for more information.\n");
  EXPECT_NE(complaint_about({"put", "q", "--priority"}).find("needs a value: N\n"),
            std::string::npos);
}

TEST(Arguments, ABadCommandLineIsWrongUsage) {
  EXPECT_NE(complaint_about({"frobnicate"}), "");
  complaint_about({"put"});
  EXPECT_EQ(complaint_about({"put", "q", "1", "2"}),
            "detent: unexpected argument '2'\nRun with --help for more information.\n");
  complaint_about({"stats", "--colour"});
  complaint_about({"get", "1", "cancel", "2"});
}

TEST(Arguments, PutReadsEveryOption) {
  const auto put =
      command_of<PutCommand>({"put", "mail", "{\"n\":1.0}", "--delay", "30s", "--priority", "7",
                              "--max-attempts", "3", "--key", "o-1"});
  EXPECT_EQ(put.task.key, "o-1");
  EXPECT_EQ(put.task.queue, "mail");
  EXPECT_EQ(put.payload, "{\"n\":1.0}");
  EXPECT_FALSE(put.bytes);
  EXPECT_EQ(put.task.due, client::Due{milliseconds{30'000}});
  EXPECT_EQ(put.task.priority, 7U);
  EXPECT_EQ(put.task.max_attempts, 3U);
  EXPECT_EQ(put.task.backoff, std::nullopt);
}

TEST(Arguments, PutTakesAWebhookAndHeaders) {
  const auto put = command_of<PutCommand>(
      {"put", "q", "--webhook", "https://a", "--header", "X-A: b: c", "--header", "d:", "{}"});
  EXPECT_EQ(put.task.webhook, "https://a");
  EXPECT_EQ(put.task.headers, (std::vector<client::Header>{{"X-A", "b: c"}, {"d", ""}}));
  EXPECT_EQ(put.payload, "{}");
}

TEST(Arguments, PutKeepsThePayloadAsTyped) {
  for (const char* payload : {"[1,2]", "{}", "[]", "-", "", " x ", "a,b", "%%", "\"q\"", "get"}) {
    EXPECT_EQ(command_of<PutCommand>({"put", "q", payload}).payload, payload);
  }
  EXPECT_EQ(command_of<PutCommand>({"put", "q", "--", "-5"}).payload, "-5");
  EXPECT_EQ(command_of<PutCommand>({"put", "q"}).payload, std::nullopt);
  EXPECT_TRUE(command_of<PutCommand>({"put", "q", "--bytes", "1"}).bytes);
}

TEST(Arguments, PutTakesADateInBothForms) {
  const client::Due at{WallTime{milliseconds{1'767'323'045'678}}};
  EXPECT_EQ(command_of<PutCommand>({"put", "q", "--due-at", "2026-01-02T03:04:05.678Z"}).task.due,
            at);
  EXPECT_EQ(command_of<PutCommand>({"put", "q", "--due-at", "1767323045678"}).task.due, at);
}

TEST(Arguments, ADateWithoutATimeIsItsStartInUtc) {
  const auto due = [](const char* text) {
    return command_of<PutCommand>({"put", "q", "--due-at", text}).task.due;
  };
  EXPECT_EQ(due("2030-01-31"), due("2030-01-31T00:00:00Z"));
  EXPECT_EQ(due("2030-01-31"), client::Due{WallTime{milliseconds{1'896'048'000'000}}});
  EXPECT_NE(complaint_about({"put", "q", "--due-at", "2030-02-30"}).find("does not exist"),
            std::string::npos);
  for (const char* text : {"2030-1-31", "2030-01-31T", "31.01.2030", "2030-01-31 "}) {
    EXPECT_NE(complaint_about({"put", "q", "--due-at", text}).find("RFC 3339"), std::string::npos);
  }
}

TEST(Arguments, ADurationMayHaveAWordAsItsUnit) {
  const auto delay = [](const char* text) {
    return command_of<PutCommand>({"put", "q", "--delay", text}).task.due;
  };
  const std::pair<const char*, const char*> cases[] = {
      {"5mins", "5m"}, {"1min", "1m"},     {"2hours", "2h"}, {"1hr", "1h"},  {"1day", "1d"},
      {"3secs", "3s"}, {"2weeks", "14d"},  {"1w", "7d"},     {"1y", "365d"}, {"2years", "730d"},
      {"0y", "0d"},    {"136y", "49640d"}, {"90s", "PT90S"}, {"1w", "P1W"}};
  for (const auto& [text, same] : cases) EXPECT_EQ(delay(text), delay(same)) << text;
  for (const char* text : {"5 mins", "mins", "5MINS", "1mo", "5month", "-5mins", "1.5y", "137y",
                           "18446744073709551615y", "99999999999999999999y"}) {
    EXPECT_NE(complaint_about({"put", "q", "--delay", text}).find("--delay: "), std::string::npos);
  }
  EXPECT_EQ(serve_of({"serve", "--window", "5mins", "--sync", "interval=1sec"}).window,
            milliseconds{300'000});
  EXPECT_EQ(command_of<LeaseCommand>({"lease", "q", "--wait", "1min"}).options.wait,
            milliseconds{60'000});
  EXPECT_NE(complaint_about({"lease", "q", "--wait", "2mins"}).find("at most 60s"),
            std::string::npos);
}

TEST(Arguments, AnErrorAboutAValueNamesItsOption) {
  struct Wrong {
    std::vector<const char*> words;
    const char* option;
  };
  const std::vector<Wrong> table{
      {{"put", "q", "--delay", "30"}, "--delay"},
      {{"put", "q", "--webhook", "mailto:a"}, "--webhook"},
      {{"put", "q", "--header", "X-A"}, "--header"},
      {{"put", "q", "--header", "Host: a"}, "--header"},
      {{"put", "q", "--delay", "-1s"}, "--delay"},
      {{"put", "q", "--delay", ""}, "--delay"},
      {{"put", "q", "--delay", "P1M"}, "--delay"},
      {{"put", "q", "--delay", "99999999999999999999d"}, "--delay"},
      {{"put", "q", "--due-at", "tomorrow"}, "--due-at"},
      {{"put", "q", "--due-at", "-1"}, "--due-at"},
      {{"put", "q", "--due-at", "253402300800000"}, "--due-at"},
      {{"put", "q", "--due-at", "0", "--delay", "1s"}, "--delay"},
      {{"put", "q", "--priority", "-1"}, "--priority"},
      {{"put", "q", "--priority", "4294967296"}, "--priority"},
      {{"put", "q", "--priority", "high"}, "--priority"},
      {{"put", "q", "--max-attempts", "0"}, "--max-attempts"},
      {{"put", "q", "--max-attempts", "1000001"}, "--max-attempts"},
      {{"get", "x"}, "ID"},
      {{"get", "-1"}, ""},
      {{"cancel", "9007199254740992"}, "ID"},
      {{"get"}, "ID"},
      {{"get", "--queue", "q"}, "--key"},
      {{"cancel", "--key", "k"}, "--queue"},
      {{"cancel", "1", "--queue", "q", "--key", "k"}, "ID"},
      {{"move", "1"}, "--delay"},
      {{"move", "--delay", "1s"}, "ID"},
      {{"move", "1", "--delay", "1s", "--due-at", "0"}, "--delay"},
      {{"run"}, "ID"},
      {{"pause"}, "QUEUE"},
      {{"purge"}, "QUEUE"},
      {{"redrive", "q", "--yes"}, "--yes"},
      {{"lease", "q", "--max", "0"}, "--max"},
      {{"lease", "q", "--max", "1001"}, "--max"},
      {{"lease", "q", "--wait", "61s"}, "--wait"},
      {{"lease", "q", "--wait", "soon"}, "--wait"},
      {{"complete"}, "LEASE"},
      {{"fail", "1-2", "--delay", "1 day"}, "--delay"},
      {{"fail", "1-2", "--delay", "1s", "--final"}, "--final"},
      {{"put", "q", "1", "--key", "k", "--on-key", "drop"}, "--on-key"},
      {{"put", "q", "1", "--on-key", "replace"}, "--key"},
      {{"put", "q", "1", "--key", "k", "--max-wait", "1m"}, "--on-key"},
      {{"serve", "--http", "7070"}, "--http"},
      {{"serve", "--beanstalk", "11300"}, "--beanstalk"},
      {{"serve", "--http", ":7070"}, "--http"},
      {{"serve", "--http", "::1:7070"}, "--http"},
      {{"serve", "--http", "127.0.0.1:65536"}, "--http"},
      {{"serve", "--http", "127.0.0.1:"}, "--http"},
      {{"serve", "--window", "0s"}, "--window"},
      {{"serve", "--memory", "63M"}, "--memory"},
      {{"serve", "--memory", "512"}, "--memory"},
      {{"serve", "--memory", "4000000000G"}, "--memory"},
      {{"serve", "--sync", "interval=0s"}, "--sync"},
      {{"serve", "--sync", "never"}, "--sync"},
      {{"serve", "--log-format", "xml"}, "--log-format"},
      {{"serve", "--log-level", "loud"}, "--log-level"},
  };
  for (const Wrong& wrong : table) {
    const std::string text = complaint_about(wrong.words);
    EXPECT_NE(text.find(wrong.option), std::string::npos)
        << text << " for " << testing::PrintToString(wrong.words);
  }
}

TEST(Arguments, ATaskIsNamedByItsIdOrItsKey) {
  EXPECT_EQ(command_of<GetCommand>({"get", "9007199254740991"}).task,
            client::TaskName{std::uint64_t{9'007'199'254'740'991}});
  EXPECT_EQ(command_of<CancelCommand>({"cancel", "256"}).task,
            client::TaskName{std::uint64_t{256}});
  const client::TaskName by_key = client::TaskKey{"orders", "o 1"};
  EXPECT_EQ(command_of<GetCommand>({"get", "--queue", "orders", "--key", "o 1"}).task, by_key);
  EXPECT_EQ(command_of<CancelCommand>({"cancel", "--key", "o 1", "--queue", "orders"}).task,
            by_key);
  const auto move = command_of<MoveCommand>(
      {"move", "--queue", "orders", "--key", "o 1", "--due-at", "1767323045678"});
  EXPECT_EQ(move.task, by_key);
  EXPECT_EQ(move.due, client::Due{WallTime{milliseconds{1'767'323'045'678}}});
}

TEST(Arguments, MoveAndRunTakeATask) {
  const auto move = command_of<MoveCommand>({"move", "256", "--delay", "2h"});
  EXPECT_EQ(move.task, client::TaskName{std::uint64_t{256}});
  EXPECT_EQ(move.due, client::Due{milliseconds{7'200'000}});
  EXPECT_EQ(command_of<RunCommand>({"run", "256"}).id, 256U);
}

TEST(Arguments, FarTasksStayOnTheServerByDefault) {
  EXPECT_EQ(serve_of({"serve"}).external, "");
  EXPECT_EQ(serve_of({"serve"}).external_after, milliseconds{86'400'000});
  const ScopedVariable external("DETENT_EXTERNAL", "redis://:secret@db:6379");
  const ServeOptions options = serve_of({"serve", "--external-after", "2h"});
  EXPECT_EQ(options.external, "redis://:secret@db:6379");
  EXPECT_EQ(options.external_after, milliseconds{7'200'000});
}

TEST(Arguments, QueueCommandsTakeAName) {
  EXPECT_EQ(command_of<QueuesCommand>({"queues"}).queue, "");
  EXPECT_EQ(command_of<QueuesCommand>({"queues", "mail"}).queue, "mail");
  EXPECT_EQ(command_of<PauseCommand>({"pause", "mail"}).queue, "mail");
  EXPECT_EQ(command_of<ResumeCommand>({"resume", "mail"}).queue, "mail");
  EXPECT_EQ(command_of<RedriveCommand>({"redrive", "mail"}).queue, "mail");
  EXPECT_EQ(command_of<PurgeCommand>({"purge", "mail"}).queue, "mail");
  EXPECT_FALSE(command_of<PurgeCommand>({"purge", "mail"}).yes);
  EXPECT_TRUE(command_of<PurgeCommand>({"purge", "mail", "--yes"}).yes);
}

TEST(Arguments, LeaseReadsEveryOption) {
  const auto lease = command_of<LeaseCommand>({"lease", "q", "--max", "10", "--wait", "60s",
                                               "--visibility-timeout", "5m", "--worker", "w-1"});
  EXPECT_EQ(lease.queue, "q");
  EXPECT_EQ(lease.options.max, 10U);
  EXPECT_EQ(lease.options.visibility_timeout, milliseconds{300'000});
  EXPECT_EQ(lease.options.worker, "w-1");
  EXPECT_EQ(lease.options.wait, milliseconds{60'000});
  EXPECT_EQ(command_of<LeaseCommand>({"lease", "q"}).options.wait, milliseconds{0});
}

TEST(Arguments, PutChangesTheTaskOfAKey) {
  const auto put = command_of<PutCommand>(
      {"put", "q", "1", "--key", "k", "--on-key", "postpone", "--max-wait", "5m"});
  EXPECT_EQ(put.task.on_key, client::NewTask::OnKey::postpone);
  EXPECT_EQ(put.task.max_wait, milliseconds{300'000});
  EXPECT_EQ(command_of<PutCommand>({"put", "q", "1", "--key", "k"}).task.on_key,
            client::NewTask::OnKey::keep);
}

TEST(Arguments, CompleteAndFailTakeManyLeases) {
  EXPECT_EQ(command_of<CompleteCommand>({"complete", "1-2", "x", "1-3"}).leases,
            (std::vector<std::string>{"1-2", "x", "1-3"}));
  const auto fail =
      command_of<FailCommand>({"fail", "1-2", "--error", "no, route", "--delay", "PT1H", "1-3"});
  EXPECT_EQ(fail.leases, (std::vector<std::string>{"1-2", "1-3"}));
  EXPECT_EQ(fail.options.delay, milliseconds{3'600'000});
  EXPECT_EQ(fail.options.error, "no, route");
  EXPECT_FALSE(fail.options.final);
  EXPECT_TRUE(command_of<FailCommand>({"fail", "1-2", "--final"}).options.final);
}

TEST(Arguments, TheServerMayBeNamedBeforeOrAfterTheCommand) {
  EXPECT_EQ(call_of({"stats"}).server, "http://127.0.0.1:7070");
  EXPECT_EQ(call_of({"--server", "http://a:1", "stats"}).server, "http://a:1");
  EXPECT_EQ(call_of({"stats", "--server", "http://a:1"}).server, "http://a:1");
  EXPECT_EQ(call_of({"stats", "--server", "localhost:7170"}).server, "http://localhost:7170");
  EXPECT_EQ(call_of({"stats", "--server", "[::1]:7170"}).server, "http://[::1]:7170");
  EXPECT_EQ(call_of({"stats", "--server", "ftp://a"}).server, "ftp://a");
  EXPECT_EQ(call_of({"--json", "stats"}).format, OutputFormat::json);
  EXPECT_EQ(call_of({"stats", "--json"}).format, OutputFormat::json);
  EXPECT_EQ(call_of({"stats"}).format, OutputFormat::people);
}

TEST(Arguments, TheEnvironmentSetsOptionsThatTheCommandLineOmits) {
  const ScopedVariable url("DETENT_URL", "http://env:1");
  EXPECT_EQ(call_of({"stats"}).server, "http://env:1");
  EXPECT_EQ(call_of({"stats", "--server", "http://a:1"}).server, "http://a:1");
  EXPECT_EQ(call_of({"--server", "http://a:1", "stats"}).server, "http://a:1");

  const ScopedVariable host("DETENT_URL", "localhost");
  EXPECT_EQ(call_of({"stats"}).server, "http://localhost");

  const ScopedVariable window("DETENT_WINDOW", "1h");
  const ScopedVariable level("DETENT_LOG_LEVEL", "debug");
  EXPECT_EQ(serve_of({"serve"}).window, milliseconds{3'600'000});
  EXPECT_EQ(serve_of({"serve"}).log_level, LogLevel::debug);
  EXPECT_EQ(serve_of({"serve", "--window", "5m"}).window, milliseconds{300'000});
  EXPECT_EQ(command_of<PutCommand>({"put", "q"}).task.queue, "q");
}

TEST(Arguments, ABadVariableIsWrongUsage) {
  const ScopedVariable window("DETENT_WINDOW", "soon");
  EXPECT_NE(complaint_about({"serve"}).find("DETENT_WINDOW: "), std::string::npos);
}

TEST(Arguments, ServeHasTheDefaultsOfItsOptions) { EXPECT_EQ(serve_of({"serve"}), ServeOptions{}); }

TEST(Arguments, ServeReadsEveryOption) {
  EXPECT_EQ(serve_of({"serve", "--data", "/tmp/d", "--http", "[::1]:0", "--beanstalk",
                      "127.0.0.2:1", "--window", "2h", "--memory", "2G", "--sync", "interval=10ms",
                      "--log-format", "json", "--log-level", "warning"}),
            (ServeOptions{.data = "/tmp/d",
                          .http_host = "::1",
                          .http_port = 0,
                          .beanstalk_host = "127.0.0.2",
                          .beanstalk_port = 1,
                          .window = milliseconds{7'200'000},
                          .memory_bytes = std::size_t{2} << 30,
                          .sync_interval = milliseconds{10},
                          .log_format = LogFormat::json,
                          .log_level = LogLevel::warning}));
}

TEST(Arguments, LocalhostIsAnAddress) {
  const ServeOptions options =
      serve_of({"serve", "--http", "localhost:8080", "--beanstalk", "localhost:1"});
  EXPECT_EQ(options.http_host, "127.0.0.1");
  EXPECT_EQ(options.http_port, 8080);
  EXPECT_EQ(options.beanstalk_host, "127.0.0.1");
}

TEST(Arguments, TheStoreIsAnAddressFromAFlagOrAVariable) {
  EXPECT_EQ(serve_of({"serve", "--store", "postgres://h/d"}).store, "postgres://h/d");
  EXPECT_EQ(serve_of({"serve", "--store", "rocksdb"}).store, "");
  const ScopedVariable variable("DETENT_STORE", "postgres://u:p@h/d");
  EXPECT_EQ(serve_of({"serve"}).store, "postgres://u:p@h/d");
}

TEST(Arguments, BeanstalkCanBeTurnedOff) {
  for (const char* const off : {"off", ""}) {
    EXPECT_EQ(serve_of({"serve", "--beanstalk", off}).beanstalk_host, "");
  }
}

TEST(Arguments, TheDefaultForecastIsADayInHours) {
  const auto usual = command_of<ForecastCommand>({"forecast"});
  EXPECT_EQ(usual.span, std::chrono::hours{24});
  EXPECT_EQ(usual.bins, 24U);
  const auto other = command_of<ForecastCommand>({"forecast", "--span", "7d", "--bins", "7"});
  EXPECT_EQ(other.span, std::chrono::hours{24 * 7});
  EXPECT_EQ(other.bins, 7U);
  EXPECT_NE(complaint_about({"forecast", "--bins", "0"}), "");
  EXPECT_NE(complaint_about({"forecast", "--span", "soon"}), "");
}

TEST(Arguments, AnOriginIsAsBrowsersWriteIt) {
  EXPECT_EQ(serve_of({"serve"}).cors_origin, "");
  for (const char* origin : {"*", "http://localhost:3000", "https://a-b.example"}) {
    EXPECT_EQ(serve_of({"serve", "--cors-origin", origin}).cors_origin, origin);
  }
  for (const char* other : {"example.org", "https://", "https://a/", "https://A", "null"}) {
    EXPECT_NE(complaint_about({"serve", "--cors-origin", other}), "") << other;
  }
}

TEST(Arguments, AListHasTheFiltersThatAreGiven) {
  const auto usual = command_of<ListCommand>({"list"});
  EXPECT_EQ(usual.options, client::ListOptions{});
  EXPECT_EQ(usual.options.limit, 100U);
  const auto other = command_of<ListCommand>(
      {"list", "--queue", "q", "--state", "dead", "--key", "k", "--due-after", "5", "--due-before",
       "1970-01-01T00:00:01Z", "--limit", "7", "--cursor", "c"});
  EXPECT_EQ(other.options, (client::ListOptions{.queue = "q",
                                                .state = client::TaskState::dead,
                                                .key = "k",
                                                .due_after = WallTime{milliseconds{5}},
                                                .due_before = WallTime{milliseconds{1'000}},
                                                .limit = 7,
                                                .cursor = "c"}));
  EXPECT_NE(complaint_about({"list", "--limit", "0"}), "");
  EXPECT_NE(complaint_about({"list", "--state", "delayed"}), "");
  EXPECT_NE(complaint_about({"list", "--due-after", "soon"}), "");
}

TEST(Arguments, DumpsGoToStandardOutputByDefault) {
  EXPECT_EQ(command_of<DumpCommand>({"dump"}).file, "-");
  EXPECT_EQ(command_of<DumpCommand>({"dump", "-"}).file, "-");
  EXPECT_EQ(command_of<DumpCommand>({"dump", "f"}).file, "f");
  EXPECT_EQ(command_of<RestoreCommand>({"restore", "-"}).file, "-");
  EXPECT_FALSE(command_of<RestoreCommand>({"restore", "f"}).partial);
  EXPECT_TRUE(command_of<RestoreCommand>({"restore", "f", "--partial"}).partial);
  EXPECT_NE(complaint_about({"restore"}), "");
}

TEST(Arguments, CheckTakesTheSameFolderAsServe) {
  EXPECT_EQ(std::get<CheckOptions>(parse({"check"})).data, "data");
  EXPECT_EQ(std::get<CheckOptions>(parse({"check", "--data", "d"})).data, "d");
  const ScopedVariable variable("DETENT_DATA", "from-variable");
  EXPECT_EQ(std::get<CheckOptions>(parse({"check"})).data, "from-variable");
  EXPECT_EQ(std::get<CheckOptions>(parse({"check"})).store, "");
  EXPECT_EQ(std::get<CheckOptions>(parse({"check", "--store", "postgres://h/d"})).store,
            "postgres://h/d");
  EXPECT_EQ(std::get<CheckOptions>(parse({"check", "--json"})).format, OutputFormat::json);
}

}  // namespace
}  // namespace detent::cli

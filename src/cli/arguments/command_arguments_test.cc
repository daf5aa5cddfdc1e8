// Tests the parsing of commands that change tasks, queues and leases, and of mistyped commands.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/testing/arguments_fixture.h"
#include "client/client_values.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

TEST(CommandArguments, AMistypedWordGetsASuggestion) {
  EXPECT_EQ(complaint_about({"gett", "256"}),
            "detent: there is no command 'gett'; did you mean 'get'?\n"
            "Run with --help for more information.\n");
  EXPECT_EQ(complaint_about({"put", "q", "--dely=30s"}),
            "detent: there is no option '--dely'; did you mean '--delay'?\n"
            "Run with --help for more information.\n");
  EXPECT_EQ(complaint_about({"queue", "sett", "q"}),
            "detent: there is no command 'sett'; did you mean 'set'?\n"
            "Run with --help for more information.\n");
  EXPECT_EQ(complaint_about({"--jsn", "stats"}),
            "detent: there is no option '--jsn'; did you mean '--json'?\n"
            "Run with --help for more information.\n");
  EXPECT_EQ(complaint_about({"frobnicate"}),
            "detent: there is no command 'frobnicate'\nRun with --help for more information.\n");
}

TEST(CommandArguments, ABackupNamesItsFolderAndWhatStays) {
  const auto backup =
      std::get<BackupOptions>(parse({"--token", "t", "backup", "/b", "--keep", "14", "--keep-days",
                                     "30", "--json", "--server", "localhost:7171"}));
  EXPECT_EQ(backup.folder, "/b");
  EXPECT_EQ(backup.act, BackupOptions::Act::add);
  EXPECT_EQ(backup.keep, 14U);
  EXPECT_EQ(backup.keep_days, 30U);
  EXPECT_EQ(backup.format, OutputFormat::json);
  EXPECT_EQ(backup.server, "http://localhost:7171");
  EXPECT_EQ(backup.token, "t");
  EXPECT_TRUE(backup.data.empty());
  EXPECT_EQ(std::get<BackupOptions>(parse({"backup", "b", "--list"})).act,
            BackupOptions::Act::list);
  EXPECT_EQ(std::get<BackupOptions>(parse({"backup", "b", "--data", "d"})).data, "d");
  complaint_about({"backup"});
  complaint_about({"backup", "b", "--keep", "0"});
  complaint_about({"backup", "b", "--list", "--keep", "1"});
  complaint_about({"backup", "b", "--check", "--data", "d"});
}

TEST(CommandArguments, ARestoreOfABackupNamesBothFolders) {
  const auto restore = std::get<RestoreBackupOptions>(
      parse({"restore-backup", "b", "--data", "d", "--backup", "3"}));
  EXPECT_EQ(restore.folder, "b");
  EXPECT_EQ(restore.data, "d");
  EXPECT_EQ(restore.number, 3U);
  EXPECT_FALSE(std::get<RestoreBackupOptions>(parse({"restore-backup", "b"})).number);
  complaint_about({"restore-backup"});
  complaint_about({"restore-backup", "b", "--data", ""});
}

TEST(CommandArguments, AnEditNamesATaskAndWhatChanges) {
  const auto edit = command_of<EditCommand>({"edit", "256", "--payload", "-", "--bytes",
                                             "--priority", "7", "--delay", "2h", "--webhook",
                                             "none", "--header", "a: 1", "--header", "b: 2"});
  EXPECT_EQ(edit.task, client::TaskName(std::uint64_t{256}));
  EXPECT_EQ(edit.payload, "-");
  EXPECT_TRUE(edit.bytes);
  EXPECT_EQ(edit.edit.priority, 7U);
  EXPECT_EQ(edit.edit.due, client::Due{milliseconds{7'200'000}});
  EXPECT_EQ(edit.edit.webhook, "");
  ASSERT_TRUE(edit.edit.headers);
  EXPECT_EQ(edit.edit.headers->size(), 2U);
  const auto bare = command_of<EditCommand>({"edit", "--queue", "q", "--key", "k", "--no-headers"});
  EXPECT_EQ(bare.task, client::TaskName(client::TaskKey{"q", "k"}));
  EXPECT_EQ(bare.edit.headers, std::vector<client::Header>());
  EXPECT_FALSE(bare.edit.priority);
  EXPECT_FALSE(bare.payload);
  EXPECT_NE(complaint_about({"edit", "256"}).find("at least one of --payload"), std::string::npos);
  complaint_about({"edit", "--priority", "1"});
  complaint_about({"edit", "256", "--bytes", "--priority", "1"});
  complaint_about({"edit", "256", "--header", "a: 1", "--no-headers"});
}

TEST(CommandArguments, QueueSetChangesOrResetsSettings) {
  const auto set = command_of<SetQueueCommand>({"queue",
                                                "set",
                                                "q",
                                                "--paused",
                                                "yes",
                                                "--max-attempts",
                                                "3",
                                                "--backoff",
                                                "5s..6h",
                                                "--visibility-timeout",
                                                "90s",
                                                "--retention",
                                                "1d",
                                                "--key-retention",
                                                "1h",
                                                "--max-tasks",
                                                "18446744073709551615",
                                                "--max-bytes",
                                                "7",
                                                "--rate",
                                                "50",
                                                "--concurrency",
                                                "9",
                                                "--webhook",
                                                "https://example.org/hook",
                                                "--webhook-key",
                                                "whsec_a",
                                                "--webhook-key",
                                                "whsec_b",
                                                "--partitions",
                                                "4"});
  EXPECT_EQ(set.queue, "q");
  const QueueSettings all = from_client(set.change).applied_to({});
  EXPECT_EQ(all,
            (QueueSettings{
                .paused = true,
                .max_attempts = 3,
                .visibility_timeout = milliseconds{90'000},
                .backoff = Backoff{.initial = milliseconds{5'000}, .max = milliseconds{21'600'000}},
                .retention = milliseconds{86'400'000},
                .key_retention = milliseconds{3'600'000},
                .max_tasks = 18'446'744'073'709'551'615U,
                .max_bytes = 7,
                .rate = 50,
                .concurrency = 9,
                .webhook = QueueWebhook{"https://example.org/hook", {"whsec_a", "whsec_b"}},
                .partitions = 4}));
  const auto back = command_of<SetQueueCommand>(
      {"queue",          "set",           "q",           "--paused",        "no",
       "--max-attempts", "default",       "--backoff",   "default",         "--visibility-timeout",
       "default",        "--retention",   "default",     "--key-retention", "default",
       "--max-tasks",    "default",       "--max-bytes", "default",         "--rate",
       "default",        "--concurrency", "default",     "--webhook",       "default",
       "--partitions",   "default"});
  EXPECT_EQ(from_client(back.change).applied_to(all), QueueSettings());
  EXPECT_EQ(command_of<SetQueueCommand>({"queue", "set", "q", "--rate", "5"}).change,
            (client::QueueChange{.rate = std::make_optional(std::optional<std::uint32_t>(5))}));
}

TEST(CommandArguments, QueueSetChangesOrResetsTheSink) {
  const auto set = command_of<SetQueueCommand>({"queue", "set", "q", "--sink", "events"});
  const QueueSettings with_sink = from_client(set.change).applied_to({});
  ASSERT_TRUE(with_sink.webhook);
  EXPECT_EQ(with_sink.webhook->url, "sink:events");
  const auto back = command_of<SetQueueCommand>({"queue", "set", "q", "--sink", "default"});
  EXPECT_EQ(from_client(back.change).applied_to(with_sink), QueueSettings());
}

TEST(CommandArguments, WrongSettingsOfAQueueAreRefused) {
  complaint_about({"queue", "set", "q"});
  complaint_about({"queue", "set", "--rate", "5"});
  complaint_about({"queue", "set", "q", "--rate", "4294967296"});
  complaint_about({"queue", "set", "q", "--rate", "-1"});
  complaint_about({"queue", "set", "q", "--backoff", "5s"});
  complaint_about({"queue", "set", "q", "--backoff", "5s..x"});
  complaint_about({"queue", "set", "q", "--paused", "maybe"});
  complaint_about({"queue", "set", "q", "--webhook", "ftp://example.org"});
  complaint_about({"queue", "set", "q", "--sink", ""});
  complaint_about({"queue", "set", "q", "--rate", "5", "--webhook-key", "whsec_a"});
  complaint_about({"queue"});
}

TEST(CommandArguments, LeasesAreExtendedByATimeAndReleased) {
  const auto extend = command_of<ExtendCommand>({"extend", "3-17", "3-18", "--by", "5m"});
  EXPECT_EQ(extend.leases, (std::vector<std::string>{"3-17", "3-18"}));
  EXPECT_EQ(extend.by, milliseconds{300'000});
  complaint_about({"extend", "3-17"});
  complaint_about({"extend", "--by", "5m"});
  const auto release =
      command_of<ReleaseCommand>({"release", "3-17", "--delay", "1m", "--priority", "0"});
  EXPECT_EQ(release.leases, std::vector<std::string>{"3-17"});
  EXPECT_EQ(release.options.delay, milliseconds{60'000});
  EXPECT_EQ(release.options.priority, 0U);
}

TEST(CommandArguments, PutReadsTheRulesOfATask) {
  const auto put =
      command_of<PutCommand>({"put", "q", "--visibility-timeout", "90s", "--backoff", "2s..3m"});
  EXPECT_EQ(put.task.visibility_timeout, milliseconds{90'000});
  EXPECT_EQ(put.task.backoff,
            (client::Backoff{.initial = milliseconds{2'000}, .max = milliseconds{180'000}}));
}

TEST(CommandArguments, ACallNamesAMethodAndAPath) {
  const auto call = command_of<CallCommand>({"call", "post", "/v1/tasks/cancel?x=%20", "-"});
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.target, "/v1/tasks/cancel?x=%20");
  EXPECT_EQ(call.body, "-");
  complaint_about({"call", "TRACE", "/"});
  complaint_about({"call", "GET", "v1/stats"});
  complaint_about({"call", "GET", "/v1/a b"});
  complaint_about({"call", "GET"});
}

}  // namespace
}  // namespace detent::cli

// Tests commands for queues and for moving tasks, over a scripted connection: their requests,
// output and exit codes.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/output/display.h"
#include "cli/testing/scripted_commands_fixture.h"
#include "protocol/json/queue_codec.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kMoved =
    R"({"id":"256","queue":"q","state":"scheduled","due_at":"2026-01-02T03:04:05.678Z"})";

QueueView example_queue(std::string name) {
  return {.stats = {.queue = std::move(name),
                    .scheduled = 12,
                    .ready = 3,
                    .leased = 1,
                    .dead = 5,
                    .oldest_ready_age = milliseconds{90'000}},
          .bytes = 4'096,
          .settings = {}};
}

class QueueCommandsTest : public ScriptedCommands {};

TEST_F(QueueCommandsTest, ATaskIsMovedByIdOrByKey) {
  answer(200, kMoved);
  EXPECT_EQ(run(MoveCommand{std::uint64_t{256}, milliseconds{5}}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "256  scheduled  2026-01-02T03:04:05.678Z\n");
  EXPECT_EQ(run(MoveCommand{client::TaskKey{"a/b", "o 1"}, WallTime{milliseconds{0}}}),
            ExitCode::done);
  EXPECT_EQ(asked(), (Lines{R"(PATCH /v1/tasks/256 {"delay_ms":5})",
                            "PATCH /v1/queues/a%2Fb/keys/o%201 "
                            R"({"due_at":"1970-01-01T00:00:00.000Z"})"}));
}

TEST_F(QueueCommandsTest, SettingsAreChangedAndShown) {
  answer(200, json::render_queue(example_queue("a/b")));
  SetQueueCommand set{.queue = "a/b", .change = {}};
  set.change.rate = std::make_optional(std::optional<std::uint32_t>());
  set.change.retention = milliseconds{5};
  EXPECT_EQ(run(set), ExitCode::done) << err_.str();
  EXPECT_NE(out_.str().find("max attempts"), std::string::npos) << out_.str();
  answer(200, R"({"queue":"a/b","removed":true})");
  EXPECT_EQ(run(RemoveQueueCommand{"a/b"}), ExitCode::done);
  EXPECT_EQ(out_.str(), "removed a/b\n");
  EXPECT_EQ(asked(), (Lines{R"(PATCH /v1/queues/a%2Fb {"retention_ms":5,"rate":null})",
                            "DELETE /v1/queues/a%2Fb"}));
  answer(409, R"({"type":"urn:detent:error:conflict","detail":"queue a/b has tasks"})");
  EXPECT_EQ(run(RemoveQueueCommand{"a/b"}), ExitCode::failed);
  EXPECT_EQ(err_.str(), "detent: queue a/b has tasks\n");
}

TEST_F(QueueCommandsTest, ATaskIsRun) {
  answer(200, kMoved);
  EXPECT_EQ(run(RunCommand{256}, OutputFormat::json), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), std::string(kMoved) + "\n");
  EXPECT_EQ(asked(), Lines{"POST /v1/tasks/256/run"});
  answer(409, R"({"type":"urn:detent:error:conflict","detail":"task 256 is leased"})");
  EXPECT_EQ(run(RunCommand{256}), ExitCode::failed);
  EXPECT_EQ(err_.str(), "detent: task 256 is leased\n");
}

TEST_F(QueueCommandsTest, ATaskIsReadAndCancelledByItsKey) {
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"no such key"})");
  EXPECT_EQ(run(GetCommand{client::TaskKey{"q", "k"}}), ExitCode::not_found);
  answer(200, R"({"id":"256","state":"cancelled"})");
  EXPECT_EQ(run(CancelCommand{client::TaskKey{"q", "k\n"}}), ExitCode::done);
  EXPECT_EQ(out_.str(), "cancelled k\\x0a\n");
  EXPECT_EQ(asked(), (Lines{"GET /v1/queues/q/keys/k", "DELETE /v1/queues/q/keys/k%0A"}));
}

TEST_F(QueueCommandsTest, APutReportsThatItsKeyExists) {
  answer(200, R"({"id":"256","queue":"q","state":"ready","due_at":0,"was_there":true})");
  PutCommand put;
  put.task.queue = "q";
  put.task.key = "k";
  EXPECT_EQ(run(put), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "256  ready  1970-01-01T00:00:00.000Z  was there already\n");
  EXPECT_EQ(asked(), Lines{R"(POST /v1/tasks {"queue":"q","payload":null,"key":"k"})"});
}

TEST_F(QueueCommandsTest, QueuesAreATable) {
  QueueView paused = example_queue("mail");
  paused.settings.paused = true;
  paused.stats.oldest_ready_age.reset();
  const std::vector<QueueView> queues{example_queue("b"), paused};
  answer(200, json::render_queues(queues));
  EXPECT_EQ(run(QueuesCommand{}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(),
            "QUEUE  SCHEDULED  READY  LEASED  DEAD  OLDEST READY  BYTES  STATE\n"
            "b      12         3      1       5     1m 30s        4096   open\n"
            "mail   12         3      1       5     -             4096   paused\n");
  EXPECT_EQ(asked(), Lines{"GET /v1/queues"});
  EXPECT_EQ(run(QueuesCommand{}, OutputFormat::json), ExitCode::done);
  EXPECT_EQ(out_.str(), json::render_queues(queues) + "\n");
}

TEST_F(QueueCommandsTest, AListOfQueuesHasTheOrderOfTheServer) {
  answer(200, json::render_queues(std::vector{example_queue("b"), example_queue("a")}, ""));
  EXPECT_EQ(run(QueuesCommand{.sort = "dead", .state = "dead", .name = "x y"}), ExitCode::done)
      << err_.str();
  EXPECT_EQ(asked(), Lines{"GET /v1/queues?sort=dead&state=dead&name=x%20y&limit=1000"});
  const std::string table = out_.str();
  ASSERT_NE(table.find("\na "), std::string::npos) << table;
  EXPECT_LT(table.find("\nb "), table.find("\na ")) << table;
  EXPECT_EQ(err_.str(), "");
}

TEST_F(QueueCommandsTest, ALimitedListOfQueuesSaysHowToContinue) {
  answer(200, json::render_queues(std::vector{example_queue("b")}, "name:0:b"));
  EXPECT_EQ(run(QueuesCommand{.limit = 1, .cursor = "name:0:a"}), ExitCode::done) << err_.str();
  EXPECT_EQ(asked(), Lines{"GET /v1/queues?sort=name&limit=1&cursor=name%3A0%3Aa"});
  EXPECT_EQ(err_.str(),
            "there are more queues; continue with the same options and "
            "--cursor name:0:b\n");
}

TEST_F(QueueCommandsTest, ATableOfQueuesFitsTheTerminal) {
  const std::vector queues{to_client(example_queue(std::string(200, 'x'))),
                           to_client(example_queue("short"))};
  for (const std::size_t columns : {72U, 80U, 300U}) {
    std::ostringstream out;
    show_queues(out, queues, columns);
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), columns) << line;
    EXPECT_EQ(out.str().find("…") == std::string::npos, columns == 300) << out.str();
    EXPECT_NE(out.str().find("short "), std::string::npos);
  }
  std::ostringstream narrow;
  show_queues(narrow, queues, 10);
  EXPECT_NE(narrow.str().find("\nxxxxxxx… …\n"), std::string::npos) << narrow.str();
  std::ostringstream pipe;
  show_queues(pipe, queues, 0);
  EXPECT_NE(pipe.str().find(std::string(200, 'x')), std::string::npos);
}

TEST_F(QueueCommandsTest, AQueueIsShownWithTheSettingsInForce) {
  QueueView view = example_queue("mail");
  answer(200, json::render_queue(view));
  EXPECT_EQ(run(QueuesCommand{"mail"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(),
            "queue               mail\n"
            "scheduled           12\n"
            "ready               3\n"
            "leased              1\n"
            "dead                5\n"
            "oldest ready        1m 30s\n"
            "bytes               4096\n"
            "paused              no\n"
            "max attempts        25\n"
            "backoff             1s to 1h\n"
            "visibility timeout  1m\n"
            "retention           0ms\n"
            "key retention       10m\n"
            "max tasks           none\n"
            "max bytes           none\n"
            "rate                none\n"
            "concurrency         none\n"
            "webhook             none\n"
            "partitions          1\n");
  EXPECT_EQ(asked(), Lines{"GET /v1/queues/mail"});
  view.settings = {.paused = true,
                   .max_attempts = 3,
                   .max_tasks = 9,
                   .rate = 50,
                   .webhook = QueueWebhook{.url = "https://a", .keys = {"whsec_1", "whsec_2"}}};
  answer(200, json::render_queue(view));
  run(QueuesCommand{"mail"});
  for (const char* line : {"paused              yes\n", "max attempts        3\n",
                           "max tasks           9\n", "rate                50 per second\n",
                           "webhook             https://a, signed by 2 keys of the queue\n"}) {
    EXPECT_NE(out_.str().find(line), std::string::npos) << line;
  }
  view.settings = {.webhook = QueueWebhook{.url = "sink:events"}};
  answer(200, json::render_queue(view));
  run(QueuesCommand{"mail"});
  EXPECT_NE(out_.str().find("webhook             the sink events\n"), std::string::npos);
}

TEST_F(QueueCommandsTest, AQueueIsPausedAndResumed) {
  answer(200, json::render_queue(example_queue("a/b")));
  EXPECT_EQ(run(PauseCommand{"a/b"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "paused a/b\n");
  EXPECT_EQ(run(ResumeCommand{"a/b"}), ExitCode::done);
  EXPECT_EQ(out_.str(), "resumed a/b\n");
  EXPECT_EQ(asked(), (Lines{"POST /v1/queues/a%2Fb/pause", "POST /v1/queues/a%2Fb/resume"}));
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"no queue named 'mail'"})");
  EXPECT_EQ(run(PauseCommand{"a"}), ExitCode::not_found);
}

TEST_F(QueueCommandsTest, WithoutATerminalAPurgeAsksForNoConfirmation) {
  answer(200, R"({"count":7})");
  EXPECT_EQ(run(PurgeCommand{"q"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "removed 7 tasks\n");
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(asked(), Lines{"POST /v1/queues/q/purge"});
}

TEST_F(QueueCommandsTest, OnATerminalAPurgeAsksForConfirmationUnlessYesIsGiven) {
  terminal_.is_input_terminal = true;
  script_.respond = [](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    return net::HttpResponse{.body = request.method == "GET"
                                         ? json::render_queue(example_queue("q"))
                                         : std::string(R"({"count":20})")};
  };
  for (const char* no : {"", "n\n", "\n", "no\n", "yy\n"}) {
    in_.clear();
    in_.str(no);
    EXPECT_EQ(run(PurgeCommand{"q"}), ExitCode::failed) << no;
    EXPECT_EQ(out_.str(), "");
    EXPECT_EQ(err_.str(), "Remove 20 tasks of q? [y/N] detent: nothing was removed\n");
    EXPECT_EQ(asked(), Lines{"GET /v1/queues/q"});
  }
  for (const char* yes : {"y\n", "yes\n", "Y"}) {
    in_.clear();
    in_.str(yes);
    EXPECT_EQ(run(PurgeCommand{"q"}), ExitCode::done) << yes;
    EXPECT_EQ(out_.str(), "removed 20 tasks\n");
    EXPECT_EQ(asked(), (Lines{"GET /v1/queues/q", "POST /v1/queues/q/purge"}));
  }
  EXPECT_EQ(run(PurgeCommand{.queue = "q", .yes = true}), ExitCode::done);
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(asked(), Lines{"POST /v1/queues/q/purge"});
}

TEST_F(QueueCommandsTest, APurgeOfAMissingQueueAsksForNoConfirmation) {
  terminal_.is_input_terminal = true;
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"no queue named 'mail'"})");
  EXPECT_EQ(run(PurgeCommand{"q"}), ExitCode::not_found);
  EXPECT_EQ(err_.str(), "detent: no queue named 'mail'\n");
}

TEST_F(QueueCommandsTest, DeadTasksAreRedriven) {
  answer(200, R"({"count":7})");
  EXPECT_EQ(run(RedriveCommand{"q"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "7 dead tasks are due now\n");
  answer(200, R"({"count":1})");
  EXPECT_EQ(run(RedriveCommand{"q"}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "1 dead task is due now\n");
  answer(200, R"({"count":7})");
  EXPECT_EQ(run(RedriveCommand{"q"}, OutputFormat::json), ExitCode::done);
  EXPECT_EQ(out_.str(), "{\"count\":7}\n");
  EXPECT_EQ(asked(), Lines(3, "POST /v1/queues/q/redrive"));
}

}  // namespace
}  // namespace detent::cli

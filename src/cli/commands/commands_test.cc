// Tests commands over a scripted connection: their requests, output and exit codes.
#include "cli/commands/commands.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/testing/scripted_commands_fixture.h"
#include "protocol/json/stats_codec.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kAccepted =
    R"({"id":"256","queue":"q","state":"scheduled","due_at":"2026-01-02T03:04:05.678Z"})";

class CommandsTest : public ScriptedCommands {
 protected:
  /// The payload part of the body that `put` sends.
  std::string body_of_put(std::optional<std::string> payload, bool bytes = false) {
    answer(201, kAccepted);
    PutCommand put{.task = {}, .payload = std::move(payload), .bytes = bytes};
    put.task.queue = "q";
    script_.asked.clear();
    EXPECT_EQ(run(put), ExitCode::done) << err_.str();
    return script_.asked.empty() ? "" : script_.asked.front().body;
  }
};

TEST_F(CommandsTest, PutSendsJsonUnchangedAndOtherPayloadsAsBytes) {
  EXPECT_EQ(body_of_put(" {\"n\" : 1.0} "), R"({"queue":"q","payload":{"n" : 1.0}})");
  EXPECT_EQ(body_of_put("hello"), R"({"queue":"q","payload_base64":"aGVsbG8="})");
  EXPECT_EQ(body_of_put("1", true), R"({"queue":"q","payload_base64":"MQ=="})");
  EXPECT_EQ(body_of_put(std::nullopt), R"({"queue":"q","payload":null})");
  EXPECT_EQ(body_of_put(std::nullopt, true), R"({"queue":"q","payload_base64":""})");
  EXPECT_EQ(out_.str().substr(0, 40), "256  scheduled  2026-01-02T03:04:05.678Z");
}

TEST_F(CommandsTest, APayloadIsJsonIfItIsOneValueAndBytesOtherwise) {
  using client::Payload;
  const auto read = [this](const char* typed) {
    return read_payload(typed, Payload::Kind::json, in_).value();
  };
  EXPECT_EQ(read(" {\"n\": 1.0}\n"), (Payload{Payload::Kind::json, "{\"n\": 1.0}"}));
  EXPECT_EQ(read("1e400"), (Payload{Payload::Kind::json, "1e400"}));
  for (const char* text : {"", " ", "hello\n", "it's {a}", "1 2", "tru", "-", "\xFF"}) {
    in_.str(text);
    in_.clear();
    EXPECT_EQ(read(text), (Payload{Payload::Kind::bytes, text}));
  }
}

TEST_F(CommandsTest, APayloadThatBeginsLikeJsonMustBeJson) {
  using Kind = client::Payload::Kind;
  for (const char* text :
       {"{", "{\"a\":", " [1,", "\"open", "{a:1}", "{\"a\":1} {\"b\":2}", "\n[1]]"}) {
    const auto refused = read_payload(text, Kind::json, in_);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(refused.error().message.find("is not valid JSON: "), std::string::npos);
    EXPECT_NE(refused.error().message.find("add --bytes"), std::string::npos);
    EXPECT_EQ(read_payload(text, Kind::bytes, in_).value(), (client::Payload{Kind::bytes, text}));
  }
  const std::string largest = "\"" + std::string(kMaxPayloadBytes - 2, 'x') + "\"";
  in_.str(largest + "\n");
  EXPECT_EQ(read_payload("-", Kind::json, in_).value(), (client::Payload{Kind::json, largest}));
  in_.clear();
  in_.str("{\"a\":");
  EXPECT_FALSE(read_payload("-", Kind::json, in_)) << "standard input is read in the same way";
  PutCommand put{.task = {}, .payload = "{\"a\":"};
  put.task.queue = "q";
  EXPECT_EQ(run(put), ExitCode::usage);
  EXPECT_EQ(
      run(EditCommand{.task = std::uint64_t{256}, .edit = {}, .payload = "[", .bytes = false}),
      ExitCode::usage);
  EXPECT_TRUE(script_.asked.empty()) << "nothing is stored";
}

TEST_F(CommandsTest, AForecastIsAskedForAndShown) {
  const Forecast forecast{.bin = milliseconds{60'000}, .counts = {1, 2}};
  answer(200, json::render_forecast(forecast));
  EXPECT_EQ(run(ForecastCommand{.span = milliseconds{120'000}, .bins = 2}), ExitCode::done);
  EXPECT_EQ(asked(), Lines{"GET /v1/forecast?bins=2&span=120000ms"});
  EXPECT_NE(out_.str().find("1970-01-01T00:01Z  2\n"), std::string::npos) << out_.str();
  EXPECT_EQ(run(ForecastCommand{.span = milliseconds{1}, .bins = 2}), ExitCode::usage);
  EXPECT_NE(err_.str().find("(span)"), std::string::npos) << err_.str();
}

TEST_F(CommandsTest, PutReadsStandardInputForAHyphen) {
  in_.str("[1, 2]\n");
  EXPECT_EQ(body_of_put("-"), R"({"queue":"q","payload":[1, 2]})");
}

TEST_F(CommandsTest, EndlessInputIsRejectedAsTooLarge) {
  in_.str(std::string(10 * kMaxPayloadBytes, 'x'));
  PutCommand put{.task = {}, .payload = "-", .bytes = true};
  put.task.queue = "q";
  EXPECT_EQ(run(put), ExitCode::failed);
  EXPECT_TRUE(script_.asked.empty());
  EXPECT_NE(err_.str().find("65535"), std::string::npos);
}

TEST_F(CommandsTest, JsonOutputIsTheUnchangedAnswerOfTheServer) {
  const std::string body =
      R"({ "id":"256","queue":"q","state":"ready","due_at":0,"created_at":0,"priority":1,)"
      R"("max_attempts":1,"visibility_timeout_ms":1,"backoff":{"initial_ms":1,"max_ms":1},)"
      R"("attempts":0,"payload":1.0,"new":true})";
  answer(200, body);
  EXPECT_EQ(run(GetCommand{std::uint64_t{256}}, OutputFormat::json), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), body + "\n");
}

TEST_F(CommandsTest, NotFoundHasItsOwnExitCode) {
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"there is no task 256"})");
  for (const ClientCommand& command : {ClientCommand(GetCommand{std::uint64_t{256}}),
                                       ClientCommand(CancelCommand{std::uint64_t{256}})}) {
    EXPECT_EQ(run(command), ExitCode::not_found);
    EXPECT_EQ(out_.str(), "");
    EXPECT_EQ(err_.str(), "detent: there is no task 256\n");
  }
}

TEST_F(CommandsTest, EveryErrorHasItsExitCode) {
  EXPECT_EQ(exit_code_of(ErrorCode::not_found), ExitCode::not_found);
  EXPECT_EQ(exit_code_of(ErrorCode::invalid_argument), ExitCode::usage);
  for (const ErrorCode code :
       {ErrorCode::conflict, ErrorCode::too_large, ErrorCode::resource_exhausted,
        ErrorCode::unavailable, ErrorCode::data_loss, ErrorCode::internal}) {
    EXPECT_EQ(exit_code_of(code), ExitCode::failed);
  }
}

TEST_F(CommandsTest, CancelNamesTheCancelledTask) {
  answer(204, "");
  EXPECT_EQ(run(CancelCommand{std::uint64_t{256}}), ExitCode::done);
  EXPECT_EQ(out_.str(), "cancelled 256\n");
  EXPECT_EQ(script_.asked[0].method, "DELETE");
}

std::string listed_task(const std::string& id) {
  return R"({"id":")" + id +
         R"(","queue":"q","state":"dead","due_at":0,"created_at":0,"priority":7,)"
         R"("max_attempts":1,"visibility_timeout_ms":1,"backoff":{"initial_ms":1,"max_ms":1},)"
         R"("attempts":2,"key":"k","payload":[1]})";
}

TEST_F(CommandsTest, AnEmptyResultIsExplainedOnStandardError) {
  script_.respond = [](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    if (request.target == "/v1/queues/nope") {
      return net::HttpResponse{.status = 404,
                               .body = R"({"type":"urn:detent:error:not_found","detail":"no"})"};
    }
    return net::HttpResponse{.body = R"({"tasks":[],"cursor":null})"};
  };
  const std::pair<ClientCommand, const char*> cases[] = {
      {ListCommand{}, "no tasks\n"},
      {ListCommand{{.queue = "q"}}, "no tasks\n"},
      {ListCommand{{.queue = "nope"}}, "no queue named 'nope'\n"},
      {LeaseCommand{"q", {}}, "no task is ready\n"},
      {LeaseCommand{"nope", {}}, "no queue named 'nope'\n"}};
  for (const auto& [command, said] : cases) {
    EXPECT_EQ(run(command), ExitCode::done);
    EXPECT_EQ(out_.str(), "");
    EXPECT_EQ(err_.str(), said);
    EXPECT_EQ(run(command, OutputFormat::json), ExitCode::done);
    EXPECT_EQ(out_.str(), "{\"tasks\":[],\"cursor\":null}\n");
    EXPECT_EQ(err_.str(), "") << "the answer says it";
  }
}

TEST_F(CommandsTest, ListSendsTheFiltersAndShowsOneRowPerTask) {
  answer(200, R"({"tasks":[)" + listed_task("256") + R"(],"cursor":null})");
  const ListCommand list{{.queue = "q+1",
                          .state = client::TaskState::dead,
                          .key = "k&",
                          .due_after = WallTime{},
                          .due_before = WallTime{milliseconds{1}},
                          .limit = 5,
                          .cursor = "c"}};
  EXPECT_EQ(run(list), ExitCode::done) << err_.str();
  EXPECT_EQ(script_.asked.at(0).target,
            "/v1/tasks?limit=5&queue=q%2B1&state=dead&key=k%26&due_after=1970-01-01T00%3A00%3A00."
            "000Z&due_before=1970-01-01T00%3A00%3A00.001Z&cursor=c");
  EXPECT_EQ(out_.str(),
            "ID   QUEUE  STATE  DUE AT                    PRIORITY  ATTEMPTS  KEY  PAYLOAD\n"
            "256  q      dead   1970-01-01T00:00:00.000Z  7         2         k    [1]\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CommandsTest, ListReadsPagesUpToItsLimitAndPrintsTheCursor) {
  const std::string page = R"({"tasks":[)" + listed_task("256") + R"(],"cursor":"l0-1-256"})";
  answer(200, page);
  EXPECT_EQ(run(ListCommand{{.limit = 3}}), ExitCode::done);
  ASSERT_EQ(script_.asked.size(), 3U);
  EXPECT_EQ(script_.asked[0].target, "/v1/tasks?limit=3");
  EXPECT_EQ(script_.asked[2].target, "/v1/tasks?limit=1&cursor=l0-1-256");
  EXPECT_EQ(err_.str(), "there may be more tasks; continue with --cursor l0-1-256\n");
  EXPECT_EQ(run(ListCommand{{.limit = 1}}, OutputFormat::json), ExitCode::done);
  EXPECT_NE(out_.str().find(page + "\n"), std::string::npos);
}

TEST_F(CommandsTest, LeaseShowsTheTasks) {
  answer(200, R"({"tasks":[{"id":"256","lease":"3-17","attempt":1,"queue":"q","payload":[1],)"
              R"("priority":1,"due_at":0,"lease_until":0,"lateness_ms":2}]})");
  const LeaseCommand lease{.queue = "q", .options = {.wait = milliseconds{20'000}}};
  EXPECT_EQ(run(lease), ExitCode::done) << err_.str();
  EXPECT_NE(out_.str().find("3-17   256"), std::string::npos) << out_.str();
}

TEST_F(CommandsTest, ALostLeaseFailsTheCommandButTheOthersAreShown) {
  answer(200, R"({"results":[{"status":"done"},{"status":"conflict"}]})");
  EXPECT_EQ(run(CompleteCommand{{"3-17", "3-18"}}), ExitCode::failed);
  EXPECT_EQ(out_.str(), "3-17  done\n3-18  not held (expired, finished or unknown)\n");
  answer(200, R"({"results":[{"status":"dead"}]})");
  EXPECT_EQ(
      run(FailCommand{.leases = {"3-17"}, .options = {.error = "why", .delay = milliseconds{5}}}),
      ExitCode::done);
  EXPECT_EQ(script_.asked[1].body, R"({"leases":["3-17"],"delay_ms":5,"error":"why"})");
}

TEST_F(CommandsTest, AnAnswerWithAnotherNumberOfLeasesIsAnError) {
  answer(200, R"({"results":[]})");
  EXPECT_EQ(run(CompleteCommand{{"3-17"}}), ExitCode::failed);
  EXPECT_NE(err_.str(), "");
}

TEST_F(CommandsTest, AnUnreachableServerIsAFailure) {
  script_.answer = Error{ErrorCode::unavailable, "connect to 127.0.0.1:7070: refused", ""};
  EXPECT_EQ(run(StatsCommand{}), ExitCode::failed);
  EXPECT_EQ(
      err_.str(),
      "detent: connect to 127.0.0.1:7070: refused\n"
      "Is a server running there? `detent serve` starts one; --server URL or DETENT_URL names "
      "another.\n");
  script_.answer = Error{ErrorCode::unavailable,
                         "connect to 127.0.0.1:7070: certificate verify failed (SSL routines)", ""};
  EXPECT_EQ(run(StatsCommand{}), ExitCode::failed);
  EXPECT_EQ(err_.str().find("Is a server running there?"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("--ca FILE"), std::string::npos) << err_.str();
  script_.answer = Error{ErrorCode::unavailable, "the server is starting", ""};
  EXPECT_EQ(run(StatsCommand{}), ExitCode::failed);
  EXPECT_EQ(err_.str(), "detent: the server is starting\n");
}

TEST_F(CommandsTest, ATaskIsEditedAndShown) {
  answer(200, R"({"id":"256","queue":"q","state":"scheduled","due_at":0})");
  const client::TaskEdit priority{.priority = 7};
  EXPECT_EQ(run(EditCommand{.task = std::uint64_t{256}, .edit = priority}), ExitCode::done)
      << err_.str();
  EXPECT_EQ(out_.str(), "256  scheduled  1970-01-01T00:00:00.000Z\n");
  in_.str("a b");
  EXPECT_EQ(run(EditCommand{.task = client::TaskKey{"q", "k"}, .payload = "-"}), ExitCode::done);
  EXPECT_EQ(run(EditCommand{.task = std::uint64_t{256}, .payload = "[1]", .bytes = true}),
            ExitCode::done);
  EXPECT_EQ(asked(), (Lines{R"(PATCH /v1/tasks/256 {"priority":7})",
                            R"(PATCH /v1/queues/q/keys/k {"payload_base64":"YSBi"})",
                            R"(PATCH /v1/tasks/256 {"payload_base64":"WzFd"})"}));
}

TEST_F(CommandsTest, LeasesAreExtendedAndReleased) {
  answer(200, R"({"results":[{"status":"done"},{"status":"conflict"}]})");
  EXPECT_EQ(run(ExtendCommand{.leases = {"3-17", "3-18"}, .by = milliseconds{5}}),
            ExitCode::failed);
  EXPECT_EQ(out_.str(), "3-17  done\n3-18  not held (expired, finished or unknown)\n");
  answer(200, R"({"results":[{"status":"done"}]})");
  EXPECT_EQ(run(ReleaseCommand{.leases = {"3-17"}, .options = {.delay = milliseconds{5}}}),
            ExitCode::done);
  EXPECT_EQ(asked(), (Lines{R"(POST /v1/leases/extend {"leases":["3-17","3-18"],"by_ms":5})",
                            R"(POST /v1/leases/release {"leases":["3-17"],"delay_ms":5})"}));
}

TEST_F(CommandsTest, ACallIsSentUnchangedAndItsAnswerIsPrinted) {
  answer(200, "detent_tasks 1\n");
  EXPECT_EQ(run(CallCommand{.method = "GET", .target = "/metrics"}), ExitCode::done);
  EXPECT_EQ(out_.str(), "detent_tasks 1\n");
  in_.str("[1,\n2]");
  answer(200, "{}");
  EXPECT_EQ(run(CallCommand{.method = "POST", .target = "/v1/tasks/batch", .body = "-"}),
            ExitCode::done);
  EXPECT_EQ(out_.str(), "{}\n");
  EXPECT_EQ(asked(), (Lines{"GET /metrics", "POST /v1/tasks/batch [1,\n2]"}));
  answer(404, R"({"type":"urn:detent:error:not_found","detail":"no such route"})");
  EXPECT_EQ(run(CallCommand{.method = "GET", .target = "/v1/x"}), ExitCode::not_found);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "detent: no such route\n");
}

}  // namespace
}  // namespace detent::cli

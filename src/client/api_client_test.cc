// Tests the client with a scripted HttpClient: the requests that it sends, and how it reads each
// answer.
#include "client/api_client.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "protocol/json/answer_renderer.h"
#include "protocol/json/dump_renderer.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_renderer.h"
#include "protocol/json/request_parser.h"
#include "tests/support/scripted_http.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

using test::Script;
using test::ScriptedHttp;

class ClientTest : public testing::Test {
 protected:
  void answer(int status, std::string body) {
    prompt_.answer = net::HttpResponse{.status = status, .body = std::move(body)};
    patient_.answer = prompt_.answer;
  }
  const net::HttpRequest& asked() const {
    DETENT_CHECK(prompt_.asked.size() == 1);
    return prompt_.asked.front();
  }

  Script prompt_;
  Script patient_;
  ApiClient client_{std::make_unique<ScriptedHttp>(prompt_),
                    std::make_unique<ScriptedHttp>(patient_)};
};

TaskSnapshot example_view() {
  TaskSnapshot view;
  view.task.id = TaskId{512};
  view.task.queue = "a/b";
  view.task.payload.data = "{ \"n\": 1.0 }";
  view.task.due_at = WallTime{milliseconds{1'767'323'045'678}};
  view.task.created_at = view.task.due_at;
  return view;
}

TEST_F(ClientTest, ScheduleSendsTheRequestAndReadsTheTask) {
  answer(201, json::render_accepted(example_view()));
  ScheduleRequest request{.queue = "a/b", .payload = {}, .rules = {}, .due = milliseconds{5}};
  const auto accepted = client_.schedule(request);
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(accepted->id, TaskId{512});
  EXPECT_EQ(asked().method, "POST");
  EXPECT_EQ(asked().target, "/v1/tasks");
  EXPECT_EQ(asked().header("content-type"), "application/json");
  EXPECT_EQ(json::parse_schedule(asked().body)->due, Due{milliseconds{5}});
}

TEST_F(ClientTest, ScheduleChecksTheRequestBeforeItIsSent) {
  ScheduleRequest no_queue;
  EXPECT_EQ(client_.schedule(no_queue).error().field, "queue");
  ScheduleRequest no_json{
      .queue = "q", .payload = {Payload::Kind::json, "1}"}, .rules = {}, .due = {}};
  EXPECT_EQ(client_.schedule(no_json).error().field, "payload");
  const std::array<ScheduleRequest, 1> batch{no_json};
  EXPECT_EQ(client_.schedule_batch(batch).error().field, "payload");
  EXPECT_TRUE(prompt_.asked.empty());
}

TEST_F(ClientTest, ManyTasksAreCancelledAndMovedByOneCall) {
  const std::vector<Result<TaskId>> results{TaskId{256}};
  answer(200, json::render_cancel_results(results));
  const auto cancelled = client_.cancel_batch({.ids = {TaskId{256}}});
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(*cancelled->at(0), TaskId{256});
  EXPECT_EQ(asked().target, "/v1/tasks/cancel");
  prompt_.asked.clear();
  const std::vector<Result<TaskSnapshot>> moved{example_view()};
  answer(200, json::render_schedule_results(moved));
  const auto accepted =
      client_.move_batch({.tasks = {.ids = {TaskId{512}}}, .due = milliseconds{5}});
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(accepted->at(0)->id, TaskId{512});
  EXPECT_EQ(asked().target, "/v1/tasks/move");
  EXPECT_EQ(client_.move_batch({.due = milliseconds{-1}}).error().code,
            ErrorCode::invalid_argument);
}

TEST_F(ClientTest, ATaskIsMovedOrRunAndTheNewDueTimeIsRead) {
  answer(200, json::render_accepted(example_view()));
  const auto moved = client_.move(TaskId{512}, milliseconds{5});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->due_at, example_view().task.due_at);
  EXPECT_EQ(asked().method, "PATCH");
  EXPECT_EQ(asked().target, "/v1/tasks/512");
  EXPECT_EQ(json::parse_edit(asked().body).value().due, Due{milliseconds{5}});
  prompt_.asked.clear();
  EXPECT_TRUE(client_.move(TaskKey{"a/b", "k/1"}, WallTime{milliseconds{7}}));
  EXPECT_EQ(asked().target, "/v1/queues/a%2Fb/keys/k%2F1");
  EXPECT_EQ(json::parse_edit(asked().body).value().due, Due{WallTime{milliseconds{7}}});
  prompt_.asked.clear();
  EXPECT_TRUE(client_.run_now(TaskId{512}));
  EXPECT_EQ(asked().target, "/v1/tasks/512/run");
  EXPECT_EQ(asked().method, "POST");
  prompt_.asked.clear();
  EXPECT_EQ(client_.move(TaskId{512}, milliseconds{-1}).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(prompt_.asked.empty());
}

TEST_F(ClientTest, ATaskIsEditedUnlessTheEditIsWrong) {
  answer(200, json::render_accepted(example_view()));
  const Payload bytes{Payload::Kind::bytes, std::string("a\0b", 3)};
  EXPECT_TRUE(client_.edit(TaskId{512}, {.priority = 3, .payload = bytes}));
  EXPECT_EQ(asked().method, "PATCH");
  EXPECT_EQ(json::parse_edit(asked().body)->priority, 3U);
  EXPECT_EQ(json::parse_edit(asked().body)->payload, bytes);
  prompt_.asked.clear();
  const Payload broken{Payload::Kind::json, "1,\"priority\":0"};
  EXPECT_EQ(client_.edit(TaskId{512}, {.payload = broken}).error().field, "payload");
  EXPECT_TRUE(prompt_.asked.empty());
}

TEST_F(ClientTest, AskSendsAnyRequestAndKeepsTheAnswer) {
  answer(200, "detent_tasks 1\n");
  ASSERT_TRUE(client_.ask("GET", "/metrics", ""));
  EXPECT_EQ(client_.last_answer(), "detent_tasks 1\n");
  EXPECT_TRUE(client_.ask("PUT", "/v1/x", "{}"));
  EXPECT_TRUE(client_.ask("POST", "/v1/restore", "{}\n"));
  const std::vector<net::HttpRequest>& sent = patient_.asked;
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].method, "GET");
  EXPECT_TRUE(sent[0].headers.empty());
  EXPECT_EQ(sent[1].headers.at(0).second, "application/json");
  EXPECT_EQ(sent[2].headers.at(0).second, json::kDumpContentType);
}

TEST_F(ClientTest, LeasesAreExtendedAndReleased) {
  const std::array<Result<LeaseOutcome>, 1> outcomes{LeaseOutcome::done};
  answer(200, json::render_lease_results(outcomes));
  const std::array<std::string, 1> leases{"3-17"};
  EXPECT_EQ(client_.extend(leases, milliseconds{60'000})->at(0), LeaseOutcome::done);
  EXPECT_EQ(asked().target, "/v1/leases/extend");
  EXPECT_EQ(json::parse_extend(asked().body)->by, milliseconds{60'000});
  prompt_.asked.clear();
  EXPECT_EQ(client_.release(leases, {.priority = 3})->at(0), LeaseOutcome::done);
  EXPECT_EQ(asked().target, "/v1/leases/release");
  EXPECT_EQ(json::parse_release(asked().body)->priority, 3U);
}

TEST_F(ClientTest, QueuesAreReadAndChanged) {
  const QueueView view{.stats = {.queue = "a/b", .dead = 1}, .bytes = 2, .settings = {.rate = 5}};
  answer(200, json::render_queue(view));
  EXPECT_EQ(client_.queue("a/b").value(), view);
  json::QueuePatch patch;
  patch.rate.emplace();
  EXPECT_EQ(client_.change_queue("a/b", patch).value(), view);
  EXPECT_EQ(client_.pause("a/b").value(), view);
  EXPECT_EQ(client_.resume("a/b").value(), view);
  EXPECT_TRUE(client_.remove_queue("a/b"));
  answer(200, json::render_queues(std::array{view}));
  EXPECT_EQ(client_.queues().value(), std::vector{view});
  std::vector<std::string> asked;
  for (const auto& request : prompt_.asked) {
    asked.push_back(request.method + " " + request.target + " " + request.body);
  }
  EXPECT_EQ(asked, (std::vector<std::string>{
                       "GET /v1/queues/a%2Fb ", R"(PATCH /v1/queues/a%2Fb {"rate":null})",
                       "POST /v1/queues/a%2Fb/pause ", "POST /v1/queues/a%2Fb/resume ",
                       "DELETE /v1/queues/a%2Fb ", "GET /v1/queues "}));
}

TEST_F(ClientTest, VerbsOverAWholeQueueMayTakeLonger) {
  answer(200, json::render_count(7));
  EXPECT_EQ(client_.purge("a/b").value(), 7U);
  EXPECT_EQ(client_.redrive("a/b").value(), 7U);
  EXPECT_TRUE(prompt_.asked.empty());
  ASSERT_EQ(patient_.asked.size(), 2U);
  EXPECT_EQ(patient_.asked[0].target, "/v1/queues/a%2Fb/purge");
  EXPECT_EQ(patient_.asked[1].target, "/v1/queues/a%2Fb/redrive");
}

TEST_F(ClientTest, ABatchGivesOneResultForEachTask) {
  const Error refused{ErrorCode::too_large, "a payload must be at most 65535 bytes", "payload"};
  const std::array<Result<TaskSnapshot>, 2> results{example_view(), refused};
  answer(200, json::render_schedule_results(results));
  const std::array<ScheduleRequest, 2> requests{
      ScheduleRequest{.queue = "a", .payload = {}, .rules = {}, .due = {}},
      ScheduleRequest{.queue = "b", .payload = {}, .rules = {}, .due = {}}};
  const auto accepted = client_.schedule_batch(requests);
  ASSERT_TRUE(accepted);
  ASSERT_EQ(accepted->size(), 2U);
  EXPECT_EQ((*accepted)[0]->id, TaskId{512});
  EXPECT_EQ((*accepted)[1].error(), refused);
  EXPECT_EQ(asked().target, "/v1/tasks/batch");
}

TEST_F(ClientTest, GetReadsTheWholeTask) {
  answer(200, json::render_task(example_view()));
  const auto view = client_.get(TaskId{512});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->task.payload.data, "{ \"n\": 1.0 }");
  EXPECT_EQ(asked().method, "GET");
  EXPECT_EQ(asked().target, "/v1/tasks/512");
}

TEST_F(ClientTest, CancelNeedsNoBody) {
  answer(204, "");
  EXPECT_TRUE(client_.cancel(TaskId{512}));
  EXPECT_EQ(asked().method, "DELETE");
  EXPECT_EQ(asked().target, "/v1/tasks/512");
}

TEST_F(ClientTest, ALeaseWithAWaitUsesThePatientConnection) {
  answer(200, json::render_leased_tasks({}));
  LeaseRequest request;
  request.queue = "a/b;$(x)";
  ASSERT_TRUE(client_.lease(request, milliseconds{20'000}));
  EXPECT_TRUE(prompt_.asked.empty());
  ASSERT_EQ(patient_.asked.size(), 1U);
  EXPECT_EQ(patient_.asked[0].target, "/v1/queues/a%2Fb%3B%24%28x%29/lease");
  EXPECT_EQ(json::parse_lease("q", patient_.asked[0].body)->wait, milliseconds{20'000});

  ASSERT_TRUE(client_.lease(request, milliseconds{0}));
  EXPECT_EQ(prompt_.asked.size(), 1U);
}

TEST_F(ClientTest, LeasedTasksComeWithTheirLeases) {
  detent::LeasedTask leased;
  leased.task = example_view().task;
  leased.lease = {1, 2};
  const std::array<detent::LeasedTask, 1> tasks{leased};
  answer(200, json::render_leased_tasks(tasks));
  LeaseRequest request;
  request.queue = "q";
  const auto read = client_.lease(request, milliseconds{0});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].lease, to_string(LeaseToken{1, 2}));
  EXPECT_EQ((*read)[0].payload.data, "{ \"n\": 1.0 }");
}

TEST_F(ClientTest, CompleteAndFailReturnTheResultOfEachLease) {
  const std::array<Result<LeaseOutcome>, 2> results{LeaseOutcome::done, LeaseOutcome::conflict};
  answer(200, json::render_lease_results(results));
  const std::array<std::string, 2> leases{"1-2", "gone"};
  const auto completed = client_.complete(leases);
  ASSERT_TRUE(completed);
  EXPECT_EQ((*completed)[0], LeaseOutcome::done);
  EXPECT_EQ((*completed)[1], LeaseOutcome::conflict);
  EXPECT_EQ(asked().target, "/v1/leases/complete");

  ASSERT_TRUE(client_.fail(leases, {milliseconds{5}, "why"}));
  EXPECT_EQ(prompt_.asked[1].target, "/v1/leases/fail");
  EXPECT_EQ(json::parse_fail(prompt_.asked[1].body)->error, "why");
}

TEST_F(ClientTest, StatsAreRead) {
  json::ServerStats stats;
  stats.version = "0.1.0";
  stats.queues = {{.queue = "a", .ready = 3}};
  answer(200, json::render_stats(stats));
  EXPECT_EQ(client_.stats(), stats);
  EXPECT_EQ(asked().target, "/v1/stats");
}

TEST_F(ClientTest, AForecastIsAskedForAndRead) {
  const Forecast forecast{.bin = milliseconds{60'000}, .counts = {1, 2}};
  answer(200, json::render_forecast(forecast));
  EXPECT_EQ(client_.forecast(milliseconds{120'000}, 2), forecast);
  EXPECT_EQ(asked().target, "/v1/forecast?bins=2&span=120000ms");
  EXPECT_EQ(client_.forecast(milliseconds{1}, 2).error().field, "span");
}

constexpr const char* kEnd = R"("end":true)";

/// The last line of a page: `what` names the next page or the end, and the counts follow.
std::string last_line(const std::string& what, const json::LineCounts& counts) {
  std::string line;
  json::append_dump_line(line, json::DumpEnd{counts});
  return line.replace(1, std::string(kEnd).size(), what);
}

TEST_F(ClientTest, APageOfADumpHasCountsAndTheStartOfTheNextPage) {
  const std::string lines =
      "{\"queue\":{\"queue\":\"q\"}}\n{\"task\":{\"id\":1}}\n{\"damaged\":\"512\"}\n";
  answer(200, lines + last_line(R"("next":"512")", {.queues = 1, .tasks = 1, .damaged = 1}));
  const auto page = client_.dump({TaskId{256}});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->lines, lines);
  EXPECT_EQ(page->counts, (json::LineCounts{.queues = 1, .tasks = 1, .damaged = 1}));
  EXPECT_EQ(page->next, (ApiClient::DumpCursor{TaskId{512}}));
  EXPECT_EQ(asked().target, "/v1/dump?after=256");

  answer(200, last_line(kEnd, {}));
  const auto last = client_.dump({});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->lines, "");
  EXPECT_EQ(last->external, 0U);
  EXPECT_FALSE(last->next);
  EXPECT_EQ(prompt_.asked[1].target, "/v1/dump");

  answer(200, last_line(R"("end":true,"external":3)", {}));
  EXPECT_EQ(client_.dump({}).value().external, 3U);
}

TEST_F(ClientTest, TheNextPageOfADumpMayBeginWithinTheSchedules) {
  const std::string schedule = "{\"schedule\":{}}\n";
  const std::string next = R"("next":null,"next_schedule":"s")";
  answer(200, schedule + last_line(next, {.schedules = 1}));
  const auto page = client_.dump({});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->counts.schedules, 1U);
  EXPECT_EQ(page->next, (ApiClient::DumpCursor{.after = {}, .schedule = "s"}));
  answer(200, schedule + last_line(kEnd, {.schedules = 1}));
  EXPECT_TRUE(client_.dump(*page->next));
  EXPECT_EQ(prompt_.asked[1].target, "/v1/dump?after_schedule=s");
  EXPECT_TRUE(client_.dump({.after = TaskId{256}, .schedule = "a/b"}));
  EXPECT_EQ(prompt_.asked[2].target, "/v1/dump?after=256&after_schedule=a%2Fb");
  answer(200, schedule + last_line(kEnd, {}));
  EXPECT_EQ(client_.dump({}).error().code, ErrorCode::internal);
  answer(200, last_line(next, {}));
  EXPECT_EQ(client_.dump({.after = {}, .schedule = "s"}).error().code, ErrorCode::internal);
}

TEST_F(ClientTest, AnIncompletePageOfADumpIsAnError) {
  const std::string end = last_line(kEnd, {});
  const std::string next = R"("next":"512")";
  for (const std::string& body : {
           std::string(), end.substr(0, end.size() - 1),  // no line feed
           std::string("{\"task\":{}}\n"),                // no last line
           last_line(kEnd, {.tasks = 1}),                 // other counts
           last_line(kEnd, {.queues = 1}),                // likewise
           last_line(kEnd, {.damaged = 1}),               // likewise
           last_line(next, {.queues = 1}),                // likewise
           std::string("{\"end\":true}\n"),               // no counts
           "{\"ta\n" + end,                               // not a valid line
           last_line(R"("next":"256")", {}),              // back to where it began
       }) {
    answer(200, body);
    EXPECT_EQ(client_.dump({TaskId{256}}).error().code, ErrorCode::internal) << body;
  }
}

TEST_F(ClientTest, ARestoreSendsItsLinesAndReadsTheResults) {
  const json::RestoreAnswer told{.restored = 1, .errors = {{2, {ErrorCode::conflict, "no", ""}}}};
  answer(200, json::render_restored(told));
  EXPECT_EQ(client_.restore("a\nb\n"), told);
  EXPECT_EQ(asked().target, "/v1/restore");
  EXPECT_EQ(asked().body, "a\nb\n");
  EXPECT_EQ(asked().header("content-type"), "application/x-ndjson");
}

TEST_F(ClientTest, AnErrorOfTheServerIsReturnedUnchanged) {
  const Error conflict{ErrorCode::conflict, "task 512 is leased", "id"};
  answer(409, json::render_problem(conflict));
  EXPECT_EQ(client_.cancel(TaskId{512}).error(), conflict);
  answer(503, "starting");
  EXPECT_EQ(client_.ready().error().code, ErrorCode::unavailable);
}

TEST_F(ClientTest, ALostConnectionIsReturnedUnchanged) {
  const Error lost{ErrorCode::unavailable, "connect to 127.0.0.1:1: refused", ""};
  prompt_.answer = lost;
  EXPECT_EQ(client_.stats().error(), lost);
  EXPECT_EQ(client_.get(TaskId{1}).error(), lost);
}

TEST_F(ClientTest, AnAnswerThatCannotBeReadIsInternal) {
  answer(200, "<html>");
  EXPECT_EQ(client_.stats().error().code, ErrorCode::internal);
  EXPECT_EQ(client_.get(TaskId{1}).error().code, ErrorCode::internal);
}

TEST_F(ClientTest, TheLastAnswerIsKeptUnchanged) {
  answer(200, " {\"version\": 1}");
  EXPECT_FALSE(client_.stats());
  EXPECT_EQ(client_.last_answer(), " {\"version\": 1}");
  prompt_.answer = Error{ErrorCode::unavailable, "gone", ""};
  EXPECT_FALSE(client_.stats());
  EXPECT_EQ(client_.last_answer(), "");
}

TEST(PayloadFromText, IsJsonIfItIsOneValueAndBytesOtherwise) {
  EXPECT_EQ(payload_from_text(" {\"n\": 1.0}\n"), (Payload{Payload::Kind::json, "{\"n\": 1.0}"}));
  EXPECT_EQ(payload_from_text("1e400"), (Payload{Payload::Kind::json, "1e400"}));
  for (const char* text : {"", " ", "hello\n", "{", "1 2", "\xFF"}) {
    EXPECT_EQ(payload_from_text(text), (Payload{Payload::Kind::bytes, text}));
  }
}

}  // namespace
}  // namespace detent

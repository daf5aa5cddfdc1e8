// Tests the client with a scripted HttpClient: the requests that it sends, and how it reads each
// answer. client_test.cc tests which calls are repeated.
#include "detent/client.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/dump_codec.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/schedule_codec.h"
#include "protocol/json/stats_codec.h"
#include "tests/support/scripted_http.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

using Code = ClientError::Code;
using test::Script;
using test::ScriptedHttp;

class ClientRequestsTest : public testing::Test {
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
  Client client_ = ClientInternals::over(std::make_unique<ScriptedHttp>(prompt_),
                                         std::make_unique<ScriptedHttp>(patient_));
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

const std::array<std::string, 2> kLeases{"1-2", "gone"};

TEST_F(ClientRequestsTest, ScheduleSendsTheRequestAndReadsTheTask) {
  answer(201, json::render_accepted(example_view()));
  const auto accepted = client_.schedule({.queue = "a/b", .due = milliseconds{5}});
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(accepted->id, 512U);
  EXPECT_EQ(asked().method, "POST");
  EXPECT_EQ(asked().target, "/v1/tasks");
  EXPECT_EQ(asked().header("content-type"), "application/json");
  EXPECT_EQ(json::parse_schedule(asked().body)->due, Due{milliseconds{5}});
}

TEST_F(ClientRequestsTest, ScheduleChecksTheRequestBeforeItIsSent) {
  EXPECT_EQ(client_.schedule({}).error().field, "queue");
  const client::NewTask no_json{.queue = "q", .payload = {.data = "1}"}};
  EXPECT_EQ(client_.schedule(no_json).error().field, "payload");
  EXPECT_EQ(client_.schedule_many(std::array{no_json}).error().field, "payload");
  EXPECT_TRUE(prompt_.asked.empty());
}

TEST_F(ClientRequestsTest, ManyTasksAreCancelledAndMovedByOneCall) {
  const std::array<client::TaskName, 1> tasks{std::uint64_t{512}};
  const std::vector<Result<TaskId>> results{TaskId{512}};
  answer(200, json::render_cancel_results(results));
  const auto cancelled = client_.cancel_many(tasks);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_TRUE(cancelled->at(0));
  EXPECT_EQ(asked().target, "/v1/tasks/cancel");
  prompt_.asked.clear();
  const std::vector<Result<TaskSnapshot>> moved{example_view()};
  answer(200, json::render_schedule_results(moved));
  const auto accepted = client_.move_many(tasks, milliseconds{5});
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(accepted->at(0)->id, 512U);
  EXPECT_EQ(asked().target, "/v1/tasks/move");
  EXPECT_EQ(client_.move_many({}, milliseconds{-1}).error().code, Code::invalid_argument);
}

TEST_F(ClientRequestsTest, ATaskIsMovedOrRunAndTheNewDueTimeIsRead) {
  answer(200, json::render_accepted(example_view()));
  const auto moved = client_.move(std::uint64_t{512}, milliseconds{5});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->due_at, example_view().task.due_at);
  EXPECT_EQ(asked().method, "PATCH");
  EXPECT_EQ(asked().target, "/v1/tasks/512");
  EXPECT_EQ(json::parse_edit(asked().body).value().due, Due{milliseconds{5}});
  prompt_.asked.clear();
  EXPECT_TRUE(client_.move(client::TaskKey{"a/b", "k/1"}, WallTime{milliseconds{7}}));
  EXPECT_EQ(asked().target, "/v1/queues/a%2Fb/keys/k%2F1");
  EXPECT_EQ(json::parse_edit(asked().body).value().due, Due{WallTime{milliseconds{7}}});
  prompt_.asked.clear();
  EXPECT_TRUE(client_.run_now(512));
  EXPECT_EQ(asked().target, "/v1/tasks/512/run");
  EXPECT_EQ(asked().method, "POST");
  prompt_.asked.clear();
  EXPECT_EQ(client_.move(std::uint64_t{512}, milliseconds{-1}).error().code,
            Code::invalid_argument);
  EXPECT_TRUE(prompt_.asked.empty());
}

TEST_F(ClientRequestsTest, ATaskIsEditedUnlessTheEditIsWrong) {
  using client::Payload;
  answer(200, json::render_accepted(example_view()));
  const Payload bytes{Payload::Kind::bytes, std::string("a\0b", 3)};
  const std::vector<client::Header> headers{{"a", "1"}};
  EXPECT_TRUE(client_.edit(std::uint64_t{512},
                           {.priority = 3, .payload = bytes, .webhook = "", .headers = headers}));
  EXPECT_EQ(asked().method, "PATCH");
  const TaskEdit sent = json::parse_edit(asked().body).value();
  EXPECT_EQ(sent.priority, 3U);
  EXPECT_EQ(sent.payload, (detent::Payload{detent::Payload::Kind::bytes, bytes.data}));
  EXPECT_EQ(sent.webhook, "");
  EXPECT_EQ(sent.headers, (TaskHeaders{{"a", "1"}}));
  prompt_.asked.clear();
  const Payload broken{Payload::Kind::json, "1,\"priority\":0"};
  EXPECT_EQ(client_.edit(std::uint64_t{512}, {.payload = broken}).error().field, "payload");
  EXPECT_TRUE(prompt_.asked.empty());
}

TEST_F(ClientRequestsTest, ACallSendsAnyRequestAndReturnsTheAnswer) {
  answer(200, "detent_tasks 1\n");
  EXPECT_EQ(client_.call("GET", "/metrics").value(), "detent_tasks 1\n");
  EXPECT_TRUE(client_.call("PUT", "/v1/x", "{}"));
  EXPECT_TRUE(client_.call("POST", "/v1/restore", "{}\n"));
  const std::vector<net::HttpRequest>& sent = patient_.asked;
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].method, "GET");
  EXPECT_TRUE(sent[0].headers.empty());
  EXPECT_EQ(sent[1].method, "PUT");
  EXPECT_EQ(sent[1].headers.at(0).second, "application/json");
  EXPECT_EQ(sent[2].headers.at(0).second, json::kDumpContentType);
}

TEST_F(ClientRequestsTest, LeasesAreExtendedAndReleased) {
  const std::array<Result<LeaseOutcome>, 1> outcomes{LeaseOutcome::done};
  answer(200, json::render_lease_results(outcomes));
  const std::array<std::string, 1> leases{"3-17"};
  EXPECT_EQ(client_.extend(leases, milliseconds{60'000})->at(0), client::LeaseStatus::done);
  EXPECT_EQ(asked().target, "/v1/leases/extend");
  EXPECT_EQ(json::parse_extend(asked().body)->by, milliseconds{60'000});
  prompt_.asked.clear();
  EXPECT_EQ(client_.release(leases, {.priority = 3})->at(0), client::LeaseStatus::done);
  EXPECT_EQ(asked().target, "/v1/leases/release");
  EXPECT_EQ(json::parse_release(asked().body)->priority, 3U);
}

TEST_F(ClientRequestsTest, QueuesAreReadAndChanged) {
  const QueueView view{.stats = {.queue = "a/b", .dead = 1}, .bytes = 2, .settings = {.rate = 5}};
  const auto is_read = [](const client::Queue& queue) {
    return queue.name == "a/b" && queue.dead == 1 && queue.bytes == 2 && queue.settings.rate == 5U;
  };
  answer(200, json::render_queue(view));
  EXPECT_TRUE(is_read(client_.queue("a/b").value()));
  client::QueueChange change;
  change.rate.emplace();
  EXPECT_TRUE(is_read(client_.change_queue("a/b", change).value()));
  EXPECT_TRUE(is_read(client_.pause("a/b").value()));
  EXPECT_TRUE(is_read(client_.resume("a/b").value()));
  EXPECT_TRUE(client_.remove_queue("a/b"));
  answer(200, json::render_queues(std::array{view}));
  EXPECT_TRUE(is_read(client_.queues().value().at(0)));
  std::vector<std::string> asked;
  for (const auto& request : prompt_.asked) {
    asked.push_back(request.method + " " + request.target + " " + request.body);
  }
  EXPECT_EQ(asked, (std::vector<std::string>{
                       "GET /v1/queues/a%2Fb ", R"(PATCH /v1/queues/a%2Fb {"rate":null})",
                       "POST /v1/queues/a%2Fb/pause ", "POST /v1/queues/a%2Fb/resume ",
                       "DELETE /v1/queues/a%2Fb ", "GET /v1/queues "}));
}

TEST_F(ClientRequestsTest, CallsThatMayTakeLongUseThePatientConnection) {
  answer(200, json::render_count(7));
  EXPECT_EQ(client_.purge("a/b").value(), 7U);
  EXPECT_EQ(client_.redrive("a/b").value(), 7U);
  answer(200, json::render_backfill_counts({.made = 3, .there = 4, .next = WallTime{}}));
  const auto filled = client_.backfill("s", {.to = WallTime{milliseconds{1}}, .limit = 9});
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_EQ(filled->made, 3U);
  EXPECT_EQ(filled->there, 4U);
  EXPECT_EQ(filled->next, WallTime{});
  EXPECT_TRUE(prompt_.asked.empty());
  ASSERT_EQ(patient_.asked.size(), 3U);
  EXPECT_EQ(patient_.asked[0].target, "/v1/queues/a%2Fb/purge");
  EXPECT_EQ(patient_.asked[1].target, "/v1/queues/a%2Fb/redrive");
  EXPECT_EQ(patient_.asked[2].target, "/v1/schedules/s/backfill");
  EXPECT_EQ(json::parse_backfill(patient_.asked[2].body)->limit, 9U);
}

TEST_F(ClientRequestsTest, ABatchGivesOneResultForEachTask) {
  const Error refused{ErrorCode::too_large, "a payload must be at most 65535 bytes", "payload"};
  const std::array<Result<TaskSnapshot>, 2> results{example_view(), refused};
  answer(200, json::render_schedule_results(results));
  const std::array<client::NewTask, 2> tasks{client::NewTask{.queue = "a"},
                                             client::NewTask{.queue = "b"}};
  const auto accepted = client_.schedule_many(tasks);
  ASSERT_TRUE(accepted);
  ASSERT_EQ(accepted->size(), 2U);
  EXPECT_EQ((*accepted)[0]->id, 512U);
  EXPECT_EQ(to_error((*accepted)[1].error()), refused);
  EXPECT_EQ(asked().target, "/v1/tasks/batch");
}

TEST_F(ClientRequestsTest, GetReadsTheWholeTask) {
  answer(200, json::render_task(example_view()));
  const auto task = client_.get(std::uint64_t{512});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->payload.data, "{ \"n\": 1.0 }");
  EXPECT_EQ(asked().method, "GET");
  EXPECT_EQ(asked().target, "/v1/tasks/512");
}

TEST_F(ClientRequestsTest, CancelNeedsNoBody) {
  answer(204, "");
  EXPECT_TRUE(client_.cancel(std::uint64_t{512}));
  EXPECT_EQ(asked().method, "DELETE");
  EXPECT_EQ(asked().target, "/v1/tasks/512");
}

TEST_F(ClientRequestsTest, ALeaseWithAWaitUsesThePatientConnection) {
  answer(200, json::render_leased_tasks({}));
  const std::string queue = "a/b;$(x)";
  ASSERT_TRUE(client_.lease(queue, {.wait = milliseconds{20'000}}));
  EXPECT_TRUE(prompt_.asked.empty());
  ASSERT_EQ(patient_.asked.size(), 1U);
  EXPECT_EQ(patient_.asked[0].target, "/v1/queues/a%2Fb%3B%24%28x%29/lease");
  EXPECT_EQ(json::parse_lease("q", patient_.asked[0].body)->wait, milliseconds{20'000});

  ASSERT_TRUE(client_.lease(queue));
  EXPECT_EQ(prompt_.asked.size(), 1U);
}

TEST_F(ClientRequestsTest, LeasedTasksComeWithTheirLeases) {
  detent::LeasedTask leased;
  leased.task = example_view().task;
  leased.lease = {1, 2};
  const std::array<detent::LeasedTask, 1> tasks{leased};
  answer(200, json::render_leased_tasks(tasks));
  const auto read = client_.lease("q");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].lease, to_string(LeaseToken{1, 2}));
  EXPECT_EQ((*read)[0].payload.data, "{ \"n\": 1.0 }");
}

TEST_F(ClientRequestsTest, CompleteAndFailReturnTheResultOfEachLease) {
  const std::array<Result<LeaseOutcome>, 2> results{LeaseOutcome::done, LeaseOutcome::conflict};
  answer(200, json::render_lease_results(results));
  const auto completed = client_.complete(kLeases);
  ASSERT_TRUE(completed);
  EXPECT_EQ((*completed)[0], client::LeaseStatus::done);
  EXPECT_EQ((*completed)[1], client::LeaseStatus::conflict);
  EXPECT_EQ(asked().target, "/v1/leases/complete");

  ASSERT_TRUE(client_.fail(kLeases, {.error = "why", .delay = milliseconds{5}}));
  EXPECT_EQ(prompt_.asked[1].target, "/v1/leases/fail");
  EXPECT_EQ(json::parse_fail(prompt_.asked[1].body)->error, "why");
  EXPECT_FALSE(json::parse_fail(prompt_.asked[1].body)->final);
  ASSERT_TRUE(client_.fail(kLeases, {.final = true}));
  EXPECT_TRUE(json::parse_fail(prompt_.asked[2].body)->final);
}

TEST_F(ClientRequestsTest, AnInternalCallerAlsoGetsTheErrorOfALease) {
  const Error damaged{ErrorCode::data_loss, "bad record", ""};
  const std::array<Result<LeaseOutcome>, 2> results{LeaseOutcome::done, damaged};
  answer(200, json::render_lease_results(results));
  EXPECT_EQ(client_.complete(kLeases)->at(1), client::LeaseStatus::error);
  const auto outcomes = ClientInternals::of(client_).call_leases(kLeases, complete_call);
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  EXPECT_EQ(*outcomes->at(0), client::LeaseStatus::done);
  EXPECT_EQ(to_error(outcomes->at(1).error()), damaged);
}

TEST_F(ClientRequestsTest, StatsAreTheUnchangedAnswer) {
  json::ServerStats stats;
  stats.version = "0.1.0";
  stats.queues = {{.queue = "a", .ready = 3}};
  answer(200, json::render_stats(stats));
  EXPECT_EQ(client_.stats().value(), json::render_stats(stats));
  EXPECT_EQ(asked().target, "/v1/stats");
}

TEST_F(ClientRequestsTest, AnErrorOfTheServerIsReturnedUnchanged) {
  const Error conflict{ErrorCode::conflict, "task 512 is leased", "id"};
  answer(409, json::render_problem(conflict));
  EXPECT_EQ(to_error(client_.cancel(std::uint64_t{512}).error()), conflict);
  answer(503, "starting");
  EXPECT_EQ(client_.ready().error().code, Code::unavailable);
  EXPECT_EQ(prompt_.asked.back().target, "/readyz");
}

TEST_F(ClientRequestsTest, ALostConnectionIsReturnedUnchanged) {
  const Error lost{ErrorCode::unavailable, "connect to 127.0.0.1:1: refused", ""};
  prompt_.answer = lost;
  EXPECT_EQ(to_error(client_.stats().error()), lost);
  EXPECT_EQ(to_error(client_.get(std::uint64_t{1}).error()), lost);
}

TEST_F(ClientRequestsTest, AnAnswerThatCannotBeReadIsInternal) {
  answer(200, "<html>");
  EXPECT_EQ(client_.stats().error().code, Code::internal);
  EXPECT_EQ(client_.get(std::uint64_t{1}).error().code, Code::internal);
}

TEST_F(ClientRequestsTest, TheLastAnswerIsKeptUnchanged) {
  answer(200, " {\"version\": 1}");
  EXPECT_FALSE(client_.stats());
  EXPECT_EQ(ClientInternals::of(client_).last_answer(), " {\"version\": 1}");
  prompt_.answer = Error{ErrorCode::unavailable, "gone", ""};
  EXPECT_FALSE(client_.stats());
  EXPECT_EQ(ClientInternals::of(client_).last_answer(), "");
}

}  // namespace
}  // namespace detent

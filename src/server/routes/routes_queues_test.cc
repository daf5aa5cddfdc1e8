// Queues, keys, and moves of tasks over HTTP (routes_fixture.h).
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/wall_time.h"
#include "net/http_server/local_exchange.h"
#include "protocol/json/queue_codec.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using net::HttpResponse;

class RoutesQueuesTest : public RoutesTest {
 protected:
  /// Runs `verb` on the engine's thread, and waits for it.
  void on_engine(const std::function<void(Engine&)>& verb) {
    ASSERT_TRUE(engine_->post([&verb](Engine& engine) { verb(engine); }));
    send("GET", "/v1/stats");  // is answered after it
  }
  std::uint64_t commits() {
    std::uint64_t count = 0;
    on_engine([&count](Engine& engine) { count = engine.stats().commits; });
    return count;
  }
  QueueView queue(const std::string& name) {
    const HttpResponse answer = send("GET", "/v1/queues/" + name);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse_queue(answer.body).value();
  }
  QueueView change(const std::string& name, const std::string& settings) {
    const HttpResponse answer = send("PATCH", "/v1/queues/" + name, settings);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse_queue(answer.body).value();
  }
  std::string state_of(const std::string& id) {
    const HttpResponse answer = send("GET", "/v1/tasks/" + id);
    if (answer.status == 404) return "gone";
    return std::string(to_string(json::parse_task(answer.body).value().state));
  }
  void schedule_many(const std::string& task, std::size_t count) {
    std::string body;
    for (std::size_t i = 0; i < count; ++i) body += task + "\n";
    ASSERT_EQ(post("/v1/tasks/batch", body).status, 200);
  }
  /// Creates a dead task of the queue: its only attempt has failed.
  std::string make_dead(const std::string& name) {
    std::string id = schedule(R"({"queue":")" + name + R"(","max_attempts":1})");
    fail(lease(name).at(0).lease);
    return id;
  }
  void fail(const std::string& lease) {
    post("/v1/leases/fail", R"({"leases":[")" + lease + R"("]})");
  }
};

TEST_F(RoutesQueuesTest, TheLargestQueuesAreListedOrThoseOfAName) {
  for (const char* name : {"mail", "mail.slow", "orders", "orders"}) {
    schedule(R"({"queue":")" + std::string(name) + R"("})");
  }
  const auto names = [this](const std::string& query) {
    const HttpResponse answer = send("GET", "/v1/queues" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::vector<std::string> found;
    const Result<std::vector<QueueView>> views = json::parse_queues(answer.body);
    for (const QueueView& view : views.value()) found.push_back(view.stats.queue);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(""), (Names{"mail", "mail.slow", "orders"}));
  EXPECT_EQ(names("?limit=1"), Names{"orders"});
  EXPECT_EQ(names("?limit=9"), (Names{"mail", "mail.slow", "orders"}));
  EXPECT_EQ(names("?name=ail"), (Names{"mail", "mail.slow"}));
  EXPECT_EQ(names("?name=mail&limit=1"), Names{"mail"});
  EXPECT_EQ(names("?name=AIL.S"), Names{"mail.slow"});
  EXPECT_EQ(names("?name=x"), Names());
  EXPECT_EQ(send("GET", "/v1/queues?limit=0").status, 400);
  EXPECT_EQ(send("GET", "/v1/queues?nam=mail").status, 400);
}

// ---- a flood ----

TEST_F(RoutesQueuesTest, WhoeverNamesAQueueIsInItsOrderWhileRequestsWaitForTheirTurn) {
  using Request = net::HttpRequest;
  const auto begin = [this](Request request) {
    auto promise = std::make_shared<std::promise<HttpResponse>>();
    routes_->handle(std::move(request), net::Responder(std::make_shared<net::LocalExchange>(
                                            [promise](std::optional<HttpResponse> response) {
                                              promise->set_value(*std::move(response));
                                              return true;
                                            })));
    return promise->get_future();
  };
  // These are sent one after another. At the same time many requests without a queue wait, and each
  // takes a millisecond.
  const auto in_flood = [&](Request first, Request second) {
    std::promise<void> go;
    engine_->post_end([held = go.get_future().share()](Engine&) { held.wait(); });
    for (int i = 0; i < 50; ++i) engine_->post_end([this](Engine&) { clock_.advance(1ms); });
    auto first_answer = begin(std::move(first));
    auto second_answer = begin(std::move(second));
    go.set_value();
    HttpResponse answer = first_answer.get();
    return std::pair(std::move(answer), second_answer.get());
  };
  const Request put{"POST", "/v1/tasks", {}, R"({"queue":"q","key":"k","delay":"1h"})"};
  const Request get_key{"GET", "/v1/queues/q/keys/k", {}, ""};
  const Request get_queue{"GET", "/v1/queues/q", {}, ""};
  change("q", R"({"key_retention":"0s"})");
  EXPECT_EQ(in_flood(get_key, put).first.status, 404);
  EXPECT_EQ(in_flood({"DELETE", "/v1/queues/q/keys/k", {}, ""}, put).second.status, 201);
  const Request cancel{"POST", "/v1/tasks/cancel", {}, R"({"queue":"q","keys":["k"]})"};
  EXPECT_EQ(in_flood(cancel, put).second.status, 201);
  EXPECT_EQ(in_flood({"POST", "/v1/queues/q/purge", {}, ""}, put).second.status, 201);
  EXPECT_EQ(in_flood({"POST", "/v1/queues/q/purge", {}, ""}, get_key).second.status, 404);
  const auto before = json::parse_queue(in_flood(get_queue, put).first.body);
  EXPECT_EQ(before->stats.scheduled, 0U);
  schedule(R"({"queue":"q"})");
  const Request lease{"POST", "/v1/queues/q/lease", {}, ""};
  const std::string nothing = R"({"tasks":[]})";
  EXPECT_EQ(in_flood({"POST", "/v1/queues/q/pause", {}, ""}, lease).second.body, nothing);
  EXPECT_NE(in_flood({"PATCH", "/v1/queues/q", {}, R"({"paused":false})"}, lease).second.body,
            nothing);
  change("r", R"({"paused":true})");
  EXPECT_EQ(
      in_flood({"DELETE", "/v1/queues/r", {}, ""}, {"GET", "/v1/queues/r", {}, ""}).second.status,
      404);
}

// ---- keys ----

TEST_F(RoutesQueuesTest, ARepeatedKeyIsAnsweredWithTheFirstTask) {
  const std::string body = R"({"queue":"q","key":"o-1","delay":"1h","payload":1})";
  const HttpResponse first = post("/v1/tasks", body);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.body.find("was_there"), std::string::npos) << first.body;
  const HttpResponse again = post("/v1/tasks", body);
  EXPECT_EQ(again.status, 200);
  auto task = json::parse_accepted(again.body).value();
  EXPECT_TRUE(task.was_there);
  task.was_there = false;
  EXPECT_EQ(task, json::parse_accepted(first.body).value());
  expect_problem(post("/v1/tasks", R"({"queue":"q","key":"o-1","delay":"2h","payload":1})"), 409,
                 {"key"});
  EXPECT_EQ(post("/v1/tasks", R"({"queue":"r","key":"o-1"})").status, 201);
  EXPECT_EQ(queue("q").stats.scheduled, 1U);
}

TEST_F(RoutesQueuesTest, ABatchHonoursKeysOneByOne) {
  const HttpResponse answer = post("/v1/tasks/batch", R"([{"queue":"q","key":"a","delay":"1h"},
      {"queue":"q","key":"a","delay":"1h"},{"queue":"q","key":"a","delay":"2h"},
      {"queue":"q","key":"b","delay":"1h"}])");
  EXPECT_EQ(answer.status, 200);
  const auto results = json::parse_schedule_results(answer.body).value();
  ASSERT_EQ(results.size(), 4U);
  EXPECT_FALSE(results[0]->was_there);
  EXPECT_TRUE(results[1]->was_there);
  EXPECT_EQ(results[1]->id, results[0]->id);
  EXPECT_EQ(results[2].error().code, ErrorCode::conflict);
  EXPECT_FALSE(results[3]->was_there);
  EXPECT_EQ(queue("q").stats.scheduled, 2U);
}

TEST_F(RoutesQueuesTest, ATaskIsReadMovedAndCancelledByItsKey) {
  const std::string id = schedule(R"({"queue":"a/b","key":"o/1 ä","delay":"1h"})");
  const std::string path = "/v1/queues/a%2Fb/keys/o%2F1%20%C3%A4";
  const HttpResponse read = send("GET", path);
  EXPECT_EQ(read.status, 200) << read.body;
  EXPECT_EQ(read.body, send("GET", "/v1/tasks/" + id).body);
  const HttpResponse moved = send("PATCH", path, R"({"delay":"2h"})");
  EXPECT_EQ(moved.status, 200) << moved.body;
  EXPECT_EQ(json::parse_accepted(moved.body)->due_at,
            std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now()) + 2h);
  const HttpResponse cancelled = send("DELETE", path);
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(cancelled.body, R"({"id":")" + id + R"(","state":"cancelled"})");
  EXPECT_EQ(state_of(id), "gone");
  for (const char* method : {"GET", "DELETE"}) expect_problem(send(method, path), 404, {"key"});
  expect_problem(send("PATCH", path, R"({"delay":"2h"})"), 404, {"key"});
  expect_problem(send("GET", "/v1/queues/none/keys/k"), 404, {"queue"});
}

// ---- one task ----

TEST_F(RoutesQueuesTest, ATaskIsMovedByADelayOrToADate) {
  const std::string id = schedule(R"({"queue":"q"})");
  EXPECT_EQ(state_of(id), "ready");
  const HttpResponse later = send("PATCH", "/v1/tasks/" + id, R"({"delay":"30s"})");
  EXPECT_EQ(later.status, 200) << later.body;
  EXPECT_EQ(json::parse_accepted(later.body)->state, TaskState::scheduled);
  EXPECT_TRUE(lease("q").empty());
  const HttpResponse dated =
      send("PATCH", "/v1/tasks/" + id, R"({"due_at":"2100-01-02T03:04:05Z"})");
  EXPECT_EQ(format_rfc3339(json::parse_accepted(dated.body)->due_at), "2100-01-02T03:04:05.000Z");
  send("PATCH", "/v1/tasks/" + id, R"({"delay_ms":0})");
  EXPECT_EQ(lease("q").size(), 1U);
  expect_problem(send("PATCH", "/v1/tasks/" + id, R"({"delay":"1s"})"), 409, {"leased"});
}

TEST_F(RoutesQueuesTest, AnInvalidMoveIsRefused) {
  const std::string id = schedule(R"({"queue":"q","delay":"1h"})");
  const std::string path = "/v1/tasks/" + id;
  expect_problem(send("PATCH", path, R"({"priority":-1})"), 400, {"priority"});
  expect_problem(send("PATCH", path, R"({"delay":"1s","due_at":0})"), 400, {"due_at"});
  expect_problem(send("PATCH", path, "{}"), 400, {"due_at"});
  expect_problem(send("PATCH", path, R"({"dely":"1s"})"), 400, {"dely"});
  expect_problem(send("PATCH", path, R"({"delay":"200000d"})"), 400, {"delay"});
  expect_problem(send("PATCH", "/v1/tasks/512000", R"({"delay":"1s"})"), 404, {});
  expect_problem(send("PATCH", "/v1/tasks/x", R"({"delay":"1s"})"), 404, {"id"});
  EXPECT_EQ(state_of(id), "scheduled");
}

TEST_F(RoutesQueuesTest, ATaskIsRunNow) {
  const std::string id = schedule(R"({"queue":"q","delay":"100d"})");
  expect_problem(post("/v1/tasks/" + id + "/run", R"({"delay":"1s"})"), 400, {"delay"});
  const HttpResponse answer = post("/v1/tasks/" + id + "/run", "");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(to_string(json::parse_accepted(answer.body)->id), id);
  const auto leased = lease("q");
  ASSERT_EQ(leased.size(), 1U);
  expect_problem(post("/v1/tasks/" + id + "/run", "{}"), 409, {"leased"});
  expect_problem(post("/v1/tasks/512000/run", ""), 404, {});
  const std::string dead = make_dead("d");
  EXPECT_EQ(state_of(dead), "dead");
  EXPECT_EQ(post("/v1/tasks/" + dead + "/run", "").status, 200);
  EXPECT_EQ(lease("d").size(), 1U);
}

// ---- leases ----

TEST_F(RoutesQueuesTest, ALeaseThatIsExtendedRunsOutLater) {
  schedule(R"({"queue":"q","visibility_timeout":"10s"})");
  const std::string token = lease("q").at(0).lease;
  const HttpResponse answer =
      post("/v1/leases/extend", R"({"leases":[")" + token + R"(","x"],"by":"60s"})");
  EXPECT_EQ(answer.body, R"({"results":[{"status":"done"},{"status":"conflict"}]})");
  advance(59s);
  EXPECT_EQ(queue("q").stats.leased, 1U);
  advance(2s);
  EXPECT_EQ(queue("q").stats.leased, 0U);
  expect_problem(post("/v1/leases/extend", R"({"leases":[],"by":"31d"})"), 400, {"by"});
}

TEST_F(RoutesQueuesTest, ATaskThatIsReleasedIsAsBefore) {
  const std::string id = schedule(R"({"queue":"q","priority":7})");
  const std::string first = lease("q").at(0).lease;
  const auto release = [this](const std::string& token, const std::string& rest) {
    return post("/v1/leases/release", R"({"leases":[")" + token + "\"]" + rest + "}").body;
  };
  EXPECT_EQ(release(first, ""), R"({"results":[{"status":"done"}]})");
  EXPECT_EQ(release(first, ""), R"({"results":[{"status":"conflict"}]})");
  const auto again = lease("q").at(0);
  EXPECT_EQ(again.attempt, 1U);
  EXPECT_EQ(again.priority, 7U);
  release(again.lease, R"(,"delay":"30s","priority":9)");
  EXPECT_EQ(state_of(id), "scheduled");
  advance(30s);
  const auto later = lease("q").at(0);
  EXPECT_EQ(later.attempt, 1U);
  EXPECT_EQ(later.priority, 9U);
  expect_problem(post("/v1/leases/release", R"({"leases":[],"error":"e"})"), 400, {"error"});
}

// ---- settings ----

TEST_F(RoutesQueuesTest, AQueueIsShownWithItsCountsAndSettings) {
  expect_problem(send("GET", "/v1/queues/q"), 404, {"queue"});
  EXPECT_EQ(send("GET", "/v1/queues").body, R"({"queues":[]})");
  schedule(R"({"queue":"q","payload":"abc"})");
  schedule(R"({"queue":"q","delay":"1h","payload":12})");
  make_dead("b");
  advance(1500ms);
  const QueueView view = queue("q");
  EXPECT_EQ(view.stats, (QueueStats{.queue = "q",
                                    .scheduled = 1,
                                    .ready = 1,
                                    .oldest_ready_age = std::chrono::milliseconds{1500}}));
  EXPECT_EQ(view.bytes, 7U);
  EXPECT_EQ(view.settings, QueueSettings{});
  const auto all = json::parse_queues(send("GET", "/v1/queues").body).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].stats,
            (QueueStats{
                .queue = "b", .dead = 1, .last_handed_out_age = std::chrono::milliseconds{1500}}));
  EXPECT_EQ(all[1], view);
}

TEST_F(RoutesQueuesTest, ANameMayHaveColons) {
  const std::string id = schedule(R"({"queue":"orders:eu","key":"k:1"})");
  schedule(R"({"queue":"orders"})");
  EXPECT_EQ(queue("orders:eu").stats.ready, 1U);
  EXPECT_EQ(queue("orders%3Aeu").stats.ready, 1U);
  EXPECT_NE(send("GET", "/v1/queues/orders:eu/keys/k:1").body.find(id), std::string::npos);
  for (const char* name : {"orders:eu", "orders%3aeu"}) {
    const HttpResponse list = send("GET", "/v1/tasks?limit=1&queue=" + std::string(name));
    EXPECT_NE(list.body.find(id), std::string::npos) << list.body;
  }
  EXPECT_EQ(send("POST", "/v1/queues/orders:eu/pause").status, 200);
  EXPECT_EQ(send("POST", "/v1/queues/orders:eu/resume").status, 200);
  EXPECT_EQ(lease("orders:eu").at(0).queue, "orders:eu");
}

TEST_F(RoutesQueuesTest, AQueueThatWorkersOnlyWaitForIsNotListed) {
  EXPECT_TRUE(lease("q").empty());
  const auto worker = new_client();
  on_engine([](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 60s, [](Result<std::vector<LeasedTask>>) {});
  });
  EXPECT_EQ(send("GET", "/v1/queues").body, R"({"queues":[]})");
}

TEST_F(RoutesQueuesTest, AChangeMakesTheQueueAndLeavesOtherSettings) {
  EXPECT_EQ(change("q", R"({"max_tasks":5,"rate":10})").settings,
            (QueueSettings{.max_tasks = 5, .rate = 10}));
  EXPECT_EQ(change("q", R"({"rate":null,"retention":"1d"})").settings,
            (QueueSettings{.retention = 24h, .max_tasks = 5}));
  EXPECT_EQ(change("q", "{}"), queue("q"));
  EXPECT_EQ(change("q", R"({"max_tasks":null,"retention":null})").settings, QueueSettings{});
}

TEST_F(RoutesQueuesTest, AChangeThatIsWrongChangesNothing) {
  expect_problem(send("PATCH", "/v1/queues/q", R"({"paused":true,"colour":1})"), 400, {"colour"});
  expect_problem(send("PATCH", "/v1/queues/q", R"({"webhook":"ftp://a"})"), 400, {"webhook"});
  expect_problem(send("PATCH", "/v1/queues/q", R"({"visibility_timeout_ms":0})"), 400,
                 {"visibility_timeout"});
  expect_problem(send("PATCH", "/v1/queues/-q", "{}"), 400, {"queue"});
  expect_problem(send("PATCH", "/v1/queues/q", ""), 400, {});
  EXPECT_EQ(send("GET", "/v1/queues").body, R"({"queues":[]})");
}

TEST_F(RoutesQueuesTest, ATaskIsShownWithTheRulesOfItsQueueWhereItHasNone) {
  change("q", R"({"max_attempts":3,"visibility_timeout":"5s","backoff":{"initial":"2s"}})");
  const std::string id = schedule(R"({"queue":"q","max_attempts":4})");
  const TaskRules rules = json::parse_task(send("GET", "/v1/tasks/" + id).body)->task.rules;
  EXPECT_EQ(rules.max_attempts, 4U);
  EXPECT_EQ(rules.visibility_timeout, 5s);
  EXPECT_EQ(rules.backoff, (Backoff{.initial = 2s}));
  EXPECT_EQ(json::parse_task(send("GET", "/v1/tasks/" + schedule(R"({"queue":"q"})")).body)
                ->task.rules.max_attempts,
            3U);
}

TEST_F(RoutesQueuesTest, AReachedQuotaIs429) {
  change("q", R"({"max_tasks":1})");
  schedule(R"({"queue":"q","delay":"1h"})");
  expect_problem(post("/v1/tasks", R"({"queue":"q"})"), 429, {"resource_exhausted", "tasks"});
  const auto results =
      json::parse_schedule_results(post("/v1/tasks/batch", R"([{"queue":"q"},{"queue":"r"}])").body)
          .value();
  EXPECT_EQ(results.at(0).error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(results.at(1));
  change("q", R"({"max_tasks":null,"max_bytes":8})");
  EXPECT_EQ(post("/v1/tasks", R"({"queue":"q"})").status, 201);
  expect_problem(post("/v1/tasks", R"({"queue":"q"})"), 429, {"bytes"});
}

TEST_F(RoutesQueuesTest, ALimitOfLeasesHolds) {
  change("q", R"({"concurrency":2})");
  schedule_many(R"({"queue":"q"})", 3);
  EXPECT_EQ(lease("q", R"({"max":10})").size(), 2U);
  EXPECT_TRUE(lease("q").empty());
}

TEST_F(RoutesQueuesTest, APausedQueueHandsOutNothingUntilItIsResumed) {
  expect_problem(post("/v1/queues/q/pause", ""), 404, {"queue"});
  schedule(R"({"queue":"q"})");
  change("q", R"({"rate":9})");
  const HttpResponse paused = post("/v1/queues/q/pause", "");
  EXPECT_EQ(paused.status, 200);
  EXPECT_EQ(json::parse_queue(paused.body)->settings, (QueueSettings{.paused = true, .rate = 9}));
  EXPECT_TRUE(lease("q").empty());
  const HttpResponse resumed = post("/v1/queues/q/resume", "{}");
  EXPECT_EQ(json::parse_queue(resumed.body)->settings, QueueSettings{.rate = 9});
  EXPECT_EQ(lease("q").size(), 1U);
  expect_problem(post("/v1/queues/none/resume", ""), 404, {"queue"});
  EXPECT_EQ(send("GET", "/v1/queues/none").status, 404);
}

TEST_F(RoutesQueuesTest, OnlyAnEmptyQueueIsRemoved) {
  expect_problem(send("DELETE", "/v1/queues/a%2Fb"), 404, {"queue"});
  const std::string id = schedule(R"({"queue":"a/b","delay":"1h"})");
  expect_problem(send("DELETE", "/v1/queues/a%2Fb"), 409, {"purge"});
  send("DELETE", "/v1/tasks/" + id);
  const HttpResponse removed = send("DELETE", "/v1/queues/a%2Fb");
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body, R"({"queue":"a/b","removed":true})");
  EXPECT_EQ(send("GET", "/v1/queues/a%2Fb").status, 404);
}

TEST_F(RoutesQueuesTest, AKeptTaskCanBeReadAfterItsQueueWasRemoved) {
  change("q", R"({"retention":"1h","max_attempts":3})");
  const std::string id = schedule(R"({"queue":"q"})");
  ASSERT_EQ(send("DELETE", "/v1/tasks/" + id).status, 200);
  ASSERT_EQ(send("DELETE", "/v1/queues/q").status, 200);
  EXPECT_EQ(state_of(id), "cancelled");
}

// ---- whole queues ----

TEST_F(RoutesQueuesTest, APurgeRemovesAllButLeasedTasks) {
  const std::string dead = make_dead("q");
  const std::string leased = schedule(R"({"queue":"q"})");
  ASSERT_EQ(lease("q").size(), 1U);
  const std::string ready = schedule(R"({"queue":"q"})");
  const std::string far = schedule(R"({"queue":"q","delay":"100d"})");
  const std::string other = schedule(R"({"queue":"r","delay":"100d"})");
  const HttpResponse answer = post("/v1/queues/q/purge", "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"count":3})");
  for (const std::string& id : {dead, ready, far}) EXPECT_EQ(state_of(id), "gone");
  EXPECT_EQ(state_of(leased), "leased");
  EXPECT_EQ(state_of(other), "scheduled");
  EXPECT_EQ(post("/v1/queues/q/purge", "").body, R"({"count":0})");
  expect_problem(post("/v1/queues/none/purge", ""), 404, {"queue"});
}

TEST_F(RoutesQueuesTest, ALargeQueueIsPurgedInStepsOfTheirOwn) {
  schedule_many(R"({"queue":"q","delay":"100d"})", 2'500);
  schedule_many(R"({"queue":"q"})", 500);
  const std::uint64_t before = commits();
  EXPECT_EQ(post("/v1/queues/q/purge", "").body, R"({"count":3000})");
  EXPECT_GE(commits(), before + 3);
  EXPECT_EQ(queue("q").stats, QueueStats{.queue = "q"});
  EXPECT_EQ(queue("q").bytes, 0U);
}

TEST_F(RoutesQueuesTest, OthersAreServedBetweenTheStepsOfAPurge) {
  schedule_many(R"({"queue":"q","delay":"100d"})", 3'000);
  // Repeats the look. Each look runs behind the commands that wait for the engine.
  std::set<std::uint64_t> seen;
  std::function<void(Engine&)> look = [&](Engine& engine) {
    const std::uint64_t left = engine.queue("q")->stats.scheduled;
    seen.insert(left);
    if (left == 0) return;
    EXPECT_TRUE(engine_->post([&look](Engine& later) { look(later); }));
  };
  on_engine([&look](Engine& engine) { look(engine); });
  EXPECT_EQ(post("/v1/queues/q/purge", "").body, R"({"count":3000})");
  on_engine([](Engine&) {});
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1'000, 2'000, 3'000}));
}

TEST_F(RoutesQueuesTest, ARedriveBringsAllDeadTasksBack) {
  std::vector<std::string> dead;
  for (int i = 0; i < 3; ++i) dead.push_back(make_dead("q"));
  make_dead("r");
  EXPECT_EQ(post("/v1/queues/q/redrive", "{}").body, R"({"count":3})");
  for (const std::string& id : dead) EXPECT_EQ(state_of(id), "ready");
  EXPECT_EQ(queue("r").stats.dead, 1U);
  EXPECT_EQ(post("/v1/queues/q/redrive", "").body, R"({"count":0})");
  expect_problem(post("/v1/queues/none/redrive", ""), 404, {"queue"});
}

TEST_F(RoutesQueuesTest, ALargeRedriveGoesInStepsToo) {
  schedule_many(R"({"queue":"q","max_attempts":1})", 1'500);
  for (;;) {
    const auto tasks = lease("q", R"({"max":1000})");
    if (tasks.empty()) break;
    std::string leases;
    for (const auto& task : tasks) leases += (leases.empty() ? "\"" : ",\"") + task.lease + "\"";
    post("/v1/leases/fail", "{\"leases\":[" + leases + "]}");
  }
  ASSERT_EQ(queue("q").stats.dead, 1'500U);
  const std::uint64_t before = commits();
  EXPECT_EQ(post("/v1/queues/q/redrive", "").body, R"({"count":1500})");
  EXPECT_GE(commits(), before + 2);
  EXPECT_EQ(queue("q").stats.ready, 1'500U);
}

TEST_F(RoutesQueuesTest, AStopOfTheServerEndsAPurge) {
  schedule_many(R"({"queue":"q","delay":"1h"})", 2'500);
  between_steps([](const Engine& engine) { return engine.stats().all.scheduled < 2'500; },
                [](Engine& engine) { engine.end_waits(); });
  expect_problem(post("/v1/queues/q/purge", ""), 503, {"is stopping", "1000 tasks were changed"});
  EXPECT_EQ(queue("q").stats.scheduled, 1'500U);
}

TEST_F(RoutesQueuesTest, AVerbOverAQueueRefusesWhatItDoesNotKnow) {
  const std::string id = schedule(R"({"queue":"q","delay":"1h"})");
  for (const char* verb : {"purge", "redrive", "pause", "resume"}) {
    const std::string path = std::string("/v1/queues/q/") + verb;
    expect_problem(post(path, R"({"state":"dead"})"), 400, {"state"});
    expect_problem(post(path + "?state=dead", ""), 400, {"state"});
    EXPECT_EQ(send("GET", path).status, 405);
  }
  EXPECT_EQ(state_of(id), "scheduled");
}

}  // namespace
}  // namespace detent::server

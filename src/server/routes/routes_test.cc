// The HTTP interface over a socket (routes_fixture.h).
#include "server/routes/routes.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/http_server/local_exchange.h"
#include "protocol/json/answer_codec.h"
#include "server/operate/disk_watch.h"
#include "server/testing/routes_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

using net::HttpResponse;

TEST_F(RoutesTest, ATaskGoesThroughItsLife) {
  const HttpResponse created =
      post("/v1/tasks", R"({"queue":"mail","payload":{"to": "ada"},"delay":"3s"})");
  EXPECT_EQ(created.status, 201);
  const std::string id = to_string(json::parse_accepted(created.body).value().id);
  EXPECT_NE(created.body.find(R"("state":"scheduled")"), std::string::npos);
  EXPECT_TRUE(lease("mail").empty());
  advance(3s);
  const auto tasks = lease("mail");
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(to_string(tasks[0].id), id);
  EXPECT_EQ(tasks[0].payload.data, R"({"to": "ada"})");
  EXPECT_EQ(tasks[0].attempt, 1u);
  EXPECT_EQ(tasks[0].lateness, 0ms);
  const std::string leases = R"({"leases":[")" + tasks[0].lease + R"("]})";
  EXPECT_EQ(post("/v1/leases/complete", leases).body, R"({"results":[{"status":"done"}]})");
  EXPECT_EQ(send("GET", "/v1/tasks/" + id).status, 404);
}

TEST_F(RoutesTest, AStaleLeaseIsAConflictAndChangesNothing) {
  schedule(R"({"queue":"q"})");
  const auto tasks = lease("q");
  const std::string leases = R"({"leases":[")" + tasks.at(0).lease + R"(","no lease"]})";
  EXPECT_EQ(post("/v1/leases/complete", leases).body,
            R"({"results":[{"status":"done"},{"status":"conflict"}]})");
  EXPECT_EQ(post("/v1/leases/complete", leases).body,
            R"({"results":[{"status":"conflict"},{"status":"conflict"}]})");
}

TEST_F(RoutesTest, AFailedTaskComesBackAndIsDeadAtTheEnd) {
  const std::string id = schedule(R"({"queue":"q","max_attempts":2})");
  const auto fail = [&] {
    const std::string token = lease("q").at(0).lease;
    return post("/v1/leases/fail", R"({"leases":[")" + token + R"("],"delay":"5s","error":"x"})");
  };
  EXPECT_EQ(fail().body, R"({"results":[{"status":"done"}]})");
  advance(5s);
  EXPECT_EQ(fail().body, R"({"results":[{"status":"dead"}]})");
  EXPECT_NE(send("GET", "/v1/tasks/" + id).body.find(R"("state":"dead")"), std::string::npos);
}

TEST_F(RoutesTest, ARequestForAKeyCanReplaceOrPostponeItsTask) {
  const auto put = [&](const std::string& more) {
    return post("/v1/tasks", R"({"queue":"q","key":"k","delay":"30s",)" + more + "}");
  };
  const HttpResponse first = put(R"("payload":1)");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(put(R"("payload":2)").status, 409);
  const HttpResponse replaced = put(R"("payload":2,"on_key":"replace")");
  EXPECT_EQ(replaced.status, 200);
  EXPECT_EQ(replaced.header("location"), first.header("location"));
  EXPECT_NE(send("GET", "/v1/queues/q/keys/k").body.find(R"("payload":2)"), std::string::npos);
  advance(20s);
  EXPECT_EQ(put(R"("payload":3,"on_key":"postpone","max_wait":"40s")").status, 200);
  EXPECT_NE(send("GET", "/v1/queues/q/keys/k").body.find(R"("payload":2)"), std::string::npos);
  advance(19s);
  EXPECT_TRUE(lease("q").empty());
  advance(1s);
  EXPECT_EQ(lease("q").size(), 1U);
  expect_problem(post("/v1/tasks", R"({"queue":"q","on_key":"replace"})"), 400, {"on_key", "key"});
  expect_problem(put(R"("max_wait":"1m")"), 400, {"max_wait"});
}

TEST_F(RoutesTest, AFinalFailureMakesATaskDeadWhateverAttemptsAreLeft) {
  const std::string id = schedule(R"({"queue":"q","max_attempts":25})");
  const std::string token = lease("q").at(0).lease;
  const std::string body =
      R"({"leases":[")" + token + R"("],"final":true,"error":"no such order"})";
  EXPECT_EQ(post("/v1/leases/fail", body).body, R"({"results":[{"status":"dead"}]})");
  EXPECT_EQ(post("/v1/leases/fail", body).body, R"({"results":[{"status":"conflict"}]})");
  const std::string task = send("GET", "/v1/tasks/" + id).body;
  EXPECT_NE(task.find(R"("state":"dead")"), std::string::npos) << task;
  EXPECT_NE(task.find(R"("last_error":"no such order")"), std::string::npos) << task;
  EXPECT_NE(task.find(R"("attempts":1)"), std::string::npos) << task;
}

TEST_F(RoutesTest, ATaskIsCancelledOnceAndNotWhileLeased) {
  const std::string path = "/v1/tasks/" + schedule(R"({"queue":"q","delay":"1h"})");
  EXPECT_EQ(send("DELETE", path).status, 200);
  expect_problem(send("DELETE", path), 404, {"there is no task"});
  const std::string leased = "/v1/tasks/" + schedule(R"({"queue":"q"})");
  lease("q");
  expect_problem(send("DELETE", leased), 409, {"leased"});
}

TEST_F(RoutesTest, ABatchAnswersEachTaskInOrder) {
  const HttpResponse answer = post(
      "/v1/tasks/batch", R"([{"queue":"q"},{"queue":"no spaces"},{"queue":"q","delay":"1h"}])");
  EXPECT_EQ(answer.status, 200);
  const auto results = json::parse_schedule_results(answer.body).value();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[1].error().field, "queue");
  EXPECT_EQ(results[2].value().state, TaskState::scheduled);
}

TEST_F(RoutesTest, ALongPollIsAnsweredTheMomentATaskIsDue) {
  schedule(R"({"queue":"q","delay":"250ms"})");
  test::RawSocket poll(http_->port());
  poll.send(
      "POST /v1/queues/q/lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
      "14\r\n\r\n{\"wait\":\"20s\"}");
  while (send("GET", "/v1/stats").body.find(R"("waiting_workers":1)") == std::string::npos) {
  }
  advance(250ms);
  EXPECT_NE(poll.read_response().find(R"("lateness_ms":0)"), std::string::npos);
}

// As `printf … | nc -q1` does it.
TEST_F(RoutesTest, WhoEndedOnlyItsSideIsAnsweredButGetsNoTask) {
  const std::string id = schedule(R"({"queue":"q"})");
  for (const auto& [request, answer] : {
           std::pair{"GET /v1/tasks/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     "\"id\":\"" + id + "\""},
           std::pair{std::string("POST /v1/queues/q/lease HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Length: 0\r\n\r\n"),
                     std::string(R"({"tasks":[]})")},
       }) {
    std::promise<void> go_on;
    ASSERT_TRUE(engine_->post([stands = go_on.get_future()](Engine&) { stands.wait(); }));
    test::RawSocket client(http_->port());
    client.send(request);
    client.shut_down_sending();
    test::RawSocket other(http_->port());  // answered by the thread that saw the end before
    other.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(other.read_response().substr(0, 12), "HTTP/1.1 200");
    go_on.set_value();
    const std::string got = client.read_to_end();
    EXPECT_NE(got.find(answer), std::string::npos) << request << got;
  }
  EXPECT_EQ(lease("q").size(), 1u);
}

TEST_F(RoutesTest, AClientGoneInTheMiddleOfALongPollGetsNoTask) {
  {
    test::RawSocket poll(http_->port());
    poll.send(
        "POST /v1/queues/q/lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        "14\r\n\r\n{\"wait\":\"20s\"}");
    while (send("GET", "/v1/stats").body.find(R"("waiting_workers":1)") == std::string::npos) {
    }
  }
  while (send("GET", "/v1/stats").body.find(R"("waiting_workers":0)") == std::string::npos) {
  }
  schedule(R"({"queue":"q"})");
  EXPECT_EQ(lease("q").size(), 1u);
}

TEST_F(RoutesTest, AClientGoneWhileTheEngineHasTooMuchToDoGetsNoTaskEither) {
  std::promise<void> go_on;
  {
    test::RawSocket poll(http_->port());
    poll.send(
        "POST /v1/queues/q/lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        "14\r\n\r\n{\"wait\":\"20s\"}");
    while (send("GET", "/v1/stats").body.find(R"("waiting_workers":1)") == std::string::npos) {
    }
    ASSERT_TRUE(engine_->post([stands = go_on.get_future()](Engine&) { stands.wait(); }));
    while (engine_->post([](Engine&) {})) {
    }
    ASSERT_EQ(http_->connections(), 2u);
  }
  while (http_->connections() > 1) {
  }
  go_on.set_value();
  client_ = new_client();
  while (send("GET", "/readyz").status != 200) {
  }
  schedule(R"({"queue":"q"})");
  EXPECT_EQ(lease("q").size(), 1u);
}

TEST_F(RoutesTest, HalfARequestAndThenSilenceIsAnsweredAndClosed) {
  listen(200ms);
  test::RawSocket half(http_->port());
  half.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"queue\":");
  EXPECT_TRUE(half.read_to_end().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(send("GET", "/healthz").status, 200);
}

TEST_F(RoutesTest, BadTasksAreRefusedWithTheFieldNamed) {
  const struct {
    const char* body;
    std::vector<std::string> words;
  } kCases[] = {
      {"", {"JSON"}},
      {"{", {"JSON"}},
      {"{\"queue\":\"q\"} x", {"JSON"}},
      {"[]", {"object"}},
      {R"({})", {"queue"}},
      {R"({"queue":7})", {"queue"}},
      {R"({"queue":""})", {"queue"}},
      {R"({"queue":"q","colour":"red"})", {"colour"}},
      {R"({"queue":"q","delay":"-1s"})", {"delay"}},
      {R"({"queue":"q","delay_ms":-1})", {"delay_ms"}},
      {R"({"queue":"q","delay":"soon"})", {"delay"}},
      {R"({"queue":"q","delay":"4294967296s"})", {"delay"}},
      {R"({"queue":"q","delay_ms":18446744073709551617})", {"delay_ms"}},
      {R"({"queue":"q","delay":"P1Y"})", {"delay"}},
      {R"({"queue":"q","delay":"1s","due_at":0})", {"delay"}},
      {R"({"queue":"q","due_at":"yesterday"})", {"due_at"}},
      {R"({"queue":"q","due_at":"10000-01-01T00:00:00Z"})", {"due_at"}},
      {R"({"queue":"q","priority":4294967296})", {"priority"}},
      {R"({"queue":"q","max_attempts":0})", {"max_attempts"}},
      {R"({"queue":"q","payload":1,"payload_base64":"AA=="})", {"payload"}},
      {R"({"queue":"q","payload_base64":"A"})", {"payload_base64"}},
  };
  for (const auto& bad : kCases) {
    SCOPED_TRACE(bad.body);
    expect_problem(post("/v1/tasks", bad.body), 400, bad.words);
  }
  EXPECT_EQ(engine_stats().counters.scheduled, 0u);
}

TEST_F(RoutesTest, APayloadMayHave65535BytesAndNotOneMore) {
  const auto task_of = [](std::size_t bytes) {
    return R"({"queue":"q","payload":")" + std::string(bytes - 2, 'x') + R"("})";
  };
  EXPECT_EQ(post("/v1/tasks", task_of(65'535)).status, 201);
  expect_problem(post("/v1/tasks", task_of(65'536)), 413, {"payload", "65535"});
}

TEST_F(RoutesTest, ABatchMayHave10000TasksAndNotOneMore) {
  const auto batch_of = [](int tasks) {
    std::string body;
    for (int i = 0; i < tasks; ++i) body += "{\"queue\":\"q\"}\n";
    return body;
  };
  EXPECT_EQ(post("/v1/tasks/batch", batch_of(10'000)).status, 200);
  expect_problem(post("/v1/tasks/batch", batch_of(10'001)), 413, {"10000"});
  EXPECT_EQ(engine_stats().counters.scheduled, 10'000u);
}

TEST_F(RoutesTest, ABodyInAContentCodingIsRefusedAsThat) {
  const auto post_coded = [&](const std::string& coding) {
    return client_
        ->send({.method = "POST",
                .target = "/v1/tasks",
                .headers = {{"content-encoding", coding}},
                .body = R"({"queue":"q"})"})
        .value();
  };
  for (const char* coding : {"gzip", "zstd", "deflate, gzip", "identity, br"}) {
    const HttpResponse refused = post_coded(coding);
    expect_problem(refused, 415, {"Content-Encoding", coding});
    EXPECT_EQ(refused.header("accept-encoding"), "identity");
  }
  EXPECT_EQ(post_coded("identity").status, 201);
  EXPECT_EQ(post_coded("Identity").status, 201);
  EXPECT_EQ(post_coded("").status, 201);
  EXPECT_EQ(engine_stats().counters.scheduled, 3u);
}

TEST_F(RoutesTest, WrongMethodsPathsAndIdsAreToldApart) {
  const HttpResponse wrong_method = send("PUT", "/v1/tasks/1");
  expect_problem(wrong_method, 405, {"GET, HEAD, PATCH, DELETE"});
  EXPECT_EQ(wrong_method.header("allow"), "GET, HEAD, PATCH, DELETE");
  EXPECT_EQ(send("HEAD", "/v1/tasks").status, 200) << "what is said to be allowed is";
  expect_problem(send("GET", "/v2/tasks"), 404, {"/v2/tasks"});
  expect_problem(send("GET", "/v1/tasks/12345"), 404, {"there is no task 12345"});
  for (const char* id : {"x", "-1", "01", "9007199254740992", "18446744073709551617"}) {
    expect_problem(send("GET", "/v1/tasks/" + std::string(id)), 404, {"id"});
  }
}

// If a lease ignored its query, "lease?max=5" would hand out one task without an error.
TEST_F(RoutesTest, AQueryWhereThereIsNoneIsRefused) {
  const std::string id = schedule(R"({"queue":"q"})");
  const struct {
    const char* method;
    std::string target;
  } kCases[] = {{"POST", "/v1/queues/q/lease?max=5"},
                {"POST", "/v1/tasks?max=5"},
                {"GET", "/v1/tasks/" + id + "?max=5"},
                {"DELETE", "/v1/tasks/" + id + "?max=5"},
                {"POST", "/v1/leases/complete?max=5"},
                {"POST", "/v1/queues/q/purge?max=5"},
                {"GET", "/v1/wheel?max=5"},
                {"DELETE", "/v1/schedules/s?max=5"}};
  for (const auto& [method, target] : kCases) {
    expect_problem(send(method, target), 400, {R"("field":"max")"});
  }
  EXPECT_EQ(send("GET", "/v1/tasks/" + id + "?").status, 200);
  for (const char* target : {"/healthz?x=1", "/readyz?x=1", "/metrics?x=1", "/openapi.json?x=1"}) {
    EXPECT_EQ(send("GET", target).status, 200) << target << " is asked by programs of others";
  }
}

TEST_F(RoutesTest, BadLeasesAreRefused) {
  for (const char* body : {R"({"max":0})", R"({"max":1001})", R"({"wait":"61s"})",
                           R"({"visibility_timeout":"0s"})", R"({"wat":1})", "[1]", "nonsense"}) {
    SCOPED_TRACE(body);
    expect_problem(post("/v1/queues/q/lease", body), 400, {"detail"});
  }
  expect_problem(post("/v1/queues/no%20spaces/lease", ""), 400, {"queue"});
  expect_problem(post("/v1/leases/complete", "{}"), 400, {"leases"});
  expect_problem(post("/v1/leases/fail", R"({"leases":["x"],"delay":"never"})"), 400, {"delay"});
  expect_problem(post("/v1/leases/fail", R"({"leases":["x"],"delay":"1s","final":true})"), 400,
                 {"final", "not both"});
}

TEST_F(RoutesTest, HealthReadinessAndMetricsAnswer) {
  schedule(R"({"queue":"q","delay":"1h"})");
  EXPECT_EQ(send("GET", "/healthz").status, 200);
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  EXPECT_EQ(send("GET", "/").status, 200);
  const HttpResponse metrics = send("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200);
  for (const char* line :
       {"detent_tasks{queue=\"q\",state=\"scheduled\"} 1", "detent_scheduled_total 1",
        "detent_http_request_seconds_count{route=\"/v1/tasks\"} 1"}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << " in\n" << metrics.body;
  }
}

// As on a full disk.
TEST_F(RoutesTest, MetricsTellThatTheStoreFailedAndHowRequestsWereAnswered) {
  const std::string works = send("GET", "/metrics").body;
  EXPECT_NE(works.find("\ndetent_store_up 1\n"), std::string::npos) << works;
  await_rest();
  store_->fail_write(1, WriteFault::not_applied);
  EXPECT_EQ(post("/v1/tasks", R"({"queue":"q"})").status, 503);
  const std::string failed = send("GET", "/metrics").body;
  EXPECT_NE(failed.find("\ndetent_store_up 0\n"), std::string::npos) << failed;
  const std::string refused =
      R"(detent_http_request_duration_seconds_count{route="/v1/tasks",code="503"} 1)";
  EXPECT_NE(failed.find(refused), std::string::npos) << failed;
}

TEST_F(RoutesTest, WhatTheSystemTellsIsInTheMetricsAndTheStats) {
  http_->stop(0ms);
  ManualClock clock_of_watch;
  const DiskWatch disk({.folder = "/data",
                        .min_free_bytes = 30,
                        .read = [] { return std::optional<std::uint64_t>(34); }},
                       intake_, clock_of_watch);
  routes_ = std::make_unique<Routes>(
      *engine_, *events_, clock_,
      RoutesOptions{.process_figures = [] { return ProcessFigures{.resident_bytes = 12}; },
                    .disk = &disk});
  listen(10s);
  const std::string metrics = send("GET", "/metrics").body;
  EXPECT_NE(metrics.find("\nprocess_resident_memory_bytes 12\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\ndetent_data_free_bytes 34\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\ndetent_data_min_free_bytes 30\n"), std::string::npos) << metrics;
  EXPECT_EQ(engine_stats().data_free_bytes, 34u);
  EXPECT_EQ(engine_stats().data_min_free_bytes, 30u);
  http_->stop(0ms);
}

TEST_F(RoutesTest, ANearlyFullDiskRefusesNewTasksAndNothingElse) {
  schedule(R"({"queue":"q","key":"a"})");
  schedule(R"({"queue":"q"})");
  const std::string dumped = send("GET", "/v1/dump").body;
  intake_.close({ErrorCode::unavailable, "the disk of the server is nearly full", ""});
  expect_problem(post("/v1/tasks", R"({"queue":"q"})"), 503, {"unavailable", "nearly full"});
  EXPECT_EQ(post("/v1/tasks", R"({"queue":"q","key":"a"})").status, 200) << "it is there already";
  EXPECT_NE(post("/v1/restore", dumped).body.find("nearly full"), std::string::npos);
  const auto leased = lease("q", R"({"max":2})");
  ASSERT_EQ(leased.size(), 2u);
  const std::string leases = R"({"leases":[")" + leased[0].lease + "\"]}";
  EXPECT_NE(post("/v1/leases/complete", leases).body.find("done"), std::string::npos);
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  EXPECT_EQ(send("GET", "/readyz").body,
            R"({"status":"ready","refuses_tasks":"the disk of the server is nearly full"})");
  EXPECT_TRUE(engine_stats().refuses_tasks);
  intake_.open();
  EXPECT_EQ(send("GET", "/readyz").body, R"({"status":"ready"})");
  EXPECT_FALSE(engine_stats().refuses_tasks);
  EXPECT_EQ(post("/v1/tasks", R"({"queue":"q"})").status, 201);
}

TEST_F(RoutesTest, ALeaseThatIsOfferedInVainIsGivenBackAndMeasuredOnce) {
  schedule(R"({"queue":"q"})");
  std::promise<std::string> offered;
  routes_->handle({.method = "POST",
                   .target = "/v1/queues/q/lease",
                   .headers = {{"host", "localhost"}},
                   .body = ""},
                  net::Responder(std::make_shared<net::LocalExchange>(
                      [&offered](std::optional<HttpResponse> answer) {
                        offered.set_value(std::move(answer).value_or(HttpResponse{}).body);
                        return false;
                      })));
  EXPECT_EQ(json::parse_leased_tasks(offered.get_future().get()).value().size(), 1u);
  EXPECT_EQ(lease("q", R"({"wait":"10s"})").size(), 1u) << "once it is given back";
  const std::string metrics = send("GET", "/metrics").body;
  const std::string line =
      "detent_http_request_seconds_count{route=\"/v1/queues/{queue}/lease\"} 2";
  EXPECT_NE(metrics.find(line), std::string::npos) << metrics;
}

TEST_F(RoutesTest, AStoppingEngineIsToldAsUnavailable) {
  engine_->stop();
  expect_problem(send("GET", "/readyz"), 503, {"retry"});
  expect_problem(post("/v1/tasks", R"({"queue":"q"})"), 503, {"retry"});
  EXPECT_EQ(send("GET", "/healthz").status, 200);
}

class RoutesCorsTest : public RoutesTest {
 protected:
  void share_with(const std::string& origin) {
    http_->stop(0ms);
    routes_ =
        std::make_unique<Routes>(*engine_, *events_, clock_, RoutesOptions{.cors_origin = origin});
    listen(10s);
  }
  HttpResponse send_from(const std::string& origin, const std::string& method,
                         const std::string& target) {
    net::HttpRequest request{.method = method, .target = target, .headers = {}, .body = {}};
    if (!origin.empty()) request.headers.emplace_back("origin", origin);
    if (method == "OPTIONS") {
      request.headers.emplace_back("access-control-request-method", "PATCH");
    }
    return client_->send(request).value();
  }
};

TEST_F(RoutesCorsTest, NothingIsSharedUnlessAnOriginIsNamed) {
  const HttpResponse answer = send_from("https://a.example", "GET", "/v1/stats");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("access-control-allow-origin"), "");
  EXPECT_EQ(send_from("https://a.example", "OPTIONS", "/v1/tasks").status, 405);
}

TEST_F(RoutesCorsTest, OnlyPagesOfTheNamedOriginMayReadAnswers) {
  share_with("https://a.example");
  const HttpResponse answer = send_from("https://a.example", "GET", "/v1/tasks/7");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(answer.header("vary"), "origin");
  for (const char* other : {"https://b.example", "http://a.example", "null", ""}) {
    EXPECT_EQ(send_from(other, "GET", "/v1/stats").header("access-control-allow-origin"), "");
    EXPECT_EQ(send_from(other, "OPTIONS", "/v1/tasks").status, 405);
  }
  share_with("*");
  EXPECT_EQ(
      send_from("https://b.example", "GET", "/v1/stats").header("access-control-allow-origin"),
      "*");
}

TEST_F(RoutesCorsTest, APreflightTellsTheMethodsAndHeadersOfThePath) {
  share_with("https://a.example");
  const HttpResponse answer = send_from("https://a.example", "OPTIONS", "/v1/tasks/7");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(answer.header("access-control-allow-methods"), "GET, HEAD, PATCH, DELETE");
  EXPECT_EQ(answer.header("access-control-allow-headers"),
            "authorization, content-type, if-match, last-event-id");
  EXPECT_EQ(send_from("https://a.example", "OPTIONS", "/none").status, 404);
}

}  // namespace
}  // namespace detent::server

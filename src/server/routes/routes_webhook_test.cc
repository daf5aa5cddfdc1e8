// Webhooks and headers over HTTP: which values are accepted and shown, and who gets such a task.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/json/queue_codec.h"
#include "server/testing/beanstalk_fixture.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using net::HttpResponse;

constexpr const char* kTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr const char* kHook = R"({"queue":"q","webhook":"https://example.com/hook"})";

class RoutesWebhookTest : public RoutesTest {
 protected:
  TaskSnapshot get(const std::string& id) {
    return json::parse_task(send("GET", "/v1/tasks/" + id).body).value();
  }
  HttpResponse post_traced(const std::string& target, const std::string& body) {
    return client_
        ->send({.method = "POST",
                .target = target,
                .headers = {{"traceparent", kTrace}, {"tracestate", "a=b"}},
                .body = body})
        .value();
  }
  std::string id_in(const HttpResponse& response) {
    return to_string(json::parse_accepted(response.body).value().id);
  }
};

TEST_F(RoutesWebhookTest, ATaskIsShownWithThemAndNeverLeased) {
  const std::string id =
      schedule(R"({"queue":"q","webhook":"https://example.com/hook","headers":{"X-A":"b"}})");
  EXPECT_EQ(get(id).task.webhook, "https://example.com/hook");
  EXPECT_EQ(get(id).task.headers, (TaskHeaders{{"X-A", "b"}}));
  EXPECT_EQ(get(id).state, TaskState::ready);
  EXPECT_TRUE(lease("q").empty());
}

TEST_F(RoutesWebhookTest, AWorkerIsShownTheHeaders) {
  schedule(R"({"queue":"q","headers":{"X-A":"b"}})");
  EXPECT_EQ(lease("q").at(0).headers, (TaskHeaders{{"X-A", "b"}}));
}

TEST_F(RoutesWebhookTest, WhatIsWrongIsRefusedByName) {
  expect_problem(post("/v1/tasks", R"({"queue":"q","webhook":"ftp://a"})"), 400, {"webhook"});
  expect_problem(post("/v1/tasks", R"({"queue":"q","headers":{"Host":"a"}})"), 400, {"headers"});
  const std::string id = schedule(R"({"queue":"q"})");
  expect_problem(send("PATCH", "/v1/tasks/" + id, R"({"webhook":"a"})"), 400, {"webhook"});
  expect_problem(send("PATCH", "/v1/queues/q", R"({"webhook":"http://u@a"})"), 400, {"webhook"});
  expect_problem(
      send("PATCH", "/v1/queues/q", R"({"webhook":{"url":"http://a","keys":["whsec_AA=="]}})"), 400,
      {"webhook", "24 to 64"});
}

TEST_F(RoutesWebhookTest, AnEditChangesThemAndTheVersionOfTheTask) {
  const std::string id = schedule(kHook);
  const std::string before(send("GET", "/v1/tasks/" + id).header("etag"));
  EXPECT_EQ(send("PATCH", "/v1/tasks/" + id, R"({"headers":{"a":"b"}})").status, 200);
  EXPECT_NE(send("GET", "/v1/tasks/" + id).header("etag"), before);
  EXPECT_EQ(send("PATCH", "/v1/tasks/" + id, R"({"webhook":null})").status, 200);
  EXPECT_EQ(get(id).task.webhook, "");
  EXPECT_EQ(lease("q").size(), 1u);
}

TEST_F(RoutesWebhookTest, TheTraceOfTheRequestStaysWithTheTask) {
  const TaskHeaders traced{{"traceparent", kTrace}, {"tracestate", "a=b"}};
  EXPECT_EQ(get(id_in(post_traced("/v1/tasks", R"({"queue":"q"})"))).task.headers, traced);
  const std::string own = R"({"queue":"q","headers":{"traceparent":"mine"}})";
  EXPECT_EQ(get(id_in(post_traced("/v1/tasks", own))).task.headers,
            (TaskHeaders{{"traceparent", "mine"}}));
  const auto batch = json::parse_schedule_results(
      post_traced("/v1/tasks/batch", R"([{"queue":"q"},{"queue":5},)" + own + "]").body);
  EXPECT_EQ(get(to_string(batch->at(0)->id)).task.headers, traced);
  EXPECT_FALSE(batch->at(1));
  EXPECT_EQ(get(to_string(batch->at(2)->id)).task.headers.size(), 1u);
}

TEST_F(RoutesWebhookTest, AskedAgainInAnotherTraceItIsTheSameTask) {
  const std::string keyed = R"({"queue":"q","key":"k"})";
  const HttpResponse first = post_traced("/v1/tasks", keyed);
  EXPECT_EQ(first.status, 201);
  const HttpResponse again = post("/v1/tasks", keyed);
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(id_in(again), id_in(first));
}

TEST_F(RoutesWebhookTest, AQueuesWebhookIsSetShownWithoutItsKeysAndTakenAway) {
  const std::string key = "whsec_" + std::string(32, 'Q');
  const HttpResponse set =
      send("PATCH", "/v1/queues/q", R"({"webhook":{"url":"https://a","keys":[")" + key + R"("]}})");
  EXPECT_EQ(set.status, 200) << set.body;
  for (const std::string& body :
       {set.body, send("GET", "/v1/queues/q").body, send("GET", "/v1/queues").body}) {
    EXPECT_EQ(body.find("QQ"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("keys":["whsec_…"])"), std::string::npos) << body;
  }
  schedule(R"({"queue":"q"})");
  EXPECT_TRUE(lease("q").empty());
  // A change of another setting keeps the webhook and its keys.
  EXPECT_EQ(send("PATCH", "/v1/queues/q", R"({"rate":5})").status, 200);
  EXPECT_NE(send("GET", "/v1/dump").body.find(key), std::string::npos) << "a dump is a whole copy";
  EXPECT_EQ(send("PATCH", "/v1/queues/q", R"({"webhook":null})").status, 200);
  EXPECT_EQ(lease("q").size(), 1u);
}

class BeanstalkWebhookTest : public BeanstalkTest {};

TEST_F(BeanstalkWebhookTest, AJobWithAWebhookIsShownAndNeverReserved) {
  const std::string id = schedule(kHook);
  BeanstalkClient worker = connect();
  worker.ask("watch q");
  worker.ask("use q");
  EXPECT_EQ(worker.ask("reserve-with-timeout 0"), "TIMED_OUT");
  EXPECT_EQ(worker.ask("reserve-job " + id), "NOT_FOUND");
  EXPECT_EQ(worker.state_of(id), "ready");
  EXPECT_EQ(worker.ask("peek " + id), "FOUND " + id + " 4\nnull");
  EXPECT_EQ(worker.ask("peek-ready"), "FOUND " + id + " 4\nnull");
  EXPECT_EQ(worker.field("stats-tube q", "current-jobs-ready"), "1");
  const std::string plain = worker.put();
  EXPECT_EQ(worker.ask("reserve-with-timeout 0"), "RESERVED " + plain + " 4\nbody");
  EXPECT_EQ(worker.ask("delete " + id), "DELETED");
}

}  // namespace
}  // namespace detent::server

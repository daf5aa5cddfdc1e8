// Changes and cancellation of one or many tasks over HTTP (routes_fixture.h).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using net::HttpResponse;

class RoutesEditTest : public RoutesTest {
 protected:
  HttpResponse send_if(const std::string& etag, const std::string& method,
                       const std::string& target, const std::string& body = "") {
    return client_
        ->send({.method = method, .target = target, .headers = {{"if-match", etag}}, .body = body})
        .value();
  }
  std::string etag(const std::string& id) {
    return std::string(send("GET", "/v1/tasks/" + id).header("etag"));
  }
  json::AcceptedTask accepted(const HttpResponse& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse_accepted(response.body).value();
  }
  TaskSnapshot get(const std::string& id) {
    return json::parse_task(send("GET", "/v1/tasks/" + id).body).value();
  }
};

TEST_F(RoutesEditTest, ChangesPriorityAndPayload) {
  const std::string id = schedule(R"({"queue":"q","delay":"1h"})");
  const TaskSnapshot before = get(id);
  EXPECT_EQ(accepted(send("PATCH", "/v1/tasks/" + id, R"({"priority":7})")).due_at,
            before.task.due_at);
  EXPECT_EQ(get(id).task.rules.priority, 7U);
  send("PATCH", "/v1/tasks/" + id, R"({"payload":{"n": 2},"delay":"0s"})");
  const auto leased = lease("q");
  EXPECT_EQ(leased.at(0).payload.data, R"({"n": 2})");
  EXPECT_EQ(leased.at(0).priority, 7U);
  expect_problem(send("PATCH", "/v1/tasks/" + id, R"({"priority":1})"), 409, {"leased"});
}

TEST_F(RoutesEditTest, KeepsAnEditThatComesSecondFromUndoingTheFirst) {
  const std::string id = schedule(R"({"queue":"q","delay":"1h","key":"k"})");
  const std::string seen = etag(id);
  const HttpResponse first = send_if(seen, "PATCH", "/v1/tasks/" + id, R"({"priority":1})");
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.header("etag"), etag(id));
  EXPECT_NE(etag(id), seen);
  for (const char* method : {"PATCH", "DELETE"}) {
    expect_problem(send_if(seen, method, "/v1/tasks/" + id, R"({"priority":2})"), 412,
                   {"If-Match"});
    expect_problem(send_if(seen, method, "/v1/queues/q/keys/k", R"({"priority":2})"), 412,
                   {"If-Match"});
  }
  expect_problem(send_if(seen, "POST", "/v1/tasks/" + id + "/run"), 412, {});
  EXPECT_EQ(get(id).task.rules.priority, 1U);
  EXPECT_EQ(send_if(etag(id), "DELETE", "/v1/tasks/" + id).status, 200);
  EXPECT_EQ(send_if("*", "DELETE", "/v1/tasks/" + id).status, 404);
}

TEST_F(RoutesEditTest, AnEmptyIfMatchAllowsNoVersion) {
  const std::string id = schedule(R"({"queue":"q","delay":"1h","key":"k"})");
  const std::string seen = etag(id);
  for (const char* empty : {"", " ", ",", ", ,"}) {
    for (const char* method : {"PATCH", "DELETE"}) {
      for (const std::string& target : {"/v1/tasks/" + id, std::string("/v1/queues/q/keys/k")}) {
        expect_problem(send_if(empty, method, target, R"({"priority":2})"), 412,
                       {"If-Match is empty", "send the ETag"});
      }
    }
    expect_problem(send_if(empty, "POST", "/v1/tasks/" + id + "/run"), 412, {"If-Match is empty"});
  }
  EXPECT_EQ(etag(id), seen) << "nothing was done";
}

TEST_F(RoutesEditTest, SeveralIfMatchHeadersAreOneList) {
  const std::string id = schedule(R"({"queue":"q","delay":"1h"})");
  const auto patch_if = [&](net::HttpHeaders headers) {
    return client_
        ->send({.method = "PATCH",
                .target = "/v1/tasks/" + id,
                .headers = std::move(headers),
                .body = R"({"priority":2})"})
        .value()
        .status;
  };
  EXPECT_EQ(patch_if({{"if-match", ""}, {"if-match", R"("no")"}}), 412);
  EXPECT_EQ(patch_if({{"if-match", ""}, {"if-match", etag(id)}}), 200);
}

// A server that ignored such a condition would change what the client wanted to protect.
TEST_F(RoutesEditTest, RefusesConditionsThatItDoesNotKeep) {
  const auto send_with = [this](const char* name, const char* method, const std::string& target,
                                const std::string& body) {
    return client_
        ->send({.method = method, .target = target, .headers = {{name, "*"}}, .body = body})
        .value();
  };
  const std::string id = schedule(R"({"queue":"q","delay":"1h"})");
  for (const char* name : {"if-none-match", "if-unmodified-since"}) {
    expect_problem(send_with(name, "DELETE", "/v1/tasks/" + id, ""), 400, {"is not supported"});
    expect_problem(send_with(name, "PUT", "/v1/schedules/s", R"({"every":"1h","queue":"q"})"), 400,
                   {"is not supported"});
  }
  expect_problem(send_with("if-match", "PATCH", "/v1/queues/q", "{}"), 400, {"If-Match"});
  EXPECT_EQ(send_with("if-none-match", "GET", "/v1/tasks/" + id, "").status, 200);
}

TEST_F(RoutesEditTest, HasAnotherVersionOnceATaskIsLeased) {
  const std::string id = schedule(R"({"queue":"q"})");
  const std::string seen = etag(id);
  EXPECT_EQ(etag(id), seen);
  lease("q");
  EXPECT_NE(etag(id), seen);
}

TEST_F(RoutesEditTest, CancelsManyWithAResultEachInOrder) {
  const std::string a = schedule(R"({"queue":"q","delay":"1h","key":"a"})");
  const std::string b = schedule(R"({"queue":"q","key":"b"})");
  const std::string c = schedule(R"({"queue":"q","delay":"1h","key":"c"})");
  lease("q");
  const HttpResponse by_id =
      post("/v1/tasks/cancel", R"({"ids":[")" + a + R"(","x","99",")" + b + R"("]})");
  EXPECT_EQ(by_id.status, 200);
  EXPECT_EQ(by_id.body.find(R"({"results":[{"id":")" + a + R"(","state":"cancelled"},{"error":)"),
            0U)
      << by_id.body;
  const auto not_found = by_id.body.find("\"status\":404");
  const auto second = by_id.body.find("\"status\":404", not_found + 1);
  EXPECT_NE(second, std::string::npos) << by_id.body;
  EXPECT_NE(by_id.body.find("\"status\":409", second), std::string::npos) << by_id.body;

  const HttpResponse by_key = post("/v1/tasks/cancel", R"({"queue":"q","keys":["none","c"]})");
  EXPECT_NE(by_key.body.find(R"({"id":")" + c + R"(","state":"cancelled"}]})"), std::string::npos)
      << by_key.body;
  EXPECT_EQ(engine_stats().queues.at(0).scheduled, 0U);
}

TEST_F(RoutesEditTest, MovesManyWithAResultEachInOrder) {
  const std::string a = schedule(R"({"queue":"q","delay":"1h"})");
  const std::string b = schedule(R"({"queue":"q","delay":"1h"})");
  const HttpResponse moved =
      post("/v1/tasks/move", R"({"ids":[")" + b + R"(","7",")" + a + R"("],"delay":"2h"})");
  ASSERT_EQ(moved.status, 200);
  const auto results = json::parse_schedule_results(moved.body).value();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(to_string(results[0]->id), b);
  EXPECT_EQ(results[1].error().code, ErrorCode::not_found);
  EXPECT_EQ(to_string(results[2]->id), a);
  EXPECT_EQ(get(a).task.due_at, results[2]->due_at);
}

TEST_F(RoutesEditTest, RefusesABatchThatNamesNoTasks) {
  expect_problem(post("/v1/tasks/cancel", "{}"), 400, {"\"field\":\"ids\""});
  expect_problem(post("/v1/tasks/move", R"({"ids":["256"]})"), 400, {"\"field\":\"due_at\""});
  expect_problem(post("/v1/tasks/cancel", R"({"keys":["a"]})"), 400, {"\"field\":\"queue\""});
}

}  // namespace
}  // namespace detent::server

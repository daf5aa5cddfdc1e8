#include "gateway/request_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "gateway/plan_fixture.h"

namespace detent::gateway {
namespace {

constexpr ShardNumber kShards = 4;

TEST(RequestPlan, RequestsThatAreNotAboutTasksGoToTheNode) {
  for (const char* target :
       {"/", "/assets/app.js", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/cluster",
        "/v1/events?types=stats", "/v1/stats/history", "/v1/nothing", "/v1/tasks/1/2", "*"}) {
    EXPECT_TRUE(is_of_node(get(target))) << target;
  }
  for (const char* target : {"/v1/tasks", "/v1/tasks/256?x", "/v1/queues/q", "/v1/stats",
                             "/v1/dump", "/v1/occurrences", "/v1/leases/fail"}) {
    EXPECT_FALSE(is_of_node(get(target))) << target;
  }
}

TEST(RequestPlan, ARequestForAQueueATaskOrALeaseIsForwardedUnchanged) {
  const std::string queue = queue_of(3, kShards);
  const std::string in_body = R"({"payload": 1, "queue":")" + queue + R"("})";
  const struct {
    const char* method = "";
    std::string target;
    std::string body;
    ShardNumber shard = 0;
  } kCases[] = {
      {"GET", "/v1/queues/" + queue, "", 3},
      {"POST", "/v1/queues/" + queue + "/lease?x=1", "{}", 3},
      {"DELETE", "/v1/queues/" + queue + "/keys/a%2Fb", "", 3},
      {"GET", "/v1/queues/%71" + queue.substr(1), "", 3},
      {"GET", "/v1/tasks/258", "", 2},
      {"POST", "/v1/tasks/259/run", "", 3},
      {"GET", "/v1/tasks/260", "", 0},  // its shard does not exist
      {"GET", "/v1/tasks/abc", "", 0},
      {"POST", "/v1/tasks", in_body, 3},
      {"POST", "/v1/occurrences", in_body, 3},
      {"POST", "/v1/tasks", "{", 0},
      {"GET", "/v1/tasks?limit=5&queue=" + queue, "", 3},
      {"POST", "/v1/tasks/batch", "[" + in_body + "," + in_body + ",7]", 3},
      {"POST", "/v1/tasks/cancel", R"({"ids":["258","none","514"]})", 2},
      {"POST", "/v1/tasks/cancel", R"({"keys":["258"],"queue":")" + queue + R"("})", 3},
      {"POST", "/v1/leases/complete", R"({"leases":["1-102"]})", 2},
      {"POST", "/v1/leases/complete", R"({"leases":[]})", 0},
      {"OPTIONS", "/v1/stats", "", 0},
      {"PUT", "/v1/tasks", "", 0},
  };
  for (const auto& one : kCases) {
    const net::HttpRequest request{.method = one.method,
                                   .target = one.target,
                                   .headers = {{"traceparent", "t"}, {"content-length", "9"}},
                                   .body = one.body,
                                   .peer = "10.0.0.1"};
    const CarriedOut done = carry_out(request, kShards, [](const Part&) { return not_there(); });
    ASSERT_EQ(done.rounds.size(), 1U) << one.target;
    ASSERT_EQ(done.rounds[0].size(), 1U) << one.target;
    const Part& part = done.rounds[0][0];
    EXPECT_EQ(part.shard, one.shard) << one.method << " " << one.target << " " << one.body;
    EXPECT_EQ(part.request.method, request.method);
    EXPECT_EQ(part.request.target, request.target);
    EXPECT_EQ(part.request.headers, request.headers);
    EXPECT_EQ(part.request.body, request.body);
    EXPECT_EQ(part.request.peer, request.peer);
    EXPECT_EQ(done.answer.status, 404);
  }
}

TEST(RequestPlan, ARequestToAllShardsFailsIfOneShardFails) {
  for (const char* target :
       {"/v1/tasks", "/v1/queues", "/v1/schedules", "/v1/stats", "/v1/forecast", "/v1/wheel"}) {
    const CarriedOut done = carry_out(get(target), kShards, [](const Part& part) {
      return part.shard == 2 ? unreachable() : ok_json("{}");
    });
    EXPECT_EQ(done.rounds.at(0).size(), kShards) << target;
    EXPECT_EQ(done.answer.status, 503) << target;
    EXPECT_EQ(done.answer.header("retry-after"), "2") << target;
  }
}

TEST(RequestPlan, AnAnswerThatCannotBeReadIsAnError) {
  for (const char* target :
       {"/v1/tasks", "/v1/queues", "/v1/schedules", "/v1/stats", "/v1/forecast", "/v1/wheel"}) {
    for (const char* body : {"", "{}", "nonsense", R"({"tasks":[{}],"cursor":null})",
                             R"({"tasks":[],"cursor":"nonsense"})", R"({"queues":[{}]})"}) {
      const auto play = [body](const Part& part) {
        return ok_json(part.shard == 1 ? body : R"({"tasks":[],"cursor":null,"queues":[]})");
      };
      EXPECT_EQ(carry_out(get(target), kShards, play).answer.status, 500) << target << body;
    }
  }
}

TEST(RequestPlan, AJoinedAnswerKeepsTheCorsHeadersOfTheShards) {
  const CarriedOut done = carry_out(get("/v1/queues"), kShards, [](const Part&) {
    return net::HttpResponse{.status = 200,
                             .body = R"({"queues":[]})",
                             .headers = {{"date", "today"},
                                         {"access-control-allow-origin", "https://example.org"},
                                         {"vary", "origin"}}};
  });
  const net::HttpHeaders expected{{"access-control-allow-origin", "https://example.org"},
                                  {"vary", "origin"}};
  EXPECT_EQ(done.answer.headers, expected);
}

TEST(RequestPlan, AHeadIsPlannedLikeAGet) {
  const net::HttpRequest head{.method = "HEAD", .target = "/v1/queues", .headers = {}, .body = ""};
  const CarriedOut done =
      carry_out(head, kShards, [](const Part&) { return ok_json(R"({"queues":[]})"); });
  EXPECT_EQ(done.rounds.at(0).at(0).request.method, "GET");
  EXPECT_EQ(done.answer.status, 200);
}

}  // namespace
}  // namespace detent::gateway

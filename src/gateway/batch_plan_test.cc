#include "gateway/batch_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "gateway/plan_fixture.h"

namespace detent::gateway {
namespace {

constexpr ShardNumber kShards = 3;

net::HttpResponse results(const std::string& list) {
  return ok_json(R"({"results":[)" + list + "]}");
}

TEST(BatchPlan, IsSplitByShardAndItsResultsAreInOrder) {
  net::HttpRequest request = post(
      "/v1/tasks/move", R"({ "delay" : "1s", "ids":["257", "256","513" ,"none"], "x":{"y": [1]}})");
  request.headers = {{"content-length", "80"}, {"traceparent", "t"}};
  const CarriedOut done = carry_out(request, kShards, [](const Part& part) {
    return part.shard == 0 ? results("20") : results(R"( 11 , {"a":[1, 2]},13)");
  });
  ASSERT_EQ(done.rounds.at(0).size(), 2U);
  EXPECT_EQ(done.rounds[0][0].shard, 0U);
  EXPECT_EQ(done.rounds[0][0].request.body, R"({"delay":"1s","x":{"y": [1]},"ids":["256"]})");
  EXPECT_EQ(done.rounds[0][1].shard, 1U);
  EXPECT_EQ(done.rounds[0][1].request.body,
            R"({"delay":"1s","x":{"y": [1]},"ids":["257","513","none"]})");
  EXPECT_EQ(done.rounds[0][1].request.headers, (net::HttpHeaders{{"traceparent", "t"}}));
  EXPECT_EQ(done.answer.status, 200);
  EXPECT_EQ(done.answer.body, R"({"results":[11,20,{"a":[1, 2]},13]})");
}

TEST(BatchPlan, LinesStayLinesOfNdjson) {
  const std::string first = R"({"queue":")" + queue_of(0, kShards) + R"("})";
  const std::string second = R"({"queue": ")" + queue_of(1, kShards) + R"("})";
  for (const char* type : {"", "text/plain", "application/x-ndjson"}) {
    std::string body = first;
    body.append("\n\n  {]\n").append(second).append("\r\n");
    net::HttpRequest request = post("/v1/tasks/batch", body);
    if (*type != '\0') request.headers = {{"content-type", type}};
    const CarriedOut done = carry_out(request, kShards, [](const Part& part) {
      return part.shard == 0 ? results("1,2") : results("3");
    });
    ASSERT_EQ(done.rounds.at(0).size(), 2U);
    EXPECT_EQ(done.rounds[0][0].request.body, first + "\n{]\n");
    EXPECT_EQ(done.rounds[0][1].request.body, second + "\n");
    EXPECT_EQ(done.rounds[0][1].request.header("content-type"), "application/x-ndjson");
    EXPECT_EQ(done.answer.body, R"({"results":[1,2,3]})");
  }
}

constexpr const char* kLeases = R"({"leases":["1-100","1-101","1-102"]})";

TEST(BatchPlan, APartThatFailsIsTheResultOfItsElements) {
  const CarriedOut done =
      carry_out(post("/v1/leases/complete", kLeases), kShards, [](const Part& part) {
        if (part.shard == 0) return unreachable();
        if (part.shard == 1) return net::HttpResponse{.status = 502, .body = "<html>"};
        return results(R"({"status":"done"})");
      });
  EXPECT_EQ(done.answer.status, 200);
  EXPECT_EQ(done.answer.body.find(
                R"({"results":[{"status":"unavailable",)"
                R"("error":{"type":"urn:detent:error:unavailable","status":503}},)"
                R"({"status":"unavailable","error":{"type":"urn:detent:error:unavailable")"),
            0U)
      << done.answer.body;
  EXPECT_NE(done.answer.body.find("the server answered 502"), std::string::npos);
  EXPECT_TRUE(done.answer.body.ends_with(R"(,{"status":"done"}]})")) << done.answer.body;
}

TEST(BatchPlan, IfAllPartsFailWithOneStatusTheCallFails) {
  const CarriedOut done = carry_out(post("/v1/leases/complete", kLeases), kShards,
                                    [](const Part&) { return unreachable(); });
  EXPECT_EQ(done.answer.status, 503);
  EXPECT_EQ(done.answer.header("retry-after"), "2");
  EXPECT_EQ(done.answer.body, unreachable().body);
}

TEST(BatchPlan, AWrongAnswerOfAShardIsAnErrorOfEachElement) {
  for (const char* body : {"", "{}", R"({"results":[1,2]})", R"({"results":[1)"}) {
    const CarriedOut done = carry_out(
        post("/v1/leases/complete", kLeases), kShards,
        [body](const Part& part) { return part.shard == 1 ? ok_json(body) : results("0"); });
    EXPECT_EQ(done.answer.status, 200);
    EXPECT_TRUE(done.answer.body.starts_with(
        R"({"results":[0,{"status":"error","error":{"type":"urn:detent:error:internal")"))
        << done.answer.body;
  }
}

TEST(BatchPlan, FieldsThatEveryShardWouldGetAreLimited) {
  const auto body = [](const char* leases, std::size_t size) {
    return R"({"leases":)" + std::string(leases) + R"(,"error":")" + std::string(size, 'x') +
           R"("})";
  };
  const auto play = [](const Part&) { return results("1"); };
  constexpr const char* kOfTwoShards = R"(["1-100","1-101"])";
  constexpr std::size_t kMost = std::size_t{64} << 10;
  CarriedOut done = carry_out(post("/v1/leases/fail", body(kOfTwoShards, kMost)), kShards, play);
  EXPECT_EQ(done.answer.status, 413) << done.answer.body;
  EXPECT_TRUE(done.rounds.empty());
  done = carry_out(post("/v1/leases/fail", body(kOfTwoShards, kMost - 100)), kShards, play);
  EXPECT_EQ(done.answer.status, 200) << done.answer.body;
  done = carry_out(post("/v1/leases/fail", body(R"(["1-100"])", kMost)), kShards, play);
  EXPECT_EQ(done.answer.status, 200) << "a batch for one shard is forwarded unchanged";
}

}  // namespace
}  // namespace detent::gateway

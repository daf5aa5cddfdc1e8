#include "gateway/schedule_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gateway/plan_fixture.h"

namespace detent::gateway {
namespace {

constexpr ShardNumber kShards = 3;

net::HttpRequest put_in_queue_of(ShardNumber shard) {
  return {.method = "PUT",
          .target = "/v1/schedules/s?x",
          .headers = {{"content-length", "1"}},
          .body = R"({"queue":")" + queue_of(shard, kShards) + R"("})"};
}

net::HttpResponse made() { return {.status = 201, .body = "made"}; }

/// Simulated shards. Some have the schedule, and some do not answer.
struct Shards {
  std::vector<ShardNumber> have = {};
  std::vector<ShardNumber> away = {};

  net::HttpResponse operator()(const Part& part) const {
    if (std::ranges::find(away, part.shard) != away.end()) return unreachable();
    if (part.request.method == "PUT") return made();
    if (std::ranges::find(have, part.shard) == have.end()) return not_there();
    return ok_json(part.request.method + std::to_string(part.shard));
  }
};

TEST(SchedulePlan, AScheduleIsPutOnTheShardOfItsQueue) {
  for (const Shards& shards : {Shards{}, Shards{.have = {1}}}) {
    const CarriedOut done = carry_out(put_in_queue_of(1), kShards, shards);
    ASSERT_EQ(done.rounds.size(), shards.have.empty() ? 3U : 2U) << "a new one is searched twice";
    ASSERT_EQ(done.rounds[0].size(), kShards);
    EXPECT_EQ(done.rounds[0][0].request.method, "GET");
    EXPECT_EQ(done.rounds[0][0].request.target, "/v1/schedules/s");
    EXPECT_EQ(done.rounds[0][0].request.body, "");
    EXPECT_TRUE(done.rounds[0][0].request.headers.empty());
    ASSERT_EQ(done.rounds[1].size(), 1U);
    EXPECT_EQ(done.rounds[1][0].shard, 1U);
    EXPECT_EQ(done.rounds[1][0].request.body, put_in_queue_of(1).body);
    EXPECT_EQ(done.answer.status, 201);
  }
}

TEST(SchedulePlan, AScheduleIsNotPutIfAnotherShardHasItOrMayHaveIt) {
  CarriedOut done = carry_out(put_in_queue_of(1), kShards, Shards{.have = {2}, .away = {0}});
  EXPECT_EQ(done.rounds.size(), 1U);
  EXPECT_EQ(done.answer.status, 409);
  EXPECT_NE(done.answer.body.find("schedule s"), std::string::npos) << done.answer.body;
  done = carry_out(put_in_queue_of(1), kShards, Shards{.have = {1}, .away = {2}});
  EXPECT_EQ(done.rounds.size(), 1U);
  EXPECT_EQ(done.answer.status, 503);
  EXPECT_EQ(done.answer.header("retry-after"), "2");
}

TEST(SchedulePlan, TheShardWithTheScheduleAnswersEvenIfOthersAreUnreachable) {
  for (const char* target : {"/v1/schedules/s", "/v1/schedules/s/next?count=2"}) {
    const Shards shards{.have = {1}, .away = {0, 2}};
    const CarriedOut done = carry_out(get(target), kShards, shards);
    EXPECT_EQ(done.answer.body, "GET1") << target;
    EXPECT_EQ(done.rounds.size(), 1U);
    EXPECT_EQ(done.rounds[0][2].request.target, target);
  }
  EXPECT_EQ(carry_out(get("/v1/schedules/s"), kShards, Shards{.away = {1}}).answer.status, 503);
  EXPECT_EQ(carry_out(get("/v1/schedules/s"), kShards, Shards{}).answer.status, 404);
}

TEST(SchedulePlan, AnActionGoesToTheShardWithTheSchedule) {
  const net::HttpRequest verb = post("/v1/schedules/s/trigger", "{}");
  CarriedOut done = carry_out(verb, kShards, Shards{.have = {2}, .away = {0}});
  EXPECT_EQ(done.answer.body, "POST2");
  EXPECT_EQ(done.rounds[0][0].request.target, "/v1/schedules/s");
  EXPECT_EQ(done.rounds[1][0].request.target, verb.target);
  EXPECT_EQ(done.rounds[1][0].request.body, "{}");
  EXPECT_EQ(carry_out(verb, kShards, Shards{.away = {1}}).answer.status, 503);
  done = carry_out(verb, kShards, Shards{});
  EXPECT_EQ(done.answer.status, 404);
  EXPECT_EQ(done.rounds.at(1).at(0).shard, 0U);
  EXPECT_EQ(done.rounds[1][0].request.method, "POST");
}

TEST(SchedulePlan, AScheduleOnTwoShardsIsRemovedFromBoth) {
  net::HttpRequest remove = get("/v1/schedules/s");
  remove.method = "DELETE";
  const CarriedOut done = carry_out(remove, kShards, Shards{.have = {0, 2}});
  ASSERT_EQ(done.rounds.at(1).size(), 2U);
  EXPECT_EQ(done.rounds[1][1].shard, 2U);
  EXPECT_EQ(done.answer.body, "DELETE0");
  const CarriedOut verb =
      carry_out(post("/v1/schedules/s/trigger", ""), kShards, Shards{.have = {0, 2}});
  EXPECT_EQ(verb.rounds.at(1).size(), 1U);
}

/// Simulated shards that store the schedules they get.
class KeepingShards {
 public:
  net::HttpResponse operator()(const Part& part) {
    if (part.request.method == "PUT") have_.insert(part.shard);
    const bool has = have_.contains(part.shard);
    if (part.request.method == "DELETE") have_.erase(part.shard);
    return has ? ok_json(part.request.method + std::to_string(part.shard)) : not_there();
  }
  std::set<ShardNumber> have_;
};

/// A client that puts a schedule, one round of requests at a time.
class Putting {
 public:
  explicit Putting(ShardNumber shard)
      : step_(plan_request(put_in_queue_of(shard), {.shards = kShards}, 0)) {}

  /// Returns false after the client has its answer.
  bool go_on(KeepingShards& shards) {
    Plan* const plan = std::get_if<Plan>(&step_);
    if (plan == nullptr) return false;
    std::vector<net::HttpResponse> answers;
    for (const Part& part : plan->parts) answers.push_back(shards(part));
    Step next = plan->join(std::move(answers));
    step_ = std::move(next);
    return true;
  }
  int status() const { return std::get<net::HttpResponse>(step_).status; }

 private:
  Step step_;
};

// Two clients put a schedule. Tests every order of their rounds.
TEST(SchedulePlan, OfTwoConcurrentPutsOneSucceedsAndItsClientKnows) {
  for (unsigned order = 0; order < 256; ++order) {
    SCOPED_TRACE(order);
    KeepingShards shards;
    Putting lower(0);
    Putting higher(2);
    for (int bit = 0; bit < 8; ++bit) {
      (void)((order >> bit & 1U) != 0 ? lower : higher).go_on(shards);
    }
    while (lower.go_on(shards) || higher.go_on(shards)) {
    }
    ASSERT_EQ(shards.have_.size(), 1U);
    EXPECT_EQ((*shards.have_.begin() == 0 ? lower : higher).status(), 200);
    EXPECT_TRUE(lower.status() == 200 || higher.status() == 200);
  }
}

TEST(SchedulePlan, APutOnTheLowestOfTwoShardsLeavesTheScheduleOnlyThere) {
  KeepingShards shards;
  shards.have_ = {1, 2};
  EXPECT_EQ(carry_out(put_in_queue_of(2), kShards, std::ref(shards)).answer.status, 409);
  EXPECT_EQ(shards.have_.size(), 2U);
  EXPECT_EQ(carry_out(put_in_queue_of(1), kShards, std::ref(shards)).answer.body, "PUT1");
  EXPECT_EQ(shards.have_, std::set<ShardNumber>{1});
}

TEST(SchedulePlan, APutThatCannotCheckAllShardsIsAnError) {
  int looks = 0;
  const auto play = [&looks](const Part& part) {
    if (part.request.method == "PUT") return made();
    if (part.shard == 0 && ++looks == 2) return unreachable();
    return not_there();
  };
  EXPECT_EQ(carry_out(put_in_queue_of(1), kShards, play).answer.status, 503);
}

}  // namespace
}  // namespace detent::gateway

#include "gateway/list_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "gateway/plan_fixture.h"

namespace detent::gateway {
namespace {

constexpr ShardNumber kShards = 2;

std::string task(int id, const char* state, int due_ms, const std::string& more = "") {
  return R"({"id":")" + std::to_string(id) + R"(","state":")" + state + R"(","due_at":)" +
         std::to_string(due_ms) + more + "}";
}
std::string live(int id, int due_ms) { return task(id, "scheduled", due_ms); }
std::string dead(int id) { return task(id, "dead", 1); }
std::string ended(int id) { return task(id, "completed", 1); }

std::string page(const std::vector<std::string>& tasks, const std::string& cursor = "") {
  std::string body = R"({"tasks":[)";
  for (const std::string& one : tasks) body += (body.ends_with('[') ? "" : ",") + one;
  return body + R"(],"cursor":)" + (cursor.empty() ? "null" : '"' + cursor + '"') + "}";
}

/// The answers of the shards, by question: "SHARD LIMIT CURSOR".
using Script = std::map<std::string, std::string>;

PlayShard play(const Script& script) {
  return [&script](const Part& part) {
    const std::string& target = part.request.target;
    const std::size_t limit = target.find("limit=");
    const std::size_t cursor = target.find("&cursor=");
    std::string asked = std::to_string(part.shard) + " " +
                        target.substr(limit + 6, cursor - limit - 6) + " " +
                        target.substr(cursor + 8);
    const auto found = script.find(asked);
    EXPECT_NE(found, script.end()) << asked;
    return found == script.end() ? not_there() : ok_json(found->second);
  };
}

TEST(ListPlan, LiveTasksAreMergedAndTheNextPageContinuesAfterTheLast) {
  const Script script{
      {"0 3 d0-0-0", page({live(256, 10), live(512, 30), live(768, 40)}, "l0-40-768")},
      {"1 3 d0-0-0", page({live(257, 20), live(513, 30)})}};
  const CarriedOut done =
      carry_out(get("/v1/tasks?limit=3&state=scheduled"), kShards, play(script));
  EXPECT_EQ(done.answer.body, page({live(256, 10), live(257, 20), live(512, 30)}, "l0-30-512"));
  EXPECT_EQ(done.rounds.size(), 1U);
  EXPECT_EQ(done.rounds[0][0].request.target, "/v1/tasks?state=scheduled&limit=3&cursor=d0-0-0");
  const Script rest{{"0 3 l0-30-512", page({live(768, 40)})},
                    {"1 3 l0-30-512", page({live(513, 30)})}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=3&cursor=l0-30-512"), kShards, play(rest)).answer.body,
            page({live(513, 30), live(768, 40)}));
}

TEST(ListPlan, AShardIsAskedAgainIfItsTasksMayComeFirst) {
  // Shard 1 may have more tasks that are due from 15 on. Those of shard 0 from 40 on do not matter.
  Script script{{"0 3 d0-0-0", page({live(256, 10), live(512, 30)}, "l0-40-512")},
                {"1 3 d0-0-0", page({live(257, 5)}, "l0-15-513")},
                {"1 1 l0-15-513", page({live(769, 20)}, "l0-20-769")}};
  const CarriedOut done = carry_out(get("/v1/tasks?limit=3"), kShards, play(script));
  EXPECT_EQ(done.answer.body, page({live(257, 5), live(256, 10), live(769, 20)}, "l0-20-769"));
  script["1 1 l0-15-513"] = page({});
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=3"), kShards, play(script)).answer.body,
            page({live(257, 5), live(256, 10), live(512, 30)}, "l0-40-512"));
}

TEST(ListPlan, APageIsShortWhenAShardFindsNothingForLong) {
  const Script script{{"0 9 d0-0-0", page({live(256, 10)})},
                      {"1 9 d0-0-0", page({}, "d3-0-0")},
                      {"1 9 d3-0-0", page({}, "d4-0-0")},
                      {"1 9 d4-0-0", page({}, "d5-0-0")}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=9"), kShards, play(script)).answer.body,
            page({}, "d5-0-0.1"));
  const Script rest{{"0 9 l0-0-0", page({live(256, 10)})}, {"1 9 d5-0-0", page({dead(257)})}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=9&cursor=d5-0-0.1"), kShards, play(rest)).answer.body,
            page({dead(257), live(256, 10)}));
}

TEST(ListPlan, OfManyShardsEachIsAskedForItsShare) {
  constexpr ShardNumber kMany = 50;
  // One shard has all the tasks.
  const auto few = [](const Part& part) {
    if (part.shard != 7) return ok_json(page({}));
    const bool is_first = part.request.target.ends_with("limit=14&cursor=d0-0-0");
    std::vector<std::string> tasks;
    for (int i = is_first ? 0 : 14; i < (is_first ? 14 : 100); ++i) tasks.push_back(live(i + 1, i));
    return ok_json(page(tasks, is_first ? "l0-13-14" : "l0-99-100"));
  };
  const CarriedOut done = carry_out(get("/v1/tasks"), kMany, few);
  ASSERT_EQ(done.rounds.size(), 2U);
  EXPECT_EQ(done.rounds[0].size(), kMany);
  ASSERT_EQ(done.rounds[1].size(), 1U);
  EXPECT_EQ(done.rounds[1][0].request.target, "/v1/tasks?limit=86&cursor=l0-13-14");
  EXPECT_NE(done.answer.body.find(live(100, 99) + R"(],"cursor":"l0-99-100")"), std::string::npos);
}

TEST(ListPlan, APageThatEndsInDeadTasksAsksTheirShardForTheCursor) {
  Script script{{"0 3 d0-0-0", page({dead(256), live(512, 1)})},
                {"1 3 d0-0-0", page({dead(257), dead(513), dead(769)}, "d7-7-769")},
                {"1 2 d0-0-0", page({dead(257), dead(513)}, "d7-5-513")}};
  const CarriedOut done = carry_out(get("/v1/tasks?limit=3"), kShards, play(script));
  EXPECT_EQ(done.rounds.size(), 2U);
  EXPECT_EQ(done.answer.body, page({dead(256), dead(257), dead(513)}, "d7-5-513.1"));
  // Tasks have changed between the two answers. The cursor comes from the second answer.
  script["1 2 d0-0-0"] = page({dead(513), dead(769)}, "d7-7-769");
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=3"), kShards, play(script)).answer.body,
            page({dead(256), dead(513), dead(769)}, "d7-7-769.1"));
  script["1 2 d0-0-0"] = page({});
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=3"), kShards, play(script)).answer.body,
            page({dead(256), live(512, 1)}));
  script["1 2 d0-0-0"] = "nonsense";
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=3"), kShards, play(script)).answer.status, 500);
}

TEST(ListPlan, DeadTasksOfTheNextShardFollowThoseOfTheFirst) {
  const Script script{{"0 1 d0-0-0", page({dead(256)}, "l0-0-0")},
                      {"1 1 d0-0-0", page({dead(257)}, "l0-0-0")}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=1"), kShards, play(script)).answer.body,
            page({dead(256)}, "d0-0-0.1"));
  const Script next{{"0 1 l0-0-0", page({live(512, 9)})},
                    {"1 1 d0-0-0", page({dead(257)}, "l0-0-0")}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=1&cursor=d0-0-0.1"), kShards, play(next)).answer.body,
            page({dead(257)}, "l0-0-0"));
}

TEST(ListPlan, EndedTasksComeLastShardByShard) {
  const Script script{{"0 3 d0-0-0", page({live(256, 9), ended(512), ended(768)})},
                      {"1 3 d0-0-0", page({live(257, 8), ended(513)})},
                      {"0 1 d0-0-0", page({live(256, 9)}, "e0-0-0")},
                      {"0 2 d0-0-0", page({live(256, 9), ended(512)}, "e0-3-512")}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=3"), kShards, play(script)).answer.body,
            page({live(257, 8), live(256, 9), ended(512)}, "e0-3-512.0"));
  const Script rest{{"0 1 e0-3-512", page({ended(768)})}, {"1 1 e0-0-0", page({ended(513)})}};
  EXPECT_EQ(carry_out(get("/v1/tasks?limit=1&cursor=e0-3-512.0"), kShards, play(rest)).answer.body,
            page({ended(768)}, "e0-0-0.1"));
  const Script last{{"1 1 e0-0-0", page({ended(513)})}};
  const CarriedOut done = carry_out(get("/v1/tasks?limit=1&cursor=e0-0-0.1"), kShards, play(last));
  EXPECT_EQ(done.rounds.at(0).size(), 1U);
  EXPECT_EQ(done.answer.body, page({ended(513)}));
}

TEST(ListPlan, APageEndsAfterItsLimitOfBytes) {
  const std::string payload = R"(,"payload":")" + std::string(3 << 20, 'x') + '"';
  const std::string first = task(256, "ready", 1, payload);
  const std::string second = task(257, "ready", 2, payload);
  const Script script{{"0 100 d0-0-0", page({first, live(512, 3)})},
                      {"1 100 d0-0-0", page({second})}};
  EXPECT_EQ(carry_out(get("/v1/tasks"), kShards, play(script)).answer.body,
            page({first, second}, "l0-2-257"));
}

TEST(ListPlan, TheShardRefusesAWrongCursor) {
  for (const char* cursor : {"", "x", "d0-0-0", "d0-0-0.2", "d0-0-0.01", "d0-0-0.", "l0-0-0.0",
                             "d0-0-0.1.1", "e0-0-0.-1", "e0-0-0.4294967296"}) {
    const CarriedOut done =
        carry_out(get("/v1/tasks?cursor=" + std::string(cursor) + "&state=dead"), kShards,
                  [](const Part&) { return not_there(); });
    ASSERT_EQ(done.rounds.at(0).size(), 1U) << cursor;
    EXPECT_EQ(done.rounds[0][0].request.target, "/v1/tasks?state=dead&cursor=") << cursor;
  }
}

}  // namespace
}  // namespace detent::gateway

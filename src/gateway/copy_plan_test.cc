#include "gateway/copy_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "gateway/plan_fixture.h"
#include "protocol/json/dump_codec.h"

namespace detent::gateway {
namespace {

constexpr ShardNumber kShards = 3;

std::string line(const json::DumpLine& some) {
  std::string text;
  json::append_dump_line(text, some);
  return text;
}

Task task(std::uint64_t count, ShardNumber shard, const std::string& queue) {
  Task made;
  made.id = TaskId{count << TaskId::kShardBits}.on_shard(shard);
  made.queue = queue;
  made.payload.data = "1";
  return made;
}

TEST(CopyPlan, ADumpGoesFromShardToShard) {
  std::vector<std::string> asked;
  const auto play = [&asked](const Part& part) {
    asked.push_back(std::to_string(part.shard) + " " + part.request.target);
    const bool is_second_page = part.request.target.find("after=") != std::string::npos;
    if (part.shard == 1 && !is_second_page) {
      return ok_json(line(task(9, 1, "x")) + line(json::DumpNext{task(9, 1, "x").id}));
    }
    return ok_json(line(json::DumpEnd{.counts = {.queues = 2, .tasks = 5}}));
  };
  std::string target = "/v1/dump?limit=7";
  std::string body;
  for (int page = 0; page < 10; ++page) {
    const CarriedOut done = carry_out(get(target), kShards, play);
    ASSERT_EQ(done.answer.status, 200);
    body = done.answer.body;
    const std::size_t next = body.find(R"("next":")");
    if (next == std::string::npos) break;
    // The counts of a finished shard stay in the dump, but its last line does not end the dump.
    if (asked.size() != 2) {
      EXPECT_NE(body.find(R"("queues":2,"tasks":5)"), std::string::npos) << body;
    }
    const std::size_t from = next + 8;
    target = "/v1/dump?limit=7&after=" + body.substr(from, body.find('"', from) - from);
  }
  EXPECT_EQ(asked,
            (std::vector<std::string>{"0 /v1/dump?limit=7", "1 /v1/dump?limit=7",
                                      "1 /v1/dump?limit=7&after=2305", "2 /v1/dump?limit=7"}));
  EXPECT_EQ(body, line(json::DumpEnd{.counts = {.queues = 2, .tasks = 5}}));
}

TEST(CopyPlan, ADumpContinuesWithTheSchedulesOfAShardWithoutTasks) {
  const CarriedOut done =
      carry_out(get("/v1/dump?after=2&after_schedule=m"), kShards, [](const Part& part) {
        EXPECT_EQ(part.shard, 2u);
        EXPECT_EQ(part.request.target, "/v1/dump?after_schedule=m");
        return ok_json(line(json::DumpNext{.after = {}, .schedule = "n"}));
      });
  EXPECT_EQ(done.answer.body, line(json::DumpNext{.after = TaskId{2}, .schedule = "n"}));
}

TEST(CopyPlan, ACursorMayHaveAnyEscapesInItsName) {
  const CarriedOut done = carry_out(get("/v1/dump?%61fter=2305&limit=7"), kShards,
                                    [](const Part&) { return ok_json(line(json::DumpEnd{})); });
  EXPECT_EQ(done.rounds.at(0).at(0).shard, 1u);
  EXPECT_EQ(done.rounds[0][0].request.target, "/v1/dump?limit=7&after=2305");
}

TEST(CopyPlan, AShardRefusesAWrongCursor) {
  for (const char* target : {"/v1/dump?after=x", "/v1/dump?before=1"}) {
    const CarriedOut done =
        carry_out(get(target), kShards, [](const Part&) { return not_there(); });
    EXPECT_EQ(done.rounds.at(0).at(0).request.target, target);
    EXPECT_EQ(done.answer.status, 404);
  }
  const CarriedOut done = carry_out(get("/v1/dump?after=7"), kShards, nullptr);
  EXPECT_TRUE(done.rounds.empty());
  EXPECT_EQ(done.answer.status, 400);
}

TEST(CopyPlan, ARestoreIsSplitByShardAndErrorsKeepTheirLineNumbers) {
  const std::string a = queue_of(0, kShards);
  const std::string c = queue_of(2, kShards);
  const std::string body = line(json::DumpedQueue{.queue = c, .settings = {}}) + "\n" +
                           line(task(1, 0, a)) + line(task(2, 3, a)) + line(task(3, 2, c)) +
                           "nonsense\n" + line(json::DumpEnd{.counts = {.tasks = 3}});
  const CarriedOut done = carry_out(post("/v1/restore", body), kShards, [](const Part& part) {
    json::RestoreAnswer answer{.restored = 1, .queues = part.shard};
    // The shard reports an error in the second line that it was given.
    answer.errors.push_back({2, {ErrorCode::invalid_argument, "wrong", ""}});
    return ok_json(json::render_restored(answer));
  });
  ASSERT_EQ(done.rounds.at(0).size(), 2u);
  EXPECT_EQ(done.rounds[0][0].request.body, line(task(1, 0, a)) + "nonsense\n");
  EXPECT_EQ(done.rounds[0][1].request.body,
            line(json::DumpedQueue{.queue = c, .settings = {}}) + line(task(3, 2, c)));
  const json::RestoreAnswer answer = json::parse_restored(done.answer.body).value();
  EXPECT_EQ(answer.restored, 2u);
  EXPECT_EQ(answer.queues, 2u);
  std::vector<std::size_t> wrong;
  for (const auto& error : answer.errors) wrong.push_back(error.line);
  EXPECT_EQ(wrong, (std::vector<std::size_t>{4, 5, 6}));
  EXPECT_EQ(answer.errors.front().error.field, "task.id");
}

TEST(CopyPlan, ARestoreFailsIfAShardFails) {
  const std::string body = line(task(1, 0, queue_of(0, kShards)));
  const CarriedOut done =
      carry_out(post("/v1/restore", body), kShards, [](const Part&) { return unreachable(); });
  EXPECT_EQ(done.answer.status, 503);
  EXPECT_EQ(done.answer.header("retry-after"), "2");
}

}  // namespace
}  // namespace detent::gateway

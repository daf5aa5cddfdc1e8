#include "cluster/shard_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace detent {
namespace {

// Tasks lie in databases by it: these never change.
TEST(ShardMap, AQueueIsOfTheSameShardForEver) {
  EXPECT_EQ(shard_of_queue("orders", 1), 0u);
  EXPECT_EQ(shard_of_queue("orders", 16), 6u);
  EXPECT_EQ(shard_of_queue("emails", 16), 6u);
  EXPECT_EQ(shard_of_queue("orders", 256), 38u);
}

TEST(ShardMap, NamesThatDifferInADigitSpreadEvenly) {
  constexpr ShardNumber kShards = 16;
  std::vector<int> queues(kShards);
  for (int i = 0; i < 16'000; ++i) ++queues.at(shard_of_queue("q" + std::to_string(i), kShards));
  for (const int count : queues) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1'150);
  }
}

TEST(ShardMap, TasksAndLeasesCarryTheirShard) {
  const TaskId id = TaskId{123'456'789}.on_shard(77);
  EXPECT_EQ(shard_of_task(id), 77u);
  EXPECT_EQ(shard_of_task(id.next()), 77u);
  EXPECT_EQ(shard_of_lease({.epoch = 5, .number = id.value}), 77u);
}

}  // namespace
}  // namespace detent

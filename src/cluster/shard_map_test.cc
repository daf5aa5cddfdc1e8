#include "cluster/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace detent {
namespace {

// Databases store tasks by these shards, so these values must never change.
TEST(ShardMap, AQueueNeverChangesItsShard) {
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

// ---- partitions ----

using Shards = std::vector<ShardNumber>;

TEST(ShardMap, PartitionsAreOnSeparateShardsBeginningWithTheHome) {
  const ShardMap map{.shards = 16, .partitioned = {{"orders", 4}, {"huge", 256}}};
  EXPECT_EQ(map.places_of("orders"), (Shards{6, 7, 8, 9}));
  EXPECT_EQ(map.places_of("emails"), Shards{6});
  EXPECT_EQ(map.places_of("huge").size(), 16u) << "no shard has two of a queue";
  EXPECT_EQ(map.partitions_of("orders"), 4u);
  EXPECT_EQ(map.partitions_of("emails"), 1u);
}

TEST(ShardMap, TheHomeOfAQueueDecidesItsPartitions) {
  const std::vector<QueuePartitions> written{{6, "orders", 4}, {7, "orders", 9}, {7, "emails", 4}};
  EXPECT_EQ(as_homes_say(written, 16), (PartitionedQueues{{"orders", 4}}));
}

// Databases store keys by these partitions, so these values must never change.
TEST(ShardMap, AKeyNeverChangesItsPartition) {
  const ShardMap map{.shards = 16, .partitioned = {{"orders", 4}}};
  EXPECT_EQ(map.place_of("orders", "o-1001", 0), 7u);
  EXPECT_EQ(map.place_of("orders", "o-1002", 0), 6u);
  EXPECT_EQ(map.place_of("emails", "o-1001", 5), 6u);
}

TEST(ShardMap, KeysSpreadEvenlyAndTasksWithoutOneTakeTurns) {
  const ShardMap map{.shards = 16, .partitioned = {{"orders", 4}}};
  std::map<ShardNumber, int> keys;
  std::map<ShardNumber, int> others;
  for (int i = 0; i < 4'000; ++i) {
    ++keys[map.place_of("orders", "o-" + std::to_string(i), 0)];
    ++others[map.place_of("orders", "", static_cast<std::uint64_t>(i))];
  }
  for (const ShardNumber place : map.places_of("orders")) {
    EXPECT_GT(keys[place], 900) << place;
    EXPECT_EQ(others[place], 1'000) << place;
  }
}

TEST(ShardMap, EachKeyIsTakenByExactlyTheShardOfTheMap) {
  constexpr ShardNumber kShards = 16;
  for (const std::uint32_t partitions : {1u, 4u, 16u, 200u}) {
    const ShardMap map{.shards = kShards, .partitioned = {{"orders", partitions}}};
    const Shards places = map.places_of("orders");
    for (ShardNumber shard = 0; shard < kShards; ++shard) {
      const bool is_place = std::ranges::count(places, shard) > 0;
      EXPECT_EQ(taken_by(shard, kShards)("orders", partitions, ""), is_place) << shard;
    }
    for (int i = 0; i < 50; ++i) {
      const std::string key = "o-" + std::to_string(i);
      for (ShardNumber shard = 0; shard < kShards; ++shard) {
        const bool is_place = map.place_of("orders", key, 0) == shard;
        EXPECT_EQ(taken_by(shard, kShards)("orders", partitions, key), is_place) << shard;
      }
    }
  }
}

}  // namespace
}  // namespace detent

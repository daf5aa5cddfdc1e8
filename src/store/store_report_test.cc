// Tests the report on a cluster: the sums over the reports of its shards.
#include <gtest/gtest.h>

#include <string>

#include "store/store_check.h"

namespace detent {
namespace {

TEST(StoreReport, AddsUpTheShardsOfAClusterAndNamesTheShardOfAFinding) {
  const StoreReport sound{
      .records = {1, 2, 3, 4}, .queues = 2, .schedules = 1, .due_bins = 5, .quarantined = 1};
  StoreReport damaged = sound;
  damaged.finding_count = 2;
  damaged.findings = {"queue a: bad", "queue b: bad"};
  StoreReport sum{.shards = 3};
  add_shard(sum, sound, 0);
  EXPECT_TRUE(sum.is_sound());
  add_shard(sum, damaged, 1);
  add_shard(sum, {.ended_by = Error{ErrorCode::unavailable, "the database is gone", ""}}, 2);
  EXPECT_EQ(to_string(sum),
            "records     20 (due 2, ready 4, dead 6, ended 8)\n"
            "shards      3\n"
            "queues      4\n"
            "schedules   2\n"
            "due bins    10\n"
            "quarantine  2\n"
            "wrong: shard 1: queue a: bad\n"
            "wrong: shard 1: queue b: bad\n"
            "not all was read: shard 2: the database is gone\n");
}

TEST(StoreReport, KeepsTheFirstFindingsAndCountsAllOfThem) {
  StoreReport many{.finding_count = 80};
  many.findings.assign(80, "bad");
  StoreReport sum{.shards = 2};
  add_shard(sum, many, 0);
  add_shard(sum, many, 1);
  EXPECT_EQ(sum.findings.size(), StoreReport::kMaxFindings);
  EXPECT_EQ(sum.finding_count, 160U);
  EXPECT_EQ(sum.findings.back(), "shard 1: bad");
}

}  // namespace
}  // namespace detent

// Simulates many keepers that share one table. A shard must never have two owners that are sure of
// it. After nodes died, paused or could not reach the table, the shards must be balanced again.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/rng.h"
#include "base/test_seed.h"
#include "cluster/testing/keeper_simulation.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLease{5};

void expect_at_rest(const KeeperSimulation& cluster) {
  EXPECT_EQ(cluster.orphans(), 0u);
  const auto loads = cluster.loads();
  ASSERT_FALSE(loads.empty());
  EXPECT_LE(*loads.rbegin() - *loads.begin(), 1u) << "the shares differ";
}

TEST(ShardKeeperSimulation, BalancesTheShardsForAnyNumberOfNodes) {
  for (const std::size_t nodes : {1u, 2u, 3u, 7u, 20u, 100u}) {
    KeeperSimulation cluster(test_seed(), 256, kLease);
    for (std::size_t i = 0; i < nodes; ++i) cluster.add_node();
    cluster.run_for(kLease * 3);
    expect_at_rest(cluster);
  }
}

TEST(ShardKeeperSimulation, MovesNoShardAfterItIsBalanced) {
  KeeperSimulation cluster(test_seed(), 64, kLease);
  for (int i = 0; i < 5; ++i) cluster.add_node();
  cluster.run_for(kLease * 3);
  const std::uint64_t before = cluster.times_taken();
  cluster.run_for(kLease * 100);
  EXPECT_EQ(cluster.times_taken(), before);
}

TEST(ShardKeeperSimulation, ANewNodeMovesOnlyItsShare) {
  KeeperSimulation cluster(test_seed(), 60, kLease);
  for (int i = 0; i < 5; ++i) cluster.add_node();
  cluster.run_for(kLease * 3);
  const std::uint64_t before = cluster.times_taken();
  cluster.add_node();
  cluster.run_for(kLease * 3);
  EXPECT_EQ(cluster.times_taken() - before, 10u);
  expect_at_rest(cluster);
}

TEST(ShardKeeperSimulation, TakesOverFromADeadNodeSoonAfterItsLease) {
  KeeperSimulation cluster(test_seed(), 64, kLease);
  for (int i = 0; i < 4; ++i) cluster.add_node();
  cluster.run_for(kLease * 3);
  cluster.kill(2);
  // The next heartbeat comes at the latest after 22 % of a lease. Two more heartbeats are needed if
  // two nodes try to take the same shard and must find other shards.
  cluster.run_for(kLease + kLease * 22 / 100 * 3);
  expect_at_rest(cluster);
}

TEST(ShardKeeperSimulation, LeavesNoGapWhenANodeRetires) {
  KeeperSimulation cluster(test_seed(), 64, kLease);
  for (int i = 0; i < 4; ++i) cluster.add_node();
  cluster.run_for(kLease * 3);
  cluster.retire(1);
  cluster.run_for(milliseconds{2'500});  // two heartbeats, and the time to close between them
  EXPECT_TRUE(cluster.keeper(1).is_empty());
  cluster.run_for(kLease * 22 / 100 * 2);  // two heartbeats of the others, in case of a race
  EXPECT_EQ(cluster.orphans(), 0u) << "although the node is still a member";
  ASSERT_TRUE(cluster.table().leave({"node-1", "node-1:7070"}));
  cluster.kill(1);
  cluster.run_for(kLease);
  expect_at_rest(cluster);
}

// When the table is back, the first node that asks finds all other nodes dead and all their shards
// free. It takes all shards, which must then be balanced.
TEST(ShardKeeperSimulation, IsBalancedSoonAfterALongOutageOfTheTable) {
  const std::uint64_t first = test_seed();
  for (std::uint64_t seed = first; seed < first + 20; ++seed) {
    SCOPED_TRACE(replay_hint(seed));
    KeeperSimulation cluster(seed, 64, kLease);
    for (int i = 0; i < 4; ++i) cluster.add_node();
    cluster.run_for(kLease * 3);
    cluster.table().set_unreachable(true);
    cluster.run_for(kLease * 3);
    cluster.table().set_unreachable(false);
    // One heartbeat until all nodes are seen, one until the surplus is closed, and one until it is
    // taken. More heartbeats are needed if two nodes try to take the same shard.
    cluster.run_for(kLease);
    expect_at_rest(cluster);
  }
}

/// One random run: nodes join, die, pause and lose the table for a while.
void run_chaos(std::uint64_t seed) {
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  KeeperSimulation cluster(rng.next(), 32, kLease);
  std::size_t nodes = 0;
  for (; nodes < 3; ++nodes) cluster.add_node();
  const MonotonicTime end = cluster.clock().now() + std::chrono::minutes{5};
  while (cluster.step(end)) {
    for (ShardNumber shard = 0; shard < 32; ++shard) {
      ASSERT_LE(cluster.sure_owners(shard), 1) << "shard " << shard << " has two owners";
    }
    const auto node = rng.below(static_cast<std::uint32_t>(nodes));
    switch (rng.below(60)) {
      case 0:
        if (nodes < 12) nodes = cluster.add_node() + 1;
        break;
      case 1:
        if (rng.below(4) == 0) cluster.kill(node);
        break;
      case 2:
        cluster.pause(node, milliseconds{rng.below(20'000)});
        break;
      case 3:
        cluster.table().set_unreachable(rng.below(3) == 0);
        break;
      default:
        break;
    }
  }
  cluster.table().set_unreachable(false);
  cluster.add_node();
  cluster.run_for(kLease * 10);
  expect_at_rest(cluster);
}

TEST(ShardKeeperSimulation, NeverHasTwoOwnersThroughDeathsPausesAndPartitions) {
  const std::uint64_t first = test_seed();
  for (int run = 0; run < test_rounds(50) && !::testing::Test::HasFailure(); ++run) {
    run_chaos(first + static_cast<std::uint64_t>(run));
  }
}

}  // namespace
}  // namespace detent

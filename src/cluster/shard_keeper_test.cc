// Tests one keeper, call by call. The table and the node share one clock, which the test advances.
#include "cluster/shard_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/testing/keeper_simulation.h"
#include "store/testing/memory_lease_table.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FairShare, SumsUpToAllShards) {
  for (ShardNumber shards = 1; shards < 40; ++shards) {
    for (int count = 1; count < 12; ++count) {
      std::vector<Member> members;
      for (int i = 0; i < count; ++i) members.push_back({"node-" + std::to_string(i), ""});
      std::size_t sum = 0;
      for (const Member& member : members) {
        const std::size_t share = fair_share(members, member.node, shards);
        EXPECT_GE(share, shards / members.size());
        EXPECT_LE(share, shards / members.size() + 1);
        sum += share;
      }
      EXPECT_EQ(sum, shards) << count << " members";
    }
  }
}

TEST(FairShare, CountsOnlyStayingMembers) {
  std::vector<Member> members{{"ada", ""}, {"ben", ""}, {"cay", ""}};
  members[0].presence = Presence::leaving;
  EXPECT_EQ(fair_share(members, "ben", 7), 4u);
  EXPECT_EQ(fair_share(members, "cay", 7), 3u);
}

class ShardKeepers : public ::testing::Test {
 protected:
  static constexpr seconds kLease{10};
  static constexpr milliseconds kCloseTime{500};

  std::size_t held() const { return keeper_.held().size(); }
  /// Makes another node known that is alive and has no shard.
  void meet(const std::string& node) { ASSERT_TRUE(table_.beat({node, ""}, {})); }

  ManualClock clock_;
  MemoryLeaseTable table_{clock_, 6, kLease};
  SimulatedHost host_{clock_, kCloseTime};
  ShardKeeper keeper_{table_, host_, clock_, {"ada", "10.0.0.1:7070"}, 1};
};

TEST_F(ShardKeepers, TakeAllWhenAlone) {
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 6u);
  for (ShardNumber shard = 0; shard < 6; ++shard) {
    EXPECT_TRUE(host_.serves(shard));
    EXPECT_EQ(keeper_.held_until({shard, 1}), clock_.now() + kLease);
  }
}

TEST_F(ShardKeepers, TakeNoMoreThanTheirShare) {
  meet("ben");
  meet("cleo");
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 2u);
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 2u);
}

TEST_F(ShardKeepers, GiveUpASurplusOnlyAfterItIsClosed) {
  ASSERT_TRUE(keeper_.step());
  meet("ben");
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 6u);  // three of them are being closed
  EXPECT_TRUE(table_.beat({"ben", ""}, {})->free.empty());
  clock_.advance(kCloseTime);
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 3u);
  EXPECT_EQ(table_.beat({"ben", ""}, {})->free.size(), 3u);
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 3u);  // and does not take them again
}

/// The shards that a node takes first, if it is one of ten members and 100 shards are free.
std::set<ShardNumber> first_choice(const std::string& node) {
  ManualClock clock;
  MemoryLeaseTable table(clock, 100, seconds{10});
  for (int i = 0; i < 10; ++i) static_cast<void>(table.beat({"node-" + std::to_string(i), ""}, {}));
  SimulatedHost host(clock, milliseconds{0});
  ShardKeeper keeper(table, host, clock, {node, ""}, 1);
  static_cast<void>(keeper.step());
  std::set<ShardNumber> shards;
  for (const ShardLease& lease : keeper.held()) shards.insert(lease.shard);
  return shards;
}

TEST(ShardKeepersOfOneMoment, ReachForDifferentShards) {
  std::set<ShardNumber> all;
  for (int i = 0; i < 10; ++i) all.merge(first_choice("node-" + std::to_string(i)));
  EXPECT_GE(all.size(), 80u) << "different shards in 100 attempts";
}

TEST_F(ShardKeepers, StepSeveralTimesInALease) {
  ASSERT_TRUE(keeper_.step());
  const MonotonicTime start = clock_.now();
  for (int steps = 0; steps < 20; ++steps) {
    const auto pause = keeper_.next_step() - clock_.now();
    EXPECT_GE(pause, milliseconds{1'800});
    EXPECT_LE(pause, milliseconds{2'200});
    clock_.advance(pause);
    ASSERT_TRUE(keeper_.step());
  }
  EXPECT_GT(clock_.now() - start, kLease * 3);
  EXPECT_EQ(held(), 6u);
  EXPECT_EQ(keeper_.held_until({0, 1}), clock_.now() + kLease);
}

TEST_F(ShardKeepers, StepSoonerWhileShardsAreBeingClosed) {
  ASSERT_TRUE(keeper_.step());
  meet("ben");
  ASSERT_TRUE(keeper_.step());  // closes three
  EXPECT_LE(keeper_.next_step() - clock_.now(), milliseconds{500});
  clock_.advance(kCloseTime);
  ASSERT_TRUE(keeper_.step());
  EXPECT_GE(keeper_.next_step() - clock_.now(), milliseconds{1'500});
}

TEST_F(ShardKeepers, DropShardsThatAnotherNodeHasTaken) {
  ASSERT_TRUE(keeper_.step());
  clock_.advance(kLease);
  ASSERT_TRUE(*table_.take(4, "ben"));
  meet("ben");
  ASSERT_TRUE(keeper_.step());
  EXPECT_FALSE(host_.serves(4));
  EXPECT_EQ(keeper_.held_until({4, 1}), std::nullopt);
}

TEST_F(ShardKeepers, AreNotSureOfALeasePastItsEndWhenTheTableDoesNotAnswer) {
  ASSERT_TRUE(keeper_.step());
  const MonotonicTime taken_at = clock_.now();
  table_.set_unreachable(true);
  clock_.advance(kLease / 2);
  const Result<void> failed = keeper_.step();
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  EXPECT_GT(keeper_.next_step(), clock_.now());
  EXPECT_EQ(keeper_.held_until({0, 1}), taken_at + kLease);
  EXPECT_EQ(held(), 6u);  // it keeps the shards, because perhaps no other node has taken them
  table_.set_unreachable(false);
  clock_.advance(kLease);
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 6u);
  EXPECT_EQ(keeper_.held().front().epoch, 1u);
}

TEST_F(ShardKeepers, CountALeaseFromBeforeTheyAskedForIt) {
  ASSERT_TRUE(keeper_.step());
  const MonotonicTime asked_at = clock_.now();
  ASSERT_TRUE(keeper_.step());
  clock_.advance(seconds{1});
  EXPECT_EQ(keeper_.held_until({0, 1}), asked_at + kLease);
}

TEST_F(ShardKeepers, GiveUpAllWhenTheyRetire) {
  ASSERT_TRUE(keeper_.step());
  keeper_.retire();
  ASSERT_TRUE(keeper_.step());
  EXPECT_FALSE(keeper_.is_empty());
  clock_.advance(kCloseTime);
  ASSERT_TRUE(keeper_.step());
  EXPECT_TRUE(keeper_.is_empty());
  EXPECT_EQ(table_.beat({"ben", ""}, {})->free.size(), 6u);
}

TEST_F(ShardKeepers, TakeTheShareOfALeavingNode) {
  Member ben{"ben", ""};
  ASSERT_TRUE(table_.beat(ben, {}));
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 3u);
  ben.presence = Presence::leaving;
  ASSERT_TRUE(table_.beat(ben, {}));
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(held(), 6u);
  EXPECT_EQ(keeper_.members().size(), 2u) << "who still has shards can be asked for them";
}

TEST_F(ShardKeepers, TellTheOthersThatTheyLeave) {
  ASSERT_TRUE(keeper_.step());
  keeper_.retire();
  ASSERT_TRUE(keeper_.step());
  EXPECT_EQ(table_.beat({"ben", ""}, {})->members.front().presence, Presence::leaving);
}

TEST_F(ShardKeepers, AreNotSureOfAShardAtAnOldEpoch) {
  ASSERT_TRUE(keeper_.step());
  clock_.advance(kLease);
  ASSERT_TRUE(table_.give_up(**table_.take(4, "ben")));
  ASSERT_TRUE(keeper_.step());  // drops it and takes it again
  EXPECT_EQ(keeper_.held_until({4, 1}), std::nullopt);
  EXPECT_EQ(keeper_.held_until({4, 3}), clock_.now() + kLease);
}

TEST_F(ShardKeepers, DoNotTakeBackShardsThatTheyAreClosing) {
  ASSERT_TRUE(keeper_.step());
  meet("ben");
  ASSERT_TRUE(keeper_.step());  // closes three
  ASSERT_TRUE(table_.leave({"ben", ""}));
  ASSERT_TRUE(keeper_.step());  // wants six again
  EXPECT_EQ(keeper_.held().back().epoch, 1u);
  clock_.advance(kCloseTime);
  ASSERT_TRUE(keeper_.step());  // gives up the three, and takes them like any free shard
  EXPECT_EQ(held(), 6u);
  std::size_t taken_again = 0;
  for (const ShardLease& lease : keeper_.held()) {
    if (lease.epoch == 2) ++taken_again;
  }
  EXPECT_EQ(taken_again, 3u);
}

}  // namespace
}  // namespace detent

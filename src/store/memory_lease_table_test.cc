// The contract of a lease table. The database's clock is moved by hand.
#include "store/memory_lease_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LeaseTables : public ::testing::Test {
 protected:
  static constexpr seconds kLease{10};
  static std::vector<ShardNumber> free_of(const Result<ClusterView>& view) { return view->free; }

  ManualClock clock_;
  MemoryLeaseTable table_{clock_, 3, kLease};
  const Member ada_{"ada", "10.0.0.1:7070"};
  const Member ben_{"ben", "10.0.0.2:7070"};
};

TEST_F(LeaseTables, TellWhoIsAliveAndWhatIsFree) {
  ASSERT_TRUE(table_.beat(ben_, {}));
  const Result<ClusterView> view = table_.beat(ada_, {});
  EXPECT_EQ(view->members, (std::vector<Member>{ada_, ben_}));
  EXPECT_EQ(view->free, (std::vector<ShardNumber>{0, 1, 2}));
  EXPECT_TRUE(view->held.empty());
}

TEST_F(LeaseTables, GiveAShardToOneOnly) {
  const auto lease = table_.take(1, "ada");
  EXPECT_EQ(*lease, (ShardLease{1, 1}));
  EXPECT_EQ(*table_.take(1, "ben"), std::nullopt);
  EXPECT_EQ(*table_.take(1, "ada"), std::nullopt);
  EXPECT_EQ(free_of(table_.beat(ben_, {})), (std::vector<ShardNumber>{0, 2}));
}

TEST_F(LeaseTables, RaiseTheEpochWithEachOwner) {
  ASSERT_TRUE(table_.take(1, "ada"));
  clock_.advance(kLease);
  EXPECT_EQ(**table_.take(1, "ben"), (ShardLease{1, 2}));
  clock_.advance(kLease);
  EXPECT_EQ(**table_.take(1, "ben"), (ShardLease{1, 3}));
}

TEST_F(LeaseTables, LetALeaseRunOutUnlessItIsRenewed) {
  const std::vector<ShardLease> held = {**table_.take(0, "ada"), **table_.take(1, "ada")};
  clock_.advance(kLease - milliseconds{1});
  EXPECT_EQ(table_.beat(ada_, {&held[0], 1})->held, (std::vector<ShardLease>{held[0]}));
  clock_.advance(milliseconds{1});
  EXPECT_EQ(free_of(table_.beat(ben_, {})), (std::vector<ShardNumber>{1, 2}));
}

TEST_F(LeaseTables, RenewALeaseThatRanOutButWasNotTaken) {
  const std::vector<ShardLease> held = {**table_.take(0, "ada")};
  clock_.advance(kLease + seconds{5});
  EXPECT_EQ(table_.beat(ada_, held)->held, held);
  EXPECT_EQ(*table_.take(0, "ben"), std::nullopt);
}

TEST_F(LeaseTables, DoNotRenewWhatIsHeldAtAnotherEpoch) {
  const std::vector<ShardLease> old = {**table_.take(0, "ada")};
  clock_.advance(kLease);
  const ShardLease taken = **table_.take(0, "ada");  // the same node, started again
  clock_.advance(kLease - milliseconds{1});
  EXPECT_TRUE(table_.beat(ada_, old)->held.empty());
  clock_.advance(milliseconds{1});
  EXPECT_EQ(**table_.take(0, "ben"), (ShardLease{0, taken.epoch + 1}));
}

TEST_F(LeaseTables, FreeAShardThatIsGivenUpButNotByAnEarlierOwner) {
  const ShardLease first = **table_.take(0, "ada");
  ASSERT_TRUE(table_.give_up(first));
  const ShardLease second = **table_.take(0, "ben");
  ASSERT_TRUE(table_.give_up(first));
  EXPECT_EQ(*table_.take(0, "ada"), std::nullopt);
  EXPECT_EQ(table_.owners()->at(0), (ShardOwner{0, "ben", second.epoch, false}));
}

TEST_F(LeaseTables, ForgetMembersThatDoNotBeatOrLeave) {
  ASSERT_TRUE(table_.beat(ada_, {}));
  clock_.advance(kLease - milliseconds{1});
  EXPECT_EQ(table_.beat(ben_, {})->members, (std::vector<Member>{ada_, ben_}));
  clock_.advance(milliseconds{1});
  EXPECT_EQ(table_.beat(ben_, {})->members, (std::vector<Member>{ben_}));
  ASSERT_TRUE(table_.beat(ada_, {}));
  ASSERT_TRUE(table_.leave("ben"));
  EXPECT_EQ(table_.beat(ada_, {})->members, (std::vector<Member>{ada_}));
}

TEST_F(LeaseTables, TellOwnersOfAllShards) {
  ASSERT_TRUE(table_.take(1, "ada"));
  EXPECT_EQ(*table_.owners(),
            (std::vector<ShardOwner>{{0, "", 0, true}, {1, "ada", 1, false}, {2, "", 0, true}}));
}

}  // namespace
}  // namespace detent

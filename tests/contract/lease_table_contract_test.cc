// The contract of store/lease_table.h, for each back end. The test moves the time of the table by
// hand. A lease lasts an hour, so the real time that passes during the test does not matter.
#include "store/lease_table.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/clock.h"

#if defined(DETENT_POSTGRES_CONTRACT)
#include "store/postgres/postgres_lease_table.h"
#include "store/postgres/testing/private_cluster.h"
#else
#include "store/testing/memory_lease_table.h"
#endif

namespace detent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr hours kLease{1};
constexpr minutes kAlmostALease{50};
constexpr ShardNumber kShards = 3;

#if defined(DETENT_POSTGRES_CONTRACT)

/// Each node has a table object of its own, and a clock that is wrong by hours.
class TestTables {
 public:
  static constexpr std::string_view kName = "Postgres";

  TestTables() {
    for (ManualClock& clock : clocks_) clock.advance(hours{7 * (&clock - clocks_)});
    clocks_[1].step_wall(-hours{100'000});
  }

  LeaseTable& of(std::size_t node) {
    std::unique_ptr<PostgresLeaseTable>& table = tables_.at(node);
    if (!table) {
      table = *PostgresLeaseTable::open({.url = url_, .shards = kShards, .lease_length = kLease},
                                        clocks_[node]);
    }
    return *table;
  }
  /// Simulates a later time of the database: it moves all stored times back.
  void advance(milliseconds by) {
    const std::string earlier =
        " set until = until - interval '" + std::to_string(by.count()) + " ms'";
    execute(url_, "update detent.lease" + earlier + "; update detent.member" + earlier);
  }

 private:
  std::string url_ = shared_cluster().new_database();
  ManualClock clocks_[2];
  std::vector<std::unique_ptr<PostgresLeaseTable>> tables_{2};
};

#else

class TestTables {
 public:
  static constexpr std::string_view kName = "Memory";

  LeaseTable& of(std::size_t /*node*/) { return table_; }
  void advance(milliseconds by) { clock_.advance(by); }

 private:
  ManualClock clock_;
  MemoryLeaseTable table_{clock_, kShards, kLease};
};

#endif

class TableNames {
 public:
  template <class Tables>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's
    return std::string(Tables::kName);
  }
};

template <class Tables>
class LeaseTableContract : public testing::Test {
 protected:
  void advance(milliseconds by) { tables_.advance(by); }
  static std::vector<ShardNumber> free_of(const Result<ClusterView>& view) { return view->free; }

  Tables tables_;
  LeaseTable& a_ = tables_.of(0);  // two nodes use the table
  LeaseTable& b_ = tables_.of(1);
  const Member ada_{"ada", "10.0.0.1:7070"};
  const Member ben_{"ben", "10.0.0.2:7070"};
};
TYPED_TEST_SUITE(LeaseTableContract, testing::Types<TestTables>, TableNames);

TYPED_TEST(LeaseTableContract, ReportsTheNumberOfShardsAndTheLeaseLength) {
  EXPECT_EQ(this->b_.shards(), kShards);
  EXPECT_EQ(this->b_.lease_length(), kLease);
}

TYPED_TEST(LeaseTableContract, ABeatReturnsLiveMembersAndFreeShards) {
  ASSERT_TRUE(this->b_.beat(this->ben_, {}));
  const Result<ClusterView> view = this->a_.beat(this->ada_, {});
  EXPECT_EQ(view->members, (std::vector<Member>{this->ada_, this->ben_}));
  EXPECT_EQ(view->free, (std::vector<ShardNumber>{0, 1, 2}));
  EXPECT_TRUE(view->held.empty());
}

TYPED_TEST(LeaseTableContract, MembersAreSortedByNameAndIncludeTheCaller) {
  std::vector<Member> all;
  for (const char* node : {"B", "a", "b-2", "b.1", "c"}) {
    all.push_back({node, "h:1"});
    ASSERT_TRUE(this->b_.beat(all.back(), {}));
  }
  EXPECT_EQ(this->a_.beat(all[2], {})->members, all);
}

TYPED_TEST(LeaseTableContract, AMemberCanMoveToAnotherAddressAfterItsMembershipExpires) {
  ASSERT_TRUE(this->a_.beat(this->ada_, {}));
  const Member moved{"ada", "10.0.0.9:7070"};
  const Result<ClusterView> refused = this->b_.beat(moved, {});
  ASSERT_FALSE(refused) << "two nodes would have one name";
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find(this->ada_.address), std::string::npos);
  EXPECT_EQ(this->a_.beat(this->ada_, {})->members, (std::vector<Member>{this->ada_}));
  this->advance(kLease + minutes{1});
  EXPECT_EQ(this->b_.beat(moved, {})->members, (std::vector<Member>{moved}));
  ASSERT_TRUE(this->b_.leave(moved));
  EXPECT_EQ(this->a_.beat(this->ada_, {})->members, (std::vector<Member>{this->ada_}));
}

TYPED_TEST(LeaseTableContract, RenewsNothingIfAnotherNodeHasTheName) {
  const ShardLease lease = this->a_.take(1, "ada")->value();
  this->advance(kLease + minutes{1});
  ASSERT_TRUE(this->b_.beat({"ada", "10.0.0.9:7070"}, {}));
  ASSERT_FALSE(this->a_.beat(this->ada_, std::array{lease}));
  EXPECT_TRUE(this->b_.owners()->at(1).has_run_out);
}

TYPED_TEST(LeaseTableContract, GivesAShardToOneNodeOnly) {
  const auto lease = this->a_.take(1, "ada");
  EXPECT_EQ(*lease, (ShardLease{1, 1}));
  EXPECT_EQ(*this->b_.take(1, "ben"), std::nullopt);
  EXPECT_EQ(*this->a_.take(1, "ada"), std::nullopt);
  EXPECT_EQ(this->free_of(this->b_.beat(this->ben_, {})), (std::vector<ShardNumber>{0, 2}));
}

TYPED_TEST(LeaseTableContract, RaisesTheEpochWithEachOwner) {
  ASSERT_TRUE(this->a_.take(1, "ada"));
  this->advance(kLease);
  EXPECT_EQ(**this->b_.take(1, "ben"), (ShardLease{1, 2}));
  this->advance(kLease);
  EXPECT_EQ(**this->b_.take(1, "ben"), (ShardLease{1, 3}));
}

TYPED_TEST(LeaseTableContract, ALeaseExpiresUnlessItIsRenewed) {
  const std::vector<ShardLease> held = {**this->a_.take(0, "ada"), **this->a_.take(1, "ada")};
  this->advance(kAlmostALease);
  EXPECT_EQ(this->a_.beat(this->ada_, {&held[0], 1})->held, (std::vector<ShardLease>{held[0]}));
  this->advance(kAlmostALease);
  EXPECT_EQ(this->free_of(this->b_.beat(this->ben_, {})), (std::vector<ShardNumber>{1, 2}));
  EXPECT_EQ(*this->b_.take(0, "ben"), std::nullopt);
  this->advance(kLease - kAlmostALease);
  EXPECT_TRUE(*this->b_.take(0, "ben"));
}

TYPED_TEST(LeaseTableContract, RenewsAnExpiredLeaseThatNobodyHasTaken) {
  const std::vector<ShardLease> held = {**this->a_.take(0, "ada")};
  this->advance(kLease + minutes{5});
  const Result<ClusterView> view = this->a_.beat(this->ada_, held);
  EXPECT_EQ(view->held, held);
  EXPECT_EQ(view->free, (std::vector<ShardNumber>{1, 2}));
  EXPECT_EQ(*this->b_.take(0, "ben"), std::nullopt);
}

TYPED_TEST(LeaseTableContract, DoesNotRenewAShardThatAnotherNodeHasTaken) {
  const std::vector<ShardLease> old = {**this->a_.take(0, "ada"), **this->a_.take(2, "ada")};
  this->advance(kLease);
  ASSERT_TRUE(*this->b_.take(0, "ben"));
  EXPECT_EQ(this->a_.beat(this->ada_, old)->held, (std::vector<ShardLease>{old[1]}));
}

TYPED_TEST(LeaseTableContract, DoesNotRenewAShardWithAnotherEpoch) {
  const std::vector<ShardLease> old = {**this->a_.take(0, "ada")};
  this->advance(kLease);
  const ShardLease taken = **this->b_.take(0, "ada");  // the same node, started again
  this->advance(kAlmostALease);
  EXPECT_TRUE(this->a_.beat(this->ada_, old)->held.empty());
  this->advance(kLease - kAlmostALease);
  EXPECT_EQ(**this->b_.take(0, "ben"), (ShardLease{0, taken.epoch + 1}));
}

TYPED_TEST(LeaseTableContract, OnlyThePresentOwnerCanGiveUpAShard) {
  const ShardLease first = **this->a_.take(0, "ada");
  ASSERT_TRUE(this->a_.give_up(first));
  EXPECT_EQ(this->a_.owners()->at(0), (ShardOwner{0, "ada", first.epoch, true}));
  const ShardLease second = **this->b_.take(0, "ben");
  ASSERT_TRUE(this->a_.give_up(first));
  EXPECT_EQ(*this->a_.take(0, "ada"), std::nullopt);
  EXPECT_EQ(this->a_.owners()->at(0), (ShardOwner{0, "ben", second.epoch, false}));
}

TYPED_TEST(LeaseTableContract, RemovesMembersThatStopBeatingOrLeave) {
  ASSERT_TRUE(this->a_.beat(this->ada_, {}));
  this->advance(kAlmostALease);
  EXPECT_EQ(this->b_.beat(this->ben_, {})->members, (std::vector<Member>{this->ada_, this->ben_}));
  this->advance(kLease - kAlmostALease);
  EXPECT_EQ(this->b_.beat(this->ben_, {})->members, (std::vector<Member>{this->ben_}));
  ASSERT_TRUE(this->a_.beat(this->ada_, {}));
  ASSERT_TRUE(this->b_.leave(this->ben_));
  ASSERT_TRUE(this->b_.leave(this->ben_));
  EXPECT_EQ(this->a_.beat(this->ada_, {})->members, (std::vector<Member>{this->ada_}));
}

TYPED_TEST(LeaseTableContract, ReportsAMissingMemberUntilItReturnsLeavesOrADayPasses) {
  const auto missing = [this] {
    std::vector<std::string> nodes;
    const Result<ClusterView> view = this->b_.beat(this->ben_, {});
    for (const MissingMember& member : view->missing) {
      EXPECT_EQ(member.address, this->ada_.address);
      EXPECT_GE(member.missing_for, minutes{0});
      nodes.push_back(member.node);
    }
    return nodes;
  };
  using Nodes = std::vector<std::string>;
  ASSERT_TRUE(this->a_.beat(this->ada_, {}));
  EXPECT_EQ(missing(), Nodes());
  this->advance(kLease + minutes{1});
  EXPECT_EQ(missing(), Nodes{"ada"});
  ASSERT_TRUE(this->a_.beat(this->ada_, {})) << "it returns";
  EXPECT_EQ(missing(), Nodes());
  ASSERT_TRUE(this->a_.leave(this->ada_));
  this->advance(kLease + minutes{1});
  EXPECT_EQ(missing(), Nodes()) << "it has left";
  ASSERT_TRUE(this->a_.beat(this->ada_, {}));
  this->advance(kLease + kMissingMemberKept - minutes{1});
  EXPECT_EQ(missing(), Nodes{"ada"});
  this->advance(minutes{2});
  static_cast<void>(missing());  // this beat removes it
  EXPECT_EQ(missing(), Nodes());
}

TYPED_TEST(LeaseTableContract, LeavingDoesNotAffectAnotherStartOrAddressOfTheNode) {
  Member before = this->ada_;
  before.incarnation = 0xFFFF'FFFF'FFFF'FFF1;
  Member now = before;
  now.incarnation = 7;
  ASSERT_TRUE(this->a_.beat(before, {}));
  ASSERT_TRUE(this->b_.beat(now, {})) << "started again at the same address";
  ASSERT_TRUE(this->a_.leave(before));
  Member elsewhere = now;
  elsewhere.address = "10.0.0.9:7070";
  ASSERT_TRUE(this->a_.leave(elsewhere));
  EXPECT_EQ(this->b_.beat(this->ben_, {})->members, (std::vector<Member>{now, this->ben_}));
  ASSERT_TRUE(this->a_.leave(now));
  EXPECT_EQ(this->b_.beat(this->ben_, {})->members, (std::vector<Member>{this->ben_}));
}

TYPED_TEST(LeaseTableContract, ReportsMembersThatAreLeaving) {
  Member leaving = this->ada_;
  leaving.presence = Presence::leaving;
  ASSERT_TRUE(this->a_.beat(this->ada_, {}));
  ASSERT_TRUE(this->a_.beat(leaving, {}));
  EXPECT_EQ(this->b_.beat(this->ben_, {})->members, (std::vector<Member>{leaving, this->ben_}));
}

TYPED_TEST(LeaseTableContract, AMemberThatLeavesKeepsItsShards) {
  const std::vector<ShardLease> held = {**this->a_.take(0, "ada")};
  ASSERT_TRUE(this->a_.leave(this->ada_));
  EXPECT_EQ(*this->b_.take(0, "ben"), std::nullopt);
  EXPECT_EQ(this->a_.beat(this->ada_, held)->held, held);
}

TYPED_TEST(LeaseTableContract, ListsTheOwnersOfAllShards) {
  ASSERT_TRUE(this->a_.take(1, "ada"));
  EXPECT_EQ(*this->b_.owners(),
            (std::vector<ShardOwner>{{0, "", 0, true}, {1, "ada", 1, false}, {2, "", 0, true}}));
}

// In any order of calls, an epoch is given only once, and each epoch is higher than the previous
// one.
TYPED_TEST(LeaseTableContract, EpochsOnlyRise) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::vector<std::uint64_t> last(kShards, 0);
  std::vector<ShardLease> held[2];
  int taken = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t node = rng.below(2);
    LeaseTable& table = node == 0 ? this->a_ : this->b_;
    const Member& me = node == 0 ? this->ada_ : this->ben_;
    const auto shard = static_cast<ShardNumber>(rng.below(kShards));
    switch (rng.below(4)) {
      case 0:
        held[node] = table.beat(me, held[node])->held;
        break;
      case 1:
        if (!held[node].empty()) {
          ASSERT_TRUE(table.give_up(held[node].back()));
          held[node].pop_back();
        }
        break;
      case 2:
        this->advance(milliseconds{minutes{rng.below(30)}});
        break;
      default: {
        const std::optional<ShardLease> lease = *table.take(shard, me.node);
        if (!lease) break;
        ASSERT_EQ(lease->epoch, last[shard] + 1);
        last[shard] = lease->epoch;
        // A node that takes a shard whose lease of its own has expired holds it once.
        std::erase_if(held[node], [&](const ShardLease& one) { return one.shard == shard; });
        held[node].push_back(*lease);
        ++taken;
      }
    }
  }
  EXPECT_GT(taken, 10);
}

}  // namespace
}  // namespace detent

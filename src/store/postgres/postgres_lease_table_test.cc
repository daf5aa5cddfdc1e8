// Tests the parts of lease tables that need PostgreSQL: the fixed number of shards, races, a
// database that stops and starts, and a pgbouncer. tests/contract tests the contract.
// shard_lease_test.cc tests the stores of shards.
#include "store/postgres/postgres_lease_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "detent/clock.h"
#include "store/postgres/connection.h"
#include "store/postgres/testing/postgres_cluster_fixture.h"
#include "store/postgres/testing/private_cluster.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr const char* kNextAttempt = "; the next attempt to connect begins soon";

// The cluster.

TEST_F(PostgresCluster, ItsNumberOfShardsCannotBeChanged) {
  EXPECT_EQ(opened_table(4)->shards(), 4u);
  EXPECT_EQ(opened_table(4)->shards(), 4u);
  EXPECT_EQ((*open_table(std::nullopt))->shards(), 4u);
  const Result<Table> other = open_table(8);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(other.error().message.find("has 4 shards, not 8"), std::string::npos)
      << other.error().message;
  EXPECT_EQ(value("select count(*) from detent.shard"), "4");
}

TEST_F(PostgresCluster, HasSixteenShardsByDefault) {
  EXPECT_EQ(open_table(0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(open_table(kMostShards + 1).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ((*open_table(std::nullopt))->shards(), 16u);
}

TEST_F(PostgresCluster, AllNodesGetItsSecretAndAnotherClusterHasAnother) {
  const std::string secret = opened_table()->secret();
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos) << secret;
  EXPECT_EQ(opened_table()->secret(), secret);
  url_ = shared_cluster().new_database();
  EXPECT_NE(opened_table()->secret(), secret);
}

TEST_F(PostgresCluster, NodesThatStartTogetherCreateItOnce) {
  constexpr std::size_t kNodes = 4;
  std::vector<Result<Table>> tables;
  for (std::size_t i = 0; i < kNodes; ++i) tables.emplace_back(Error{});
  {
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < kNodes; ++i) {
      threads.emplace_back([this, i, &tables] { tables[i] = open_table(4); });
    }
  }
  for (const Result<Table>& table : tables) {
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ((*table)->secret(), (*tables[0])->secret());
  }
  EXPECT_EQ(value("select count(*) from detent.lease"), "4");
}

TEST_F(PostgresCluster, NodesFindTheQueuesWithPartitionsOfAllShards) {
  const Table table = opened_table();
  EXPECT_TRUE(table->partitioned()->empty());
  const auto record = [](const char* name, std::uint32_t number, std::uint32_t partitions) {
    return QueueRecord{.queue = name, .number = number, .settings = {.partitions = partitions}};
  };
  for (const ShardNumber shard : {0u, 2u}) {
    const std::unique_ptr<Store> store = *open_store(**table->take(shard, "ada"));
    WriteBatch batch;
    batch.queues = {record("hot", 1, 3), record("plain", 2, 1), record("once", 3, 7)};
    ASSERT_TRUE(store->write(batch, Durability::synced));
    batch.queues = {record("once", 3, 1)};
    ASSERT_TRUE(store->write(batch, Durability::synced));
    EXPECT_EQ(store->queues()->size(), 3u);
    const QueuePartitions hot{.shard = shard, .queue = "hot", .partitions = 3};
    EXPECT_EQ(table->partitioned()->back(), hot);
    EXPECT_EQ(table->partitioned()->size(), shard == 0 ? 1u : 2u);
  }
}

TEST_F(PostgresCluster, OpeningCreatesMissingRowsOfShards) {
  const ShardLease lease = **opened_table()->take(3, "ada");
  execute(url_,
          "delete from detent.shard where shard = 1; delete from detent.lease where shard = 1");
  const Table table = opened_table();
  EXPECT_EQ(table->owners()->size(), 4u);
  EXPECT_TRUE(*table->take(1, "ada"));
  EXPECT_EQ(table->owners()->at(3).epoch, lease.epoch);
}

// Races.

TEST_F(PostgresCluster, IfSeveralNodesTakeAShardExactlyOneGetsIt) {
  constexpr std::size_t kNodes = 3;
  constexpr int kRounds = 40;
  std::vector<Table> tables;
  for (std::size_t i = 0; i < kNodes; ++i) tables.push_back(opened_table());
  for (int round = 1; round <= kRounds; ++round) {
    Connection gate({.url = url_});  // all nodes wait for this row, then go together
    ASSERT_TRUE(gate.run(
        {Statement("begin"), Statement("select from detent.lease where shard = 2 for update")}));
    std::vector<std::optional<ShardLease>> taken(kNodes);
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < kNodes; ++i) {
      threads.emplace_back([&, i] { taken[i] = tables[i]->take(2, std::to_string(i)).value(); });
    }
    ASSERT_TRUE(wait_for_sessions_that_wait(kNodes));
    gate.close();
    threads.clear();
    std::size_t winners = 0;
    for (const std::optional<ShardLease>& lease : taken) {
      if (!lease) continue;
      ++winners;
      ASSERT_EQ(*lease, (ShardLease{2, static_cast<std::uint64_t>(round)}));
    }
    ASSERT_EQ(winners, 1u);
    let_leases_run_out();
  }
  EXPECT_EQ(value("select epoch from detent.shard where shard = 2"), std::to_string(kRounds));
}

TEST_F(PostgresCluster, ALeaseIsEitherRenewedOrTaken) {
  const Table mine = opened_table();
  const Table others = opened_table();
  int renewed = 0;
  for (int round = 0; round < 40; ++round) {
    let_leases_run_out();
    const std::vector<ShardLease> held = {**mine->take(2, "ada")};
    let_leases_run_out();
    Connection gate({.url = url_});
    ASSERT_TRUE(gate.run(
        {Statement("begin"), Statement("select from detent.lease where shard = 2 for update")}));
    std::optional<ShardLease> taken;
    std::vector<ShardLease> kept;
    const auto beat = [&] { kept = mine->beat(ada_, held).value().held; };
    const auto take = [&] { taken = others->take(2, "ben").value(); };
    Thread first = round % 2 == 0 ? Thread(beat) : Thread(take);
    ASSERT_TRUE(wait_for_sessions_that_wait(1));
    Thread second = round % 2 == 0 ? Thread(take) : Thread(beat);
    ASSERT_TRUE(wait_for_sessions_that_wait(2));
    gate.close();
    first.join();
    second.join();
    ASSERT_NE(kept.empty(), !taken.has_value()) << "round " << round;
    renewed += kept.empty() ? 0 : 1;
  }
  EXPECT_GT(renewed, 0);
  EXPECT_LT(renewed, 40);
}

// A database that stops and starts, and a pgbouncer.

TEST_F(PostgresCluster, ATableThatLostItsDatabaseConnectsAgainAfterAPause) {
  PrivateCluster cluster;
  url_ = cluster.new_database();
  ManualClock clock;
  const Table table = *PostgresLeaseTable::open({.url = url_, .shards = 4}, clock);
  const std::vector<ShardLease> held = {**table->take(3, "ada")};
  ASSERT_TRUE(table->beat(ada_, held));
  cluster.stop();
  const auto broken = table->beat(ada_, held);
  EXPECT_EQ(broken.error().code, ErrorCode::unavailable);
  cluster.start();
  const auto too_soon = table->beat(ada_, held);  // the pause has not ended
  ASSERT_FALSE(too_soon);
  EXPECT_EQ(message_of(too_soon), message_of(broken) + kNextAttempt) << "the last cause is kept";
  clock.advance(milliseconds{10'000} / 64);
  const auto again = table->beat(ada_, held);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->held, held);
  EXPECT_EQ(again->members, (std::vector<Member>{ada_}));
  EXPECT_EQ(*table->take(3, "ben"), std::nullopt);
}

TEST_F(PostgresCluster, ThePauseDoublesWithEachFailedAttemptUpToALimit) {
  PrivateCluster cluster;
  url_ = cluster.new_database();
  ManualClock clock;
  const Table table = *PostgresLeaseTable::open({.url = url_, .shards = 4}, clock);
  cluster.stop();
  std::vector<int> waited;  // in units of 1/64 of a lease
  ASSERT_FALSE(table->owners());
  for (int tries = 0, steps = 0; tries < 5;) {
    clock.advance(milliseconds{10'000} / 64);
    ++steps;
    if (message_of(table->owners()).find(kNextAttempt) != std::string::npos) continue;
    waited.push_back(std::exchange(steps, 0));
    ++tries;
  }
  EXPECT_EQ(waited, (std::vector<int>{1, 2, 4, 8, 8}));
}

TEST_F(PostgresCluster, EpochsSurviveACrashOfTheDatabase) {
  PrivateCluster cluster(PrivateCluster::Fsync::on);
  url_ = cluster.new_database();
  std::uint64_t last = 0;
  for (int round = 0; round < 2; ++round) {
    const Table table = opened_table();
    if (round > 0) let_leases_run_out();
    const ShardLease lease = **table->take(3, "ada");
    EXPECT_GT(lease.epoch, last);
    last = lease.epoch;
    ASSERT_EQ(table->beat(ada_, {&lease, 1})->held.size(), 1u);
    cluster.kill();
    cluster.start();
    EXPECT_EQ(opened_table()->owners()->at(3), (ShardOwner{3, "ada", last, false}));
  }
}

TEST_F(PostgresCluster, WorksThroughAPgbouncerInTransactionMode) {
  const PrivateBouncer bouncer(shared_cluster());
  const std::string direct = std::exchange(url_, bouncer.through(url_));
  const Table ada = opened_table();
  const Table ben = opened_table();
  const ShardLease lease = **ada->take(3, "ada");
  const std::unique_ptr<Store> store = opened_store(lease);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    ASSERT_TRUE(store->write(new_task(n), n % 2 == 0 ? Durability::synced : Durability::buffered));
    ASSERT_EQ(ada->beat(ada_, {&lease, 1})->held.size(), 1u);
    ASSERT_EQ(ben->beat(ben_, {})->members.size(), 2u);
    ASSERT_EQ(*ben->take(3, "ben"), std::nullopt);
  }
  let_leases_run_out();
  const ShardLease next = **ben->take(3, "ben");
  EXPECT_FALSE(store->write(new_task(21), Durability::synced));
  EXPECT_EQ(count(*opened_store(next)), 20u);
  ASSERT_TRUE(ben->give_up(next));
  ASSERT_TRUE(ben->leave(ben_));
  EXPECT_EQ(value_of(direct, "select count(*) from pg_prepared_statements"), "0");
}

TEST_F(PostgresCluster, SessionsShowTheNodeAndTheShard) {
  const Table table = *PostgresLeaseTable::open({.url = url_, .shards = 4, .node = "ada"}, clock_);
  const ShardLease lease = **table->take(3, "ada");
  const auto store =
      PostgresStore::open({.url = url_, .shard = 3, .epoch = lease.epoch, .node = "ada"}, clock_);
  ASSERT_TRUE(store);
  EXPECT_EQ(value("select string_agg(application_name, ', ' order by application_name) from "
                  "pg_stat_activity where datname = current_database() and application_name <> ''"),
            "detent node ada, detent shard 3 of ada");
}

TEST_F(PostgresCluster, BeatsChangeRowsInPlace) {
  Table table = opened_table();
  std::vector<ShardLease> held;
  for (ShardNumber shard = 0; shard < 4; ++shard) held.push_back(**table->take(shard, "ada"));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(table->beat(ada_, held)->held.size(), 4u);
  table.reset();  // a session reports its counts at its end
  ASSERT_TRUE(
      wait_until("select sum(n_tup_upd) >= 499 from pg_stat_user_tables where relname in "
                 "('lease', 'member')",
                 "t"));
  EXPECT_EQ(value("select bool_and(n_tup_hot_upd >= n_tup_upd - 8) from pg_stat_user_tables where "
                  "relname in ('lease', 'member')"),
            "t");
}

}  // namespace
}  // namespace detent

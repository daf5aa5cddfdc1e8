// Tests stores of shards. The next owner must fence a store in each of its functions, and wherever
// its process stops.
#include "store/postgres/shard_lease.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/postgres/batch_statement.h"
#include "store/postgres/connection.h"
#include "store/postgres/testing/postgres_cluster_fixture.h"
#include "store/postgres/testing/private_cluster.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

using PostgresShards = PostgresCluster;

// A single server, which has no node name.

TEST_F(PostgresShards, ASingleServerIsRefusedByADatabaseWithSeveralShards) {
  opened_table(16);
  const auto refused = open_single();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find(
                "this database belongs to a cluster of 16 shards: start with --node"),
            std::string::npos)
      << refused.error().message;
}

TEST_F(PostgresShards, ANodeAndASingleServerWaitForTheLeaseOfTheOther) {
  std::unique_ptr<Store> single = open_single().value();
  EXPECT_EQ(open_table(2).error().code, ErrorCode::invalid_argument);
  const Table table = opened_table(1);
  EXPECT_EQ(*table->take(0, "ada"), std::nullopt);
  EXPECT_TRUE(table->beat(ada_, {})->free.empty());
  EXPECT_NE(table->owners()->at(0).node.find("process "), std::string::npos);
  single.reset();
  const std::optional<ShardLease> lease = *table->take(0, "ada");
  ASSERT_TRUE(lease);
  const auto refused = open_single();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("in use by another server (ada)"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(table->give_up(*lease));
  single = open_single().value();
  EXPECT_GT(single->begin_epoch().value(), lease->epoch);
}

// A check of the data of a stopped server must not invalidate the leases that the server has kept.
TEST_F(PostgresShards, OpeningToReadChangesNothing) {
  EXPECT_EQ(PostgresStore::open_to_read({.url = url_}).error().code, ErrorCode::not_found);
  EXPECT_EQ(value("select count(*) from pg_namespace where nspname = 'detent'"), "0");
  std::unique_ptr<Store> single = open_single().value();
  ASSERT_TRUE(single->write(full_batch(1), Durability::synced));
  EXPECT_EQ(PostgresStore::open_to_read({.url = url_}).error().code, ErrorCode::unavailable);
  single.reset();
  const std::string rows =
      "select string_agg(x::text, ' ') from (select shard::text from "
      "detent.shard union all select lease::text from detent.lease) as x";
  const std::string before = value(rows) + contents();
  const std::unique_ptr<Store> looking = PostgresStore::open_to_read({.url = url_}).value();
  EXPECT_EQ(count(*looking), 1u);
  EXPECT_EQ(looking->last_id(), due_place(1).id);
  EXPECT_FALSE(looking->write(new_task(2), Durability::synced));
  EXPECT_FALSE(looking->begin_epoch());
  EXPECT_FALSE(looking->trim_keys(at_ms(10), 10));
  EXPECT_EQ(value(rows) + contents(), before);
  single = open_single().value();
  EXPECT_FALSE(looking->queues()) << "another store has taken the shard";
}

TEST_F(PostgresShards, OpeningEachShardOfAClusterToReadChangesNothing) {
  const auto look_at = [&](ShardNumber shard) {
    return PostgresStore::open_to_read({.url = url_, .shard = shard});
  };
  const Table table = opened_table(3);
  for (const ShardNumber shard : {ShardNumber{1}, ShardNumber{2}}) {
    const ShardLease lease = table->take(shard, "ada")->value();
    const std::unique_ptr<Store> store = opened_store(lease);
    for (std::uint64_t n = 1; n <= shard; ++n) {
      ASSERT_TRUE(store->write(new_task(n), Durability::synced));
    }
  }
  const auto shards = PostgresStore::shards_to_read({.url = url_});
  EXPECT_EQ(shards.error().code, ErrorCode::unavailable);
  EXPECT_NE(message_of(shards).find("shard 1 is in use by ada; its lease expires in "),
            std::string::npos)
      << message_of(shards);
  EXPECT_EQ(look_at(2).error().code, ErrorCode::unavailable);
  let_leases_run_out();
  const std::string before = contents();
  EXPECT_EQ(PostgresStore::shards_to_read({.url = url_}).value(), 3U);
  for (const ShardNumber shard : {0U, 1U, 2U}) {
    const auto looking = look_at(shard);
    ASSERT_TRUE(looking) << message_of(looking);
    EXPECT_EQ(count(**looking), shard);
    EXPECT_FALSE((*looking)->write(new_task(9), Durability::synced));
  }
  EXPECT_EQ(contents(), before);
  EXPECT_EQ(look_at(3).error().code, ErrorCode::not_found);
}

// Stores of shards.

TEST_F(PostgresShards, ReadsFailAfterAnotherNodeHasTakenTheShard) {
  const Table table = opened_table(2);
  const ShardLease lease = table->take(1, "ada")->value();
  const std::unique_ptr<Store> store = opened_store(lease);
  ASSERT_TRUE(store->write(full_batch(1), Durability::synced));
  const Place places[] = {due_place(1)};
  const auto outcomes = [&] {
    return std::vector<std::string>{
        message_of(store->read(begin_of(Lane::due), end_of(Lane::due), 9)),
        message_of(store->read(begin_of(Lane::ended), end_of(Lane::ended), 9)),  // without rows
        message_of(store->read_by_id({}, 9)),
        message_of(store->read_at(places)),
        message_of(store->find(due_place(1).id)),
        message_of(store->find(due_place(2).id)),
        message_of(store->find_key(1, "k")),
        message_of(store->read_keys(1, "", 9)),
        message_of(store->schedules()),
        message_of(store->queues()),
        message_of(store->due_counts()),
        message_of(store->quarantined())};
  };
  for (const std::string& outcome : outcomes()) EXPECT_EQ(outcome, "no error");
  let_leases_run_out();
  ASSERT_TRUE(table->take(1, "ben")->has_value());
  for (const std::string& outcome : outcomes()) {
    EXPECT_NE(outcome.find("fenced"), std::string::npos) << outcome;
  }
}

TEST_F(PostgresShards, AStoreReadsTheDataOfEarlierEpochs) {
  const Table table = opened_table();
  const ShardLease first = **table->take(3, "ada");
  std::unique_ptr<Store> store = opened_store(first);
  EXPECT_EQ(store->begin_epoch().value(), first.epoch);
  ASSERT_TRUE(store->write(full_batch(9), Durability::synced));
  store.reset();
  EXPECT_EQ(table->owners()->at(3), (ShardOwner{3, "ada", first.epoch, false}));
  ASSERT_TRUE(table->give_up(first));
  const ShardLease second = **table->take(3, "ben");
  store = opened_store(second);
  EXPECT_EQ(store->begin_epoch().value(), second.epoch);
  EXPECT_EQ(store->last_id(), due_place(9).id);
  EXPECT_EQ(store->last_queue_number(), 4u);
  EXPECT_EQ(count(*store), 1u);
}

TEST_F(PostgresShards, AnEpochCanBeOpenedOnceAndOnlyWhileItIsCurrent) {
  const Table table = opened_table();
  const ShardLease old = **table->take(3, "ada");
  EXPECT_EQ(open_store({3, old.epoch + 1}).error().code, ErrorCode::unavailable);
  const std::unique_ptr<Store> store = opened_store(old);
  const auto twice = open_store(old);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::unavailable);
  EXPECT_NE(twice.error().message.find("opened before at epoch 1"), std::string::npos)
      << twice.error().message;
  EXPECT_TRUE(store->write(new_task(1), Durability::synced));
  let_leases_run_out();
  ASSERT_TRUE(*table->take(3, "ben"));
  const auto late = open_store(old);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  EXPECT_NE(late.error().message.find("another node owns shard 3"), std::string::npos)
      << late.error().message;
}

TEST_F(PostgresShards, EachKindOfChangeFailsAfterAnotherNodeHasTakenTheShard) {
  struct Kind {
    const char* name;
    bool (*is_done)(Store& store);
  };
  const Kind kinds[] = {
      {"write",
       [](Store& store) { return store.write(full_batch(2), Durability::synced).has_value(); }},
      {"buffered write",
       [](Store& store) { return store.write(full_batch(2), Durability::buffered).has_value(); }},
      {"empty write", [](Store& store) { return store.write({}, Durability::synced).has_value(); }},
      {"erase",
       [](Store& store) {
         WriteBatch batch;
         batch.erases = {due_place(1)};
         return store.write(batch, Durability::synced).has_value();
       }},
      {"removal",
       [](Store& store) {
         WriteBatch batch;
         batch.removed_queues = {"mail"};
         batch.removed_schedules = {"s"};
         return store.write(batch, Durability::synced).has_value();
       }},
      {"quarantine",
       [](Store& store) { return store.quarantine(std::array{due_place(1)}).has_value(); }},
      {"trim_keys", [](Store& store) { return store.trim_keys(at_ms(10), 10).has_value(); }},
      {"first begin_epoch", [](Store& store) { return store.begin_epoch().has_value(); }},
  };
  const Table table = opened_table();
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    execute(url_, "truncate detent.task, detent.task_key, detent.queue, detent.due_count");
    let_leases_run_out();
    const std::unique_ptr<Store> old = opened_store(**table->take(3, "ada"));
    ASSERT_TRUE(old->write(full_batch(1), Durability::synced));
    let_leases_run_out();
    const ShardLease taken = **table->take(3, "ben");
    const std::string before = contents();
    EXPECT_FALSE(kind.is_done(*old));
    EXPECT_EQ(contents(), before);
    const std::unique_ptr<Store> current = opened_store(taken);
    const std::string entered = contents();
    EXPECT_FALSE(old->write(new_task(3), Durability::synced));  // all later writes fail, too
    EXPECT_FALSE(old->begin_epoch());
    EXPECT_EQ(contents(), entered);
    EXPECT_TRUE(current->write(new_task(3), Durability::synced));
  }
}

// Triggers refuse changes without the fence (refuse_unfenced_changes()). The contract tests run
// with these triggers. So they find each statement, in any file, that changes rows without the
// fence.
TEST_F(PostgresShards, TheTriggersForTestsRefuseAChangeWithoutTheFence) {
  const Table table = opened_table();
  refuse_unfenced_changes(url_);
  Connection connection({.url = url_});
  const char* const changes[] = {
      "insert into detent.task values (3, 512, 1, 0, 0, 0, '')",
      "delete from detent.task_key where shard = 3",
      "update detent.due_count set count = 0",
      "delete from detent.queue",
      "delete from detent.schedule",
      "insert into detent.quarantine overriding system value values (1, 3, 1, 1, 1, 1, 1, '')"};
  const std::unique_ptr<Store> store = opened_store(**table->take(3, "ada"));
  WriteBatch batch = full_batch(1);
  ScheduleRecord& record = batch.schedules.emplace_back();
  record.schedule.name = "s";
  record.schedule.rule = CronRule{"0 9 * * *"};
  record.schedule.queue = "mail";
  ASSERT_TRUE(store->write(batch, Durability::synced));
  for (const char* const change : changes) {
    const Result<Rows> done = connection.run_one(Statement(change));
    EXPECT_NE(message_of(done).find("an unfenced "), std::string::npos) << change;
  }
}

TEST_F(PostgresShards, ShardsDoNotSeeEachOther) {
  const Table table = opened_table();
  const std::unique_ptr<Store> one = opened_store(**table->take(0, "ada"));
  const std::unique_ptr<Store> two = opened_store(**table->take(3, "ben"));
  const WriteBatch batch = full_batch(1);
  ASSERT_TRUE(one->write(batch, Durability::synced));
  EXPECT_EQ(count(*two), 0u);
  EXPECT_FALSE(two->find(due_place(1).id).value());
  EXPECT_EQ(two->read_by_id({}, 10).value().tasks.size(), 0u);
  EXPECT_EQ(two->due_counts().value().size(), 0u);
  EXPECT_EQ(two->queues().value().size(), 0u);
  EXPECT_FALSE(two->find_key(1, "k").value());
  EXPECT_EQ(two->read_keys(1, "", 10).value().records.size(), 0u);
  EXPECT_EQ(two->trim_keys(at_ms(10), 10).value(), 0u);
  EXPECT_EQ(two->last_id(), TaskId{});
  ASSERT_TRUE(two->write(batch, Durability::synced));
  ASSERT_TRUE(two->quarantine(std::array{due_place(1)}));
  EXPECT_EQ(two->quarantined().value(), 1u);
  EXPECT_EQ(one->quarantined().value(), 0u);
  EXPECT_EQ(count(*one), 1u);
}

TEST_F(PostgresShards, TheNextWriteFailsIfTheDatabaseLostAWrite) {
  const Table table = opened_table();
  const std::unique_ptr<Store> store = opened_store(**table->take(3, "ada"));
  ASSERT_TRUE(store->write(new_task(1), Durability::synced));
  const std::string before = value("select writes from detent.shard where shard = 3");
  ASSERT_TRUE(store->write(new_task(2), Durability::buffered));
  // The state after a failover to a standby database that did not receive the last write, behind
  // the same pgbouncer.
  execute(url_, "delete from detent.task where id = " + std::to_string(due_place(2).id.value) +
                    "; update detent.shard set writes = " + before + " where shard = 3");
  const Result<void> next = store->write(new_task(3), Durability::synced);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::unavailable);
  EXPECT_NE(message_of(next).find("has lost the last writes"), std::string::npos)
      << message_of(next);
  EXPECT_EQ(value("select count(*) from detent.task"), "1");
}

// Owners that stop in the middle of a change.

// A session of a stopped process. The database has received only a part of the data that the
// process wanted to send.
class HalfSent {
 public:
  explicit HalfSent(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    EXPECT_EQ(PQsetnonblocking(connection_, 1), 0);
    EXPECT_EQ(PQenterPipelineMode(connection_), 1);
  }
  ~HalfSent() { PQfinish(connection_); }
  HalfSent(const HalfSent&) = delete;
  HalfSent& operator=(const HalfSent&) = delete;

  void send(const Statement& statement) {
    std::vector<const char*> values;
    std::vector<int> sizes;
    for (const std::string& value : statement.values()) {
      values.push_back(value.data());
      sizes.push_back(static_cast<int>(value.size()));
    }
    const std::vector<int> formats(values.size(), 1);
    EXPECT_EQ(
        PQsendQueryParams(connection_, statement.sql().c_str(), static_cast<int>(values.size()),
                          statement.types().data(), values.data(), sizes.data(), formats.data(), 1),
        1);
  }
  /// Makes the database run the statements. The end of their transaction never comes.
  void stop_before_the_end() {
    EXPECT_EQ(PQsendFlushRequest(connection_), 1);
    while (PQflush(connection_) > 0) {
    }
  }

 private:
  PGconn* connection_;
};

constexpr const char* kStoppedOwners =
    "select count(*) from pg_stat_activity, detent.shard where backend_xid = shard.xmax and "
    "wait_event = 'ClientRead'";

TEST_F(PostgresShards, AnOwnerThatStopsBeforeItsCommitDoesNotBlockTheNext) {
  const Table table = opened_table();
  const ShardLease lease = **table->take(3, "ada");
  const std::unique_ptr<Store> store = opened_store(lease);
  const std::string writes = value("select writes from detent.shard where shard = 3");
  HalfSent stopped(url_);
  stopped.send(
      Statement("select set_config('idle_in_transaction_session_timeout', '100', true), "
                "set_config('statement_timeout', '100', true)"));
  stopped.send(batch_statement({.shard = 3, .epoch = lease.epoch, .writes = std::stoull(writes)},
                               full_batch(1)));
  stopped.stop_before_the_end();
  // The session holds the row of the shard, and none of these time-outs ends it.
  ASSERT_TRUE(wait_until(
      std::string(kStoppedOwners) + " and state_change < clock_timestamp() - interval '300 ms'",
      "1"));
  EXPECT_EQ(*table->take(3, "ben"), std::nullopt);  // its lease has not expired
  EXPECT_EQ(value(kStoppedOwners), "1");
  let_leases_run_out();
  const Result<std::optional<ShardLease>> taken = table->take(3, "ben");
  ASSERT_TRUE(taken) << taken.error().message;
  ASSERT_TRUE(*taken);
  EXPECT_EQ(value("select count(*) from detent.task"), "0");
  EXPECT_TRUE(opened_store(**taken)->write(full_batch(1), Durability::synced));
}

TEST_F(PostgresShards, AStoppedSingleServerDoesNotBlockTheNext) {
  const std::unique_ptr<Store> store = open_single().value();
  const std::string epoch = value("select epoch from detent.shard");
  const std::string writes = value("select writes from detent.shard");
  HalfSent stopped(url_);
  stopped.send(batch_statement(
      {.shard = 0, .epoch = std::stoull(epoch), .writes = std::stoull(writes)}, full_batch(1)));
  stopped.stop_before_the_end();
  ASSERT_TRUE(wait_until(kStoppedOwners, "1"));
  const auto next = open_single();
  EXPECT_TRUE(next) << next.error().message;
}

TEST_F(PostgresShards, TheDatabaseEndsAnIdleExplicitTransaction) {
  const Table table = opened_table();
  Connection stopped({.url = url_, .idle_timeout = milliseconds{100}});
  ASSERT_TRUE(stopped.run(
      {Statement("begin"), Statement("select from detent.lease where shard = 3 for update")}));
  EXPECT_TRUE(*table->take(3, "ben"));  // waits for the row until the transaction ends
  EXPECT_FALSE(stopped.run_one(Statement("commit")));
}

TEST_F(PostgresShards, BeatsAndStartingNodesDoNotWaitForABatch) {
  const Table table = opened_table();
  const std::vector<ShardLease> held = {**table->take(3, "ada")};
  Connection batch({.url = url_});
  ASSERT_TRUE(batch.run({Statement("begin"), Statement("update detent.shard set writes = 7")}));
  EXPECT_EQ(table->beat(ada_, held)->held, held);
  EXPECT_EQ(opened_table()->beat(ben_, {})->members.size(), 2u);
}

}  // namespace
}  // namespace detent

// Tests the parts of the store that need PostgreSQL: fencing by epochs, leases, several programs
// that create the tables together, connections that break during a write, a database that crashes,
// and a pgbouncer. tests/contract tests the contract.
#include "store/postgres/postgres_store.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "store/postgres/migrations.h"
#include "store/postgres/testing/postgres_cluster_fixture.h"
#include "store/postgres/testing/private_cluster.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

WriteBatch& add(WriteBatch& batch, std::uint64_t n, std::size_t payload_bytes = 10) {
  StoredTask stored{.place = due_place(n), .task = {}};
  stored.task.id = stored.place.id;
  stored.task.queue = "mail";
  stored.task.payload.data = std::string(payload_bytes, 'x');
  stored.task.due_at = stored.place.at;
  batch.puts.push_back({.from = std::nullopt, .to = std::move(stored)});
  return batch;
}
WriteBatch new_tasks(std::uint64_t first, std::uint64_t count) {
  WriteBatch batch;
  for (std::uint64_t n = first; n < first + count; ++n) add(batch, n, 500);
  return batch;
}

class PostgresStoreTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Store>> open(std::uint64_t owner) {
    return PostgresStore::open({.url = url_, .owner = owner}, clock_);
  }
  std::unique_ptr<Store> opened(std::uint64_t owner) {
    Result<std::unique_ptr<Store>> store = open(owner);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }
  void let_lease_run_out() {
    execute(url_, "update detent.lease set until = now() - interval '1 ms'");
  }
  std::string value(const std::string& sql) { return value_of(url_, sql); }
  /// Runs the query until its value is `expected`. Returns false if that does not happen.
  bool wait_until(const std::string& sql, const std::string& expected) {
    for (int i = 0; i < 20'000; ++i) {
      if (value(sql) == expected) return true;
    }
    return false;
  }
  std::size_t count(Store& store) {
    return store.read(begin_of(Lane::due), end_of(Lane::due), 100'000).value().tasks.size();
  }

  static constexpr const char* kSessionsThatWait =
      "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = "
      "current_database()";

  SystemClock clock_;
  std::string url_ = shared_cluster().new_database();
};

std::string message_of(const Result<void>& result) {
  return result ? "no error" : result.error().message;
}

// Fencing.

TEST_F(PostgresStoreTest, AWriteUnderAnOldEpochChangesNothingAndAllLaterWritesFail) {
  const std::unique_ptr<Store> old = opened(1);
  ASSERT_TRUE(old->begin_epoch());
  WriteBatch first = new_task(1);
  first.due_counts = {{.bin = {}, .count = 1}};
  ASSERT_TRUE(old->write(first, Durability::synced));
  let_lease_run_out();
  const std::unique_ptr<Store> current = opened(2);
  ASSERT_TRUE(current->begin_epoch());

  WriteBatch all = new_task(2);
  all.puts.push_back({.from = due_place(1), .to = first.puts[0].to});
  all.puts.back().to.task.payload.data = "changed";
  QueueRecord queue;
  queue.queue = "mail";
  queue.number = 1;
  all.queues = {queue};
  all.keys = {{.queue = 1, .key = "k", .id = due_place(2).id, .expires_at = at_ms(5)}};
  all.due_counts = {{.bin = {}, .count = 7}};
  const std::string before = value("select xmin::text || record::text from detent.task");
  const Result<void> late = old->write(all, Durability::synced);
  EXPECT_NE(message_of(late).find("fenced"), std::string::npos) << message_of(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  EXPECT_EQ(value("select xmin::text || record::text from detent.task"), before);
  EXPECT_EQ(value("select count(*) from detent.task"), "1");
  EXPECT_EQ(value("select count(*) from detent.queue"), "0");
  EXPECT_EQ(value("select count(*) from detent.task_key"), "0");
  EXPECT_EQ(value("select sum(count) from detent.due_count"), "1");
  EXPECT_EQ(current->last_id(), due_place(1).id);

  EXPECT_FALSE(old->write({}, Durability::synced));
  EXPECT_TRUE(current->write(all, Durability::synced));
}

TEST_F(PostgresStoreTest, NoKindOfWriteGetsPastTheFence) {
  for (int kind = 0; kind < 5; ++kind) {
    execute(url_, "drop schema if exists detent cascade");
    const std::unique_ptr<Store> old = opened(1);
    WriteBatch batch = new_task(1);
    batch.keys = {{.queue = 1, .key = "k", .id = due_place(1).id, .expires_at = at_ms(5)}};
    ASSERT_TRUE(old->write(batch, Durability::synced));
    let_lease_run_out();
    const std::unique_ptr<Store> current = opened(2);
    const std::string epoch = value("select epoch from detent.shard");
    if (kind == 0) {
      EXPECT_FALSE(old->begin_epoch());
    }
    if (kind == 1) {
      EXPECT_FALSE(old->quarantine(std::array{due_place(1)}));
    }
    if (kind == 2) {
      EXPECT_FALSE(old->trim_keys(at_ms(10), 10));
    }
    if (kind == 3) {
      WriteBatch erase;
      erase.erases = {due_place(1)};
      EXPECT_FALSE(old->write(erase, Durability::buffered));
    }
    if (kind == 4) {
      EXPECT_FALSE(old->write({}, Durability::synced));
    }
    EXPECT_EQ(value("select epoch from detent.shard"), epoch);
    EXPECT_EQ(value("select count(*) from detent.task"), "1");
    EXPECT_EQ(value("select count(*) from detent.task_key"), "1");
    EXPECT_FALSE(old->write(new_task(2), Durability::synced));  // all later writes fail, too
    EXPECT_TRUE(current->write(new_task(3), Durability::synced));
  }
}

// The batch holds the row of the shard and has not committed yet when another server takes the
// shard.
TEST_F(PostgresStoreTest, TheNextOwnerSeesABatchThatWasRunning) {
  const std::unique_ptr<Store> old = opened(1);
  let_lease_run_out();
  Connection blocker({.url = url_});  // the batch waits for this row
  ASSERT_TRUE(blocker.run(
      {Statement("begin"), Statement("insert into detent.task values (0, 256, 1, 0, 0, 0, '')")}));
  Result<void> written;
  Thread writer([&] { written = old->write(new_task(1), Durability::synced); });
  ASSERT_TRUE(wait_until(kSessionsThatWait, "1"));
  std::size_t seen = 0;
  Thread taker([&] { seen = count(*opened(2)); });
  ASSERT_TRUE(wait_until(kSessionsThatWait, "2"));
  blocker.close();
  writer.join();
  taker.join();
  EXPECT_TRUE(written) << message_of(written);
  EXPECT_EQ(seen, 1u);
  EXPECT_FALSE(old->write(new_task(2), Durability::synced));
}

// The batch waits for the row of the shard while another server takes the shard.
TEST_F(PostgresStoreTest, ABatchThatRunsAfterTheNextOwnerHasNoEffect) {
  const std::unique_ptr<Store> old = opened(1);
  Connection taker({.url = url_});
  ASSERT_TRUE(
      taker.run({Statement("begin"), Statement("update detent.shard set epoch = epoch + 1")}));
  Result<void> written;
  Thread writer([&] { written = old->write(new_task(1), Durability::synced); });
  ASSERT_TRUE(wait_until(kSessionsThatWait, "1"));
  ASSERT_TRUE(taker.run_one(Statement("commit")));
  writer.join();
  EXPECT_NE(message_of(written).find("fenced"), std::string::npos) << message_of(written);
  EXPECT_EQ(value("select count(*) from detent.task"), "0");
}

TEST_F(PostgresStoreTest, AMissingRowIsAnErrorAndTheBatchIsNotApplied) {
  const std::unique_ptr<Store> store = opened(1);
  WriteBatch batch = new_task(2);
  batch.erases = {due_place(1)};
  EXPECT_EQ(store->write(batch, Durability::synced).error().code, ErrorCode::data_loss);
  EXPECT_EQ(value("select count(*) from detent.task"), "0");
  EXPECT_FALSE(store->write({}, Durability::synced));
}

// The lease.

TEST_F(PostgresStoreTest, AShardIsTakenAfterItsLeaseExpiresOrByItsOwnerImmediately) {
  std::unique_ptr<Store> first = opened(1);
  EXPECT_EQ(open(2).error().code, ErrorCode::unavailable);
  EXPECT_NE(open(2).error().message.find("in use by another server (process "), std::string::npos);
  const std::unique_ptr<Store> again = opened(1);
  EXPECT_FALSE(first->write({}, Durability::synced));
  first.reset();  // does not release the lease of its successor
  EXPECT_EQ(open(2).error().code, ErrorCode::unavailable);
  let_lease_run_out();
  EXPECT_TRUE(open(2));
}

TEST_F(PostgresStoreTest, TheLeaseIsRenewedAsTimePasses) {
  ManualClock clock;
  const std::unique_ptr<Store> store = *PostgresStore::open({.url = url_, .owner = 1}, clock);
  execute(url_, "update detent.lease set until = now() + interval '1 s'");
  const std::string is_renewed = "select until > now() + interval '8 s' from detent.lease";
  // The thread may not be waiting yet when time moves on.
  for (int i = 0; i < 20'000 && value(is_renewed) != "t"; ++i) clock.advance(seconds{4});
  EXPECT_EQ(open(2).error().code, ErrorCode::unavailable);
}

// The tables.

TEST_F(PostgresStoreTest, ServersThatStartTogetherCreateTheTablesOnce) {
  constexpr std::size_t kServers = 4;
  std::vector<Result<std::unique_ptr<Store>>> stores;
  for (std::size_t i = 0; i < kServers; ++i) stores.emplace_back(Error{});
  {
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < kServers; ++i) {
      threads.emplace_back([this, i, &stores] { stores[i] = open(i + 1); });
    }
  }
  std::size_t started = 0;
  for (const auto& store : stores) {
    if (store) {
      ++started;
    } else {
      EXPECT_NE(store.error().message.find("in use"), std::string::npos) << store.error().message;
    }
  }
  EXPECT_EQ(started, 1u);
  EXPECT_EQ(value("select string_agg(version::text, ',' order by version) from detent.migration"),
            "1");
}

TEST_F(PostgresStoreTest, TablesOfANewerProgramAreRefused) {
  opened(1).reset();
  execute(url_, "insert into detent.migration (version) values (" +
                    std::to_string(kSchemaVersion + 1) + ")");
  const std::string expected =
      "the tables have version 2, this program supports version 1: start the newer version of "
      "Detent that made them, or restore a backup from before the upgrade";
  const auto refused = open(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find(expected), std::string::npos) << refused.error().message;
  const auto unread = PostgresStore::open_to_read({.url = url_});
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(unread.error().message.find(expected), std::string::npos) << unread.error().message;
}

TEST_F(PostgresStoreTest, AFailedMigrationLeavesNoTables) {
  execute(url_, "create schema detent; create table detent.due_count (there int)");
  EXPECT_FALSE(open(1));
  EXPECT_EQ(value("select count(*) from pg_tables where schemaname = 'detent'"), "2");
  EXPECT_EQ(value("select count(*) from detent.migration"), "0");
  execute(url_, "drop table detent.due_count");
  EXPECT_TRUE(open(1));
}

TEST_F(PostgresStoreTest, PagesAndWritesUseIndexesOnly) {
  const std::unique_ptr<Store> store = opened(1);
  ASSERT_TRUE(store->write(new_tasks(1, 2'000), Durability::buffered));
  WriteBatch erase;
  for (std::uint64_t n = 1; n <= 1'000; ++n) erase.erases.push_back(due_place(n));
  ASSERT_TRUE(store->write(erase, Durability::buffered));
  EXPECT_EQ(count(*store), 1'000u);
  store->find(due_place(1).id).value();
  execute(url_, "select pg_stat_force_next_flush()");
  EXPECT_EQ(value("select coalesce(sum(seq_scan), 0) from pg_stat_user_tables where relname in "
                  "('task', 'task_key', 'queue') and seq_scan > idx_scan + 2"),
            "0");
}

TEST_F(PostgresStoreTest, SumsAndQueuesAreChangedInPlace) {
  std::unique_ptr<Store> store = opened(1);
  WriteBatch batch;
  QueueRecord queue;
  queue.queue = "mail";
  queue.number = 1;
  for (int i = 0; i < 200; ++i) {
    queue.waiting = static_cast<std::uint64_t>(i);
    batch.queues = {queue};
    batch.due_counts = {{.bin = {}, .count = 1}};
    ASSERT_TRUE(store->write(batch, Durability::buffered));
  }
  store.reset();  // a session reports its counts at its end
  const std::string hot =
      "select bool_and(n_tup_hot_upd >= 195) from pg_stat_user_tables where relname in ('queue', "
      "'due_count', 'shard')";
  ASSERT_TRUE(
      wait_until("select min(n_tup_upd) >= 199 from pg_stat_user_tables where relname in ('queue', "
                 "'due_count', 'shard')",
                 "t"));
  EXPECT_EQ(value(hot), "t");
}

TEST_F(PostgresStoreTest, DueCountsOfZeroAreRemovedAtTheNextStart) {
  std::unique_ptr<Store> store = opened(1);
  WriteBatch batch;
  batch.due_counts = {{.bin = {}, .count = 1}};
  ASSERT_TRUE(store->write(batch, Durability::synced));
  batch.due_counts[0].count = -1;
  ASSERT_TRUE(store->write(batch, Durability::synced));
  store.reset();
  store = opened(1);
  EXPECT_EQ(value("select count(*) from detent.due_count"), "0");
}

// Errors.

TEST_F(PostgresStoreTest, AnUnreachableOrInvalidUrlIsAnErrorWithoutThePassword) {
  const auto code = [this](const std::string& url) {
    const auto store = PostgresStore::open({.url = url, .owner = 1}, clock_);
    EXPECT_FALSE(store);
    EXPECT_EQ(store.error().message.find("secret"), std::string::npos) << store.error().message;
    return store.error().code;
  };
  EXPECT_EQ(code("postgres://u:secret@/db?host=/nowhere"), ErrorCode::unavailable);
  EXPECT_EQ(code("postgres://u:secret@127.0.0.1:1/db"), ErrorCode::unavailable);
  EXPECT_EQ(code("mysql://u:secret@host/db"), ErrorCode::invalid_argument);
  EXPECT_EQ(code("postgres://u:secret@h%zz/db"), ErrorCode::invalid_argument);
  EXPECT_EQ(shown_postgres_url("postgres://u:secret@db.example:5433/tasks?sslmode=require"),
            "postgres://db.example:5433/tasks");
}

TEST_F(PostgresStoreTest, AStatementThatTakesTooLongFails) {
  const auto store = PostgresStore::open(
      {.url = url_, .owner = 1, .statement_timeout = milliseconds{200}}, clock_);
  ASSERT_TRUE(store);
  Connection blocker({.url = url_});
  ASSERT_TRUE(blocker.run({Statement("begin"), Statement("lock table detent.task in share mode")}));
  EXPECT_EQ((*store)->write(new_task(1), Durability::synced).error().code, ErrorCode::unavailable);
  blocker.close();
  EXPECT_EQ(value("select count(*) from detent.task"), "0");
  EXPECT_EQ(count(**store), 0u);  // reads still succeed
}

TEST_F(PostgresStoreTest, TheDatabaseEndsAnIdleTransaction) {
  Connection connection({.url = url_, .idle_timeout = milliseconds{100}});
  execute(url_, "create table held (a int)");
  ASSERT_TRUE(connection.run({Statement("begin"), Statement("lock table held")}));
  EXPECT_EQ(value("select count(*) from held"),
            "0");  // waits for the lock until the transaction ends
  EXPECT_FALSE(connection.run_one(Statement("commit")));
}

TEST_F(PostgresStoreTest, ReadsSucceedAgainAfterALostConnection) {
  const std::unique_ptr<Store> store = opened(1);
  ASSERT_TRUE(store->write(new_task(1), Durability::synced));
  execute(url_,
          "select pg_terminate_backend(pid) from pg_stat_activity where pid <> "
          "pg_backend_pid() and datname = current_database()");
  EXPECT_FALSE(store->read(begin_of(Lane::due), end_of(Lane::due), 1));
  EXPECT_EQ(count(*store), 1u);
  EXPECT_TRUE(store->write(new_task(2), Durability::synced));  // no write has failed
}

// The test ends sessions at random moments, during writes and between them. Each acknowledged write
// must be stored. Each failed write must be stored completely or not at all.
TEST_F(PostgresStoreTest, AWriteIsAtomicWhereverItsSessionEnds) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::uint64_t next = 1;
  std::uint64_t acknowledged = 0;
  int failures = 0;
  for (int round = 0; round < 25; ++round) {
    const std::unique_ptr<Store> store = opened(1);
    const std::uint64_t before = count(*store);
    ASSERT_EQ(before % 300, 0u) << "part of a batch";
    ASSERT_GE(before, acknowledged);
    acknowledged = before;
    Thread killer([this, queries = rng.below(12)] {
      Connection connection({.url = url_});
      for (std::uint32_t i = 0; i < queries; ++i) {
        static_cast<void>(connection.run_one(Statement("select count(*) from pg_class")));
      }
      static_cast<void>(connection.run_one(
          Statement("select pg_terminate_backend(pid) from pg_stat_activity where pid <> "
                    "pg_backend_pid() and datname = current_database()")));
    });
    for (int i = 0; i < 8; ++i, next += 300) {
      if (!store->write(new_tasks(next, 300), Durability::synced)) {
        ++failures;
        next += 300;
        break;
      }
      acknowledged += 300;
    }
    killer.join();
  }
  EXPECT_GT(failures, 3);
  EXPECT_GE(count(*opened(1)), acknowledged);
}

// A database that crashes.

TEST(PostgresCrash, SyncedWritesSurviveAndBufferedWritesAreWholeOrGone) {
  PrivateCluster cluster(PrivateCluster::Fsync::on);
  SystemClock clock;
  const std::string url = cluster.new_database();
  const auto open = [&] { return PostgresStore::open({.url = url, .owner = 1}, clock); };
  std::uint64_t n = 0;
  for (int round = 0; round < 4; ++round) {
    auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    // The last write is synced: a batch with tasks, or an empty batch after buffered ones.
    for (int i = 0; i < 3; ++i, n += 10) {
      ASSERT_TRUE((*store)->write(new_tasks(n + 1, 10), Durability::buffered));
    }
    if (round % 2 == 0) {
      ASSERT_TRUE((*store)->write({}, Durability::synced));
    } else {
      ASSERT_TRUE((*store)->write(new_tasks(n + 1, 10), Durability::synced));
      n += 10;
    }
    const std::uint64_t epoch = (*store)->begin_epoch().value();
    cluster.kill();
    EXPECT_FALSE((*store)->write(new_task(1'000'000), Durability::synced));
    EXPECT_EQ(open().error().code, ErrorCode::unavailable);
    cluster.start();
    EXPECT_FALSE((*store)->write(new_task(1'000'000), Durability::synced));
    store = open();
    ASSERT_TRUE(store) << store.error().message;
    const TaskPage page = (*store)->read_by_id({}, 100'000).value();
    EXPECT_EQ(page.tasks.size(), n);
    EXPECT_EQ((*store)->last_id(), due_place(n).id);
    EXPECT_GT((*store)->begin_epoch().value(), epoch);
    WriteBatch buffered = new_tasks(n + 1, 10);
    ASSERT_TRUE((*store)->write(buffered, Durability::buffered));
    cluster.kill();
    cluster.start();
    store = open();
    const std::size_t left = (*store)->read_by_id({}, 100'000).value().tasks.size();
    EXPECT_TRUE(left == n || left == n + 10) << left;
    n = left;
  }
}

// A pooler.

TEST_F(PostgresStoreTest, WorksThroughAPgbouncerInTransactionMode) {
  const PrivateBouncer bouncer(shared_cluster());
  const std::string direct = std::exchange(url_, bouncer.through(url_));
  std::unique_ptr<Store> store = opened(1);
  ASSERT_TRUE(store->begin_epoch());
  for (std::uint64_t n = 0; n < 50; ++n) {
    ASSERT_TRUE(store->write(new_tasks(n * 20 + 1, 20),
                             n % 2 == 0 ? Durability::synced : Durability::buffered));
  }
  EXPECT_EQ(count(*store), 1'000u);
  EXPECT_EQ(open(2).error().code, ErrorCode::unavailable);
  store.reset();
  const std::unique_ptr<Store> second = opened(2);
  EXPECT_EQ(count(*second), 1'000u);
  // The settings of a transaction end with it, so the next client of the pooler finds the settings
  // of the database.
  EXPECT_EQ(value_of(url_, "show synchronous_commit"), "on");
  EXPECT_EQ(value_of(url_, "show statement_timeout"), "0");
  EXPECT_EQ(value_of(direct, "select count(*) from pg_prepared_statements"), "0");
}

}  // namespace
}  // namespace detent

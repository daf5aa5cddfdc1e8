// Tests that the cost of reading a page depends only on its rows, not on the history of the table.
//
// A long transaction of another client (a dump, a forgotten session) prevents PostgreSQL from
// removing the rows of ended tasks. Queues that poll the front of their table become slow then (que
// #297, oban #493). In this store, each page begins where the previous page ended.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "detent/clock.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/testing/private_cluster.h"

namespace detent {
namespace {

constexpr std::uint64_t kRounds = 20;
constexpr std::uint64_t kTasksARound = 500;

/// The number of rounds. DETENT_BLOAT_TASKS sets the number of tasks that are added and erased
/// under the snapshot.
std::uint64_t rounds_wanted() {
  const char* const text = std::getenv("DETENT_BLOAT_TASKS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) / kTasksARound : kRounds;
}

/// A session with an open snapshot: it sees the database as it was when this object was made.
class HeldSnapshot {
 public:
  explicit HeldSnapshot(const std::string& url)
      : session_(PQconnectdb(url.c_str()), PQfinish),
        seen_(PQexec(session_.get(),
                     "begin isolation level repeatable read; select count(*) from detent.task"),
              PQclear) {}
  bool is_held() const { return PQtransactionStatus(session_.get()) == PQTRANS_INTRANS; }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> session_;
  std::unique_ptr<PGresult, decltype(&PQclear)> seen_;
};

class PostgresBloatTest : public testing::Test {
 protected:
  static Place place_of(std::uint64_t n) {
    Place place = begin_of(Lane::due);
    place.at = WallTime{std::chrono::milliseconds{n}};
    place.id = TaskId{n << TaskId::kShardBits};
    return place;
  }
  static void add(WriteBatch& batch, std::uint64_t n) {
    StoredTask stored{.place = place_of(n), .task = {}};
    stored.task.id = stored.place.id;
    stored.task.queue = "mail";
    stored.task.due_at = stored.place.at;
    batch.puts.push_back({.from = std::nullopt, .to = std::move(stored)});
  }
  std::unique_ptr<Store> open() {
    return PostgresStore::open({.url = url_, .owner = 1}, clock_).value();
  }
  /// The number of blocks of the task table and its indexes that sessions have read. It waits until
  /// the store's sessions have ended, because a session reports its numbers at its end.
  std::int64_t blocks() {
    while (value_of(url_,
                    "select count(*) from pg_stat_activity where application_name like "
                    "'detent%' and datname = current_database()") != "0") {
    }
    return std::stoll(value_of(
        url_,
        "select sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::bigint "
        "from pg_statio_user_tables where relname = 'task'"));
  }
  /// The number of blocks that reading ten tasks after `after` reads.
  std::int64_t blocks_of_page(const Place& after) {
    const std::int64_t before = blocks();
    {
      const std::unique_ptr<Store> store = open();
      EXPECT_EQ(store->read(after, end_of(Lane::due), 10).value().tasks.size(), 10u);
    }
    // The read has touched at least one block, but PostgreSQL may report it a little later.
    std::int64_t after_it = blocks();
    while (after_it == before) after_it = blocks();
    return after_it - before;
  }

  SystemClock clock_;
  std::string url_ = shared_cluster().new_database();
};

TEST_F(PostgresBloatTest, PagesSkipDeadRowsDuringALongTransaction) {
  open();  // makes the tables
  // The blocks that an automatic vacuum reads would be counted, too. So the test runs the vacuum
  // itself.
  execute(url_, "alter table detent.task set (autovacuum_enabled = off)");
  const HeldSnapshot snapshot(url_);
  ASSERT_TRUE(snapshot.is_held());
  const std::uint64_t last = rounds_wanted() * kTasksARound;
  {
    const std::unique_ptr<Store> store = open();
    for (std::uint64_t round = 0; round < rounds_wanted(); ++round) {
      WriteBatch put;
      WriteBatch erase;
      for (std::uint64_t n = round * kTasksARound + 1; n <= (round + 1) * kTasksARound; ++n) {
        add(put, n);
        erase.erases.push_back(place_of(n));
      }
      ASSERT_TRUE(store->write(put, Durability::buffered));
      ASSERT_TRUE(store->write(erase, Durability::buffered));
    }
    WriteBatch live;
    for (std::uint64_t n = last + 1; n <= last + 10; ++n) add(live, n);
    ASSERT_TRUE(store->write(live, Durability::buffered));
  }
  execute(url_, "vacuum detent.task");
  EXPECT_LT(blocks_of_page(place_of(last)), 30) << "the page begins after the dead rows";
  EXPECT_GT(blocks_of_page(begin_of(Lane::due)), 100) << "without dead rows the test shows nothing";
  EXPECT_TRUE(snapshot.is_held());
}

// For example after a quiet night: the statistics are of a table with one task, and many tasks have
// come since.
TEST_F(PostgresBloatTest, PagesReadOnlyTheirRowsDespiteOldStatistics) {
  const auto write = [this](std::uint64_t first, std::uint64_t count) {
    const std::unique_ptr<Store> store = open();
    WriteBatch batch;
    for (std::uint64_t n = first; n < first + count; ++n) add(batch, n);
    return store->write(batch, Durability::buffered).has_value();
  };
  ASSERT_TRUE(write(1, 1));
  execute(url_, "alter table detent.task set (autovacuum_enabled = off)");
  execute(url_, "vacuum analyze detent.task");
  ASSERT_TRUE(write(2, kRounds * kTasksARound));
  EXPECT_LT(blocks_of_page(begin_of(Lane::due)), 30);
  EXPECT_LT(blocks_of_page(place_of(kTasksARound)), 30);
}

}  // namespace
}  // namespace detent

// The fixture of tests that use lease tables, and stores of several shards, in one database.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "detent/clock.h"
#include "store/postgres/postgres_lease_table.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/testing/private_cluster.h"

namespace detent {

inline WallTime at_ms(std::int64_t ms) { return WallTime{std::chrono::milliseconds{ms}}; }

inline Place due_place(std::uint64_t n) {
  Place place = begin_of(Lane::due);
  place.at = at_ms(10);
  place.id = TaskId{n << TaskId::kShardBits};
  return place;
}

inline WriteBatch new_task(std::uint64_t n) {
  StoredTask stored{.place = due_place(n), .task = {}};
  stored.task.id = stored.place.id;
  stored.task.queue = "mail";
  stored.task.payload.data = "x";
  stored.task.due_at = stored.place.at;
  WriteBatch batch;
  batch.puts.push_back({.from = std::nullopt, .to = std::move(stored)});
  return batch;
}

/// A batch that writes to almost every table.
inline WriteBatch full_batch(std::uint64_t n) {
  WriteBatch batch = new_task(n);
  QueueRecord queue;
  queue.queue = "mail";
  queue.number = 4;
  batch.queues = {queue};
  batch.keys = {{.queue = 1, .key = "k", .id = due_place(n).id, .expires_at = at_ms(5)}};
  batch.due_counts = {{.bin = {}, .count = 1}};
  return batch;
}

template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "no error" : result.error().message;
}

class PostgresCluster : public testing::Test {
 protected:
  using Table = std::unique_ptr<PostgresLeaseTable>;

  Result<Table> open_table(std::optional<ShardNumber> shards) {
    return PostgresLeaseTable::open({.url = url_, .shards = shards}, clock_);
  }
  Table opened_table(ShardNumber shards = 4) {
    Result<Table> table = open_table(shards);
    EXPECT_TRUE(table) << table.error().message;
    return *std::move(table);
  }
  Result<std::unique_ptr<Store>> open_store(const ShardLease& lease) {
    return PostgresStore::open({.url = url_, .shard = lease.shard, .epoch = lease.epoch}, clock_);
  }
  Result<std::unique_ptr<Store>> open_single() {
    return PostgresStore::open({.url = url_, .owner = 1}, clock_);
  }
  std::unique_ptr<Store> opened_store(const ShardLease& lease) {
    Result<std::unique_ptr<Store>> store = open_store(lease);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }
  void let_leases_run_out() {
    execute(url_, "update detent.lease set until = now() - interval '1 ms'");
  }
  std::string value(const std::string& sql) { return value_of(url_, sql); }
  /// All rows of the tables with the data of shards, as text.
  std::string contents() {
    std::string all;
    for (const char* table :
         {"shard", "task", "queue", "schedule", "task_key", "due_count", "quarantine"}) {
      all += value("select string_agg(t::text, ';' order by t::text) from detent." +
                   std::string(table) + " as t") +
             "\n";
    }
    return all;
  }
  /// Runs the query until its value is `expected`. Returns false if that does not happen.
  bool wait_until(const std::string& sql, const std::string& expected) {
    for (int i = 0; i < 20'000; ++i) {
      if (value(sql) == expected) return true;
    }
    return false;
  }
  bool wait_for_sessions_that_wait(std::size_t sessions) {
    return wait_until(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = "
        "current_database()",
        std::to_string(sessions));
  }
  std::size_t count(Store& store) {
    return store.read(begin_of(Lane::due), end_of(Lane::due), 100'000).value().tasks.size();
  }

  SystemClock clock_;
  std::string url_ = shared_cluster().new_database();
  const Member ada_{"ada", "10.0.0.1:7070"};
  const Member ben_{"ben", "10.0.0.2:7070"};
};

}  // namespace detent

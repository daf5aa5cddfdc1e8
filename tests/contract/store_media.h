// The media for the contract tests, one class for each back end. Also the tasks and batches that
// the tests use.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/store.h"

#if defined(DETENT_POSTGRES_CONTRACT)
#include "detent/clock.h"
#include "store/postgres/postgres_lease_table.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/testing/private_cluster.h"
#else
#include "base/testing/test_folder.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/rocksdb/testing/planted_damage.h"
#include "store/testing/memory_store.h"
#endif

namespace detent {

#if defined(DETENT_POSTGRES_CONTRACT)

/// A database of the shared cluster. Each open() acts as another server.
///
/// The database refuses a change of a row if its transaction does not also change the row of the
/// shard, which has the epoch. So each test also shows that all its changes are fenced.
class PostgresMedium {
 public:
  static constexpr std::string_view kName = "Postgres";
  static constexpr std::string_view kInUse = "in use by another";

  Result<std::unique_ptr<Store>> open() {
    Result<std::unique_ptr<Store>> store =
        PostgresStore::open({.url = url_, .owner = ++owners_}, clock_);
    if (store) refuse_unfenced_changes(url_);
    return store;
  }
  void flip_bit(Place place, std::size_t bit) {
    flip("task set record", "record", bit, "id = " + std::to_string(place.id.value));
  }
  void flip_schedule_bit(const std::string& name, std::size_t bit) {
    flip("schedule set value", "value", bit, "name = '" + name + "'");
  }
  void flip_key_bit(std::uint32_t queue, const std::string& key, std::size_t bit) {
    flip("task_key set value", "value", bit, name_is(queue, key));
  }
  void drop_expiry(const KeyRecord& record) { set_expiry(record, "null"); }
  /// `ms` is an SQL expression.
  void set_expiry(const KeyRecord& record, const std::string& ms) {
    execute(url_,
            "set session_replication_role = replica; update detent.task_key set expires_ms = " +
                ms + " where " + name_is(record.queue, record.key));
  }

 private:
  static std::string name_is(std::uint32_t queue, const std::string& key) {
    return "name = int4send(" + std::to_string(queue) + ") || '" + key + "'::bytea";
  }
  void flip(const std::string& set, const std::string& column, std::size_t bit,
            const std::string& where) {
    const std::string at = std::to_string(bit / 8) + " % length(" + column + ")";
    execute(url_, "set session_replication_role = replica; update detent." + set + " = set_byte(" +
                      column + ", " + at + ", get_byte(" + column + ", " + at + ") # (1 << " +
                      std::to_string(bit % 8) + ")) where " + where);
  }

  std::uint64_t owners_ = 0;

 protected:
  SystemClock clock_;
  std::string url_ = shared_cluster().new_database();
};

/// Like PostgresMedium, for a shard that a lease table takes at each open(). If the previous store
/// is still open, open() uses its epoch again, which fails.
class PostgresShardMedium : public PostgresMedium {
 public:
  static constexpr std::string_view kName = "PostgresShard";
  static constexpr std::string_view kInUse = "opened before at epoch";

  Result<std::unique_ptr<Store>> open() {
    if (!table_) {
      ASSIGN_OR_RETURN(table_, PostgresLeaseTable::open({.url = url_, .shards = 4}, clock_));
      refuse_unfenced_changes(url_);
    }
    if (!has_session()) {
      if (held_) TRY(table_->give_up(*held_));
      ASSIGN_OR_RETURN(held_, table_->take(3, "ada"));
    }
    return PostgresStore::open({.url = url_, .shard = 3, .epoch = held_->epoch}, clock_);
  }

 private:
  /// True if the session of the previous store is still there. Sessions end a moment after their
  /// store.
  bool has_session() {
    const std::string count =
        "select count(*) from pg_stat_activity where datname = current_database() and "
        "application_name = 'detent shard 3' and state = 'idle'";
    for (int i = 0; i < 100; ++i) {
      if (value_of(url_, count) == "0") return false;
    }
    return true;
  }

  std::unique_ptr<PostgresLeaseTable> table_;
  std::optional<ShardLease> held_;
};

#else

class MemoryMedium {
 public:
  static constexpr std::string_view kName = "Memory";
  static constexpr std::string_view kInUse = "in use by another";

  Result<std::unique_ptr<Store>> open() { return MemoryStore::open(disk_); }
  /// Requires: no store is open.
  void flip_bit(Place place, std::size_t bit) { disk_.flip_bit(place, bit); }
  void flip_schedule_bit(const std::string& name, std::size_t bit) {
    disk_.flip_schedule_bit(name, bit);
  }
  void flip_key_bit(std::uint32_t queue, const std::string& key, std::size_t bit) {
    disk_.flip_key_bit(queue, key, bit);
  }
  void drop_expiry(const KeyRecord& record) { disk_.drop_expiry(record.queue, record.key); }

 private:
  MemoryDisk disk_;
};

class RocksDbMedium {
 public:
  static constexpr std::string_view kName = "RocksDb";
  static constexpr std::string_view kInUse = "already open in this process";

  Result<std::unique_ptr<Store>> open() { return RocksDbStore::open({.path = path()}); }
  void flip_bit(Place place, std::size_t bit) { flip_stored_bit(path(), place, bit); }
  void flip_schedule_bit(const std::string& name, std::size_t bit) {
    flip_stored_schedule_bit(path(), name, bit);
  }
  void flip_key_bit(std::uint32_t queue, const std::string& key, std::size_t bit) {
    flip_stored_key_bit(path(), {.queue = queue, .key = key}, bit);
  }
  void drop_expiry(const KeyRecord& record) {
    drop_stored_expiry(path(), {.queue = record.queue, .key = record.key}, *record.expires_at);
  }

 protected:
  std::string path() const { return folder_ / "data"; }

 private:
  TestFolder folder_;
};

/// Settles accepted tasks on a thread after every 16 tasks, so that each test also runs while tasks
/// are being settled.
class RocksDbSettlingMedium : public RocksDbMedium {
 public:
  static constexpr std::string_view kName = "RocksDbSettling";

  Result<std::unique_ptr<Store>> open() {
    return RocksDbStore::open({.path = path(), .settle_tasks = 16});
  }
};

/// The same, but settles inside the writes, so that a seed replays a run exactly.
class RocksDbSettlingInlineMedium : public RocksDbMedium {
 public:
  static constexpr std::string_view kName = "RocksDbSettlingInline";

  Result<std::unique_ptr<Store>> open() {
    return RocksDbStore::open({.path = path(), .settle_tasks = 16, .settle_inline = true});
  }
};

#endif

inline WallTime at_ms(std::int64_t ms) { return WallTime{std::chrono::milliseconds{ms}}; }
inline TaskId id_of(std::uint64_t n) { return {n << TaskId::kShardBits}; }

/// Places for tests: the n-th id, at an instant in milliseconds.
inline Place due_place(std::int64_t ms, std::uint64_t n) {
  return {.lane = Lane::due, .queue = 0, .priority = 0, .at = at_ms(ms), .id = id_of(n)};
}
inline Place ready_place(std::uint32_t queue, std::uint32_t priority, std::int64_t ms,
                         std::uint64_t n) {
  return {
      .lane = Lane::ready, .queue = queue, .priority = priority, .at = at_ms(ms), .id = id_of(n)};
}
inline Place dead_place(std::uint32_t queue, std::int64_t ms, std::uint64_t n) {
  return {.lane = Lane::dead, .queue = queue, .priority = 0, .at = at_ms(ms), .id = id_of(n)};
}
inline Place ended_place(std::int64_t ms, std::uint64_t n) {
  return {.lane = Lane::ended, .queue = 0, .priority = 0, .at = at_ms(ms), .id = id_of(n)};
}
/// The same for any lane. `due` and `ended` have no queue.
inline Place place_in(Lane lane, std::uint32_t queue, std::int64_t ms, std::uint64_t n) {
  switch (lane) {
    case Lane::due:
      return due_place(ms, n);
    case Lane::ready:
      return ready_place(queue, 7, ms, n);
    case Lane::dead:
      return dead_place(queue, ms, n);
    case Lane::ended:
      return ended_place(ms, n);
  }
  return {};
}
inline constexpr Lane kLanes[] = {Lane::due, Lane::ready, Lane::dead, Lane::ended};

inline StoredTask task_at(Place place, std::string payload = "1") {
  Task task;
  task.id = place.id;
  task.queue = "mail";
  task.payload.data = std::move(payload);
  task.due_at = place.at;
  task.created_at = at_ms(1);
  if (place.lane == Lane::dead) task.standing = Standing::dead;
  if (place.lane == Lane::ended) task.standing = Standing::completed;
  return {place, std::move(task)};
}

inline WriteBatch& add(WriteBatch& batch, Place place, std::string payload = "1") {
  batch.puts.push_back({.from = std::nullopt, .to = task_at(place, std::move(payload))});
  return batch;
}
inline WriteBatch& move(WriteBatch& batch, Place from, Place to, std::string payload = "1") {
  batch.puts.push_back({.from = from, .to = task_at(to, std::move(payload))});
  return batch;
}
inline WriteBatch new_task(Place place, std::string payload = "1") {
  WriteBatch batch;
  return std::move(add(batch, place, std::move(payload)));
}
inline WriteBatch moved_task(Place from, Place to, std::string payload = "1") {
  WriteBatch batch;
  return std::move(move(batch, from, to, std::move(payload)));
}
inline WriteBatch removal(Place place) {
  WriteBatch batch;
  batch.erases.push_back(place);
  return batch;
}

}  // namespace detent

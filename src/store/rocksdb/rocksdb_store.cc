#include "store/rocksdb/rocksdb_store.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "store/record_format.h"
#include "store/rocksdb/key_format.h"
#include "store/rocksdb/low_water.h"
#include "store/rocksdb/open_db.h"
#include "store/rocksdb/rocksdb_error.h"
#include "store/store_error.h"

namespace detent {

namespace {

constexpr TaskId kNoIdAfter{std::numeric_limits<std::uint64_t>::max()};

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

/// The first key in byte order that is after that of `place`.
std::string first_key_after(DueKey place) { return due_key(place).append(1, '\0'); }

/// What RocksDB says of a batch that is only filled in memory: it can't fail, the status is a form.
void must(const rocksdb::Status& status) { DETENT_CHECK(status.ok()); }

}  // namespace

struct RocksDbStore::Changes {
  explicit Changes(OpenDb& open) : db(open) {}

  void put(const WriteBatch::Put& put) {
    const auto& [place, task] = put.to;
    DETENT_CHECK(place.id == task.id);
    DETENT_CHECK(place > kFirstDueKey);
    must(batch.Put(db.due(), due_key(place), encode_record(task)));
    if (put.from && *put.from == place) return;
    must(batch.Put(db.ids(), id_key(place.id), id_value(place.at)));
    if (!put.from) return;
    DETENT_CHECK(put.from->id == place.id);
    must(batch.Delete(db.due(), due_key(*put.from)));
  }

  void erase(DueKey place) {
    must(batch.Delete(db.due(), due_key(place)));
    must(batch.Delete(db.ids(), id_key(place.id)));
  }

  void set_counts(const QueueCounts& counts) {
    const std::string key = counts_key(counts.queue);
    must(batch.Put(db.meta(), key, counts_value(key, counts)));
  }

  void set_meta(std::string_view key, std::string bytes) {
    must(batch.Put(db.meta(), slice(key), meta_value(key, std::move(bytes))));
  }

  OpenDb& db;
  rocksdb::WriteBatch batch;
};

RocksDbStore::RocksDbStore(std::unique_ptr<OpenDb> db) : db_(std::move(db)) {}

RocksDbStore::~RocksDbStore() {
  if (write_failed_ || !low_water_) return;
  low_water_->raise(*db_);
  // To spare the next start a walk; without it the mark lags, no more.
  static_cast<void>(write({}, Durability::buffered));
}

Result<std::unique_ptr<Store>> RocksDbStore::open(const RocksDbStoreOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<OpenDb> db, OpenDb::open(options));
  std::unique_ptr<RocksDbStore> store(new RocksDbStore(std::move(db)));
  TRY(store->recover());
  return std::unique_ptr<Store>(std::move(store));
}

Result<void> RocksDbStore::recover() {
  ASSIGN_OR_RETURN(last_id_.value, db_->read_number(kLastIdKey));
  ASSIGN_OR_RETURN(epoch_, db_->read_number(kEpochKey));
  ASSIGN_OR_RETURN(LowWater low_water, LowWater::read(*db_));
  low_water_ = std::make_unique<LowWater>(low_water);
  return ok();
}

Result<void> RocksDbStore::write(const WriteBatch& batch, Durability durability) {
  Changes changes(*db_);
  TaskId last_id = std::max(last_id_, batch.last_id);
  std::size_t removals = batch.erases.size();
  for (const WriteBatch::Put& put : batch.puts) {
    changes.put(put);
    low_water_->put(put.to.place);
    last_id = std::max(last_id, put.to.place.id);
    if (put.from && *put.from != put.to.place) ++removals;
  }
  for (const DueKey place : batch.erases) changes.erase(place);
  for (const QueueCounts& counts : batch.counts) changes.set_counts(counts);
  if (last_id != last_id_) changes.set_meta(kLastIdKey, number_bytes(last_id.value));
  if (low_water_->is_changed()) changes.set_meta(kLowWaterKey, due_key(low_water_->place()));
  TRY(apply(changes, durability));
  last_id_ = last_id;
  low_water_->stored();
  low_water_->removed(removals, *db_);
  return ok();
}

/// The only way to the disk. A crash before RocksDB returns leaves all of the changes or nothing:
/// they are one record of its log.
Result<void> RocksDbStore::apply(Changes& changes, Durability durability) {
  if (write_failed_) return earlier_write_failed();
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::synced;
  rocksdb::Status status;
  if (changes.batch.Count() > 0) {
    status = db_->db().Write(options, &changes.batch);
  } else if (options.sync) {
    status = db_->db().SyncWAL();
  }
  if (status.ok()) return ok();
  write_failed_ = true;
  return to_error("write store", status);
}

Result<DuePage> RocksDbStore::read_due(DueKey after, WallTime until, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  DuePage page;
  const DueKey start = std::max(after, low_water_->place());
  if (until < start.at) return page;
  // Both bounds are given and the start is sought, so RocksDB never walks over the tombstones of
  // tasks that were removed before it.
  const std::string lower = first_key_after(start);
  const std::string upper = due_key({until, kNoIdAfter});
  const rocksdb::Slice lower_bound = slice(lower);
  const rocksdb::Slice upper_bound = slice(upper);
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower_bound;
  options.iterate_upper_bound = &upper_bound;
  const std::unique_ptr<rocksdb::Iterator> it(db_->db().NewIterator(options, db_->due()));
  for (it->Seek(lower_bound); it->Valid() && page.tasks.size() < limit; it->Next()) {
    ASSIGN_OR_RETURN(const DueKey place, parse_due_key(view(it->key())));
    if (Result<Task> task = decode_record(place.id, view(it->value()))) {
      page.tasks.push_back({place, *std::move(task)});
    } else {
      page.damaged.push_back(place);
    }
  }
  if (!it->status().ok()) return to_error("read due order", it->status());
  page.more = page.tasks.size() == limit;
  return page;
}

Result<std::vector<Result<Task>>> RocksDbStore::read_at(std::span<const DueKey> places) {
  const std::size_t count = places.size();
  // RocksDB reads neighbours together when the keys come sorted.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&places](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<std::string> keys;
  keys.reserve(count);
  for (const std::size_t index : order) keys.push_back(due_key(places[index]));
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(count);
  std::vector<rocksdb::Status> statuses(count);
  db_->db().MultiGet(rocksdb::ReadOptions(), db_->due(), count, slices.data(), values.data(),
                     statuses.data(), true);
  std::vector<Result<Task>> tasks(count, Result<Task>(Error{}));
  for (std::size_t i = 0; i < count; ++i) {
    const DueKey place = places[order[i]];
    Result<Task>& task = tasks[order[i]];
    if (statuses[i].ok()) {
      task = decode_record(place.id, view(values[i]));
    } else if (statuses[i].IsNotFound()) {
      task = not_stored(place);
    } else if (statuses[i].IsCorruption()) {
      task = to_error("read task " + to_string(place.id), statuses[i]);
    } else {
      return to_error("read tasks", statuses[i]);
    }
  }
  return tasks;
}

Result<std::optional<StoredTask>> RocksDbStore::find(TaskId id) {
  const std::string context = "find task " + to_string(id);
  rocksdb::PinnableSlice value;
  rocksdb::Status status = db_->db().Get(rocksdb::ReadOptions(), db_->ids(), id_key(id), &value);
  if (status.IsNotFound()) return std::optional<StoredTask>();
  if (!status.ok()) return to_error(context, status);
  ASSIGN_OR_RETURN(const WallTime at, parse_id_value(view(value)));
  const DueKey place{at, id};
  value.Reset();
  status = db_->db().Get(rocksdb::ReadOptions(), db_->due(), due_key(place), &value);
  if (status.IsNotFound()) {
    return Error{ErrorCode::data_loss, context + ": the index names a place without a record", ""};
  }
  if (!status.ok()) return to_error(context, status);
  ASSIGN_OR_RETURN(Task task, decode_record(id, view(value)));
  return std::optional<StoredTask>({place, std::move(task)});
}

Result<void> RocksDbStore::quarantine(DueKey place) {
  if (write_failed_) return earlier_write_failed();
  rocksdb::PinnableSlice raw;
  const std::string key = due_key(place);
  const rocksdb::Status status = db_->db().Get(rocksdb::ReadOptions(), db_->due(), key, &raw);
  if (status.IsNotFound()) return ok();
  if (!status.ok()) return to_error("quarantine task " + to_string(place.id), status);
  Changes changes(*db_);
  must(changes.batch.Put(db_->quarantine(), key, raw));
  changes.erase(place);
  return apply(changes, Durability::synced);
}

Result<std::vector<QueueCounts>> RocksDbStore::queue_counts() {
  const rocksdb::Slice lower = slice(kQueuePrefix);
  const rocksdb::Slice upper = slice(kQueueEnd);
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> it(db_->db().NewIterator(options, db_->meta()));
  std::vector<QueueCounts> all;
  for (it->Seek(lower); it->Valid(); it->Next()) {
    ASSIGN_OR_RETURN(QueueCounts counts, parse_counts(view(it->key()), view(it->value())));
    all.push_back(std::move(counts));
  }
  if (!it->status().ok()) return to_error("read queue counts", it->status());
  return all;
}

Result<std::uint64_t> RocksDbStore::quarantined() {
  const std::unique_ptr<rocksdb::Iterator> it(
      db_->db().NewIterator(rocksdb::ReadOptions(), db_->quarantine()));
  std::uint64_t count = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++count;
  if (!it->status().ok()) return to_error("count quarantine", it->status());
  return count;
}

Result<std::uint64_t> RocksDbStore::begin_epoch() {
  Changes changes(*db_);
  changes.set_meta(kEpochKey, number_bytes(epoch_ + 1));
  TRY(apply(changes, Durability::synced));
  return ++epoch_;
}

}  // namespace detent

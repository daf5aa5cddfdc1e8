#include "store/rocksdb/open_store.h"

#include <rocksdb/db.h>

#include <algorithm>
#include <string>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/record_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/range_scan.h"
#include "store/rocksdb/database/rocksdb_error.h"
#include "store/rocksdb/database/slices.h"
#include "store/store_error.h"

namespace detent {

namespace {

// A settle also starts after this many ids. Otherwise one old task that stays accepted could make
// every start read all later tasks.
constexpr std::uint64_t kMostIds = 2'000'000;
// When the accepted tasks are this many times the number that starts a settle, writers wait for the
// running settle. Settles fall behind only if the disk is too slow.
constexpr double kMostLoad = 4;
// One write corrects at least 1/2000 of the tasks of a settle, if many tasks changed while it ran.
// That takes about a millisecond.
constexpr std::size_t kCorrectionsPart = 2'000;
// After a failed settle, the store tries again after this many writes. Each further failure doubles
// the number, at most kMostDoublings times.
constexpr std::uint64_t kWritesToRetry = 100;
constexpr std::uint64_t kMostDoublings = 10;

/// A range of records of one kind in the meta family.
struct MetaRange {
  std::string_view begin;    // the first key
  std::string_view end;      // not included
  std::string_view reading;  // the context of errors
};

/// Calls `take(key, value)` for each record of the range. `take` returns a Result<void>.
template <class Take>
Result<void> read_meta_range(OpenDb& db, const MetaRange& range, Take take) {
  RangeScan scan(db.db(), db.meta(), {std::string(range.begin), std::string(range.end)});
  for (; scan.is_valid(); scan.next()) TRY(take(scan.key(), scan.value()));
  if (!scan.status().ok()) return to_error(range.reading, scan.status());
  return ok();
}

}  // namespace

OpenStore::OpenStore(std::unique_ptr<OpenDb> db, const RocksDbStoreOptions& options)
    : options_(options),
      db_(std::move(db)),
      settle_(*db_, options.settle_inline ? Settle::Mode::foreground : Settle::Mode::background) {}

Result<std::unique_ptr<Store>> OpenStore::open(const RocksDbStoreOptions& options,
                                               StoreSeams seams) {
  ASSIGN_OR_RETURN(std::unique_ptr<OpenDb> db, OpenDb::open(options, std::move(seams)));
  std::unique_ptr<OpenStore> store(new OpenStore(std::move(db), options));
  Result<void> recovered = store->recover();
  if (!recovered) {
    store->write_failed_ = true;  // then closing writes nothing
    return std::move(recovered).error();
  }
  if (options.checkpoints) {
    static_cast<void>(remove_checkpoints(options.path));  // of a backup that did not end
    options.checkpoints->opened([db = store->db_.get()](const std::string& path) -> Result<void> {
      const rocksdb::Status status = db->make_checkpoint(path);
      if (!status.ok()) return to_error("make a checkpoint of the store", status);
      return ok();
    });
  }
  return std::unique_ptr<Store>(std::move(store));
}

OpenStore::~OpenStore() {
  if (options_.checkpoints) options_.checkpoints->closed();
  // The stored tasks are complete without the steps below. The steps only save work at the next
  // start.
  if (settle_.is_running() && !write_failed_) {
    settle_.abandon();
    static_cast<void>(wait_for_settle());
  }
  if (write_failed_) return;
  low_watermark_.raise(*db_, settled_to_);
  Changes changes(*db_);
  due_sums_.stage_full(changes);
  if (low_watermark_.is_changed())
    changes.set_meta(kLowWatermarkKey, place_key(low_watermark_.place()));
  static_cast<void>(apply(changes, Durability::buffered));
}

Result<void> OpenStore::recover() {
  ASSIGN_OR_RETURN(last_id_.value, db_->read_number(kLastIdKey));
  ASSIGN_OR_RETURN(settled_to_.value, db_->read_number(kSettledToKey));
  ASSIGN_OR_RETURN(const std::uint64_t queue_number, db_->read_number(kLastQueueNumberKey));
  last_queue_number_ = static_cast<std::uint32_t>(queue_number);
  ASSIGN_OR_RETURN(epoch_, db_->read_number(kEpochKey));
  ASSIGN_OR_RETURN(low_watermark_, LowWatermark::read(*db_));
  ASSIGN_OR_RETURN(due_sums_, DueSums::read(*db_));
  TRY(remove_unsettled(*db_, settled_to_));
  return recover_accepted();
}

/// Reads all records above the settled mark. Settles keep their number low.
Result<void> OpenStore::recover_accepted() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = std::size_t{1} << 20;
  RangeScan scan(db_->db(), db_->accepted(), {.begin = id_key(TaskId{settled_to_.value + 1})},
                 options);
  for (; scan.is_valid(); scan.next()) {
    const Result<TaskId> id = parse_id_key(scan.key());
    if (!id) return db_->damaged("the id of a task is malformed");
    accepted_.put(split_accepted(*id, scan.value()).place);
    accepted_bytes_ += scan.value().size();
  }
  if (!scan.status().ok()) return db_->open_error(scan.status());
  return ok();
}

Result<void> OpenStore::write_while(const WriteBatch& batch, Durability durability,
                                    const WhileWriting& meanwhile) {
  if (write_failed_) return earlier_write_failed();
  // Each write corrects more tasks than it can change, so the corrections come to an end.
  TRY(finish_settle(least_corrections() + 2 * (batch.puts.size() + batch.erases.size())));
  Changes changes(*db_);
  const bool writes_sums = due_sums_.wants_full();
  if (writes_sums) due_sums_.stage_full(changes);
  TaskId last_id = std::max(last_id_, batch.last_id);
  for (const WriteBatch::Put& put : batch.puts) last_id = std::max(last_id, put.to.place.id);
  stage_tasks(batch, changes);
  for (const std::string& queue : batch.removed_queues) changes.remove_queue(queue);
  std::uint32_t last_queue_number = last_queue_number_;
  for (const QueueRecord& queue : batch.queues) {
    DETENT_CHECK(queue.number != 0);
    changes.set_queue(queue);
    last_queue_number = std::max(last_queue_number, queue.number);
  }
  for (const std::string& name : batch.removed_schedules) changes.remove_schedule(name);
  for (const ScheduleRecord& schedule : batch.schedules) changes.set_schedule(schedule);
  for (const KeyRecord& key : batch.keys) changes.set_key(key);
  due_sums_.stage(batch.due_counts, changes);
  if (last_id != last_id_) changes.set_meta(kLastIdKey, number_bytes(last_id.value));
  if (last_queue_number != last_queue_number_) {
    changes.set_meta(kLastQueueNumberKey, number_bytes(last_queue_number));
  }
  if (low_watermark_.is_changed())
    changes.set_meta(kLowWatermarkKey, place_key(low_watermark_.place()));
  TRY(apply(changes, durability, meanwhile));
  DETENT_CHECK(last_id >= last_id_);
  last_id_ = last_id;
  last_queue_number_ = last_queue_number;
  if (writes_sums) due_sums_.full_written();
  applied(batch);
  return settle_if_due();
}

/// Adds the tasks of the batch to `changes`. The entries of each family are sorted by key, because
/// RocksDB inserts an entry faster if its place is next to the previous one.
void OpenStore::stage_tasks(const WriteBatch& batch, Changes& changes) {
  std::vector<const StoredTask*> settled;
  std::vector<Place> left;                           // places that settled tasks leave
  std::vector<std::pair<TaskId, const Place*>> ids;  // of settled tasks; null: the task is erased
  for (const auto& [from, to] : batch.puts) {
    DETENT_CHECK(to.place.id == to.task.id);
    DETENT_CHECK(to.place > begin_of(to.place.lane, to.place.queue));
    DETENT_CHECK(!from || from->id == to.place.id);
    if (is_accepted(to.place.id)) {
      DETENT_CHECK(accepted_.find(to.place.id) == from);  // it leaves the place that it has
      const std::string record = encode_record(to.task);
      accepted_bytes_ += record.size();
      changes.put_accepted(to.place, record);
      continue;
    }
    if (to.place.lane == Lane::due) low_watermark_.put(to.place);
    settled.push_back(&to);
    if (from == to.place) continue;
    ids.emplace_back(to.place.id, &to.place);
    if (from) left.push_back(*from);
  }
  std::vector<TaskId> accepted;  // to erase
  for (const Place& place : batch.erases) {
    DETENT_CHECK(place.id.value != 0);
    if (is_accepted(place.id)) {
      DETENT_CHECK(accepted_.find(place.id) == place);
      accepted.push_back(place.id);
    } else {
      left.push_back(place);
      ids.emplace_back(place.id, nullptr);
    }
  }
  std::sort(accepted.begin(), accepted.end());
  std::sort(settled.begin(), settled.end(),
            [](const StoredTask* a, const StoredTask* b) { return a->place < b->place; });
  std::sort(left.begin(), left.end());
  std::sort(ids.begin(), ids.end());
  // A task that moves twice, or that moves and ends, would leave an entry that names no record.
  const auto is_same = [](const auto& a, const auto& b) { return a.first == b.first; };
  DETENT_CHECK(std::adjacent_find(ids.begin(), ids.end(), is_same) == ids.end());
  DETENT_CHECK(std::adjacent_find(accepted.begin(), accepted.end()) == accepted.end());
  for (const TaskId id : accepted) changes.erase_accepted(id);
  for (const StoredTask* to : settled) changes.put_record(to->place, encode_record(to->task));
  for (const Place& place : left) changes.erase_record(place);
  for (const auto& [id, place] : ids) {
    place != nullptr ? changes.put_id(*place) : changes.erase_id(id);
  }
}

void OpenStore::stage_erase(const Place& place, Changes& changes) {
  if (is_accepted(place.id)) {
    changes.erase_accepted(place.id);
    return;
  }
  changes.erase_record(place);
  changes.erase_id(place.id);
}

/// Updates the memory after the batch was written.
void OpenStore::applied(const WriteBatch& batch) {
  // From the due lane. Accepted tasks count too, because a settle may have added their entries.
  std::size_t removals = 0;
  const auto count_removal = [&](const Place& place) {
    if (place.lane == Lane::due) ++removals;
  };
  for (const auto& [from, to] : batch.puts) {
    if (is_accepted(to.place.id)) move_accepted(to.place.id, to.place);
    if (from && *from != to.place) count_removal(*from);
  }
  for (const Place& place : batch.erases) {
    if (is_accepted(place.id)) move_accepted(place.id, std::nullopt);
    count_removal(place);
  }
  for (const KeyRecord& key : batch.keys) keys_.put(key);
  due_sums_.written(batch.due_counts);
  low_watermark_.stored();
  if (removals > 0) low_watermark_.removed(removals, *db_, settled_to_);
}

void OpenStore::move_accepted(TaskId id, const std::optional<Place>& to) {
  if (settle_.is_running()) settle_.changed(id, accepted_.find(id));
  if (to) {
    accepted_.put(*to);
  } else {
    accepted_.erase(id);
  }
}

/// `meanwhile` may call read_at(). So this function must not change the data that read_at() uses.
/// applied() updates this data later.
Result<void> OpenStore::apply(Changes& changes, Durability durability,
                              const WhileWriting& meanwhile) {
  if (write_failed_) return earlier_write_failed();
  const auto write = [&] { return changes.write(durability); };
  const rocksdb::Status status = meanwhile ? write_thread_.run(write, meanwhile) : write();
  if (status.ok()) return ok();
  write_failed_ = true;
  return to_error("write store", status);
}

/// Returns how full the accepted family is. A settle starts at 1.
double OpenStore::settle_load() const noexcept {
  const auto part = [](std::uint64_t is, std::uint64_t most) {
    return static_cast<double>(is) / static_cast<double>(std::max<std::uint64_t>(1, most));
  };
  DETENT_CHECK(last_id_ >= settled_to_);
  const std::uint64_t ids = (last_id_.value - settled_to_.value) >> TaskId::kShardBits;
  return std::max({part(accepted_.size(), options_.settle_tasks),
                   part(accepted_bytes_, options_.settle_bytes), part(ids, kMostIds)});
}

Result<void> OpenStore::settle_if_due() {
  if (settle_.is_running() && settle_load() >= kMostLoad) TRY(wait_for_settle());
  if (settle_.is_running() || settle_load() < 1) return ok();
  if (writes_to_retry_ > 0) {
    --writes_to_retry_;
    return ok();
  }
  if (settled_to_ == last_id_) {
    // All tasks are settled. The bytes are of versions that were written during the last settle.
    DETENT_CHECK(accepted_.size() == 0);
    accepted_bytes_ = 0;
    return ok();
  }
  bytes_at_start_ = accepted_bytes_;
  settle_.start({.after = settled_to_,
                 .upto = last_id_,
                 .max_tasks = options_.settle_tasks,
                 .max_bytes = options_.settle_bytes});
  return ok();
}

Result<void> OpenStore::finish_settle(std::size_t corrections) {
  if (!ingested_) {
    const std::optional<Result<Settled>> outcome = settle_.poll();
    if (outcome) take_outcome(*outcome);
  }
  if (!ingested_) return ok();
  return settle_.changes_left() > corrections ? correct(corrections) : make_it_count();
}

std::size_t OpenStore::least_corrections() const noexcept {
  return std::max<std::size_t>(1, options_.settle_tasks / kCorrectionsPart);
}

Result<void> OpenStore::wait_for_settle() {
  if (!ingested_) take_outcome(settle_.wait());
  return ingested_ ? make_it_count() : ok();
}

/// Keeps the result of a settle. After a failure, sets the number of writes before the next
/// attempt.
void OpenStore::take_outcome(const Result<Settled>& outcome) {
  DETENT_CHECK(!ingested_);
  if (outcome) {
    DETENT_CHECK(outcome->to > settled_to_ && outcome->to <= last_id_);
    ingested_ = *outcome;
  } else {
    writes_to_retry_ = kWritesToRetry << std::min(failed_settles_++, kMostDoublings);
  }
}

/// Writes corrections without a sync. If a crash removes them, the next start removes the ingested
/// entries too.
Result<void> OpenStore::correct(std::size_t corrections) {
  Changes changes(*db_);
  if (Result<void> staged = settle_.stage_corrections(*ingested_, corrections, accepted_, changes);
      !staged) {
    write_failed_ = true;  // opening the store again removes the ingested entries
    return staged;
  }
  return apply(changes, Durability::buffered);
}

/// Lowers the low-water mark to the first accepted task, because this task may be among the settled
/// ones that now count in the due family.
void OpenStore::lower_to_accepted() {
  if (ingested_->has_front) low_watermark_.put(front_place(TaskId{1}));
  for (const Place& first : accepted_.read(begin_of(Lane::due), end_of(Lane::due), 1)) {
    low_watermark_.put(first);
  }
}

/// Does the last step of a settle. Errors: as for any other write.
Result<void> OpenStore::make_it_count() {
  DETENT_CHECK(settle_.is_running());
  Changes changes(*db_);
  if (Result<void> staged = settle_.stage_finish(*ingested_, settled_to_, accepted_, changes);
      !staged) {
    write_failed_ = true;  // opening the store again removes the ingested entries
    return staged;
  }
  lower_to_accepted();
  due_sums_.stage_full(changes);
  if (low_watermark_.is_changed())
    changes.set_meta(kLowWatermarkKey, place_key(low_watermark_.place()));
  db_->reached(StoreStep::settle_staged);
  TRY(apply(changes, Durability::synced));
  low_watermark_.stored();
  due_sums_.full_written();
  settled_to_ = ingested_->to;
  accepted_.drop_through(settled_to_);
  // The tasks that came after the settle began stay accepted, and so do the tasks that exceeded its
  // limits.
  const std::uint64_t settled_bytes =
      ingested_->is_whole ? bytes_at_start_ : std::min(bytes_at_start_, ingested_->bytes);
  DETENT_CHECK(accepted_bytes_ >= settled_bytes);
  accepted_bytes_ -= settled_bytes;
  ingested_.reset();
  settle_.finished();
  failed_settles_ = 0;
  db_->reached(StoreStep::settle_done);
  return ok();
}

Result<TaskPage> OpenStore::read(Place after, Place until, std::size_t limit) {
  // A read skips the entries of a settle that does not count yet one by one, so the settle is
  // continued first. If that fails, the next write reports it, and this read continues.
  static_cast<void>(finish_settle(least_corrections()));
  return reader().read(after, until, limit);
}

Result<TaskPage> OpenStore::read_by_id(TaskId after, std::size_t limit) {
  return reader().read_by_id(after, limit);
}

Result<std::vector<Result<Task>>> OpenStore::read_at(std::span<const Place> places) {
  return reader().read_at(places);
}

Result<std::optional<StoredTask>> OpenStore::find(TaskId id) { return reader().find(id); }

Result<std::vector<StoredTask>> OpenStore::find_all(std::span<const TaskId> ids) {
  return reader().find_all(ids);
}

Result<void> OpenStore::quarantine(std::span<const Place> places) {
  if (write_failed_) return earlier_write_failed();
  TRY(finish_settle(least_corrections() + 2 * places.size()));
  Changes changes(*db_);
  std::vector<TaskId> accepted;
  for (const Place& place : places) {
    ASSIGN_OR_RETURN(const std::optional<std::string> record, reader().raw_record(place));
    if (!record) continue;
    must(changes.batch().Put(db_->quarantine(), place_key(place), *record));
    stage_erase(place, changes);
    if (is_accepted(place.id)) accepted.push_back(place.id);
  }
  TRY(apply(changes, Durability::synced));
  for (const TaskId id : accepted) move_accepted(id, std::nullopt);
  return ok();
}

Result<std::optional<KeyRecord>> OpenStore::find_key(std::uint32_t queue, std::string_view key) {
  return keys_.find(queue, key);
}

Result<std::vector<KeyRecord>> OpenStore::find_keys(std::uint32_t queue,
                                                    std::span<const std::string> keys) {
  return keys_.find_all(queue, keys);
}

Result<KeyPage> OpenStore::read_keys(std::uint32_t queue, std::string_view after,
                                     std::size_t limit) {
  return keys_.read(queue, after, limit);
}

Result<std::size_t> OpenStore::trim_keys(WallTime now, std::size_t limit) {
  if (write_failed_) return earlier_write_failed();
  Changes changes(*db_);
  ASSIGN_OR_RETURN(const std::size_t count, keys_.stage_trim(now, limit, changes));
  TRY(apply(changes, Durability::buffered));
  keys_.trimmed();
  return count;
}

Result<std::vector<KeyRecord>> OpenStore::wrong_expiries(std::span<const KeyRecord> records) {
  return keys_.wrong_expiries(records);
}

Result<std::vector<Result<ScheduleRecord>>> OpenStore::read_schedules() {
  std::vector<Result<ScheduleRecord>> all;
  TRY(read_meta_range(*db_, {kSchedulePrefix, kScheduleEnd, "read schedules"},
                      [&all](std::string_view key, std::string_view value) {
                        all.push_back(parse_schedule(key, value));
                        return ok();
                      }));
  return all;
}

Result<std::vector<QueueRecord>> OpenStore::queues() {
  std::vector<QueueRecord> all;
  TRY(read_meta_range(*db_, {kQueuePrefix, kQueueEnd, "read queues"},
                      [&all](std::string_view key, std::string_view value) -> Result<void> {
                        ASSIGN_OR_RETURN(all.emplace_back(), parse_queue(key, value));
                        return ok();
                      }));
  return all;
}

Result<std::vector<DueCount>> OpenStore::due_counts() { return due_sums_.counts(); }

Result<std::uint64_t> OpenStore::quarantined() {
  std::uint64_t count = 0;
  RangeScan scan(db_->db(), db_->quarantine());
  for (; scan.is_valid(); scan.next()) ++count;
  if (!scan.status().ok()) return to_error("count quarantine", scan.status());
  return count;
}

Result<std::uint64_t> OpenStore::begin_epoch() {
  Changes changes(*db_);
  changes.set_meta(kEpochKey, number_bytes(epoch_ + 1));
  TRY(apply(changes, Durability::synced));
  return ++epoch_;
}

Result<std::string> OpenStore::identity() {
  ASSIGN_OR_RETURN(std::optional<std::string> restored, db_->read_meta(kIdentityKey));
  if (restored) return *std::move(restored);
  std::string identity;
  const rocksdb::Status status = db_->db().GetDbIdentity(identity);
  if (!status.ok()) return to_error("read identity", status);
  return identity;
}

}  // namespace detent

#include "store/rocksdb/format_upgrade.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/meta_format.h"
#include "store/record_format.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/due_sums.h"
#include "store/rocksdb/key_format.h"
#include "store/rocksdb/meta_keys.h"
#include "store/rocksdb/range_scan.h"
#include "store/rocksdb/slices.h"
#include "task/due_bin.h"

namespace detent {

namespace {

// In format 1, the counts of each queue; the names are all that is taken from there.
constexpr std::string_view kOldQueuePrefix = "queue/";
constexpr std::string_view kOldQueueEnd = "queue0";
constexpr std::size_t kTasksABatch = 1'000;

class Upgrade {
 public:
  explicit Upgrade(OpenDb& db) : db_(db) {}

  Result<void> run() {
    TRY(number_queues());
    TRY(move_dead());
    TRY(count_live());
    TRY(count_dead());
    return finish();
  }

 private:
  RangeScan scan(rocksdb::ColumnFamilyHandle* family, KeyBounds bounds = {}) {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    return {db_.db(), family, std::move(bounds), options};
  }
  Result<void> write(Changes& changes, Durability durability = Durability::buffered) {
    const rocksdb::Status status = changes.write(durability);
    if (!status.ok()) return db_.open_error(status);
    db_.reached(StoreStep::upgrade_batch);
    return ok();
  }
  QueueRecord& queue_named(const std::string& name) {
    const auto [queue, is_new] = queues_.try_emplace(name);
    if (is_new) {
      queue->second.queue = name;
      queue->second.number = ++last_number_;
    }
    return queue->second;
  }

  Result<void> number_queues();
  Result<void> move_dead();
  void move_dead(TaskId id, std::string_view record, Changes& changes);
  Result<void> count_live();
  Result<void> count_dead();
  Result<void> finish();

  OpenDb& db_;
  std::map<std::string, QueueRecord> queues_;
  std::uint32_t last_number_ = 0;
  std::map<DueBin, std::int64_t> due_counts_;
};

/// Numbers are on disk before a key is made of one, so a second run finds those of the first.
Result<void> Upgrade::number_queues() {
  RangeScan numbered = scan(db_.meta(), {std::string(kQueuePrefix), std::string(kQueueEnd)});
  for (; numbered.is_valid(); numbered.next()) {
    const Result<QueueRecord> record = parse_queue(numbered.key(), numbered.value());
    if (!record) return db_.damaged(record.error().message);
    QueueRecord& queue = queues_[record->queue];
    queue.queue = record->queue;
    queue.number = record->number;
    last_number_ = std::max(last_number_, record->number);
  }
  if (!numbered.status().ok()) return db_.open_error(numbered.status());
  Changes changes(db_);
  RangeScan old = scan(db_.meta(), {std::string(kOldQueuePrefix), std::string(kOldQueueEnd)});
  for (; old.is_valid(); old.next()) {
    changes.set_queue(queue_named(std::string(old.key().substr(kOldQueuePrefix.size()))));
  }
  if (!old.status().ok()) return db_.open_error(old.status());
  return write(changes);
}

Result<void> Upgrade::move_dead() {
  Place end_of_time = begin_of(Lane::due);
  end_of_time.at = kNeverDue;
  RangeScan records = scan(db_.due(), {.begin = place_key(end_of_time)});
  while (records.is_valid()) {
    Changes changes(db_);
    for (std::size_t i = 0; i < kTasksABatch && records.is_valid(); ++i, records.next()) {
      const Result<Place> place = parse_due_key(records.key());
      if (!place) return db_.damaged("a place in the due order is malformed");
      changes.erase_record(*place);
      move_dead(place->id, records.value(), changes);
    }
    TRY(write(changes));
  }
  if (!records.status().ok()) return db_.open_error(records.status());
  return ok();
}

void Upgrade::move_dead(TaskId id, std::string_view record, Changes& changes) {
  const Result<Task> task = decode_record(id, record);
  if (!task) {
    // Whose it was can't be told, so it has no lane.
    Place place = front_place(id);
    place.at = kNeverDue;
    must(changes.batch().Put(db_.quarantine(), place_key(place), slice(record)));
    changes.erase_id(id);
    return;
  }
  const QueueRecord& queue = queue_named(task->queue);
  changes.set_queue(queue);
  const Place place{
      .lane = Lane::dead, .queue = queue.number, .priority = 0, .at = task->due_at, .id = id};
  changes.put_settled(place, record);
}

Result<void> Upgrade::count_live() {
  RangeScan records = scan(db_.due());
  for (; records.is_valid(); records.next()) {
    const Result<Place> place = parse_due_key(records.key());
    if (!place) return db_.damaged("a place in the due order is malformed");
    // A damaged record is met again, and said, when its page is read.
    const Result<Task> task = decode_record(place->id, records.value());
    if (!task) continue;
    QueueRecord& queue = queue_named(task->queue);
    ++queue.waiting;
    queue.bytes += task->payload.data.size();
    ++due_counts_[due_bin_of(task->due_at, task->created_at)];
  }
  if (!records.status().ok()) return db_.open_error(records.status());
  return ok();
}

Result<void> Upgrade::count_dead() {
  RangeScan records = scan(db_.lanes());
  for (; records.is_valid(); records.next()) {
    const Result<Place> place = parse_lane_key(records.key());
    if (!place) return db_.damaged("a place among dead tasks is malformed");
    const Result<Task> task = decode_record(place->id, records.value());
    if (!task) continue;
    QueueRecord& queue = queue_named(task->queue);
    ++queue.dead;
    queue.bytes += task->payload.data.size();
  }
  if (!records.status().ok()) return db_.open_error(records.status());
  return ok();
}

Result<void> Upgrade::finish() {
  Changes changes(db_);
  for (const auto& [name, queue] : queues_) changes.set_queue(queue);
  changes.remove_meta_range(kOldQueuePrefix, kOldQueueEnd);
  std::vector<DueCount> counts;
  for (const auto& [bin, count] : due_counts_) counts.push_back({bin, count});
  changes.set_meta(counts_key(0), due_count_bytes(counts));
  ASSIGN_OR_RETURN(const std::uint64_t last_id, db_.read_number(kLastIdKey));
  changes.set_meta(kLastQueueNumberKey, number_bytes(last_number_));
  changes.set_meta(kSettledToKey, number_bytes(last_id));
  changes.set_meta(kFormatKey, number_bytes(kFormatVersion));
  return write(changes, Durability::synced);
}

}  // namespace

Result<void> upgrade_from_format_1(OpenDb& db) { return Upgrade(db).run(); }

}  // namespace detent

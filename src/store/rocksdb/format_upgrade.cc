#include "store/rocksdb/format_upgrade.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/meta_format.h"
#include "store/record_format.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/due_sums.h"
#include "store/rocksdb/key_format.h"
#include "store/rocksdb/meta_keys.h"
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
  std::unique_ptr<rocksdb::Iterator> iterate(rocksdb::ColumnFamilyHandle* family) {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    return std::unique_ptr<rocksdb::Iterator>(db_.db().NewIterator(options, family));
  }
  Result<void> write(Changes& changes, bool is_last = false) {
    const rocksdb::Status status =
        changes.write(is_last ? Durability::synced : Durability::buffered);
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
  const auto it = iterate(db_.meta());
  for (it->Seek(slice(kQueuePrefix)); it->Valid() && view(it->key()) < kQueueEnd; it->Next()) {
    const Result<QueueRecord> record = parse_queue(view(it->key()), view(it->value()));
    if (!record) return db_.damaged(record.error().message);
    QueueRecord& queue = queues_[record->queue];
    queue.queue = record->queue;
    queue.number = record->number;
    last_number_ = std::max(last_number_, record->number);
  }
  Changes changes(db_);
  for (it->Seek(slice(kOldQueuePrefix)); it->Valid() && view(it->key()) < kOldQueueEnd;
       it->Next()) {
    changes.set_queue(queue_named(std::string(view(it->key()).substr(kOldQueuePrefix.size()))));
  }
  if (!it->status().ok()) return db_.open_error(it->status());
  return write(changes);
}

Result<void> Upgrade::move_dead() {
  const auto it = iterate(db_.due());
  Place end_of_time = begin_of(Lane::due);
  end_of_time.at = kNeverDue;
  it->Seek(place_key(end_of_time));
  while (it->Valid()) {
    Changes changes(db_);
    for (std::size_t i = 0; i < kTasksABatch && it->Valid(); ++i, it->Next()) {
      const Result<Place> place = parse_due_key(view(it->key()));
      if (!place) return db_.damaged("a place in the due order is malformed");
      changes.erase_record(*place);
      move_dead(place->id, view(it->value()), changes);
    }
    TRY(write(changes));
  }
  if (!it->status().ok()) return db_.open_error(it->status());
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
  const auto it = iterate(db_.due());
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const Result<Place> place = parse_due_key(view(it->key()));
    if (!place) return db_.damaged("a place in the due order is malformed");
    // A damaged record is met again, and said, when its page is read.
    const Result<Task> task = decode_record(place->id, view(it->value()));
    if (!task) continue;
    QueueRecord& queue = queue_named(task->queue);
    ++queue.waiting;
    queue.bytes += task->payload.data.size();
    ++due_counts_[due_bin_of(task->due_at, task->created_at)];
  }
  if (!it->status().ok()) return db_.open_error(it->status());
  return ok();
}

Result<void> Upgrade::count_dead() {
  const auto it = iterate(db_.lanes());
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const Result<Place> place = parse_lane_key(view(it->key()));
    if (!place) return db_.damaged("a place among dead tasks is malformed");
    const Result<Task> task = decode_record(place->id, view(it->value()));
    if (!task) continue;
    QueueRecord& queue = queue_named(task->queue);
    ++queue.dead;
    queue.bytes += task->payload.data.size();
  }
  if (!it->status().ok()) return db_.open_error(it->status());
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
  return write(changes, true);
}

}  // namespace

Result<void> upgrade_from_format_1(OpenDb& db) { return Upgrade(db).run(); }

}  // namespace detent

// What one write changes, being gathered: a RocksDB batch over all families, in the words of the
// layout.
#pragma once

#include <rocksdb/write_batch.h>

#include <string>
#include <string_view>

#include "store/rocksdb/open_db.h"
#include "store/store.h"

namespace detent {

/// Thread-compatible. Nothing here fails: the batch is filled in memory.
class Changes {
 public:
  explicit Changes(OpenDb& db) : db_(db), batch_(db.new_batch()) {}

  /// A task above the settled mark: its record, wherever it lies.
  void put_accepted(const Place& place, std::string_view record);
  void erase_accepted(TaskId id);
  /// All those of ids above `after` up to `upto`.
  void erase_accepted(TaskId after, TaskId upto);
  /// A task up to the mark: its record in its lane, and where it lies.
  void put_settled(const Place& place, std::string_view record);
  void put_record(const Place& place, std::string_view record);
  void erase_record(const Place& place);
  void put_id(const Place& place);
  void erase_id(TaskId id);

  void set_meta(std::string_view key, std::string bytes);
  void remove_meta_range(std::string_view begin, std::string_view end);
  void set_queue(const QueueRecord& record);
  void remove_queue(std::string_view queue);
  void set_schedule(const ScheduleRecord& record);
  void remove_schedule(std::string_view name);
  void set_key(const KeyRecord& record);

  /// For what has no verb of its own.
  rocksdb::WriteBatch& batch() noexcept { return batch_; }
  /// Writes all of it, as the next write of the database.
  rocksdb::Status write(Durability durability) { return db_.write(batch_, durability); }

 private:
  void remove_range(rocksdb::ColumnFamilyHandle* family, std::string_view begin,
                    std::string_view end);

  OpenDb& db_;
  rocksdb::WriteBatch batch_;
  std::string value_;  // a buffer
};

}  // namespace detent

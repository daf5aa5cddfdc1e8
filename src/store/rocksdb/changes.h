// The changes of one write, collected in a RocksDB batch over all column families.
#pragma once

#include <rocksdb/write_batch.h>

#include <string>
#include <string_view>

#include "store/rocksdb/database/open_db.h"
#include "store/store.h"

namespace detent {

/// The functions fill a batch in memory and cannot fail. Thread-compatible.
class Changes {
 public:
  explicit Changes(OpenDb& db) : db_(db), batch_(db.new_batch()) {}

  /// Puts the record of a task whose id is above the settled mark, whatever its lane.
  void put_accepted(const Place& place, std::string_view record);
  void erase_accepted(TaskId id);
  /// Erases all accepted tasks with ids in (after, upto].
  void erase_accepted(TaskId after, TaskId upto);
  /// Puts a task whose id is not above the settled mark: the record in its lane, and its place in
  /// the index by id. put_record() and put_id() do only one of the two.
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

  /// The batch itself, for changes that have no function here.
  rocksdb::WriteBatch& batch() noexcept { return batch_; }
  /// Writes all changes to the database.
  rocksdb::Status write(Durability durability) { return db_.write(batch_, durability); }

 private:
  void remove_range(rocksdb::ColumnFamilyHandle* family, std::string_view begin,
                    std::string_view end);

  OpenDb& db_;
  rocksdb::WriteBatch batch_;
  std::string value_;  // a buffer that put_accepted() uses again
};

}  // namespace detent

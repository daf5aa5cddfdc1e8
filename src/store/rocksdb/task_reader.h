// Reads tasks: from the accepted family before their settle, and from their lanes afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/accepted_index.h"
#include "store/rocksdb/database/open_db.h"
#include "store/store.h"

namespace detent {

/// Implements the reading functions of Store (store/store.h). Keeps references to state that the
/// store updates, and a copy of the bounds, so the store creates a new reader for each call.
/// Confined to the store's thread.
class TaskReader {
 public:
  /// All tasks with ids above `settled_to` are in the accepted family. Reads of the due family
  /// start after `low_watermark`.
  struct Bounds {
    TaskId settled_to;
    Place low_watermark;
  };
  TaskReader(OpenDb& db, AcceptedIndex& accepted, Bounds bounds)
      : db_(db), accepted_(accepted), bounds_(bounds) {}

  Result<TaskPage> read(const Place& after, const Place& until, std::size_t limit);
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit);
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places);
  Result<std::optional<StoredTask>> find(TaskId id);
  Result<std::vector<StoredTask>> find_all(std::span<const TaskId> ids);
  /// Returns the bytes of the record without decoding them, or nullopt if there is no record.
  Result<std::optional<std::string>> raw_record(const Place& place);

 private:
  /// A place in a page. The record is missing if the task is accepted, because the index has only
  /// places.
  struct Met {
    Place place;
    std::optional<Result<Task>> task;
  };
  Result<std::vector<Met>> meet(const Place& after, const Place& until, std::size_t limit);
  Result<void> read_missing(std::vector<Met>& met);
  Result<std::vector<Place>> settled_places(TaskId after, std::size_t limit);
  Result<std::vector<Place>> places_of(std::span<const TaskId> ids);
  Result<void> read_family(rocksdb::ColumnFamilyHandle* family, std::span<const Place> places,
                           const std::vector<std::size_t>& wanted,
                           std::vector<Result<Task>>& tasks);
  Result<Task> decode(const Place& place, rocksdb::ColumnFamilyHandle* family,
                      std::string_view value) const;

  OpenDb& db_;
  AcceptedIndex& accepted_;
  Bounds bounds_;
};

}  // namespace detent

// Reads tasks: the queries for pages and places, and the conversion of rows to tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/postgres/connection.h"
#include "store/postgres/fenced_statement.h"
#include "store/store.h"

namespace detent {

/// The functions of Store that read tasks, for one shard under its epoch. An object is made for
/// each call. Thread-compatible.
class TaskRows {
 public:
  /// `connection` must outlive this object.
  TaskRows(Connection& connection, Fence fence) noexcept : connection_(connection), fence_(fence) {}

  Result<TaskPage> read(Place after, Place until, std::size_t limit);
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit);
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places);
  Result<std::optional<StoredTask>> find(TaskId id);
  Result<std::vector<StoredTask>> find_all(std::span<const TaskId> ids);

 private:
  Result<Rows> rows_of(const std::vector<std::int64_t>& ids);

  Connection& connection_;
  Fence fence_;
};

}  // namespace detent

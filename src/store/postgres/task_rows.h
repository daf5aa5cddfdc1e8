// Reading tasks: the queries of pages and places, and their rows as tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/postgres/connection.h"
#include "store/store.h"

namespace detent {

/// The reads of Store that are of tasks, on one shard. Thread-compatible, made for each call.
class TaskRows {
 public:
  /// `connection` must outlive this.
  TaskRows(Connection& connection, std::uint32_t shard) noexcept
      : connection_(connection), shard_(shard) {}

  Result<TaskPage> read(Place after, Place until, std::size_t limit);
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit);
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places);
  Result<std::optional<StoredTask>> find(TaskId id);

 private:
  Connection& connection_;
  std::uint32_t shard_;
};

}  // namespace detent

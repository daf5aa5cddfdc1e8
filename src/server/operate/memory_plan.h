// Divides the memory that a server may use: one number for the operator, one number for each part.
#pragma once

#include <cstddef>

namespace detent::server {

struct MemoryPlan {
  std::size_t cache_bytes = 0;         // blocks of the store that were read
  std::size_t write_buffer_bytes = 0;  // one of the store's; it has several (rocksdb_store.h)
  std::size_t settle_bytes = 0;        // moved to their places at a time, in the background
  std::size_t settle_tasks = 0;
  std::size_t max_loaded = 0;  // tasks in memory
};

/// The memory of one task, with its share of the tables, and of a small record.
inline constexpr std::size_t kTaskBytes = 300;
inline constexpr std::size_t kRecordBytes = 128;

/// Half of the memory is for tasks, and a quarter for the store's cache. The rest is for the
/// store's buffers and for data in transit.
constexpr MemoryPlan plan_memory(std::size_t bytes) noexcept {
  return {.cache_bytes = bytes / 4,
          .write_buffer_bytes = bytes / 16,
          .settle_bytes = bytes / 8,
          .settle_tasks = bytes / 8 / kRecordBytes,
          .max_loaded = bytes / 2 / kTaskBytes};
}

static_assert(plan_memory(std::size_t{512} << 20).max_loaded == 894'784);

}  // namespace detent::server

// What the contract runs over, one class a back end, and the tasks and batches its tests are made
// of.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/memory_store.h"
#include "store/rocksdb/planted_damage.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/rocksdb/test_folder.h"
#include "store/store.h"

namespace detent {

class MemoryMedium {
 public:
  Result<std::unique_ptr<Store>> open() { return MemoryStore::open(disk_); }
  /// Requires: no store is open.
  void flip_bit(DueKey place, std::size_t bit) { disk_.flip_bit(place, bit); }

 private:
  MemoryDisk disk_;
};

class RocksDbMedium {
 public:
  Result<std::unique_ptr<Store>> open() { return RocksDbStore::open({.path = folder_ / "data"}); }
  void flip_bit(DueKey place, std::size_t bit) { flip_stored_bit(folder_ / "data", place, bit); }

 private:
  TestFolder folder_;
};

inline WallTime at_ms(std::int64_t ms) { return WallTime{std::chrono::milliseconds{ms}}; }
/// Places in tests: the n-th id, at an instant.
inline DueKey place_of(std::int64_t ms, std::uint64_t n) {
  return {at_ms(ms), TaskId{n << TaskId::kShardBits}};
}

inline StoredTask task_at(DueKey place, std::string payload = "1") {
  Task task;
  task.id = place.id;
  task.queue = "mail";
  task.payload.data = std::move(payload);
  task.due_at = place.at;
  task.created_at = at_ms(1);
  return {place, std::move(task)};
}

inline WriteBatch& add(WriteBatch& batch, DueKey place, std::string payload = "1") {
  batch.puts.push_back({.from = std::nullopt, .to = task_at(place, std::move(payload))});
  return batch;
}
inline WriteBatch& move(WriteBatch& batch, DueKey from, DueKey to, std::string payload = "1") {
  batch.puts.push_back({.from = from, .to = task_at(to, std::move(payload))});
  return batch;
}
inline WriteBatch new_task(DueKey place, std::string payload = "1") {
  WriteBatch batch;
  return std::move(add(batch, place, std::move(payload)));
}
inline WriteBatch removal(DueKey place) {
  WriteBatch batch;
  batch.erases.push_back(place);
  return batch;
}

}  // namespace detent

// The store in memory: for tests, for simulation, and as the plainest reading of the contract.
//
// A MemoryDisk is what would be on disk; it outlives the stores opened on it one after another, so
// a test stops an engine, or drops one in mid-flight, and recovers another from the same disk. The
// disk keeps encoded records, so that damage can be planted and every read checks what it reads.
//
// Stricter than the contract: a batch that moves or removes what is not there, or adds a task
// twice, is a bug in the caller and stops the process.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "store/store.h"

namespace detent {

/// Thread-compatible; confined to the thread of the store that is open on it.
class MemoryDisk {
 public:
  MemoryDisk() = default;
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  /// Plants damage: flips one bit of the record at `place`; `bit` is taken modulo its length.
  /// Requires: there is a record.
  void flip_bit(DueKey place, std::size_t bit);
  std::size_t record_count() const noexcept { return due_.size(); }

 private:
  friend class MemoryStore;

  bool is_open_ = false;
  std::map<DueKey, std::string> due_;
  std::map<TaskId, WallTime> ids_;  // the instant of each task's place
  std::map<DueKey, std::string> quarantine_;
  std::map<std::string, QueueCounts> counts_;
  TaskId last_id_;
  std::uint64_t epoch_ = 0;
};

class MemoryStore final : public Store {
 public:
  /// `disk` must outlive the store. Errors: unavailable while another store is open on it.
  static Result<std::unique_ptr<Store>> open(MemoryDisk& disk);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<DuePage> read_due(DueKey after, WallTime until, std::size_t limit) override;
  Result<std::vector<Result<Task>>> read_at(std::span<const DueKey> places) override;
  Result<std::optional<StoredTask>> find(TaskId id) override;
  Result<void> quarantine(DueKey place) override;
  Result<std::vector<QueueCounts>> queue_counts() override;
  Result<std::uint64_t> quarantined() override;
  TaskId last_id() const noexcept override;
  Result<std::uint64_t> begin_epoch() override;

 private:
  explicit MemoryStore(MemoryDisk& disk);
  void put(const WriteBatch::Put& put);
  void erase(DueKey place);

  MemoryDisk& disk_;
};

}  // namespace detent

// The store in memory, for tests and simulation. It is the simplest implementation of the contract.
//
// A MemoryDisk stands for the disk. It outlives the stores that a test opens on it one after
// another. So a test can stop or destroy an engine at any moment, and recover another engine from
// the same disk. The disk keeps encoded records, so a test can plant damage in them, and each read
// checks its record.
//
// Each read sees the last write, whatever its durability. This store is stricter than the contract:
// if a batch breaks the requirements of WriteBatch, the caller has a bug and the process stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/rng.h"
#include "store/store.h"

namespace detent {

/// Thread-compatible. Use it only on the thread of the store that is open on it.
class MemoryDisk {
 public:
  MemoryDisk() = default;
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  /// Plants damage: flips bit number `bit` of the record at `place`, modulo the length of the
  /// record. Requires: `place` has a record.
  void flip_bit(Place place, std::size_t bit);
  /// The same for the record of a schedule, and for the record of a key of queue number `queue`.
  void flip_schedule_bit(const std::string& name, std::size_t bit);
  void flip_key_bit(std::uint32_t queue, const std::string& key, std::size_t bit);
  /// Removes a key from the order of expiry, so that trim_keys() does not find it.
  void drop_expiry(std::uint32_t queue, const std::string& key);
  /// The number of records in all lanes.
  std::size_t record_count() const noexcept { return records_.size(); }

 private:
  friend class MemoryStore;
  using KeyName = std::pair<std::uint32_t, std::string>;  // queue number, key

  const std::string identity_ = std::to_string(random_seed());
  bool is_open_ = false;
  std::map<Place, std::string> records_;
  std::map<TaskId, Place> places_;
  std::map<Place, std::string> quarantine_;
  std::map<std::string, QueueRecord> queues_;
  std::map<std::uint32_t, std::string> queue_names_;  // removed queues included
  std::map<std::string, std::string> schedules_;      // encoded, by name
  std::map<KeyName, std::string> keys_;               // encoded
  std::set<std::pair<WallTime, KeyName>>
      expiries_;                               // can have entries of keys that changed or are gone
  std::map<DueBin, std::int64_t> due_counts_;  // never 0
  TaskId last_id_;
  std::uint64_t epoch_ = 0;
};

class MemoryStore final : public Store {
 public:
  /// `disk` must outlive the store. Errors: unavailable if another store is open on the disk.
  static Result<std::unique_ptr<Store>> open(MemoryDisk& disk);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<TaskPage> read(Place after, Place until, std::size_t limit) override;
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override;
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) override;
  Result<std::optional<StoredTask>> find(TaskId id) override;
  Result<void> quarantine(std::span<const Place> places) override;
  Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) override;
  Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                            std::size_t limit) override;
  Result<std::size_t> trim_keys(WallTime now, std::size_t limit) override;
  Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records) override;
  Result<std::vector<Result<ScheduleRecord>>> read_schedules() override;
  Result<std::vector<QueueRecord>> queues() override;
  Result<std::vector<DueCount>> due_counts() override;
  Result<std::uint64_t> quarantined() override;
  TaskId last_id() const noexcept override;
  std::uint32_t last_queue_number() const noexcept override;
  Result<std::uint64_t> begin_epoch() override;
  Result<std::string> identity() override { return disk_.identity_; }

 private:
  explicit MemoryStore(MemoryDisk& disk);
  void put(const WriteBatch::Put& put);
  void erase(Place place);
  void set_queue(const QueueRecord& record);
  void set_key(const KeyRecord& record);
  bool has_expired(const MemoryDisk::KeyName& name, WallTime at) const;

  MemoryDisk& disk_;
};

}  // namespace detent

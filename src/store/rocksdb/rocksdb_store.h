// The store on disk, in RocksDB: one folder, one process, no daemon.
//
// Records lie in due order under their places, a small index leads from ids to places, and each
// write() is one RocksDB batch with one sync, so a crash leaves all of it or nothing. RocksDB's
// headers stay inside this folder. docs/internals/storage-format.md defines what is on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/store.h"

namespace detent {

struct RocksDbStoreOptions {
  /// The data folder: made if it is missing (mode 0700), its parent must exist.
  std::string path;
  /// Memory for blocks read, their indexes and filters.
  std::size_t cache_bytes = std::size_t{128} << 20;
  /// Memory for one buffer of task records not yet in a table; there are two, and two of half the
  /// size for the index.
  std::size_t write_buffer_bytes = std::size_t{32} << 20;
};

class LowWater;
class OpenDb;

/// Confined to one thread, as any store; flushes and compactions run on RocksDB's threads.
class RocksDbStore final : public Store {
 public:
  /// Errors: unavailable when another process has the folder open; invalid_argument when it cannot
  /// be a data folder, or a newer version wrote it; data_loss when it is damaged. The message names
  /// the folder and is meant for the operator.
  static Result<std::unique_ptr<Store>> open(const RocksDbStoreOptions& options);
  ~RocksDbStore() override;
  RocksDbStore(const RocksDbStore&) = delete;
  RocksDbStore& operator=(const RocksDbStore&) = delete;

  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<DuePage> read_due(DueKey after, WallTime until, std::size_t limit) override;
  Result<std::vector<Result<Task>>> read_at(std::span<const DueKey> places) override;
  Result<std::optional<StoredTask>> find(TaskId id) override;
  Result<void> quarantine(DueKey place) override;
  Result<std::vector<QueueCounts>> queue_counts() override;
  Result<std::uint64_t> quarantined() override;
  TaskId last_id() const noexcept override { return last_id_; }
  Result<std::uint64_t> begin_epoch() override;

 private:
  struct Changes;  // a rocksdb::WriteBatch being filled

  explicit RocksDbStore(std::unique_ptr<OpenDb> db);
  Result<void> recover();
  Result<void> apply(Changes& changes, Durability durability);

  std::unique_ptr<OpenDb> db_;
  TaskId last_id_;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<LowWater> low_water_;  // where reads of the due order may begin
  bool write_failed_ = false;            // contract 2
};

}  // namespace detent

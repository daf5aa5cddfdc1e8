// The RocksDB store itself. Private to this folder. Others open it through rocksdb_store.h. Tests
// can also open it here, with hooks (StoreSeams).
//
// This class writes batches and starts settles. Its parts do everything else, each with its own
// state:
//
//     DataFolder       the folder: its lock and its files
//     mend_logs()      checks the logs before RocksDB replays them   (wal_check.h)
//     OpenDb           the database: families, tuning, format; with WalEnv and InsertHints
//     Changes          the changes of one write, as keys and values   (key_format.h)
//     TaskReader       reads tasks; with RangeScan and multi_get()
//     TaskKeys         keys of tasks, and the order in which they expire
//     AcceptedIndex    the places of accepted tasks
//     Settle           moves accepted tasks to their lanes in the background   (settle_tables.h)
//     LowWatermark     where the due order begins
//     DueSums          the number of tasks that are due in each bin
//     WriteThread      writes while the store's thread does other work
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/accepted_index.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/open_db.h"
#include "store/rocksdb/due_sums.h"
#include "store/rocksdb/low_watermark.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/rocksdb/settle.h"
#include "store/rocksdb/task_keys.h"
#include "store/rocksdb/task_reader.h"
#include "store/rocksdb/write_thread.h"
#include "store/store.h"

namespace detent {

/// Confined to one thread, like every store. Settles run on a thread of their own, and RocksDB has
/// threads for flushes and compactions.
class OpenStore final : public Store {
 public:
  static Result<std::unique_ptr<Store>> open(const RocksDbStoreOptions& options,
                                             StoreSeams seams = {});
  ~OpenStore() override;
  OpenStore(const OpenStore&) = delete;
  OpenStore& operator=(const OpenStore&) = delete;

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    return write_while(batch, durability, nullptr);
  }
  Result<void> write_while(const WriteBatch& batch, Durability durability,
                           const WhileWriting& meanwhile) override;
  Result<TaskPage> read(Place after, Place until, std::size_t limit) override;
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override;
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) override;
  Result<std::optional<StoredTask>> find(TaskId id) override;
  Result<std::vector<StoredTask>> find_all(std::span<const TaskId> ids) override;
  Result<void> quarantine(std::span<const Place> places) override;
  Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) override;
  Result<std::vector<KeyRecord>> find_keys(std::uint32_t queue,
                                           std::span<const std::string> keys) override;
  Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                            std::size_t limit) override;
  Result<std::size_t> trim_keys(WallTime now, std::size_t limit) override;
  Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records) override;
  Result<std::vector<Result<ScheduleRecord>>> read_schedules() override;
  Result<std::vector<QueueRecord>> queues() override;
  Result<std::vector<DueCount>> due_counts() override;
  Result<std::uint64_t> quarantined() override;
  TaskId last_id() const noexcept override { return last_id_; }
  std::uint32_t last_queue_number() const noexcept override { return last_queue_number_; }
  Result<std::uint64_t> begin_epoch() override;
  Result<std::string> identity() override;

 private:
  OpenStore(std::unique_ptr<OpenDb> db, const RocksDbStoreOptions& options);
  Result<void> recover();
  Result<void> recover_accepted();
  TaskReader reader() { return {*db_, accepted_, {settled_to_, low_watermark_.place()}}; }
  bool is_accepted(TaskId id) const noexcept { return id > settled_to_; }

  void stage_tasks(const WriteBatch& batch, Changes& changes);
  void stage_erase(const Place& place, Changes& changes);
  void applied(const WriteBatch& batch);
  void move_accepted(TaskId id, const std::optional<Place>& to);
  Result<void> apply(Changes& changes, Durability durability,
                     const WhileWriting& meanwhile = nullptr);

  double settle_load() const noexcept;
  Result<void> settle_if_due();
  /// Continues a settle whose tables are ingested, if there is one. Corrects at most `corrections`
  /// tasks. If these are all tasks that are left, makes the settle count.
  Result<void> finish_settle(std::size_t corrections);
  std::size_t least_corrections() const noexcept;
  /// Waits for the running settle and makes it count.
  Result<void> wait_for_settle();
  void take_outcome(const Result<Settled>& outcome);
  Result<void> correct(std::size_t corrections);
  Result<void> make_it_count();
  void lower_to_accepted();

  const RocksDbStoreOptions options_;
  std::unique_ptr<OpenDb> db_;
  TaskId last_id_;
  TaskId settled_to_;  // the settled mark
  std::uint32_t last_queue_number_ = 0;
  std::uint64_t epoch_ = 0;
  LowWatermark low_watermark_;
  DueSums due_sums_;
  TaskKeys keys_{*db_};
  AcceptedIndex accepted_;
  // Written above the settled mark, also for tasks that have ended.
  std::size_t accepted_bytes_ = 0;
  std::size_t bytes_at_start_ = 0;    // accepted_bytes_ when the running settle began
  std::optional<Settled> ingested_;   // the tables of the running settle, if they do not count yet
  std::uint64_t failed_settles_ = 0;  // in a row
  std::uint64_t writes_to_retry_ = 0;
  bool write_failed_ = false;  // then all later writes fail (contract 2 of store.h)
  WriteThread write_thread_;
  Settle settle_;  // last, because it uses members above
};

}  // namespace detent

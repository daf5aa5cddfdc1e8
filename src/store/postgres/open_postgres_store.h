// The implementation of the PostgreSQL store. Private to this folder: other code opens it through
// postgres_store.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/shard_lease.h"
#include "store/postgres/task_rows.h"
#include "store/store.h"

namespace detent {

/// Confined to one thread, as any store. A lease of its own is renewed on another thread.
class OpenPostgresStore final : public Store {
 public:
  static Result<std::unique_ptr<Store>> open(const PostgresStoreOptions& options, Clock& clock);
  static Result<std::uint32_t> shards_to_read(const PostgresStoreOptions& options);
  static Result<std::unique_ptr<Store>> open_to_read(const PostgresStoreOptions& options);
  ~OpenPostgresStore() override;
  OpenPostgresStore(const OpenPostgresStore&) = delete;
  OpenPostgresStore& operator=(const OpenPostgresStore&) = delete;

  Result<void> write(const WriteBatch& batch, Durability durability) override;
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
  OpenPostgresStore(const PostgresStoreOptions& options, std::unique_ptr<Connection> connection,
                    const ClaimedShard& claimed);
  TaskRows tasks() noexcept { return {*connection_, fence_}; }
  /// Runs a statement that changes the shard. After an error, all later calls fail (point 2 of the
  /// contract).
  Result<Rows> change(Statement statement, Durability durability);
  Result<Rows> select(Statement statement, std::string_view reading);
  Result<void> trim_due_counts();

  const PostgresStoreOptions options_;
  const Fence claimed_;  // the fence at opening
  std::unique_ptr<Connection> connection_;
  Fence fence_;
  TaskId last_id_;
  std::uint32_t last_queue_number_ = 0;
  std::uint64_t counted_writes_ = 0;  // writes of due counts since sums of 0 were removed
  // No key expires before this instant.
  std::int64_t keys_trimmed_to_ = std::numeric_limits<std::int64_t>::min();
  bool write_failed_ = false;    // then all writes fail (point 2 of the contract)
  bool claim_is_unused_ = true;  // begin_epoch() has not yet returned the epoch of opening
  // Only without an epoch. It is the last member, so its thread ends first.
  std::optional<LeaseKeeper> lease_;
};

}  // namespace detent

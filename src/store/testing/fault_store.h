// A store that fails on demand, so that tests reach the error branches of the code that uses a
// store.
//
// It forwards each call to another store. A planned write fault happens before or after the write
// is applied. The caller cannot see the difference, as with a real disk. After the fault all writes
// fail, as the contract says. To "open the store again", put a new FaultStore around the other
// store. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "store/testing/forwarding_store.h"

namespace detent {

/// Whether the failing write is applied to the other store.
enum class WriteFault : std::uint8_t { not_applied, applied };

class FaultStore final : public ForwardingStore {
 public:
  /// `store` must outlive this object.
  explicit FaultStore(Store& store) noexcept : ForwardingStore(store) {}
  explicit FaultStore(std::unique_ptr<Store> store) noexcept
      : ForwardingStore(*store), owned_(std::move(store)) {}

  /// Makes the n-th write from now fail with `unavailable`; 1 is the next write. Writes are the
  /// calls that change the disk: write(), quarantine(), trim_keys() and begin_epoch(). Requires: n
  /// > 0.
  void fail_write(std::uint64_t n, WriteFault fault);
  /// From now on all reads fail with `error`. std::nullopt ends the fault.
  void fail_reads(std::optional<Error> error) { read_error_ = std::move(error); }
  /// At each write_while(), runs `step`, then the caller's `meanwhile`, and then writes. Without a
  /// step, write_while() is like write().
  void during_writes(std::function<void()> step) { during_writes_ = std::move(step); }
  /// The number of requested writes, including failed ones. A test runs once without faults to
  /// learn this number, and then once with a fault at each write.
  std::uint64_t write_count() const noexcept { return write_count_; }
  /// The number of requested reads, including failed ones.
  std::uint64_t read_count() const noexcept { return read_count_; }
  /// `after` of the last call of read().
  const Place& last_page_after() const noexcept { return last_page_after_; }

  Result<void> write(const WriteBatch& batch, Durability durability) override;
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
  Result<std::uint64_t> begin_epoch() override;

 private:
  struct PlannedFault {
    std::uint64_t at = 0;  // value of write_count_
    WriteFault fault = WriteFault::not_applied;
  };

  template <class Write>
  auto faulty_write(Write write) -> decltype(write());
  template <class Read>
  auto faulty_read(Read read) -> decltype(read());

  std::unique_ptr<Store> owned_;  // may be null
  std::uint64_t write_count_ = 0;
  std::uint64_t read_count_ = 0;
  Place last_page_after_;
  std::optional<PlannedFault> planned_;
  std::optional<Error> read_error_;
  std::function<void()> during_writes_;
  bool write_failed_ = false;
};

}  // namespace detent

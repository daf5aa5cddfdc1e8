// A store that fails when it is told to: how a test reaches the error branches above a store.
//
// It passes everything on to another store. A write can be made to fail before it is applied or
// after; the caller cannot tell which, as with a real disk. From then on every write fails, as the
// contract says, until a new FaultStore is put around the store below ("opened again").
// Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "store/forwarding_store.h"

namespace detent {

/// What became of the write that failed.
enum class WriteFault : std::uint8_t { not_applied, applied };

class FaultStore final : public ForwardingStore {
 public:
  /// `store` must outlive this.
  explicit FaultStore(Store& store) noexcept : ForwardingStore(store) {}
  explicit FaultStore(std::unique_ptr<Store> store) noexcept
      : ForwardingStore(*store), owned_(std::move(store)) {}

  /// Makes the n-th write from now fail (1 is the next) with `unavailable`. Whatever changes the
  /// disk is a write: write(), quarantine(), trim_keys() and begin_epoch(). Requires: n > 0.
  void fail_write(std::uint64_t n, WriteFault fault);
  /// Makes every read fail with `error` from now on, or none.
  void fail_reads(std::optional<Error> error) { read_error_ = std::move(error); }
  /// Has `step` run at each write_while(), before anything is written, and then what the writer
  /// does meanwhile. None: it writes at once.
  void during_writes(std::function<void()> step) { during_writes_ = std::move(step); }
  /// Writes that were asked for, failed ones included: a test runs once without faults to learn how
  /// many there are, then once with a fault at each.
  std::uint64_t write_count() const noexcept { return write_count_; }
  /// Reads that were asked for, likewise; and after which place the last page of a lane began.
  std::uint64_t read_count() const noexcept { return read_count_; }
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
    std::uint64_t at = 0;  // in write_count_
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

// The lease table in memory, for tests and simulation. It is the simplest implementation of the
// contract.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "store/lease_table.h"

namespace detent {

/// One table for all nodes of a test. It counts calls. Thread-compatible.
class MemoryLeaseTable final : public LeaseTable {
 public:
  /// `clock` stands for the clock of the database. The clocks of the nodes can differ from it. It
  /// must outlive this object.
  MemoryLeaseTable(const Clock& clock, ShardNumber shards, std::chrono::milliseconds lease_length);

  ShardNumber shards() const noexcept override { return static_cast<ShardNumber>(rows_.size()); }
  std::chrono::milliseconds lease_length() const noexcept override { return lease_length_; }
  Result<ClusterView> beat(const Member& me, std::span<const ShardLease> held) override;
  Result<std::optional<ShardLease>> take(ShardNumber shard, const std::string& node) override;
  Result<void> give_up(const ShardLease& lease) override;
  Result<void> leave(const Member& me) override;
  Result<std::vector<ShardOwner>> owners() override;
  Result<std::vector<QueuePartitions>> partitioned() override;

  /// The number of calls of all methods.
  std::uint64_t calls() const noexcept { return calls_; }
  /// Sets the result of partitioned(), as if shards had written it.
  void set_partitioned(std::vector<QueuePartitions> queues) { partitioned_ = std::move(queues); }
  /// While it is true, each call fails with `unavailable` and changes nothing.
  void set_unreachable(bool unreachable) noexcept { is_unreachable_ = unreachable; }

 private:
  struct Row {
    std::string owner;
    std::uint64_t epoch = 0;
    MonotonicTime until = MonotonicTime::min();
  };
  struct Seen {
    Member member;
    MonotonicTime until;
  };

  Result<void> count_call();
  bool has_run_out(const Row& row) const noexcept { return row.until <= clock_.now(); }

  const Clock& clock_;
  const std::chrono::milliseconds lease_length_;
  std::vector<Row> rows_;
  std::map<std::string, Seen> members_;
  std::vector<QueuePartitions> partitioned_;
  std::uint64_t calls_ = 0;
  bool is_unreachable_ = false;
};

}  // namespace detent

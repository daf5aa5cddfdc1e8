// The database of a simulated cluster, in memory: the lease table and the stores of all shards.
// Each node sees it through a connection that may fail.
//
// A node reads and writes the tasks of a shard only with the present epoch of the shard, as in the
// store on PostgreSQL. If the connection is cut, a call fails. If only the answer is lost, the call
// has been carried out, but still fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/shard_keeper.h"
#include "detent/clock.h"
#include "store/store.h"
#include "store/testing/memory_lease_table.h"
#include "store/testing/memory_store.h"

namespace detent {

class SimulatedDatabase {
 public:
  SimulatedDatabase(const Clock& clock, ShardNumber shards, std::chrono::milliseconds lease)
      : leases_(clock, shards, lease), disks_(shards) {
    for (MemoryDisk& disk : disks_) stores_.push_back(MemoryStore::open(disk).value());
  }

  LeaseTable& leases() noexcept { return leases_; }
  Store& store(ShardNumber shard) { return *stores_.at(shard); }
  std::uint64_t epoch_of(ShardNumber shard) { return leases_.owners().value().at(shard).epoch; }

  /// Writes with an old epoch of a shard. They have no effect.
  std::uint64_t late_writes = 0;

 private:
  MemoryLeaseTable leases_;
  std::vector<MemoryDisk> disks_;
  std::vector<std::unique_ptr<Store>> stores_;
};

/// A node's connection to the database. Calls over it may fail.
class Connection {
 public:
  enum class Fate : std::uint8_t { carried_out, answer_lost, not_carried_out };

  Connection(SimulatedDatabase& database, std::uint64_t seed) : database_(database), rng_(seed) {}

  void set_cut(bool is_cut) noexcept { is_cut_ = is_cut; }
  /// One in `one_in` calls is lost, either the request or the answer. 0: no losses.
  void set_losses(std::uint32_t one_in) noexcept { one_in_ = one_in; }
  SimulatedDatabase& database() noexcept { return database_; }

  template <class Verb>
  auto call(Verb verb) -> decltype(verb()) {
    const Fate fate = next_fate();
    if (fate == Fate::not_carried_out) return unavailable();
    auto answer = verb();
    if (fate == Fate::answer_lost) return unavailable();
    return answer;
  }

 private:
  static Error unavailable() { return {ErrorCode::unavailable, "the database is away", ""}; }
  Fate next_fate() {
    if (is_cut_) return Fate::not_carried_out;
    if (one_in_ == 0 || rng_.below(one_in_) > 0) return Fate::carried_out;
    return rng_.below(2) == 0 ? Fate::answer_lost : Fate::not_carried_out;
  }

  SimulatedDatabase& database_;
  Rng rng_;
  bool is_cut_ = false;
  std::uint32_t one_in_ = 0;
};

/// The lease table, as a node sees it through its connection.
class ConnectedLeases final : public LeaseTable {
 public:
  explicit ConnectedLeases(Connection& connection) : connection_(connection) {}

  ShardNumber shards() const noexcept override { return leases().shards(); }
  std::chrono::milliseconds lease_length() const noexcept override {
    return leases().lease_length();
  }
  Result<ClusterView> beat(const Member& me, std::span<const ShardLease> held) override {
    return connection_.call([&] { return leases().beat(me, held); });
  }
  Result<std::optional<ShardLease>> take(ShardNumber shard, const std::string& node) override {
    return connection_.call([&] { return leases().take(shard, node); });
  }
  Result<void> give_up(const ShardLease& lease) override {
    return connection_.call([&] { return leases().give_up(lease); });
  }
  Result<void> leave(const Member& me) override {
    return connection_.call([&] { return leases().leave(me); });
  }
  Result<std::vector<ShardOwner>> owners() override {
    return connection_.call([&] { return leases().owners(); });
  }
  Result<std::vector<QueuePartitions>> partitioned() override {
    return connection_.call([&] { return leases().partitioned(); });
  }

 private:
  LeaseTable& leases() const noexcept { return connection_.database().leases(); }
  Connection& connection_;
};

/// The store of a shard, as a node with a lease of this shard sees it.
class ConnectedStore final : public Store {
 public:
  ConnectedStore(Connection& connection, const ShardLease& lease)
      : connection_(connection), lease_(lease), store_(connection.database().store(lease.shard)) {}

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    return change([&] { return store_.write(batch, durability); });
  }
  Result<void> quarantine(std::span<const Place> places) override {
    return change([&] { return store_.quarantine(places); });
  }
  Result<std::size_t> trim_keys(WallTime now, std::size_t limit) override {
    return change([&] { return store_.trim_keys(now, limit); });
  }
  /// The epoch of the lease. An engine calls this only once.
  Result<std::uint64_t> begin_epoch() override { return lease_.epoch; }
  Result<std::string> identity() override {
    return look([&] { return store_.identity(); });
  }

  Result<TaskPage> read(Place after, Place until, std::size_t limit) override {
    return look([&] { return store_.read(after, until, limit); });
  }
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override {
    return look([&] { return store_.read_by_id(after, limit); });
  }
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) override {
    return look([&] { return store_.read_at(places); });
  }
  Result<std::optional<StoredTask>> find(TaskId id) override {
    return look([&] { return store_.find(id); });
  }
  Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) override {
    return look([&] { return store_.find_key(queue, key); });
  }
  Result<std::vector<StoredTask>> find_all(std::span<const TaskId> ids) override {
    return look([&] { return store_.find_all(ids); });
  }
  Result<std::vector<KeyRecord>> find_keys(std::uint32_t queue,
                                           std::span<const std::string> keys) override {
    return look([&] { return store_.find_keys(queue, keys); });
  }
  Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                            std::size_t limit) override {
    return look([&] { return store_.read_keys(queue, after, limit); });
  }
  Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records) override {
    return look([&] { return store_.wrong_expiries(records); });
  }
  Result<std::vector<Result<ScheduleRecord>>> read_schedules() override {
    return look([&] { return store_.read_schedules(); });
  }
  Result<std::vector<QueueRecord>> queues() override {
    return look([&] { return store_.queues(); });
  }
  Result<std::vector<DueCount>> due_counts() override {
    return look([&] { return store_.due_counts(); });
  }
  Result<std::uint64_t> quarantined() override {
    return look([&] { return store_.quarantined(); });
  }
  TaskId last_id() const noexcept override { return store_.last_id(); }
  std::uint32_t last_queue_number() const noexcept override { return store_.last_queue_number(); }

 private:
  /// After an error, no change is accepted any more (store.h, contract 2).
  template <class Verb>
  auto change(Verb verb) -> decltype(verb()) {
    if (has_failed_) return Error{ErrorCode::unavailable, "a write has failed before", ""};
    auto changed = connection_.call([&]() -> decltype(verb()) {
      if (!is_owner()) {
        ++connection_.database().late_writes;
        return Error{ErrorCode::unavailable, "fenced", ""};
      }
      return verb();
    });
    has_failed_ = !changed;
    return changed;
  }

  /// Reads are fenced, too: if another owner has changed the tasks, they no longer fit the memory
  /// of this engine.
  template <class Verb>
  auto look(Verb verb) -> decltype(verb()) {
    return connection_.call([&]() -> decltype(verb()) {
      if (!is_owner()) return Error{ErrorCode::unavailable, "fenced", ""};
      return verb();
    });
  }
  bool is_owner() { return connection_.database().epoch_of(lease_.shard) == lease_.epoch; }

  Connection& connection_;
  const ShardLease lease_;
  Store& store_;
  bool has_failed_ = false;
};

}  // namespace detent

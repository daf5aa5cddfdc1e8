// Simulates nodes of a cluster that share one lease table, on one thread and with one clock that
// moves from step to step. For tests and the benchmark. It simulates which node serves which shard,
// but no tasks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/shard_keeper.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "store/testing/memory_lease_table.h"

namespace detent {

/// A ShardHost that opens shards immediately and needs time to close them.
class SimulatedHost final : public ShardHost {
 public:
  SimulatedHost(const Clock& clock, std::chrono::milliseconds close_time)
      : clock_(clock), close_time_(close_time) {}

  void open(const ShardLease& lease) override {
    DETENT_CHECK(!serves(lease.shard));
    serving_[lease.shard] = {lease, MonotonicTime::max()};
  }
  void close(ShardNumber shard) override { serving_.at(shard).until = clock_.now() + close_time_; }
  bool is_closed(ShardNumber shard) override { return !serves(shard); }
  void drop(ShardNumber shard) override { serving_.erase(shard); }

  /// True from open() until the shard is closed or dropped.
  bool serves(ShardNumber shard) const {
    const auto it = serving_.find(shard);
    return it != serving_.end() && it->second.until > clock_.now();
  }
  /// Requires: serves(shard).
  const ShardLease& lease(ShardNumber shard) const { return serving_.at(shard).lease; }

 private:
  struct Serving {
    ShardLease lease;
    MonotonicTime until;
  };

  const Clock& clock_;
  const std::chrono::milliseconds close_time_;
  std::map<ShardNumber, Serving> serving_;
};

/// Nodes are numbered from 0 in the order of joining.
class KeeperSimulation {
 public:
  KeeperSimulation(std::uint64_t seed, ShardNumber shards, std::chrono::milliseconds lease_length)
      : rng_(seed), table_(clock_, shards, lease_length) {}

  /// Adds a node. Its first step is within a fifth of a lease.
  std::size_t add_node() {
    const std::string name = "node-" + std::to_string(nodes_.size());
    auto node = std::make_unique<Node>(clock_, table_, Member{name, name + ":7070"}, rng_.next());
    node->stands_until = clock_.now() + fraction_of_a_beat();
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }
  /// The node dies: it makes no further steps.
  void kill(std::size_t node) { nodes_.at(node)->is_alive = false; }
  /// The node is paused for this long, then continues as before.
  void pause(std::size_t node, std::chrono::milliseconds length) {
    nodes_.at(node)->stands_until = clock_.now() + length;
  }
  void retire(std::size_t node) { nodes_.at(node)->keeper.retire(); }
  MemoryLeaseTable& table() { return table_; }
  ManualClock& clock() { return clock_; }
  ShardKeeper& keeper(std::size_t node) { return nodes_.at(node)->keeper; }

  /// Runs the step of the next node, if it is due `before` this time. Returns false if no node is
  /// due.
  bool step(MonotonicTime before) {
    Node* next = nullptr;
    for (const auto& node : nodes_) {
      if (!node->is_alive || (next != nullptr && when(*node) >= when(*next))) continue;
      next = node.get();
    }
    if (next == nullptr || when(*next) >= before) return false;
    if (when(*next) > clock_.now()) clock_.advance(when(*next) - clock_.now());
    static_cast<void>(next->keeper.step());
    return true;
  }
  void run_for(std::chrono::milliseconds length) {
    const MonotonicTime until = clock_.now() + length;
    while (step(until)) {
    }
    clock_.advance(until - clock_.now());
  }

  /// The number of nodes that serve the shard and are sure to hold its lease.
  int sure_owners(ShardNumber shard) const {
    int owners = 0;
    for (const auto& node : nodes_) {
      if (!node->is_alive || !node->host.serves(shard)) continue;
      const std::optional<MonotonicTime> until = node->keeper.held_until(node->host.lease(shard));
      owners += until && *until > clock_.now() ? 1 : 0;
    }
    return owners;
  }
  /// The number of shards without such a node.
  std::size_t orphans() const {
    std::size_t orphans = 0;
    for (ShardNumber shard = 0; shard < table_.shards(); ++shard) {
      if (sure_owners(shard) == 0) ++orphans;
    }
    return orphans;
  }
  /// How often shards have been taken, summed over all shards.
  std::uint64_t times_taken() {
    std::uint64_t taken = 0;
    const Result<std::vector<ShardOwner>> owners = table_.owners();
    for (const ShardOwner& owner : *owners) taken += owner.epoch;
    return taken;
  }
  /// The number of shards of each live node.
  std::multiset<std::size_t> loads() const {
    std::multiset<std::size_t> loads;
    for (const auto& node : nodes_) {
      if (node->is_alive) loads.insert(node->keeper.held().size());
    }
    return loads;
  }

 private:
  struct Node {
    Node(const Clock& clock, LeaseTable& table, Member me, std::uint64_t seed)
        : host(clock, std::chrono::milliseconds{200}),
          keeper(table, host, clock, std::move(me), seed) {}

    SimulatedHost host;
    ShardKeeper keeper;
    MonotonicTime stands_until;
    bool is_alive = true;
  };

  static MonotonicTime when(const Node& node) {
    return std::max(node.keeper.next_step(), node.stands_until);
  }
  std::chrono::nanoseconds fraction_of_a_beat() {
    const auto beat = std::chrono::nanoseconds(table_.lease_length()) / 5;
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(rng_.unit() * static_cast<double>(beat.count())));
  }

  Rng rng_;
  ManualClock clock_;
  MemoryLeaseTable table_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace detent

// Chooses the shards that this node serves: it takes free shards up to its share, gives up a
// surplus, and notices lost shards.
//
// There is no leader. Each node reads from the lease table which nodes are alive and which shards
// are free, and computes its own share from these. The share is the number of shards divided by the
// number of members. The remainder goes, one shard each, to the first members by name. The shares
// of all members add up to all shards. If all nodes see the same members, no further shard moves.
//
// A node below its share takes free shards. It starts with the shards for which no member ranks
// higher by a hash of node and shard (rendezvous hashing, Thaler and Ravishankar 1998). Nodes that
// look at the same moment therefore rarely try to take the same shard. A node above its share
// closes shards, as it does at a stop: the engine of the shard finishes its work, and then the node
// gives up the lease. The next owner can therefore take the shard immediately.
//
// If a node dies, its leases and its membership expire, and the other nodes notice. A paused node
// may find after its pause that another node has taken its shards. Its writes are rejected then
// (lease_table.h), and it drops these shards from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "store/lease_table.h"

namespace detent {

/// The part that serves shards, as the keeper sees it. These functions must not block: they only
/// start the work.
class ShardHost {
 public:
  virtual ~ShardHost() = default;

  /// Called when this node owns the shard, with its epoch. Reads its tasks and serves them.
  virtual void open(const ShardLease& lease) = 0;
  /// Finishes the work with the shard: writes out open leases, and accepts no further requests.
  virtual void close(ShardNumber shard) = 0;
  /// True once close(), or a failed open(), has finished. Stays true until the next open().
  virtual bool is_closed(ShardNumber shard) = 0;
  /// The shard was given up, or another node already has it: forgets all of it immediately.
  virtual void drop(ShardNumber shard) = 0;
};

/// The number of `shards` that are the share of the member `node`. `node` must be among `members`
/// and must not be leaving. The shares of all staying members add up to `shards`. O(members).
std::size_t fair_share(const std::vector<Member>& members, std::string_view node,
                       ShardNumber shards);

/// Thread-compatible: one thread calls step() when it is due, and also the other functions.
class ShardKeeper {
 public:
  /// All references must outlive it. `seed` spreads the heartbeats of nodes that start together.
  ShardKeeper(LeaseTable& table, ShardHost& host, const Clock& clock, Member me,
              std::uint64_t seed);

  /// Sends a heartbeat and acts on the answer. Costs one call to the table, and one call for each
  /// shard that is taken or given up. Errors: unavailable; the next attempt is at next_step().
  Result<void> step();
  /// The time of the next step: a fifth of a lease after the last step, plus or minus a tenth of
  /// that time; sooner while shards are closing.
  MonotonicTime next_step() const noexcept { return next_step_; }

  /// From now on it closes all shards and takes no more. It tells the other nodes, so that they
  /// take the shards. Keep calling step() until is_empty(), then leave the table.
  void retire() noexcept { me_.presence = Presence::leaving; }
  bool is_empty() const noexcept { return held_.empty(); }

  /// Until this time of this node's clock, no other node can have taken the shard since this node
  /// took it at this epoch. Returns no value if the shard is not this node's, or if this node has
  /// taken it again since then. After this time the node leases no task of the shard, although it
  /// may still own it.
  std::optional<MonotonicTime> held_until(const ShardLease& lease) const noexcept;
  /// The held shards, by number. Includes the shards that are being closed.
  std::vector<ShardLease> held() const;
  const std::vector<Member>& members() const noexcept { return members_; }
  /// The missing members as of the last heartbeat.
  const std::vector<MissingMember>& missing() const noexcept { return missing_; }

 private:
  struct Holding {
    std::uint64_t epoch = 0;
    MonotonicTime until;
    bool is_closing = false;
  };

  void renewed(const ClusterView& view, MonotonicTime asked_at);
  Result<void> give_up_closed();
  void close_surplus(std::size_t share);
  Result<void> take_missing(const std::vector<ShardNumber>& free, std::size_t share);
  /// The number of members that rank higher for the shard. O(members).
  std::size_t nodes_before_me(ShardNumber shard) const;
  std::size_t open_count() const noexcept;

  LeaseTable& table_;
  ShardHost& host_;
  const Clock& clock_;
  Member me_;
  Rng rng_;
  std::map<ShardNumber, Holding> held_;
  std::vector<Member> members_;
  std::vector<MissingMember> missing_;
  MonotonicTime next_step_;
};

}  // namespace detent

// The lease table of a cluster: which node owns which shard, and which nodes are alive. All nodes
// share its rows.
//
// The row of a shard has the name of the owner, an epoch, and the end of the lease. When the lease
// of a shard has expired, another node can take the shard, which raises the epoch. Each write to
// the tasks of a shard names the epoch of the writer (store.h: begin_epoch()), and the store
// rejects it if the shard has a higher epoch. So the tasks stay correct even if clocks are wrong.
// Reads are rejected in the same way, because another owner may have changed the tasks, so the
// result would not fit the memory of the old owner's engine. The leases only decide when another
// node may take over. tests/model/shard_lease.pml is a model of this protocol. A model checker has
// explored all its states.
//
// All times are measured by the clock of the table (the clock of the database), so the clocks of
// the nodes need not agree. A node measures its lease from the moment before it sent its request.
// So by its own measure its lease ends no later than in the table.
//
// A node calls beat() regularly to show that it is alive. The result names the live nodes and the
// free shards. Only a node that must route a request reads the rows of all shards. With 1,024
// shards and 100 nodes, beats must be cheap.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace detent {

using ShardNumber = std::uint32_t;

/// A staying member takes its share of the shards. A leaving member takes no more shards, but can
/// still own some.
enum class Presence : std::uint8_t { staying, leaving };

/// A node of the cluster, with the data that it publishes about itself.
struct Member {
  std::string node;               // unique in the cluster; 1 … 64 letters, digits and .-_
  std::string address;            // where other nodes send requests: "10.0.0.7:7070"
  std::uint64_t incarnation = 0;  // another number at each start
  Presence presence = Presence::staying;

  friend bool operator==(const Member&, const Member&) = default;
};

/// A node that did not leave, but has not called beat() for longer than a lease lasts.
struct MissingMember {
  std::string node;
  std::string address;
  std::chrono::milliseconds missing_for{0};  // since its membership expired

  friend bool operator==(const MissingMember&, const MissingMember&) = default;
};
/// After this time the table removes a missing node.
inline constexpr std::chrono::hours kMissingMemberKept{24};

/// A shard that a node owns, and the epoch of this ownership.
struct ShardLease {
  ShardNumber shard = 0;
  std::uint64_t epoch = 0;

  friend auto operator<=>(const ShardLease&, const ShardLease&) = default;
};

/// The row of a shard.
struct ShardOwner {
  ShardNumber shard = 0;
  std::string node;  // the last owner; empty if the shard never had one
  std::uint64_t epoch = 0;
  bool has_run_out = true;

  friend bool operator==(const ShardOwner&, const ShardOwner&) = default;
};

/// A queue with several partitions, as the record of the queue on one shard says.
struct QueuePartitions {
  ShardNumber shard = 0;
  std::string queue;
  std::uint32_t partitions = 1;

  friend bool operator==(const QueuePartitions&, const QueuePartitions&) = default;
};

/// The result of beat().
struct ClusterView {
  std::vector<Member> members;              // live members including the caller, by name
  std::vector<ShardNumber> free;            // shards whose lease has expired, by number
  std::vector<ShardLease> held;             // the caller's shards; their leases were just renewed
  std::vector<MissingMember> missing = {};  // by name
};

/// Thread-compatible. Each method is one statement of the database, so one round trip. All methods
/// can fail with `unavailable`. Then it is unknown whether the call took effect.
class LeaseTable {
 public:
  virtual ~LeaseTable() = default;

  /// The number of shards. It never changes after the table was made.
  virtual ShardNumber shards() const noexcept = 0;
  /// A lease lasts this long after it was taken or renewed. A membership lasts this long after the
  /// last beat().
  virtual std::chrono::milliseconds lease_length() const noexcept = 0;

  /// Renews the membership of `me`, and publishes its present data. Also renews each lease in
  /// `held` that `me` still owns with this epoch. This includes a lease that has expired, if no
  /// other node has taken the shard. Errors: also `unavailable` if another node with the same name
  /// but another address is alive. That node may leave later. Requires: no shard twice in `held`.
  virtual Result<ClusterView> beat(const Member& me, std::span<const ShardLease> held) = 0;
  /// Takes a shard whose lease has expired. Empty if the lease has not expired, for example because
  /// another node was faster.
  virtual Result<std::optional<ShardLease>> take(ShardNumber shard, const std::string& node) = 0;
  /// Ends the lease immediately, so that another node can take the shard. Does nothing if the shard
  /// has another epoch.
  virtual Result<void> give_up(const ShardLease& lease) = 0;
  /// Ends the membership of `me` immediately. Its shards stay its own until their leases end. Does
  /// nothing if beat() was called since by another start of the node, or by another node with this
  /// name.
  virtual Result<void> leave(const Member& me) = 0;
  /// The rows of all shards, by number.
  virtual Result<std::vector<ShardOwner>> owners() = 0;
  /// All queues with several partitions, as the records on the shards say.
  virtual Result<std::vector<QueuePartitions>> partitioned() = 0;
};

}  // namespace detent

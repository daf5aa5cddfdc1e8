// Who owns which shard of a cluster, and who is in it: rows that all nodes share.
//
// A shard's row has the name of its owner, an epoch and until when its lease lasts. A node takes a
// shard whose lease has run out, and that raises the epoch. Every write to the shard's tasks is
// made under the epoch (store.h: begin_epoch()) and has no effect once there is a higher one: that
// is what keeps the tasks right, whatever the clocks say. Every read is, too, and fails then: what
// another has made of the tasks would not fit what its engine has in memory. Leases only say when
// to take over.
// tests/model/shard_lease.pml is this protocol as a model, explored whole.
//
// All times are those of the one who keeps the table, so nodes need not agree on the time. An owner
// that measures from the moment before it asked knows a time until which its lease lasts for sure.
//
// A node that is alive says so again and again (beat()), which tells it who else is and what is
// free. The rows of all shards are read only by who wants to know where to send a request: with
// 1 024 shards and 100 nodes the beats must be small.
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

/// Whether a member takes its share of the shards, or is on its way out and still has some.
enum class Presence : std::uint8_t { staying, leaving };

/// A node of the cluster, as it wants to be known and reached.
struct Member {
  std::string node;     // its name, unique in the cluster; 1 … 64 letters, digits and .-_
  std::string address;  // where others send requests: "10.0.0.7:7070"
  std::uint64_t incarnation = 0;  // another at each start
  Presence presence = Presence::staying;

  friend bool operator==(const Member&, const Member&) = default;
};

/// A node that was alive, did not leave, and has been silent for longer than a lease.
struct MissingMember {
  std::string node;
  std::string address;
  std::chrono::milliseconds missing_for{0};  // since its membership ran out

  friend bool operator==(const MissingMember&, const MissingMember&) = default;
};
/// A missing node is forgotten after this.
inline constexpr std::chrono::hours kMissingMemberKept{24};

/// What a node owns.
struct ShardLease {
  ShardNumber shard = 0;
  std::uint64_t epoch = 0;

  friend auto operator<=>(const ShardLease&, const ShardLease&) = default;
};

/// Whose a shard is.
struct ShardOwner {
  ShardNumber shard = 0;
  std::string node;  // the last that took it; empty: nobody ever
  std::uint64_t epoch = 0;
  bool has_run_out = true;

  friend bool operator==(const ShardOwner&, const ShardOwner&) = default;
};

/// A queue with several partitions, as a shard has it in its record of the queue.
struct QueuePartitions {
  ShardNumber shard = 0;
  std::string queue;
  std::uint32_t partitions = 1;

  friend bool operator==(const QueuePartitions&, const QueuePartitions&) = default;
};

/// What a beat answers.
struct ClusterView {
  std::vector<Member> members;    // that are alive, by name; the one that asked is among them
  std::vector<ShardNumber> free;  // shards whose lease has run out, rising
  std::vector<ShardLease> held;   // by the one that asked; the leases were renewed just now
  std::vector<MissingMember> missing = {};  // by name
};

/// Thread-compatible. Every method is one statement of the database, a round trip. Errors of all:
/// unavailable, and then it may have taken effect or not.
class LeaseTable {
 public:
  virtual ~LeaseTable() = default;

  /// How many shards there are: the same for ever, from when the table was made.
  virtual ShardNumber shards() const noexcept = 0;
  /// How long a lease lasts from when it was taken or renewed, and a member from its last beat.
  virtual std::chrono::milliseconds lease_length() const noexcept = 0;

  /// Says that a member is alive, and how it is to be known from now on, and renews those of `held`
  /// that still are its own at that epoch; a lease that has run out but was not taken by anybody is
  /// among them. Errors, besides: another is alive under this name, at another address
  /// (unavailable: it may leave).
  virtual Result<ClusterView> beat(const Member& me, std::span<const ShardLease> held) = 0;
  /// Takes a shard whose lease has run out; nothing when another was faster.
  virtual Result<std::optional<ShardLease>> take(ShardNumber shard, const std::string& node) = 0;
  /// Lets the lease run out now, so that another may take the shard. Does nothing when it is held
  /// at another epoch.
  virtual Result<void> give_up(const ShardLease& lease) = 0;
  /// The member leaves: it counts no longer from now on. Its shards stay its own. Does nothing when
  /// another start of the node, or another node of this name, has beaten since.
  virtual Result<void> leave(const Member& me) = 0;
  /// All shards, by number.
  virtual Result<std::vector<ShardOwner>> owners() = 0;
  /// All that shards have written of queues with several partitions.
  virtual Result<std::vector<QueuePartitions>> partitioned() = 0;
};

}  // namespace detent

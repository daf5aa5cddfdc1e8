// Which shards this node serves: takes what is its share, gives up what is more, notices what it
// has lost.
//
// No node is above the others. Each learns from the lease table who is alive and what is free, and
// works out its own share from that alone: the shards divided by the members, where those whose
// names come first in the order take one more until nothing is left over. The shares of all add up
// to all shards, so when everybody sees the same members, everybody comes to rest, and no shard is
// moved that need not be. A node below its share takes free shards, first those for which no member
// ranks higher by a hash of node and shard (rendezvous hashing, Thaler and Ravishankar 1998): so
// nodes that look at the same moment rarely reach for the same one. A node above its share closes
// shards, as it does on a stop: the shard's engine ends its work, and only then the lease is given
// up, so the next owner waits for nothing.
//
// A node that dies is noticed when its leases run out, together with its membership. One that only
// stood still may find, when it goes on, that its shards are another's; its writes have no effect
// then (lease_table.h), and it drops what it had in memory.
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

/// What serves shards, as the keeper needs it. None of these may block: they begin.
class ShardHost {
 public:
  virtual ~ShardHost() = default;

  /// The shard is this node's at this epoch: reads its tasks and serves them.
  virtual void open(const ShardLease& lease) = 0;
  /// Ends its work with the shard: open leases are written out, and nothing more is accepted.
  virtual void close(ShardNumber shard) = 0;
  /// Whether that, or a failed open(), has come to its end. Stays so until the next open().
  virtual bool is_closed(ShardNumber shard) = 0;
  /// The shard is given up, or another's already: forgets all of it at once.
  virtual void drop(ShardNumber shard) = 0;
};

/// How many of `shards` are the share of the member `node`, which must be among `members` and not
/// be leaving. Those of all that stay add up to `shards`. O(members).
std::size_t fair_share(const std::vector<Member>& members, std::string_view node,
                       ShardNumber shards);

/// Thread-compatible: one thread calls step() when it is time, and the others.
class ShardKeeper {
 public:
  /// All must outlive it. `seed` spreads the beats of nodes that were started together.
  ShardKeeper(LeaseTable& table, ShardHost& host, const Clock& clock, Member me,
              std::uint64_t seed);

  /// Beats, and does what follows from the answer. Costs one call of the table, and one for each
  /// shard taken or given up. Errors: unavailable, and it is tried again at next_step().
  Result<void> step();
  /// When the next step is to be: a fifth of a lease after the last, give or take a tenth of that;
  /// sooner while shards are being closed.
  MonotonicTime next_step() const noexcept { return next_step_; }

  /// From now on closes all and takes none, and tells the others, who take what it gives up. Steps
  /// go on until is_empty(); then leave the table.
  void retire() noexcept { me_.presence = Presence::leaving; }
  bool is_empty() const noexcept { return held_.empty(); }

  /// Until when nobody else can have taken the shard since it was taken at this epoch, by this
  /// node's clock; nothing when it is not this node's, or its own anew. Past it the node hands out
  /// no task of the shard, though it may still own it.
  std::optional<MonotonicTime> held_until(const ShardLease& lease) const noexcept;
  /// By number, those that are being closed as well.
  std::vector<ShardLease> held() const;
  const std::vector<Member>& members() const noexcept { return members_; }
  /// As of the last beat.
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
  /// How many members rank higher for the shard. O(members).
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

// Which shard a queue, a task or a lease is of. The same on every node and for ever: tasks lie in
// the database by it.
//
// A queue is whole on one shard, its home. One that is hot may be divided when it is made: then its
// partition i is on the i-th shard from its home on, a queue of the same name there, with an order,
// limits and settings of its own. A task with a key is of the partition that the key hashes to, so
// that a key stands for one task still; one without goes to any.
//
// That holds although nodes learn of partitions by and by. Each shard has their number in its own
// record of the queue, and takes no task that is not its own by that (taken_by()); the number is
// never changed while the queue is there, and the home is the first to have it, the last to
// forget it, and the one that nodes believe. So no two shards take the same key, unless a removal
// of the queue stops half-way: docs/internals/cluster.md says what remains then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/lease_table.h"
#include "task/request.h"
#include "task/task.h"

namespace detent {

/// Requires: 0 < shards. By FNV-1a, mixed: names that differ in a digit spread evenly. O(length).
ShardNumber shard_of_queue(std::string_view queue, ShardNumber shards) noexcept;
/// An id carries its shard. One that is none of a cluster's may name a shard that there is not.
constexpr ShardNumber shard_of_task(TaskId id) noexcept {
  return static_cast<ShardNumber>(id.shard());
}
/// So does the number of a lease.
constexpr ShardNumber shard_of_lease(LeaseToken lease) noexcept {
  return static_cast<ShardNumber>(TaskId{lease.number}.shard());
}

/// How many partitions queues have; those with one are left out.
using PartitionedQueues = std::map<std::string, std::uint32_t, std::less<>>;

/// As the homes of the queues have it: what another shard says may be of a queue that was removed.
PartitionedQueues as_homes_say(const std::vector<QueuePartitions>& written, ShardNumber shards);

/// How many shards there are, and which queues are on more than one. Immutable once it is shared.
struct ShardMap {
  ShardNumber shards = 1;
  PartitionedQueues partitioned = {};

  std::uint32_t partitions_of(std::string_view queue) const;
  ShardNumber home_of(std::string_view queue) const noexcept {
    return shard_of_queue(queue, shards);
  }
  /// The shards of its partitions, all different: the home first, then by partition.
  std::vector<ShardNumber> places_of(std::string_view queue) const;
  /// Where a task of this key goes, or one without, "": any, chosen by `turn`, which should grow.
  ShardNumber place_of(std::string_view queue, std::string_view key, std::uint64_t turn) const;
};

/// As ShardMap's, of a queue with so many partitions.
std::vector<ShardNumber> places_of(std::string_view queue, std::uint32_t partitions,
                                   ShardNumber shards);
/// Which tasks a shard takes: see EngineOptions::is_here.
std::function<bool(std::string_view queue, std::uint32_t partitions, std::string_view key)>
taken_by(ShardNumber shard, ShardNumber shards);

}  // namespace detent

// Maps queues, tasks and leases to shards. The map is equal on every node and never changes,
// because the database stores tasks by shard.
//
// A queue is usually on one shard, its home. A hot queue may be partitioned when it is created.
// Partition i is then on the i-th shard from the home: it is a queue with the same name, with its
// own order, limits and settings. A task with a key goes to the partition that the key hashes to,
// so a key still names one task. A task without a key goes to any partition.
//
// Nodes learn of partitions at different times. Each shard therefore has the number of partitions
// in its own record of the queue, and refuses tasks that do not belong to it (taken_by()). The
// number never changes while the queue exists. The home gets the number first and forgets it last,
// and nodes trust the home. Two shards therefore never take the same key, unless the removal of a
// queue stops half-way; docs/internals/cluster.md describes that case.
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

/// Requires: 0 < shards. Mixes an FNV-1a hash, so that names that differ only in a digit spread
/// evenly. O(length).
ShardNumber shard_of_queue(std::string_view queue, ShardNumber shards) noexcept;
/// An id contains its shard. An invalid id may name a shard that does not exist.
constexpr ShardNumber shard_of_task(TaskId id) noexcept {
  return static_cast<ShardNumber>(id.shard());
}
/// The number of a lease contains the shard in the same way.
constexpr ShardNumber shard_of_lease(LeaseToken lease) noexcept {
  return static_cast<ShardNumber>(TaskId{lease.number}.shard());
}

/// The number of partitions of each queue. Queues with one partition are left out.
using PartitionedQueues = std::map<std::string, std::uint32_t, std::less<>>;

/// The partitions as the homes of the queues report them. Another shard may report a queue that was
/// removed.
PartitionedQueues as_homes_say(const std::vector<QueuePartitions>& written, ShardNumber shards);

/// The number of shards, and the queues that are on several shards. Immutable once it is shared.
struct ShardMap {
  ShardNumber shards = 1;
  PartitionedQueues partitioned = {};

  std::uint32_t partitions_of(std::string_view queue) const;
  ShardNumber home_of(std::string_view queue) const noexcept {
    return shard_of_queue(queue, shards);
  }
  /// The shards of its partitions, all different: the home first, then by partition.
  std::vector<ShardNumber> places_of(std::string_view queue) const;
  /// The shard of a task with this key. A task without a key ("") goes to any partition. `turn`
  /// chooses it and should grow with each call.
  ShardNumber place_of(std::string_view queue, std::string_view key, std::uint64_t turn) const;
};

/// Like ShardMap::places_of(), for a queue with this number of partitions.
std::vector<ShardNumber> places_of(std::string_view queue, std::uint32_t partitions,
                                   ShardNumber shards);
/// Returns a function that tells which tasks the shard takes. See EngineOptions::is_here.
std::function<bool(std::string_view queue, std::uint32_t partitions, std::string_view key)>
taken_by(ShardNumber shard, ShardNumber shards);

}  // namespace detent

// Which shard a queue, a task or a lease is of. The same on every node and for ever: tasks lie in
// the database by it.
#pragma once

#include <string_view>

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

}  // namespace detent

#include "cluster/shard_map.h"

#include <algorithm>

#include "base/fnv.h"
#include "base/rng.h"
#include "detent/check.h"

namespace detent {
namespace {

/// A number below `count` that depends only on `text`.
std::uint64_t hashed(std::string_view text, std::uint64_t count) noexcept {
  return Rng(fnv1a(text)).next() % count;
}

/// The number of partitions that have their own shard: there cannot be more than there are shards.
std::uint32_t parts_of(std::uint32_t partitions, ShardNumber shards) noexcept {
  return std::clamp<std::uint32_t>(partitions, 1, shards);
}

ShardNumber place_of_key(std::string_view queue, std::uint32_t partitions, std::string_view key,
                         ShardNumber shards) noexcept {
  const auto part = static_cast<ShardNumber>(hashed(key, parts_of(partitions, shards)));
  return (shard_of_queue(queue, shards) + part) % shards;
}

}  // namespace

ShardNumber shard_of_queue(std::string_view queue, ShardNumber shards) noexcept {
  DETENT_CHECK(shards > 0);
  return static_cast<ShardNumber>(hashed(queue, shards));
}

std::vector<ShardNumber> places_of(std::string_view queue, std::uint32_t partitions,
                                   ShardNumber shards) {
  std::vector<ShardNumber> places;
  const ShardNumber home = shard_of_queue(queue, shards);
  for (std::uint32_t i = 0; i < parts_of(partitions, shards); ++i) {
    places.push_back((home + i) % shards);
  }
  return places;
}

std::function<bool(std::string_view, std::uint32_t, std::string_view)> taken_by(
    ShardNumber shard, ShardNumber shards) {
  return [shard, shards](std::string_view queue, std::uint32_t partitions, std::string_view key) {
    if (!key.empty()) return place_of_key(queue, partitions, key, shards) == shard;
    const ShardNumber part = (shard + shards - shard_of_queue(queue, shards)) % shards;
    return part < parts_of(partitions, shards);
  };
}

PartitionedQueues as_homes_say(const std::vector<QueuePartitions>& written, ShardNumber shards) {
  PartitionedQueues queues;
  for (const auto& [shard, queue, partitions] : written) {
    if (shard == shard_of_queue(queue, shards)) queues[queue] = partitions;
  }
  return queues;
}

std::uint32_t ShardMap::partitions_of(std::string_view queue) const {
  const auto it = partitioned.find(queue);
  return it == partitioned.end() ? 1 : it->second;
}

std::vector<ShardNumber> ShardMap::places_of(std::string_view queue) const {
  return detent::places_of(queue, partitions_of(queue), shards);
}

ShardNumber ShardMap::place_of(std::string_view queue, std::string_view key,
                               std::uint64_t turn) const {
  const std::uint32_t partitions = partitions_of(queue);
  if (!key.empty()) return place_of_key(queue, partitions, key, shards);
  const auto part = static_cast<ShardNumber>(turn % parts_of(partitions, shards));
  return (home_of(queue) + part) % shards;
}

}  // namespace detent

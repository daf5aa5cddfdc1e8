#include "cluster/shard_map.h"

#include "base/fnv.h"
#include "base/rng.h"
#include "detent/check.h"

namespace detent {

ShardNumber shard_of_queue(std::string_view queue, ShardNumber shards) noexcept {
  DETENT_CHECK(shards > 0);
  return static_cast<ShardNumber>(Rng(fnv1a(queue)).next() % shards);
}

}  // namespace detent

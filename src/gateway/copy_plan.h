// The copy of a cluster: its shards dumped one after the other, and a dump restored line by line
// into the shards that it is of.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `GET /v1/dump`: a page of one shard. Where one shard's dump ends, the cursor is the place before
/// all tasks of the next one: an id that no task has, but for the number of its shard.
Step plan_dump(net::HttpRequest request, ShardNumber shards);
/// `POST /v1/restore`: each line to the shard of its queue. A task whose id is of another shard is
/// refused, for nobody would find it by its id: it comes from a server alone, or from a cluster
/// with another number of shards. Queues with partitions are made at their homes first, and the
/// call is refused (409) where one is there with another number of them. When a shard fails, that
/// is the answer; the same dump may be sent again.
Plan plan_restore(net::HttpRequest request, const ShardMap& map);

}  // namespace detent::gateway

// The copy of a cluster: its shards dumped one after the other, and a dump restored line by line
// into the shards that it is of.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `GET /v1/dump`: a page of one shard. Where one shard's dump ends, the cursor is the place before
/// all tasks of the next one: an id that no task has, but for the number of its shard.
Step plan_dump(net::HttpRequest request, ShardNumber shards);
/// `POST /v1/restore`: each task to the shard of its id, which refuses it where it has no part of
/// its queue, for nobody would find it by its id: it comes from a server alone, or from a cluster
/// with another number of shards. Other lines go to the shard of their queue. Queues with
/// partitions are made first, at their homes and then at the others, and the call is refused where
/// one is there with another number of them (409), or cannot be made. When a shard fails, that is
/// the answer; the same dump may be sent again.
Plan plan_restore(net::HttpRequest request, const ShardMap& map);

}  // namespace detent::gateway

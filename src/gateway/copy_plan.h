// The copy of a cluster: its shards dumped one after the other, and a dump restored line by line
// into the shards that it is of.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `GET /v1/dump`: a page of one shard. At the end of a shard's dump, the cursor is the place
/// before all tasks of the next shard. This is an id with that shard's number that no task has.
Step plan_dump(net::HttpRequest request, ShardNumber shards);
/// `POST /v1/restore`: each task goes to the shard of its id. Other lines go to the shard of their
/// queue. The shard refuses a task if it has no partition of the task's queue, because the task
/// could not be found by its id. Such a task comes from a single server, or from a cluster with
/// another number of shards.
///
/// Queues with partitions are created first, at their homes and then at the other shards. The call
/// is refused if a queue exists with another number of partitions (409), or cannot be created. If a
/// shard fails, its error is the answer; the same dump may be sent again.
Plan plan_restore(net::HttpRequest request, const ShardMap& map);

}  // namespace detent::gateway

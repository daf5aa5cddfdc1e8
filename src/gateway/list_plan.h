// `GET /v1/tasks` over all shards: each shard is asked for a page, and the pages are combined.
//
// The live tasks of all shards are merged by due time and id. A cursor after a live task is
// therefore a place in the list of every shard. For dead and ended tasks, only their shard knows
// the order. They are listed shard by shard, and a cursor among them has the shard's number and the
// shard's own cursor.
//
// A page ends at the first place where a shard's page was cut short. Each task is therefore listed
// once, even if tasks change between the questions. If a page ends among the dead or ended tasks of
// a shard, that shard is asked once more, for exactly that number of tasks, to learn the place.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

Plan plan_task_list(net::HttpRequest request, const ShardMap& map);

}  // namespace detent::gateway

// `GET /v1/tasks` over all shards: each is asked for a page, and the pages become one.
//
// The live tasks of all shards are merged by due time and id, which is where a cursor stands: the
// place behind one of them is a place in the list of every shard. The dead and the ended are in an
// order that only their shard knows; they come shard by shard, and a cursor there has the shard's
// number behind the shard's own cursor. A page holds what lies before the first place at which a
// shard's page was cut short, so a task is met once, whatever the others did meanwhile. Where a
// page ends amid the dead or the ended of a shard, that shard is asked once more, for so many, to
// learn the place.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

Plan plan_task_list(net::HttpRequest request, const ShardMap& map);

}  // namespace detent::gateway

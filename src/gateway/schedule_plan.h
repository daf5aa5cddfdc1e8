// Requests about recurring schedules. A schedule is stored with its queue, but its name does not
// tell the queue. A request with a name therefore first asks all shards, and the shard that has the
// schedule answers.
//
// Names are unique in the cluster: a schedule is created only if no other shard has a schedule with
// its name. Two clients that create the same name on two shards at the same moment may both find it
// free. After the creation, each of them therefore looks again. If there are several, the schedule
// on the lowest shard stays. A client's request removes the other schedules, or its own, before it
// is answered. If such a request is interrupted, two schedules remain. Reading then returns the
// schedule on the lowest shard, removing removes both, and creating it again on that shard leaves
// one.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `PUT /v1/schedules/{name}`.
Plan plan_put_schedule(net::HttpRequest request, ShardNumber shards);
/// `GET` of a schedule, or of a resource below it.
Plan plan_get_schedule(net::HttpRequest request, ShardNumber shards);
/// All that changes one, or has it do something.
Plan plan_change_schedule(net::HttpRequest request, ShardNumber shards);

}  // namespace detent::gateway

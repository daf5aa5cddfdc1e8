// Requests about recurring schedules. A schedule lives with its queue, and its name does not tell
// the queue: whoever names one is answered by the shard that has it, which all are asked for first.
//
// A name is unique in the cluster because a schedule is put only where no other shard has one of
// its name. Two who put the same name into queues of two shards at the same instant may both find
// it free. So who has put a new one looks again: of several the one on the lowest shard stays, and
// whoever sees others removes them, or its own, before it answers. Who is cut off before that
// leaves two; then reading answers with the one on the lowest shard, removing removes both, and
// putting it there again leaves one.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `PUT /v1/schedules/{name}`.
Plan plan_put_schedule(net::HttpRequest request, ShardNumber shards);
/// `GET` of a schedule, or of what is below it.
Plan plan_get_schedule(net::HttpRequest request, ShardNumber shards);
/// All that changes one, or has it do something.
Plan plan_change_schedule(net::HttpRequest request, ShardNumber shards);

}  // namespace detent::gateway

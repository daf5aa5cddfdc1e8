// Requests about many tasks or leases at once, taken apart by shard.
//
// What belongs to one shard only is sent there as it came, and so is what no server would take:
// that shard says what is wrong with it. An element that is wrong by itself, or names nothing that
// there can be, goes along with some other: whichever shard gets it refuses it in the same words.
// Each shard commits its part by itself, so one of them may fail alone; then its elements have that
// failure as their result; that of a lease has the status `unavailable` or `error`, too. When all
// fail alike the call fails, as it would with one shard.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `POST /v1/tasks/batch`.
Plan plan_schedule_batch(net::HttpRequest request, const ShardMap& map, std::uint64_t turn);
/// `POST /v1/tasks/cancel` and `/move`.
Step plan_named_tasks(net::HttpRequest request, const ShardMap& map);
/// `POST /v1/leases/…`. Both: too_large when more than 64 KiB would go to several shards each.
Step plan_leases(net::HttpRequest request, ShardNumber shards);

}  // namespace detent::gateway

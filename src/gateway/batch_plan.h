// Divides requests about many tasks or leases by shard.
//
// A request for a single shard is forwarded unchanged. So is a request that no server would accept;
// the shard then describes the error. An invalid element, or an element whose shard cannot exist,
// is sent along with another element: every shard refuses it with the same words.
//
// Each shard commits its part separately, so one part may fail alone. Its elements then have that
// failure as their result. For leases the result also has the status `unavailable` or `error`. If
// all parts fail with the same error, the whole call fails, as it would with one shard.
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

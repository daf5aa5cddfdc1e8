// Requests about everything: each shard is asked, and the answers are merged by name or added up.
#pragma once

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `GET /v1/queues`: by name, or a page (queue_page.h).
Plan plan_queues(net::HttpRequest request, ShardNumber shards);
/// `GET /v1/schedules`, by name: a page, and the last name, after which the list continues.
Plan plan_schedules(net::HttpRequest request, ShardNumber shards);
/// `GET /v1/stats`: the sums, the longest uptime, the largest queues of all that are told.
Plan plan_stats(net::HttpRequest request, ShardNumber shards);
/// `GET /v1/forecast`: the sums. Its bins begin with a minute: shards that were asked just before a
/// minute was over are asked again. Those whose clocks are apart for longer are added up as they
/// are. For one queue, the shards of its partitions are asked.
Plan plan_forecast(net::HttpRequest request, const ShardMap& map);
/// `GET /v1/wheel`: the timers of all shards as if they were on one wheel.
Plan plan_wheel(net::HttpRequest request, ShardNumber shards);

}  // namespace detent::gateway

// Requests about a whole queue, and requests for its tasks. Each partition of a queue (shard_map.h)
// is a queue with the same name on its shard. A request about the queue goes to all partitions, and
// their counts are added up.
//
// The home knows the number of partitions and reports it with the settings of the queue. A request
// that reads the queue or changes its settings therefore asks the home first. A request that
// creates the queue creates the home first, and a removal removes the home last. This order keeps
// keys unique. Both may stop half-way if a shard is unreachable, and may then be sent again.
#pragma once

#include <string>

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `GET` and `PATCH /v1/queues/{queue}`, and `…/pause` and `…/resume`: all answer with the queue.
Step plan_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map);
/// `GET /v1/stats/history?queue=`: the steps of the partitions are added up.
Plan plan_queue_history(net::HttpRequest request, const ShardMap& map);
/// `DELETE /v1/queues/{queue}`: removes the queue only if all partitions are empty. If a put comes
/// during the removal, the answer is 409 and says what to do. A repeated request continues where
/// the earlier request stopped. If only the home is already gone, every other shard is asked for a
/// remaining partition.
Plan plan_remove_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map);
/// `POST /v1/queues/{queue}/purge` and `/redrive`: the home is asked first how many there are.
Plan plan_sweep_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map);
/// `POST /v1/queues/{queue}/lease`. The partitions are asked in turn, each time from another
/// partition on (`turn`). The first partition with tasks gives the answer. If all are empty and the
/// worker waits, it waits at all partitions at the same time. The first answer ends the other
/// waits. There is therefore no polling, and only the tasks of the answer stay leased.
///
/// A slow partition does not delay the tasks of other partitions; leases that it still grants are
/// given back. If the queue moves, the wait continues at its new places. The requested wait time
/// starts when the worker waits at all partitions. The first answer to the wait is final, including
/// a 503 because a node is unreachable or overloaded; such an answer ends the wait early.
Plan plan_lease(net::HttpRequest request, const std::string& queue, const ShardMap& map,
                std::uint64_t turn);

}  // namespace detent::gateway

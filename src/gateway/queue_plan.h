// Requests about one queue as a whole, and for its tasks. Of a queue with partitions (shard_map.h)
// each is a queue of the same name on its shard: what is asked of the queue is asked of all, and
// their counts are added up.
//
// Its home knows how many there are, and says so with the queue's settings: what looks at the queue
// or sets something asks the home first, and goes on from what that says. So a change of settings
// that makes the queue makes its home first, and a removal removes it last, which is what keeps
// keys exact; either may stop half-way, when a shard is away, and may then be sent again.
#pragma once

#include <string>

#include "gateway/request_plan.h"

namespace detent::gateway {

/// `GET` and `PATCH /v1/queues/{queue}`, and `…/pause` and `…/resume`: all answer with the queue.
Step plan_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map);
/// `DELETE /v1/queues/{queue}`: removes nothing while there is a task in any partition. A put may
/// come between: then it says what is to be done (409). Sent again it goes on where it stopped,
/// also when only the home is gone: then every other shard is asked for a partition that was left.
Plan plan_remove_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map);
/// `POST /v1/queues/{queue}/purge` and `/redrive`: the home is asked first how many there are.
Plan plan_sweep_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map);
/// `POST /v1/queues/{queue}/lease`. The partitions are asked in turn, from another one each time
/// (`turn`), until one has tasks, which are the answer. When none has, and the worker waits, it
/// waits at all of them at once: the first to answer ends the other waits. So nothing is asked
/// again and again, and no more is leased than is handed out; but one that is late holds up no
/// tasks of the others, and what it leases all the same is given back. A worker that waits goes on
/// where the queue is when that changes. Its wait is as long as it asked for from when it begins at
/// all of them; and the first answer to it counts whatever it is: also that a node cannot be
/// reached, or is asked by too many (503), which ends it early.
Plan plan_lease(net::HttpRequest request, const std::string& queue, const ShardMap& map,
                std::uint64_t turn);

}  // namespace detent::gateway

// Plans a request to a cluster: which shard gets which question, and how the answers are combined.
//
// A shard holds all data of its queues: tasks, leases, keys and schedules. The kind of the request
// determines its shards:
//
// - A request that names a task, a lease or a key goes unchanged to one shard. Ids of tasks and
//   numbers of leases contain their shard.
// - A request that names a queue goes to the shard of the queue. If the queue has partitions
//   (shard_map.h), a task goes to one of them, and a request about the whole queue goes to all.
// - A batch is divided by shard, and its results are put back into the requested order.
// - A request about all tasks goes to every shard, and the answers are added up or merged.
//
// Input and output are HTTP requests and answers. A shard answers like a single server, so it does
// all checks, including access. An invalid request is forwarded unchanged to some shard, which
// reports the error.
//
// Pure: server/ knows the owner of a shard and sends the requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/shard_map.h"
#include "net/message/http_message.h"

namespace detent::gateway {

struct Plan;
/// Either the answer, or a plan with the next questions.
using Step = std::variant<net::HttpResponse, Plan>;

/// One request to one shard.
struct Part {
  ShardNumber shard = 0;
  net::HttpRequest request;
  bool may_wait = false;  // for a beanstalk client's task
};

/// The answers that a plan needs: all, or only the first. With `first`, the other questions are
/// abandoned, and leases in their answers are given back.
enum class Wanted : bool { all, first };

/// For parts that can each give the whole answer. They are asked one after the other. The next
/// part is asked when the previous answer is not acceptable, or is slow. A slow answer is still
/// acceptable, unless another part was first; then its leases are given back.
struct InTurn {
  /// Whether this is the answer to the whole request.
  std::function<bool(const net::HttpResponse&)> will_do;
  /// When all have been asked, and the answers that are missing are slow: goes on without them.
  bool goes_on_without_slow = false;
};

/// How to plan a waiting request again, for its elapsed time, if its queue is found on other
/// shards.
struct Renewal {
  std::string queue;
  std::function<Step(const ShardMap&, std::chrono::milliseconds after)> plan;
};

/// The questions, and the function that combines the answers.
struct Plan {
  std::vector<Part> parts;  // at least one
  Wanted wanted = Wanted::all;
  std::optional<InTurn> in_turn = {};  // no value: all at the same time
  /// Takes the answers to `parts`, in their order: one for each part, or only the first. For parts
  /// in turn without an acceptable answer, it takes the answers that arrived. An unsuccessful
  /// answer may come from the shard, or from a node that could not reach the shard (503 with a
  /// Retry-After header).
  std::function<Step(std::vector<net::HttpResponse>)> join;
  /// For a waiting request. Ignored in the plans that follow from this plan.
  std::optional<Renewal> renewal = {};
};

/// Plans the request for these shards. `turn` distributes requests that any of several shards can
/// take; it should change with each call. Requires: the request is not is_of_node().
Step plan_request(net::HttpRequest request, const ShardMap& map, std::uint64_t turn);

/// Returns true if the request is not about tasks, so that any node answers it by itself: the
/// dashboard's files, /healthz, /readyz, /metrics, /openapi.json, /v1/cluster, /v1/events,
/// /v1/stats/history of all queues, and any path that no shard knows.
bool is_of_node(const net::HttpRequest& request);

}  // namespace detent::gateway

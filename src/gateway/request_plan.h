// What a request to a cluster asks of which shard, and how the answers become one.
//
// A shard is all that a few queues have: their tasks, leases, keys and schedules. What names a task
// (its id carries the shard), a lease (its number does) or a key is for one shard, and goes there
// as it came. So is what names a queue, unless that has partitions, which are on several
// (shard_map.h): then a task goes to one of them, and what is about all of it to each. What names
// several, a batch, is taken apart, and its results are put back into the order asked for. What
// asks about everything goes to every shard, and the answers are added up or merged. All of it is
// HTTP requests and answers in, and HTTP requests and answers out: a shard answers as a server of
// its own would, so it does all checks, access too, and a request that makes no sense goes to some
// shard as it came, which says what is wrong with it.
//
// Pure: who serves a shard, and how a request gets there, is for others (server/).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/shard_map.h"
#include "net/http_message.h"

namespace detent::gateway {

struct Plan;
/// The answer, or what to ask for first.
using Step = std::variant<net::HttpResponse, Plan>;

/// One request to one shard.
struct Part {
  ShardNumber shard = 0;
  net::HttpRequest request;
  bool may_wait = false;  // for a beanstalk client's task
};

/// Which answers a plan goes on with: all, or only the first that comes; then what else is asked is
/// abandoned, and leases in answers that come all the same are given back.
enum class Wanted : bool { all, first };

/// How parts are asked of which any will do: one after the other, the next when the one before has
/// answered otherwise, or its answer is late. One that comes late will do, too, unless another did
/// before; then its leases are given back.
struct InTurn {
  /// Whether this is the answer to the whole request.
  std::function<bool(const net::HttpResponse&)> will_do;
  /// When all have been asked, and the answers that are missing are late: goes on without them.
  bool goes_on_without_late = false;
};

/// How a request that waits is planned anew, so long after its begin, when its queue turns out to
/// be on other shards.
struct Renewal {
  std::string queue;
  std::function<Step(const ShardMap&, std::chrono::milliseconds after)> plan;
};

/// What to ask, and what to make of it.
struct Plan {
  std::vector<Part> parts;  // at least one
  Wanted wanted = Wanted::all;
  std::optional<InTurn> in_turn = {};  // else all at once
  /// Takes the answers to `parts`, in their order: one each, or just the first; of parts in turn,
  /// when none would do, those that have come. An answer that is no success may come from the
  /// shard, or from whoever could not reach it (503 with a Retry-After header).
  std::function<Step(std::vector<net::HttpResponse>)> join;
  /// Of a request that waits. Of plans that follow from this one it means nothing.
  std::optional<Renewal> renewal = {};
};

/// How the request is carried out on these shards. `turn` spreads what any of several may take: it
/// should be another each time. Requires: it is none of those that each node answers by itself,
/// is_of_node().
Step plan_request(net::HttpRequest request, const ShardMap& map, std::uint64_t turn);

/// Whether the request is not about tasks, so that any node answers it without asking: the
/// dashboard's files, /healthz, /readyz, /metrics, /openapi.json, /v1/cluster, /v1/events,
/// /v1/stats/history, and any path that no shard knows.
bool is_of_node(const net::HttpRequest& request);

}  // namespace detent::gateway

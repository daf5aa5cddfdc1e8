#include "gateway/request_plan.h"

#include <string>
#include <string_view>
#include <utility>

#include "gateway/batch_plan.h"
#include "gateway/copy_plan.h"
#include "gateway/fan_out.h"
#include "gateway/list_plan.h"
#include "gateway/queue_plan.h"
#include "gateway/schedule_plan.h"
#include "gateway/whole_plan.h"
#include "net/http_server/route_table.h"

namespace detent::gateway {
namespace {

/// Of one queue a shard has it, of all queues the node.
constexpr std::string_view kHistory = "/v1/stats/history";

/// The shard map, and the turn.
struct Layout {
  const ShardMap& map;
  std::uint64_t turn = 0;
};

using Path = std::vector<std::string>;
using Planner = Step (*)(net::HttpRequest, const Path& path, const Layout&);

Step by_key_in_path(net::HttpRequest request, const Path& path, const Layout& layout) {
  return to_shard(std::move(request), layout.map.place_of(path.front(), path.at(1), layout.turn));
}

Step by_id_in_path(net::HttpRequest request, const Path& path, const Layout& layout) {
  const std::optional<TaskId> id = parse_task_id(path.front());
  const ShardNumber shard = id ? shard_of_task(*id) : 0;
  // 0 means that there is no such shard.
  return to_shard(std::move(request), shard < layout.map.shards ? shard : 0);
}

Step by_task_in_body(net::HttpRequest request, const Path& /*path*/, const Layout& layout) {
  const std::optional<ShardNumber> place = place_in(request.body, layout.map, layout.turn);
  return to_shard(std::move(request), place.value_or(0));
}

Step by_queue_in_body(net::HttpRequest request, const Path& /*path*/, const Layout& layout) {
  const std::optional<std::string> queue = queue_in(request.body);
  return to_shard(std::move(request), queue ? layout.map.home_of(*queue) : 0);
}

Step lease(net::HttpRequest request, const Path& path, const Layout& layout) {
  return plan_lease(std::move(request), path.front(), layout.map, layout.turn);
}

Step schedule_batch(net::HttpRequest request, const Path& /*path*/, const Layout& layout) {
  return plan_schedule_batch(std::move(request), layout.map, layout.turn);
}

/// Of one queue.
template <auto kPlan>
Step of_queue(net::HttpRequest request, const Path& path, const Layout& layout) {
  return kPlan(std::move(request), path.front(), layout.map);
}

/// For requests that depend on the partitions of queues.
template <auto kPlan>
Step mapped(net::HttpRequest request, const Path& /*path*/, const Layout& layout) {
  return kPlan(std::move(request), layout.map);
}

template <auto kPlan>
Step planned(net::HttpRequest request, const Path& /*path*/, const Layout& layout) {
  return kPlan(std::move(request), layout.map.shards);
}

/// The routes of server/routes/routes.cc, except the routes that a node answers by itself.
net::RouteTable<Planner> make_table() {
  net::RouteTable<Planner> table;
  table.add("POST", "/v1/tasks", by_task_in_body);
  table.add("GET", "/v1/tasks", mapped<plan_task_list>);
  table.add("POST", "/v1/tasks/batch", schedule_batch);
  table.add("POST", "/v1/tasks/cancel", mapped<plan_named_tasks>);
  table.add("POST", "/v1/tasks/move", mapped<plan_named_tasks>);
  for (const std::string_view method : {"GET", "PATCH", "DELETE"}) {
    table.add(method, "/v1/tasks/{id}", by_id_in_path);
    table.add(method, "/v1/queues/{queue}/keys/{key}", by_key_in_path);
  }
  table.add("GET", "/v1/queues/{queue}", of_queue<plan_queue>);
  table.add("PATCH", "/v1/queues/{queue}", of_queue<plan_queue>);
  table.add("DELETE", "/v1/queues/{queue}", of_queue<plan_remove_queue>);
  table.add("POST", "/v1/tasks/{id}/run", by_id_in_path);
  table.add("GET", "/v1/queues", planned<plan_queues>);
  table.add("POST", "/v1/queues/{queue}/lease", lease);
  table.add("POST", "/v1/queues/{queue}/pause", of_queue<plan_queue>);
  table.add("POST", "/v1/queues/{queue}/resume", of_queue<plan_queue>);
  table.add("POST", "/v1/queues/{queue}/purge", of_queue<plan_sweep_queue>);
  table.add("POST", "/v1/queues/{queue}/redrive", of_queue<plan_sweep_queue>);
  for (const std::string_view verb :
       {"/v1/leases/complete", "/v1/leases/fail", "/v1/leases/extend", "/v1/leases/release"}) {
    table.add("POST", verb, planned<plan_leases>);
  }
  table.add("GET", "/v1/schedules", planned<plan_schedules>);
  table.add("GET", "/v1/schedules/{name}", planned<plan_get_schedule>);
  table.add("PUT", "/v1/schedules/{name}", planned<plan_put_schedule>);
  table.add("DELETE", "/v1/schedules/{name}", planned<plan_change_schedule>);
  table.add("GET", "/v1/schedules/{name}/next", planned<plan_get_schedule>);
  for (const std::string_view verb :
       {"/v1/schedules/{name}/pause", "/v1/schedules/{name}/resume", "/v1/schedules/{name}/trigger",
        "/v1/schedules/{name}/backfill"}) {
    table.add("POST", verb, planned<plan_change_schedule>);
  }
  table.add("POST", "/v1/occurrences", by_queue_in_body);
  table.add("GET", "/v1/stats", planned<plan_stats>);
  table.add("GET", kHistory, mapped<plan_queue_history>);
  table.add("GET", "/v1/forecast", mapped<plan_forecast>);
  table.add("GET", "/v1/wheel", planned<plan_wheel>);
  table.add("GET", "/v1/dump", planned<plan_dump>);
  table.add("POST", "/v1/restore", mapped<plan_restore>);
  return table;
}

const net::RouteTable<Planner>& table() {
  static const net::RouteTable<Planner> made = make_table();
  return made;
}

}  // namespace

Step plan_request(net::HttpRequest request, const ShardMap& map, std::uint64_t turn) {
  // Combining answers needs their bodies; the server omits the body of an answer to HEAD.
  if (request.method == "HEAD") request.method = "GET";
  const auto match = table().find(request.method, request.target);
  if (!match || match->handler == nullptr) return to_shard(std::move(request), 0);
  return (*match->handler)(std::move(request), match->parameters, {.map = map, .turn = turn});
}

bool is_of_node(const net::HttpRequest& request) {
  const auto match = table().find(request.method, request.target);
  return !match || (match->pattern == kHistory && !has_parameter(request.target, "queue"));
}

}  // namespace detent::gateway

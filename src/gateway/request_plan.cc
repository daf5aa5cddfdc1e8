#include "gateway/request_plan.h"

#include <string>
#include <string_view>
#include <utility>

#include "gateway/batch_plan.h"
#include "gateway/copy_plan.h"
#include "gateway/fan_out.h"
#include "gateway/list_plan.h"
#include "gateway/schedule_plan.h"
#include "gateway/whole_plan.h"
#include "net/route_table.h"

namespace detent::gateway {
namespace {

using Planner = Step (*)(net::HttpRequest, const std::vector<std::string>& path, ShardNumber);

Step by_queue_in_path(net::HttpRequest request, const std::vector<std::string>& path,
                      ShardNumber shards) {
  return to_shard(std::move(request), shard_of_queue(path.front(), shards));
}

Step by_id_in_path(net::HttpRequest request, const std::vector<std::string>& path,
                   ShardNumber shards) {
  const std::optional<TaskId> id = parse_task_id(path.front());
  const ShardNumber shard = id ? shard_of_task(*id) : 0;
  return to_shard(std::move(request), shard < shards ? shard : 0);  // 0 says that there is none
}

Step by_queue_in_body(net::HttpRequest request, const std::vector<std::string>& /*path*/,
                      ShardNumber shards) {
  const std::optional<std::string> queue = queue_in(request.body);
  return to_shard(std::move(request), queue ? shard_of_queue(*queue, shards) : 0);
}

template <auto kPlan>
Step planned(net::HttpRequest request, const std::vector<std::string>& /*path*/,
             ShardNumber shards) {
  return kPlan(std::move(request), shards);
}

/// The routes of server/routes.cc, but for those that a node answers by itself.
net::RouteTable<Planner> make_table() {
  net::RouteTable<Planner> table;
  table.add("POST", "/v1/tasks", by_queue_in_body);
  table.add("GET", "/v1/tasks", planned<plan_task_list>);
  table.add("POST", "/v1/tasks/batch", planned<plan_schedule_batch>);
  table.add("POST", "/v1/tasks/cancel", planned<plan_named_tasks>);
  table.add("POST", "/v1/tasks/move", planned<plan_named_tasks>);
  for (const std::string_view method : {"GET", "PATCH", "DELETE"}) {
    table.add(method, "/v1/tasks/{id}", by_id_in_path);
    table.add(method, "/v1/queues/{queue}", by_queue_in_path);
    table.add(method, "/v1/queues/{queue}/keys/{key}", by_queue_in_path);
  }
  table.add("POST", "/v1/tasks/{id}/run", by_id_in_path);
  table.add("GET", "/v1/queues", planned<plan_queues>);
  for (const std::string_view verb :
       {"/v1/queues/{queue}/lease", "/v1/queues/{queue}/pause", "/v1/queues/{queue}/resume",
        "/v1/queues/{queue}/purge", "/v1/queues/{queue}/redrive"}) {
    table.add("POST", verb, by_queue_in_path);
  }
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
  table.add("GET", "/v1/forecast", planned<plan_forecast>);
  table.add("GET", "/v1/wheel", planned<plan_wheel>);
  table.add("GET", "/v1/dump", planned<plan_dump>);
  table.add("POST", "/v1/restore", planned<plan_restore>);
  return table;
}

const net::RouteTable<Planner>& table() {
  static const net::RouteTable<Planner> made = make_table();
  return made;
}

}  // namespace

Step plan_request(net::HttpRequest request, ShardNumber shards) {
  // Answers that are put together need their bodies; whoever sends the answer leaves it out.
  if (request.method == "HEAD") request.method = "GET";
  const auto match = table().find(request.method, request.target);
  if (!match || match->handler == nullptr) return to_shard(std::move(request), 0);
  return (*match->handler)(std::move(request), match->parameters, shards);
}

bool is_of_node(const net::HttpRequest& request) {
  return !table().find(request.method, request.target);
}

}  // namespace detent::gateway

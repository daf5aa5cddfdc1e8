#include "delivery/webhook_request.h"

#include <string>
#include <string_view>

#include "base/wall_time.h"
#include "task/webhook.h"

namespace detent {

std::string webhook_id(TaskId id) { return "task_" + to_string(id); }

net::HttpRequest make_webhook_request(const LeasedTask& leased, const WebhookKeys& keys,
                                      std::chrono::sys_seconds now) {
  const Task& task = leased.task;
  const std::string id = webhook_id(task.id);
  const bool is_json = task.payload.kind == Payload::Kind::json;
  net::HttpRequest request{.method = "POST", .target = "", .headers = {}, .body = ""};
  request.body = task.payload.data;
  request.headers = {
      {"content-type", is_json ? "application/json" : "application/octet-stream"},
      {"user-agent", "Detent"},
      {"webhook-id", id},
      {"webhook-timestamp", std::to_string(now.time_since_epoch().count())},
      {"webhook-signature", sign_webhook(keys, {.id = id, .sent = now, .body = request.body})},
      {"detent-queue", task.queue},
      {"detent-attempt", std::to_string(leased.attempt)},
      {"detent-due-at", format_rfc3339(task.due_at)},
  };
  for (const TaskHeader& header : task.headers) {
    if (is_delivery_header(header.name)) continue;
    request.headers.emplace_back(header.name, header.value);
  }
  return request;
}

}  // namespace detent

#include "protocol/json/request_renderer.h"

#include <variant>

#include "base/wall_time.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/rule_writer.h"
#include "protocol/json/webhook_json.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

void write_due(JsonWriter& writer, const Due& due) {
  if (const milliseconds* delay = std::get_if<milliseconds>(&due)) {
    writer.name("delay_ms").number(delay->count());
  } else {
    writer.name("due_at").string(format_rfc3339(std::get<WallTime>(due)));
  }
}

void write_schedule(JsonWriter& writer, const ScheduleRequest& request) {
  writer.begin_object();
  writer.name("queue").string(request.queue);
  write_payload(writer, request.payload);
  if (request.due != Due{milliseconds{0}}) write_due(writer, request.due);
  write_rules(writer, request.rules);
  if (!request.key.empty()) writer.name("key").string(request.key);
  write_webhook(writer, request.webhook, request.headers);
  writer.end_object();
}

void write_leases(JsonWriter& writer, std::span<const std::string> leases) {
  writer.name("leases").begin_array();
  for (const std::string& lease : leases) writer.string(lease);
  writer.end_array();
}

void write_names(JsonWriter& writer, const TaskNames& tasks) {
  if (tasks.keys.empty()) {
    writer.name("ids").begin_array();
    for (const std::optional<TaskId>& id : tasks.ids) writer.string(to_string(id.value()));
  } else {
    writer.name("queue").string(tasks.queue);
    writer.name("keys").begin_array();
    for (const std::string& key : tasks.keys) writer.string(key);
  }
  writer.end_array();
}

}  // namespace

std::string render_schedule(const ScheduleRequest& request) {
  std::string body;
  JsonWriter writer(body);
  write_schedule(writer, request);
  return body;
}

std::string render_schedule_batch(std::span<const ScheduleRequest> requests) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_array();
  for (const ScheduleRequest& request : requests) write_schedule(writer, request);
  writer.end_array();
  return body;
}

std::string render_lease(const LeaseCall& call) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("max").number(call.lease.max);
  writer.name("wait_ms").number(call.wait.count());
  if (call.lease.visibility_timeout) {
    writer.name("visibility_timeout_ms").number(call.lease.visibility_timeout->count());
  }
  if (!call.lease.worker.empty()) writer.name("worker").string(call.lease.worker);
  writer.end_object();
  return body;
}

std::string render_complete(std::span<const std::string> leases) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_leases(writer, leases);
  writer.end_object();
  return body;
}

std::string render_fail(std::span<const std::string> leases, const Failure& failure) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_leases(writer, leases);
  if (failure.delay) writer.name("delay_ms").number(failure.delay->count());
  if (!failure.error.empty()) writer.name("error").string(failure.error);
  writer.end_object();
  return body;
}

std::string render_edit(const TaskEdit& edit) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  if (edit.due) write_due(writer, *edit.due);
  if (edit.priority) writer.name("priority").number(*edit.priority);
  if (edit.payload) write_payload(writer, *edit.payload);
  if (edit.webhook) writer.name("webhook").string_or_null(*edit.webhook);
  if (edit.headers && edit.headers->empty()) writer.name("headers").null();
  if (edit.headers) write_headers(writer, *edit.headers);
  writer.end_object();
  return body;
}

std::string render_cancel_batch(const TaskNames& tasks) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_names(writer, tasks);
  writer.end_object();
  return body;
}

std::string render_move_batch(const MoveCall& call) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_names(writer, call.tasks);
  write_due(writer, call.due);
  writer.end_object();
  return body;
}

std::string render_extend(std::span<const std::string> leases, milliseconds by) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_leases(writer, leases);
  writer.name("by_ms").number(by.count());
  writer.end_object();
  return body;
}

std::string render_release(std::span<const std::string> leases, const Release& release) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_leases(writer, leases);
  if (release.delay) writer.name("delay_ms").number(release.delay->count());
  if (release.priority) writer.name("priority").number(*release.priority);
  writer.end_object();
  return body;
}

}  // namespace detent::json

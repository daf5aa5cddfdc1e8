#include "protocol/json/dump_renderer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/utf8.h"
#include "base/wall_time.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/lateness_json.h"
#include "protocol/json/problem.h"
#include "protocol/json/schedule_renderer.h"
#include "protocol/json/webhook_json.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = utf8_character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

template <class Number>
void write_if_set(JsonWriter& writer, std::string_view name, const std::optional<Number>& value) {
  if (value) writer.name(name).number(*value);
}

void write_if_set(JsonWriter& writer, std::string_view name,
                  const std::optional<milliseconds>& value) {
  if (value) writer.name(name).number(value->count());
}

void write_if_set(JsonWriter& writer, const std::optional<Backoff>& backoff) {
  if (!backoff) return;
  writer.name("backoff").begin_object();
  writer.name("initial_ms").number(backoff->initial.count());
  writer.name("max_ms").number(backoff->max.count());
  writer.end_object();
}

/// Writes a text if it is not empty. A text that is not valid UTF-8 would change in a JSON string,
/// so it is written as base64 under another name.
void write_if_any(JsonWriter& writer, std::string_view name, std::string_view base64_name,
                  std::string_view text) {
  if (text.empty()) return;
  if (is_utf8(text)) {
    writer.name(name).string(text);
  } else {
    writer.name(base64_name).base64(text);
  }
}

/// The number of nested arrays and objects at the deepest place of a JSON text.
int depth_of(std::string_view json) noexcept {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (c == '\\') ++i;  // skip the escaped character; a backslash occurs only in strings
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

/// True if a payload can be part of the line as it was sent. It must have no line breaks, and its
/// nesting plus the two objects of the line must not exceed the depth limit of the reader.
bool fits_in_line(std::string_view json) noexcept {
  return json.find_first_of("\r\n") == std::string_view::npos &&
         depth_of(json) + 2 <= kMaxJsonDepth;
}

/// Writes a payload. JSON that does not fit into the line is written as a quoted string.
void write_payload_in_line(JsonWriter& writer, const Payload& payload) {
  if (payload.kind == Payload::Kind::bytes) {
    writer.name("payload_base64").base64(payload.data);
  } else if (fits_in_line(payload.data)) {
    writer.name("payload").raw(payload.data);
  } else {
    writer.name("payload_text").string(payload.data);
  }
}

void write_attempt(JsonWriter& writer, const Attempt& attempt) {
  writer.begin_object();
  writer.name("started_at").string(format_rfc3339(attempt.started_at));
  writer.name("ended_at").string(format_rfc3339(attempt.ended_at));
  write_if_any(writer, "worker", "worker_base64", attempt.worker);
  write_if_any(writer, "error", "error_base64", attempt.error);
  write_late(writer, attempt.late);
  writer.end_object();
}

void write(JsonWriter& writer, const DumpedQueue& line) {
  const QueueSettings& settings = line.settings;
  writer.name("queue").begin_object();
  writer.name("queue").string(line.queue);
  writer.name("paused").raw(settings.paused ? "true" : "false");
  write_if_set(writer, "max_attempts", settings.max_attempts);
  write_if_set(writer, "visibility_timeout_ms", settings.visibility_timeout);
  write_if_set(writer, settings.backoff);
  writer.name("retention_ms").number(settings.retention.count());
  writer.name("key_retention_ms").number(settings.key_retention.count());
  write_if_set(writer, "max_tasks", settings.max_tasks);
  write_if_set(writer, "max_bytes", settings.max_bytes);
  write_if_set(writer, "rate", settings.rate);
  write_if_set(writer, "concurrency", settings.concurrency);
  if (settings.webhook) {
    writer.name("webhook");
    write_queue_webhook(writer, *settings.webhook);
  }
  if (settings.partitions > 1) writer.name("partitions").number(settings.partitions);
  writer.end_object();
}

void write(JsonWriter& writer, const Task& task) {
  writer.name("task").begin_object();
  writer.name("id").string(to_string(task.id));
  writer.name("queue").string(task.queue);
  writer.name("state").string(task.standing == Standing::dead ? "dead" : "scheduled");
  writer.name("due_at").string(format_rfc3339(task.due_at));
  writer.name("created_at").string(format_rfc3339(task.created_at));
  writer.name("priority").number(task.rules.priority);
  write_if_set(writer, "max_attempts", task.rules.max_attempts);
  write_if_set(writer, "visibility_timeout_ms", task.rules.visibility_timeout);
  write_if_set(writer, task.rules.backoff);
  writer.name("attempts").number(task.attempts);
  if (!task.key.empty()) writer.name("key").string(task.key);
  write_webhook(writer, task.webhook, task.headers);
  if (!task.history.empty()) {
    writer.name("history").begin_array();
    for (const Attempt& attempt : task.history) write_attempt(writer, attempt);
    writer.end_array();
  }
  write_payload_in_line(writer, task.payload);
  writer.end_object();
}

void write(JsonWriter& writer, const DamagedTask& line) {
  writer.name("damaged").string(to_string(line.id));
}

void write(JsonWriter& writer, const ScheduleRecord& record) {
  writer.name("schedule").begin_object();
  write_schedule_record(writer, record);
  write_payload_in_line(writer, record.schedule.payload);
  writer.end_object();
}

void write_counts(JsonWriter& writer, const LineCounts& counts) {
  writer.name("queues").number(counts.queues);
  writer.name("tasks").number(counts.tasks);
  writer.name("schedules").number(counts.schedules);
  writer.name("damaged_tasks").number(counts.damaged);
}

void write(JsonWriter& writer, const DumpNext& line) {
  // A server without tasks has no id after which the next page could begin.
  writer.name("next");
  if (line.after == TaskId{}) {
    writer.null();
  } else {
    writer.string(to_string(line.after));
  }
  if (!line.schedule.empty()) writer.name("next_schedule").string(line.schedule);
  write_counts(writer, line.counts);
}

void write(JsonWriter& writer, const DumpEnd& line) {
  writer.name("end").raw("true");
  write_counts(writer, line.counts);
  if (line.external > 0) writer.name("external").number(line.external);
}

}  // namespace

void append_dump_line(std::string& out, const DumpLine& line) {
  JsonWriter writer(out);
  writer.begin_object();
  std::visit([&writer](const auto& some) { write(writer, some); }, line);
  writer.end_object();
  out.push_back('\n');
}

std::string render_restored(const RestoreAnswer& answer) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("restored").number(answer.restored);
  writer.name("there").number(answer.there);
  writer.name("queues").number(answer.queues);
  writer.name("schedules").number(answer.schedules);
  writer.name("schedules_there").number(answer.schedules_there);
  writer.name("errors").begin_array();
  for (const RestoreAnswer::LineError& error : answer.errors) {
    writer.begin_object();
    writer.name("line").number(error.line);
    writer.name("problem");
    write_problem(writer, error.error);
    writer.end_object();
  }
  writer.end_array().end_object();
  return body;
}

}  // namespace detent::json

#include "protocol/json/queue_renderer.h"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/json/webhook_json.h"
#include "task/sink_name.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kQueueBytes = 400;  // the approximate size of a queue in an answer

void write_value(JsonWriter& writer, bool value) { writer.raw(value ? "true" : "false"); }

template <std::integral Number>
void write_value(JsonWriter& writer, Number value) {
  writer.number(value);
}

void write_value(JsonWriter& writer, milliseconds value) { writer.number(value.count()); }

void write_value(JsonWriter& writer, const Backoff& value) {
  writer.begin_object();
  writer.name("initial_ms").number(value.initial.count());
  writer.name("max_ms").number(value.max.count());
  writer.end_object();
}

void write_value(JsonWriter& writer, const std::string& value) { writer.string(value); }

void write_value(JsonWriter& writer, const QueueWebhook& value) {
  write_queue_webhook(writer, value);
}

template <class T>
void write_value(JsonWriter& writer, const std::optional<T>& value) {
  if (value) {
    write_value(writer, *value);
  } else {
    writer.null();
  }
}

/// Writes a setting if the patch changes it.
template <class T>
void write_change(JsonWriter& writer, std::string_view name, const std::optional<T>& change) {
  if (!change) return;
  writer.name(name);
  write_value(writer, *change);
}

void write_patch(JsonWriter& writer, const QueuePatch& patch) {
  writer.begin_object();
  write_change(writer, "paused", patch.paused);
  write_change(writer, "max_attempts", patch.max_attempts);
  write_change(writer, "visibility_timeout_ms", patch.visibility_timeout);
  write_change(writer, "backoff", patch.backoff);
  write_change(writer, "retention_ms", patch.retention);
  write_change(writer, "key_retention_ms", patch.key_retention);
  write_change(writer, "max_tasks", patch.max_tasks);
  write_change(writer, "max_bytes", patch.max_bytes);
  write_change(writer, "rate", patch.rate);
  write_change(writer, "concurrency", patch.concurrency);
  write_change(writer, "webhook", patch.webhook);
  write_change(writer, "sink", patch.sink);
  write_change(writer, "partitions", patch.partitions);
  writer.end_object();
}

/// The patch that turns any settings into `settings`. The keys of a webhook are hidden.
QueuePatch patch_to(const QueueSettings& settings) {
  std::optional<QueueWebhook> webhook = settings.webhook;
  std::optional<std::string> sink;
  if (webhook && !sink_of(webhook->url).empty()) {
    sink = sink_of(webhook->url);
    webhook.reset();
  }
  if (webhook) webhook = redacted(*std::move(webhook));
  return {.paused = settings.paused,
          .max_attempts = std::make_optional(settings.max_attempts),
          .visibility_timeout = std::make_optional(settings.visibility_timeout),
          .backoff = std::make_optional(settings.backoff),
          .retention = settings.retention,
          .key_retention = settings.key_retention,
          .max_tasks = std::make_optional(settings.max_tasks),
          .max_bytes = std::make_optional(settings.max_bytes),
          .rate = std::make_optional(settings.rate),
          .concurrency = std::make_optional(settings.concurrency),
          .webhook = std::make_optional(std::move(webhook)),
          .sink = std::make_optional(std::move(sink)),
          .partitions = settings.partitions};
}

void write_queue(JsonWriter& writer, const QueueView& view) {
  writer.begin_object();
  write_queue_stats(writer, view.stats);
  writer.name("bytes").number(view.bytes);
  writer.name("settings");
  write_patch(writer, patch_to(view.settings));
  writer.end_object();
}

}  // namespace

std::string render_queue(const QueueView& view) {
  std::string body;
  JsonWriter writer(body);
  write_queue(writer, view);
  return body;
}

std::string render_queues(std::span<const QueueView> views) {
  std::string body;
  body.reserve(views.size() * kQueueBytes);
  JsonWriter writer(body);
  writer.begin_object().name("queues").begin_array();
  for (const QueueView& view : views) write_queue(writer, view);
  writer.end_array().end_object();
  return body;
}

std::string render_removed_queue(std::string_view name) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("queue").string(name).name("removed").raw("true").end_object();
  return body;
}

std::string render_count(std::uint64_t count) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("count").number(count).end_object();
  return body;
}

void write_task_counts(JsonWriter& writer, const QueueStats& all) {
  writer.begin_object();
  writer.name("scheduled").number(all.scheduled);
  writer.name("ready").number(all.ready);
  writer.name("leased").number(all.leased);
  writer.name("dead").number(all.dead);
  writer.end_object();
}

void write_queue_stats(JsonWriter& writer, const QueueStats& stats) {
  writer.name("queue").string(stats.queue);
  writer.name("scheduled").number(stats.scheduled);
  writer.name("ready").number(stats.ready);
  writer.name("leased").number(stats.leased);
  writer.name("dead").number(stats.dead);
  writer.name("oldest_ready_age_ms");
  write_value(writer, stats.oldest_ready_age);
  writer.name("last_handed_out_age_ms");
  write_value(writer, stats.last_handed_out_age);
}

std::string render_queue_patch(const QueuePatch& patch) {
  std::string body;
  JsonWriter writer(body);
  write_patch(writer, patch);
  return body;
}

}  // namespace detent::json

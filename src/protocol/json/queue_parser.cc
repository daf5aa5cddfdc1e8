#include "protocol/json/queue_parser.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "protocol/json/json_fields.h"
#include "protocol/json/read_answer.h"
#include "protocol/json/rule_fields.h"
#include "protocol/json/webhook_json.h"
#include "task/sink_name.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

constexpr IntegerRange kAnyUint64{.max = std::numeric_limits<std::uint64_t>::max()};

struct PatchFields {
  JsonField paused{"paused"};
  JsonField max_attempts{"max_attempts"};
  DurationFields visibility_timeout{{"visibility_timeout"}, {"visibility_timeout_ms"}};
  JsonField backoff{"backoff"};
  DurationFields retention{{"retention"}, {"retention_ms"}};
  DurationFields key_retention{{"key_retention"}, {"key_retention_ms"}};
  JsonField max_tasks{"max_tasks"};
  JsonField max_bytes{"max_bytes"};
  JsonField rate{"rate"};
  JsonField concurrency{"concurrency"};
  JsonField webhook{"webhook"};
  JsonField sink{"sink"};
  JsonField partitions{"partitions"};

  std::array<JsonField*, 16> all() {
    return {&paused,
            &max_attempts,
            &visibility_timeout.text,
            &visibility_timeout.milliseconds,
            &backoff,
            &retention.text,
            &retention.milliseconds,
            &key_retention.text,
            &key_retention.milliseconds,
            &max_tasks,
            &max_bytes,
            &rate,
            &concurrency,
            &webhook,
            &sink,
            &partitions};
  }
};

Result<bool> read_boolean(const JsonField& field) {
  if (!field.is(JsonKind::boolean)) return wrong_field(field, "true or false");
  return field.text == "true";
}

Result<std::uint64_t> read_quota(const JsonField& field) { return read_integer(field, kAnyUint64); }

Result<std::uint32_t> read_rate(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t value, read_integer(field, {.min = 1, .max = kMaxRate}));
  return static_cast<std::uint32_t>(value);
}

Result<std::uint32_t> read_concurrency(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t value,
                   read_integer(field, {.min = 1, .max = kMaxConcurrency}));
  return static_cast<std::uint32_t>(value);
}

Result<std::uint32_t> read_partitions(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t value,
                   read_integer(field, {.min = 1, .max = kMaxPartitions}));
  return static_cast<std::uint32_t>(value);
}

/// Sets `change` from a member: `read` reads the value, and null means `unset`. A missing member
/// leaves `change` empty.
template <class T, class Read>
Result<void> take_value(const JsonField& field, std::optional<T>& change, const T& unset,
                        Read read) {
  if (field.is(JsonKind::null)) {
    change.emplace(unset);
  } else if (field.given()) {
    ASSIGN_OR_RETURN(const auto value, read(field));
    change.emplace(value);
  }
  return ok();
}

template <class T>
Result<void> take_duration(const DurationFields& fields, std::optional<T>& change, const T& unset,
                           milliseconds longest) {
  const bool is_one = fields.text.given() != fields.milliseconds.given();
  if (is_one && (fields.text.is(JsonKind::null) || fields.milliseconds.is(JsonKind::null))) {
    change.emplace(unset);
    return ok();
  }
  ASSIGN_OR_RETURN(const std::optional<milliseconds> duration, read_duration(fields, longest));
  if (duration) change.emplace(*duration);
  return ok();
}

Result<QueuePatch> read_patch(const PatchFields& fields) {
  const QueueSettings unset;
  QueuePatch patch;
  TRY(take_value(fields.paused, patch.paused, unset.paused, read_boolean));
  TRY(take_value(fields.max_attempts, patch.max_attempts, unset.max_attempts, read_max_attempts));
  TRY(take_duration(fields.visibility_timeout, patch.visibility_timeout, unset.visibility_timeout,
                    kMaxVisibilityTimeout));
  TRY(take_value(fields.backoff, patch.backoff, unset.backoff, read_backoff));
  TRY(take_duration(fields.retention, patch.retention, unset.retention, kMaxRetention));
  TRY(take_duration(fields.key_retention, patch.key_retention, unset.key_retention, kMaxRetention));
  TRY(take_value(fields.max_tasks, patch.max_tasks, unset.max_tasks, read_quota));
  TRY(take_value(fields.max_bytes, patch.max_bytes, unset.max_bytes, read_quota));
  TRY(take_value(fields.rate, patch.rate, unset.rate, read_rate));
  TRY(take_value(fields.concurrency, patch.concurrency, unset.concurrency, read_concurrency));
  TRY(take_value(fields.webhook, patch.webhook, unset.webhook, read_queue_webhook));
  TRY(take_value(fields.sink, patch.sink, std::optional<std::string>(), read_string));
  TRY(take_value(fields.partitions, patch.partitions, unset.partitions, read_partitions));
  return patch;
}

Result<QueueView> read_queue(std::string_view json) {
  QueueView view;
  JsonField bytes{"bytes"};
  JsonField settings{"settings"};
  const std::array<JsonField*, 2> fields{&bytes, &settings};
  TRY(take_fields(json, fields, UnknownFields::skip));
  ASSIGN_OR_RETURN(view.stats, read_queue_stats(json));
  ASSIGN_OR_RETURN(view.bytes, read_integer(bytes, kAnyUint64));
  if (!settings.given()) return missing_field(settings);
  PatchFields members;
  TRY(take_fields(settings.text, members.all(), UnknownFields::skip));
  ASSIGN_OR_RETURN(const QueuePatch patch, read_patch(members));
  view.settings = patch.applied_to({});
  return view;
}

Result<std::vector<QueueView>> read_queues(std::string_view json) {
  ASSIGN_OR_RETURN(const auto elements, take_list(json, "queues"));
  std::vector<QueueView> queues;
  queues.reserve(elements.size());
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(QueueView queue, read_queue(element));
    queues.push_back(std::move(queue));
  }
  return queues;
}

Result<std::uint64_t> read_count(std::string_view json) {
  JsonField count{"count"};
  const std::array<JsonField*, 1> fields{&count};
  TRY(take_fields(json, fields, UnknownFields::skip));
  return read_integer(count, kAnyUint64);
}

}  // namespace

QueueSettings QueuePatch::applied_to(QueueSettings settings) const {
  settings.paused = paused.value_or(settings.paused);
  settings.max_attempts = max_attempts.value_or(settings.max_attempts);
  settings.visibility_timeout = visibility_timeout.value_or(settings.visibility_timeout);
  settings.backoff = backoff.value_or(settings.backoff);
  settings.retention = retention.value_or(settings.retention);
  settings.key_retention = key_retention.value_or(settings.key_retention);
  settings.max_tasks = max_tasks.value_or(settings.max_tasks);
  settings.max_bytes = max_bytes.value_or(settings.max_bytes);
  settings.rate = rate.value_or(settings.rate);
  settings.concurrency = concurrency.value_or(settings.concurrency);
  settings.partitions = partitions.value_or(settings.partitions);
  const bool has_sink = settings.webhook && !sink_of(settings.webhook->url).empty();
  // `"webhook":null` removes only an HTTP webhook, and `"sink":null` only a sink. A client that
  // does not know sinks can therefore not remove one by mistake.
  if (webhook && (*webhook || !has_sink)) settings.webhook = *webhook;
  if (sink && *sink) {
    settings.webhook = QueueWebhook{.url = std::string(kSinkScheme) + **sink};
  } else if (sink && has_sink && !(webhook && *webhook)) {
    settings.webhook.reset();
  }
  return settings;
}

Result<QueuePatch> parse_queue_patch(std::string_view body) {
  PatchFields fields;
  TRY(take_fields(body, fields.all(), UnknownFields::refuse));
  ASSIGN_OR_RETURN(QueuePatch patch, read_patch(fields));
  const bool has_webhook = patch.webhook && *patch.webhook;
  if (has_webhook && (*patch.webhook)->url.starts_with(kSinkScheme)) {
    return Error{ErrorCode::invalid_argument, "use the field sink for a sink, not a URL",
                 "webhook"};
  }
  if (has_webhook && patch.sink && *patch.sink) {
    return Error{ErrorCode::invalid_argument, "a queue has a webhook or a sink, not both", "sink"};
  }
  return patch;
}

Result<void> parse_nothing(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return ok();
  return take_fields(body, {}, UnknownFields::refuse);
}

Result<QueueView> parse_queue(std::string_view body) { return as_answer(read_queue(body)); }

Result<std::vector<QueueView>> parse_queues(std::string_view body) {
  return as_answer(read_queues(body));
}

Result<std::uint64_t> parse_count(std::string_view body) { return as_answer(read_count(body)); }

Result<QueueStats> read_queue_stats(std::string_view json) {
  QueueStats stats;
  JsonField name{"queue"};
  JsonField scheduled{"scheduled"};
  JsonField ready{"ready"};
  JsonField leased{"leased"};
  JsonField dead{"dead"};
  JsonField age{"oldest_ready_age_ms"};
  JsonField handed_out{"last_handed_out_age_ms"};
  const std::array<JsonField*, 7> fields{&name, &scheduled, &ready,     &leased,
                                         &dead, &age,       &handed_out};
  TRY(take_fields(json, fields, UnknownFields::skip));
  ASSIGN_OR_RETURN(stats.queue, read_string(name));
  ASSIGN_OR_RETURN(stats.scheduled, read_integer(scheduled, kAnyUint64));
  ASSIGN_OR_RETURN(stats.ready, read_integer(ready, kAnyUint64));
  ASSIGN_OR_RETURN(stats.leased, read_integer(leased, kAnyUint64));
  ASSIGN_OR_RETURN(stats.dead, read_integer(dead, kAnyUint64));
  if (age.given() && !age.is(JsonKind::null)) {
    ASSIGN_OR_RETURN(const std::uint64_t age_ms, read_integer(age, {}));
    stats.oldest_ready_age = milliseconds{age_ms};
  }
  if (handed_out.given() && !handed_out.is(JsonKind::null)) {
    ASSIGN_OR_RETURN(const std::uint64_t age_ms, read_integer(handed_out, {}));
    stats.last_handed_out_age = milliseconds{age_ms};
  }
  return stats;
}

}  // namespace detent::json

// Writes and reads the bodies about queues. Requests are read strictly, as in request_codec.h. In
// answers, fields that a newer server adds are skipped, as in answer_codec.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/queue_settings.h"
#include "task/task_stats.h"

namespace detent::json {

/// New values for some settings of a queue. An empty optional leaves the setting unchanged. If the
/// new value itself is an empty optional, the setting goes back to its default.
struct QueuePatch {
  template <class T>
  using NewValue = std::optional<T>;

  NewValue<bool> paused;
  NewValue<std::optional<std::uint32_t>> max_attempts;
  NewValue<std::optional<std::chrono::milliseconds>> visibility_timeout;
  NewValue<std::optional<Backoff>> backoff;
  NewValue<std::chrono::milliseconds> retention;
  NewValue<std::chrono::milliseconds> key_retention;
  NewValue<std::optional<std::uint64_t>> max_tasks;
  NewValue<std::optional<std::uint64_t>> max_bytes;
  NewValue<std::optional<std::uint32_t>> rate;
  NewValue<std::optional<std::uint32_t>> concurrency;
  NewValue<std::optional<QueueWebhook>> webhook;  // an HTTP webhook
  NewValue<std::optional<std::string>> sink;      // a sink's name; excludes a webhook
  NewValue<std::uint32_t> partitions;

  /// Returns `settings` with these new values.
  QueueSettings applied_to(QueueSettings settings) const;

  friend bool operator==(const QueuePatch&, const QueuePatch&) = default;
};

/// The body of `PATCH /v1/queues/{queue}`. A member that is null resets its setting to the default.
/// Checks that each value fits its type; validate() checks the limits of most settings.
Result<QueuePatch> parse_queue_patch(std::string_view body);
std::string render_queue_patch(const QueuePatch& patch);

/// Reads the body of a request that takes no parameters. It must be empty or an object without
/// members.
Result<void> parse_nothing(std::string_view body);

/// The answer of `GET /v1/queues/{queue}` and of every call that changes a queue: counts, bytes and
/// all settings. A setting without a value is null. The member `settings` is a valid body for
/// `PATCH /v1/queues/{queue}`.
std::string render_queue(const QueueView& view);
Result<QueueView> parse_queue(std::string_view body);

/// The answer of `GET /v1/queues`. `cursor` is that of a page, "" on the last page; no value: the
/// answer is no page.
std::string render_queues(std::span<const QueueView> views,
                          const std::optional<std::string>& cursor = {});
Result<std::vector<QueueView>> parse_queues(std::string_view body);
/// A page of `GET /v1/queues`.
struct QueueListAnswer {
  std::vector<QueueView> queues;
  std::string cursor;  // of the next page; "" on the last page
};
Result<QueueListAnswer> parse_queue_page(std::string_view body);

/// The answer of `DELETE /v1/queues/{queue}`.
std::string render_removed_queue(std::string_view name);

/// The answer of `POST /v1/queues/{queue}/purge` and `/redrive`: the number of affected tasks.
std::string render_count(std::uint64_t count);
Result<std::uint64_t> parse_count(std::string_view body);

}  // namespace detent::json

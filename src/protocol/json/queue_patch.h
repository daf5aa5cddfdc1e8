// New values for some settings of a queue. The other settings stay as they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "task/queue_settings.h"

namespace detent::json {

/// The new value of each setting. An empty optional leaves the setting unchanged. If the new value
/// itself is an empty optional, the setting goes back to its default.
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

}  // namespace detent::json

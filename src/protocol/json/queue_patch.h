// New values for some settings of a queue; the others stay as they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "task/queue_settings.h"

namespace detent::json {

/// Of each setting: nothing when it stays, else its new value. Where that is nothing itself, the
/// setting goes back to its default.
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
  NewValue<std::optional<QueueWebhook>> webhook;  // of HTTP
  NewValue<std::optional<std::string>> sink;      // its name; of the two a queue has one
  NewValue<std::uint32_t> partitions;

  /// The settings with these values in them.
  QueueSettings applied_to(QueueSettings settings) const;

  friend bool operator==(const QueuePatch&, const QueuePatch&) = default;
};

}  // namespace detent::json

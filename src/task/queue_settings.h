// The settings of a queue. Durable. docs/reference/queues.md describes them for users.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "task/task.h"

namespace detent {

/// A setting applies to a task that does not set it. If neither sets it, the default of retry.h
/// applies.
struct QueueSettings {
  /// No task is handed out. Tasks are still accepted and become ready.
  bool paused = false;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::chrono::milliseconds> visibility_timeout;
  std::optional<Backoff> backoff;
  /// How long a completed or cancelled task is kept, with its history. 0: it is removed
  /// immediately.
  std::chrono::milliseconds retention{0};
  /// After a task has ended, its key still names it for this long.
  std::chrono::milliseconds key_retention{600'000};
  /// The most tasks, and bytes of payload, that the queue may hold. Ended tasks do not count. Above
  /// this, schedule() is refused.
  std::optional<std::uint64_t> max_tasks;
  std::optional<std::uint64_t> max_bytes;
  /// The most tasks handed out per second, and the most tasks leased at one time.
  std::optional<std::uint32_t> rate;
  std::optional<std::uint32_t> concurrency;
  /// Where tasks are delivered if they have no webhook of their own. Workers cannot lease them.
  std::optional<QueueWebhook> webhook;
  /// In a cluster, the number of partitions. Each has its own order, limits and owner. It is set
  /// when the queue is created and never changes.
  std::uint32_t partitions = 1;

  friend bool operator==(const QueueSettings&, const QueueSettings&) = default;
};

/// Rejects invalid settings, with the name of the field.
Result<void> validate(const QueueSettings& settings);

}  // namespace detent

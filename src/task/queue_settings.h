// The settings of a queue. Durable. docs/reference/queues.md describes them for users.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "task/task.h"

namespace detent {

/// A setting here applies if the task does not set it. If both leave it out, retry.h has a default.
struct QueueSettings {
  /// No task is handed out. Tasks are still accepted and become ready.
  bool paused = false;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::chrono::milliseconds> visibility_timeout;
  std::optional<Backoff> backoff;
  /// How long a task that was completed or cancelled is kept, with its history. 0: not at all.
  std::chrono::milliseconds retention{0};
  /// How long the key of a task that has ended still stands for it.
  std::chrono::milliseconds key_retention{600'000};
  /// Most tasks, and bytes of payload, that the queue may hold; tasks that are kept after their end
  /// do not count. Over it schedule() is refused.
  std::optional<std::uint64_t> max_tasks;
  std::optional<std::uint64_t> max_bytes;
  /// Most tasks handed out in a second, and most leased at a time.
  std::optional<std::uint32_t> rate;
  std::optional<std::uint32_t> concurrency;
  /// Where its tasks are delivered to that name no webhook of their own; no worker leases them.
  std::optional<QueueWebhook> webhook;
  /// In a cluster: into how many parts it is divided, each with an order, limits and an owner of
  /// its own. Decided when the queue is made.
  std::uint32_t partitions = 1;

  friend bool operator==(const QueueSettings&, const QueueSettings&) = default;
};

/// Rejects invalid settings, with the name of the field.
Result<void> validate(const QueueSettings& settings);

}  // namespace detent

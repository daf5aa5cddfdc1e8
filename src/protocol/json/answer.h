// What the server answers, as values: filled by whoever answers, read back by clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "task/lifecycle.h"
#include "task/task.h"

namespace detent::json {

/// A task that was accepted, without what the client knows already.
struct AcceptedTask {
  TaskId id;
  std::string queue;
  TaskState state = TaskState::scheduled;
  WallTime due_at{};

  friend bool operator==(const AcceptedTask&, const AcceptedTask&) = default;
};

/// A task as a worker gets it. The lease is opaque: a client hands it back as it came.
struct LeasedTaskAnswer {
  TaskId id;
  std::string lease;
  std::uint32_t attempt = 1;
  std::string queue;
  Payload payload;
  std::uint32_t priority = kDefaultPriority;
  WallTime due_at{};
  WallTime lease_until{};
  std::chrono::milliseconds lateness{0};

  friend bool operator==(const LeasedTaskAnswer&, const LeasedTaskAnswer&) = default;
};

/// Tasks of one queue by state.
struct QueueTasks {
  std::string queue;
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t dead = 0;
  std::optional<std::chrono::milliseconds> oldest_ready_age;

  friend bool operator==(const QueueTasks&, const QueueTasks&) = default;
};

/// Counts since the server started.
struct ServerCounters {
  std::uint64_t scheduled = 0;
  std::uint64_t fired = 0;
  std::uint64_t leased = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t dead = 0;
  std::uint64_t leases_expired = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t quarantined = 0;

  friend bool operator==(const ServerCounters&, const ServerCounters&) = default;
};

/// `GET /v1/stats`.
struct ServerStats {
  std::string version;
  std::chrono::milliseconds uptime{0};
  std::uint64_t loaded = 0;           // tasks in memory
  std::uint64_t waiting_workers = 0;  // long polls that wait for a task
  ServerCounters counters;
  std::vector<QueueTasks> queues;

  friend bool operator==(const ServerStats&, const ServerStats&) = default;
};

}  // namespace detent::json

// What the server answers, as values: filled by whoever answers, read back by clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "task/lateness.h"
#include "task/lifecycle.h"
#include "task/request.h"
#include "task/task.h"
#include "task/task_stats.h"

namespace detent::json {

/// A task that was accepted or moved, without what the client knows already.
struct AcceptedTask {
  TaskId id;
  std::string queue;
  TaskState state = TaskState::scheduled;
  WallTime due_at{};
  bool was_there = false;  // its key stood for it already

  friend bool operator==(const AcceptedTask&, const AcceptedTask&) = default;
};

/// Part of a list of tasks, and where it goes on; "" when it is over.
struct TaskListAnswer {
  std::vector<TaskSnapshot> tasks;
  std::string cursor;
};

/// A task as a worker gets it. The lease is opaque: a client hands it back as it came.
struct LeasedTaskAnswer {
  TaskId id;
  std::string lease;
  std::uint32_t attempt = 1;
  std::string queue;
  std::string key = {};  // empty when the task has none
  Payload payload;
  std::uint32_t priority = kDefaultPriority;
  WallTime due_at{};
  WallTime lease_until{};
  std::chrono::milliseconds lateness{0};
  TaskHeaders headers = {};

  friend bool operator==(const LeasedTaskAnswer&, const LeasedTaskAnswer&) = default;
};

/// A token for some queues gets no figure of the whole server.
enum class StatsScope : std::uint8_t { server, some_queues };

/// `GET /v1/stats`.
struct ServerStats {
  std::string version;
  std::chrono::milliseconds uptime{0};
  /// some_queues: only `all`, `queue_count` and `queues` are told; the rest is 0.
  StatsScope scope = StatsScope::server;
  std::uint64_t loaded = 0;                // tasks in memory
  std::uint64_t waiting_workers = 0;       // long polls that wait for a task
  std::uint64_t schedules = 0;             // recurring ones
  std::optional<std::uint64_t> away = {};  // tasks an external scheduler keeps, if there is one
  bool is_away_lost = false;               // it has lost changes that it had stored
  std::optional<std::uint64_t> data_free_bytes = {};  // on the disk of the data folder
  TaskCounters counters;
  /// How many tasks fired at most 1, 2, 4, … microseconds late, and more than before; the last one
  /// may have no bound. Zeros at the end are left out.
  std::vector<std::uint64_t> lateness = {};
  LateCounts late = {};
  QueueStats all = {};  // of all queues, without name and age
  std::uint64_t queue_count = 0;
  std::vector<QueueStats> queues;  // those asked for

  friend bool operator==(const ServerStats&, const ServerStats&) = default;
};

}  // namespace detent::json

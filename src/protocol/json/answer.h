// Answers of the server as values. The server fills them; clients read them back.
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

/// A task that was accepted or moved. It leaves out what the client already knows, such as the
/// payload.
struct AcceptedTask {
  TaskId id;
  std::string queue;
  TaskState state = TaskState::scheduled;
  WallTime due_at{};
  bool was_there = false;  // a task with this key existed before, and no new one was created

  friend bool operator==(const AcceptedTask&, const AcceptedTask&) = default;
};

/// A page of a list of tasks. `cursor` is the start of the next page; it is "" on the last page.
struct TaskListAnswer {
  std::vector<TaskSnapshot> tasks;
  std::string cursor;
};

/// A task as a worker receives it. The lease is an opaque text: a client sends it back unchanged.
struct LeasedTaskAnswer {
  TaskId id;
  std::string lease;
  std::uint32_t attempt = 1;
  std::string queue;
  std::string key = {};  // empty if the task has none
  Payload payload;
  std::uint32_t priority = kDefaultPriority;
  WallTime due_at{};
  WallTime lease_until{};
  std::chrono::milliseconds lateness{0};
  TaskHeaders headers = {};

  friend bool operator==(const LeasedTaskAnswer&, const LeasedTaskAnswer&) = default;
};

/// The part of the server that statistics cover. An access token for some queues gets no figures of
/// the whole server.
enum class StatsScope : std::uint8_t { server, some_queues };

/// The answer of `GET /v1/stats`.
struct ServerStats {
  std::string version;
  std::chrono::milliseconds uptime{0};
  /// With some_queues, only `version`, `uptime`, `all`, `queue_count` and `queues` are sent. The
  /// other figures keep their default values.
  StatsScope scope = StatsScope::server;
  std::uint64_t loaded = 0;                // tasks in memory
  std::uint64_t waiting_workers = 0;       // long polls that wait for a task
  std::uint64_t schedules = 0;             // recurring schedules
  std::optional<std::uint64_t> away = {};  // far tasks; none without an external scheduler
  bool is_away_lost = false;               // the external scheduler has lost stored changes
  std::optional<std::uint64_t> data_free_bytes = {};  // free bytes on the disk of the data folder
  std::optional<std::uint64_t> data_min_free_bytes = {};  // with less, new tasks are refused
  bool refuses_tasks = false;  // new tasks are refused, because the disk is nearly full
  TaskCounters counters;
  /// Counts of fired tasks by lateness: at most 1, 2, 4, … microseconds, each without the tasks of
  /// the previous bound. The last count may have no bound. Zeros at the end are left out.
  std::vector<std::uint64_t> lateness = {};
  LateCounts late = {};
  QueueStats all = {};  // sums of all queues, without name and age
  std::uint64_t queue_count = 0;
  std::vector<QueueStats> queues;  // the queues that the request asked for

  friend bool operator==(const ServerStats&, const ServerStats&) = default;
};

}  // namespace detent::json

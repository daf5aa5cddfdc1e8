// The numbers of tasks in each state, and the counts of their events. The engine counts them, and
// every protocol shows them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "task/queue_settings.h"

namespace detent {

/// The tasks of one queue by state. An overdue task that is not loaded yet, for example at a start
/// with a long backlog, counts as scheduled.
struct QueueStats {
  std::string queue;
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t dead = 0;
  std::optional<std::chrono::milliseconds> oldest_ready_age;  // of the most urgent ready task
  /// The time since the last task was handed out. Empty if no task was handed out since the start.
  std::optional<std::chrono::milliseconds> last_handed_out_age = {};

  friend bool operator==(const QueueStats&, const QueueStats&) = default;
};

/// A queue as its operator sees it.
struct QueueView {
  QueueStats stats;
  std::uint64_t bytes = 0;  // size of the payloads
  QueueSettings settings;

  friend bool operator==(const QueueView&, const QueueView&) = default;
};

/// Counts since the server started.
struct TaskCounters {
  std::uint64_t scheduled = 0;
  std::uint64_t fired = 0;  // became due, also after each retry
  std::uint64_t leased = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t dead = 0;
  std::uint64_t leases_expired = 0;
  std::uint64_t conflicts = 0;    // completions and failures with a lease that was not held
  std::uint64_t quarantined = 0;  // damaged records that were moved to the quarantine

  friend bool operator==(const TaskCounters&, const TaskCounters&) = default;
};

/// How late the tasks of a step were handed out, after their due times.
struct HandOutLateness {
  std::chrono::milliseconds mean{0};
  std::chrono::milliseconds max{0};

  friend bool operator==(const HandOutLateness&, const HandOutLateness&) = default;
};

/// The events of a queue in one step.
struct QueuePoint {
  WallTime at{};  // the end of the step
  std::chrono::milliseconds span{0};
  std::uint64_t accepted = 0;
  std::uint64_t fired = 0;
  std::uint64_t leased = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t expired = 0;  // leases
  std::uint64_t died = 0;
  std::optional<HandOutLateness> lateness = {};  // not set if no task was handed out

  friend bool operator==(const QueuePoint&, const QueuePoint&) = default;
};

/// The past events of a queue. The engine counts them (engine/queues/queue_histories.h), and `GET
/// /v1/stats/history?queue=` shows them.
struct QueueHistory {
  std::string queue;
  std::chrono::milliseconds step{0};
  WallTime since{};                     // since when the events of the queue are counted
  std::vector<QueuePoint> points = {};  // oldest first; their ends are multiples of the step

  friend bool operator==(const QueueHistory&, const QueueHistory&) = default;
};

}  // namespace detent

// What the engine counts, as plain values: the server turns them into metrics and /v1/stats.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace detent {

/// Tasks of one queue by state. A task that is overdue but still waits for room in memory counts
/// as scheduled.
struct QueueStats {
  std::string queue;
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t dead = 0;
  std::optional<std::chrono::milliseconds> oldest_ready_age;  // since the most urgent one was due
};

/// Counts since the engine was opened.
struct EngineCounters {
  std::uint64_t scheduled = 0;
  std::uint64_t fired = 0;  // became due; again after each retry
  std::uint64_t leased = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t dead = 0;
  std::uint64_t leases_expired = 0;
  std::uint64_t conflicts = 0;  // completions and failures with a lease no longer held
  std::uint64_t quarantined = 0;
  std::uint64_t commits = 0;          // writes to the store
  std::uint64_t committed_tasks = 0;  // tasks changed by them: the batch size is this over commits
};

struct EngineStats {
  EngineCounters counters;
  std::vector<QueueStats> queues;  // by name
  std::uint64_t loaded = 0;        // tasks held in memory
  std::uint64_t waiting_workers = 0;
  HistogramSnapshot lateness;     // fired − due
  HistogramSnapshot commit_time;  // one write to the store
};

}  // namespace detent

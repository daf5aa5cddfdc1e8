// The figures of the engine as plain values. The server turns them into metrics and /v1/stats.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "task/lateness.h"
#include "task/task_stats.h"

namespace detent {

struct EngineStats {
  std::uint64_t epoch = 0;  // the counters start at 0 in each epoch
  TaskCounters counters;
  QueueStats all;                  // sums over all queues, without name and age
  std::uint64_t queue_count = 0;   // number of all queues
  std::vector<QueueStats> queues;  // by name; only the queues that the caller asked for
  std::vector<QueueStats> oldest;  // from Engine::oldest_queues(), if the caller asked for them
  /// The counters of single queues, if the caller asked for queues. See TaskNews::by_queue().
  std::map<std::string, TaskCounters> by_queue = {};
  std::uint64_t loaded = 0;    // tasks held in memory
  std::uint64_t urgent = 0;    // ready tasks in memory, more urgent than the default priority
  std::uint64_t orphans = 0;   // tasks in memory that no step would handle again: bugs
  bool is_stopped = false;     // the store failed, and is not open again yet
  bool refuses_tasks = false;  // its intake is closed
  std::uint64_t waiting_workers = 0;
  std::uint64_t schedules = 0;        // recurring schedules
  std::uint64_t commits = 0;          // writes to the store
  std::uint64_t committed_tasks = 0;  // tasks changed by these writes
  HistogramSnapshot lateness;         // fired − due
  LateCounts late;                    // handed out − due, by cause
  HistogramSnapshot commit_time;      // one write to the store
};

/// The part of Engine::queue_detail() that is not in QueueView.
struct QueueDetail {
  std::uint64_t accepted = 0;  // tasks scheduled since the start
  std::uint64_t urgent = 0;    // ready tasks in memory, more urgent than the default priority
  std::chrono::milliseconds pause{0};
  std::chrono::milliseconds pause_left{0};
};

}  // namespace detent

// What happened in a span of time, as /v1/stats/history and the stats events show it, and the data
// of the other events.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "detent/clock.h"
#include "task/lateness.h"
#include "task/task_change.h"
#include "task/task_stats.h"

namespace detent::json {

/// Upper bounds, at most twice the value: those of a histogram's buckets.
struct Quantiles {
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p99{0};
  std::chrono::nanoseconds max{0};

  friend bool operator==(const Quantiles&, const Quantiles&) = default;
};

struct StatsPoint {
  WallTime at{};  // the end of the span
  std::chrono::milliseconds span{0};
  TaskCounters counters;  // in the span
  QueueStats tasks;       // at its end, of all queues
  std::uint64_t loaded = 0;
  std::uint64_t waiting_workers = 0;
  ByCause<std::uint64_t> late{};      // tasks handed out late, by cause
  std::optional<Quantiles> lateness;  // none: nothing fired
  std::optional<Quantiles> commit;    // none: nothing was written

  friend bool operator==(const StatsPoint&, const StatsPoint&) = default;
};

/// `recent` is of a longer span with the same end, for quantiles that do not jump.
std::string render_stats_event(const StatsPoint& point, const StatsPoint& recent);
std::string render_task_event(const TaskChange& change);
/// Without a number nobody knows how many.
std::string render_missed_event(std::optional<std::uint64_t> missed);
std::string render_history(std::chrono::milliseconds step, std::span<const StatsPoint> points);

}  // namespace detent::json

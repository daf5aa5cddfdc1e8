// One point of the statistics, for /v1/stats/history and for the `stats` events. Also writes the
// data of the other events.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "detent/clock.h"
#include "task/lateness.h"
#include "task/task_change.h"
#include "task/task_stats.h"

namespace detent::json {

/// Upper bounds of the quantiles. Each is at most twice the true value, because the values come
/// from the buckets of a histogram.
struct Quantiles {
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p99{0};
  std::chrono::nanoseconds max{0};

  friend bool operator==(const Quantiles&, const Quantiles&) = default;
};

/// The statistics of one span of time.
struct StatsPoint {
  WallTime at{};  // the end of the span
  std::chrono::milliseconds span{0};
  TaskCounters counters;  // in the span
  QueueStats tasks;       // at the end of the span, summed over all queues
  std::uint64_t loaded = 0;
  std::uint64_t waiting_workers = 0;
  ByCause<std::uint64_t> late{};      // tasks handed out late, by cause
  std::optional<Quantiles> lateness;  // not set if no task fired
  std::optional<Quantiles> commit;    // not set if there was no commit

  friend bool operator==(const StatsPoint&, const StatsPoint&) = default;
};

/// `recent` covers a longer span with the same end, so its quantiles vary less.
std::string render_stats_event(const StatsPoint& point, const StatsPoint& recent);
std::string render_task_event(const TaskChange& change);
/// `missed` is the number of lost events. Not set means unknown, which is written as null.
std::string render_missed_event(std::optional<std::uint64_t> missed);
std::string render_history(std::chrono::milliseconds step, std::span<const StatsPoint> points);
std::string render_queue_history(const QueueHistory& history);
Result<QueueHistory> parse_queue_history(std::string_view body);

}  // namespace detent::json

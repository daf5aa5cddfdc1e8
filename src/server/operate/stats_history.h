// The history of the engine's figures: every 10 s for the last hour, and every 5 min for the last
// day.
//
// A sample holds the engine's counters at one instant. The events of a span are the difference of
// the samples at its ends, so a span can cover any number of samples. Only the counts of a
// histogram are kept. A sample takes about 700 bytes; all samples together take half a megabyte.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "detent/clock.h"
#include "engine/values/engine_stats.h"
#include "protocol/json/stats_point.h"
#include "task/history_range.h"

namespace detent::server {

/// The engine's figures at an instant.
struct StatsSample {
  MonotonicTime taken_at{};
  WallTime at{};
  EngineStats stats;  // without queues
};

/// The events between two samples. If another engine was opened in between, only the events since
/// then.
json::StatsPoint difference(const StatsSample& from, const StatsSample& to);

/// Thread-compatible.
class StatsHistory {
 public:
  /// Takes the sample if the last sample is HistoryRange::kFineStep old, or slightly less.
  void add(const StatsSample& sample);

  /// The events of each step of a past range, oldest first, as far as samples exist. The last step
  /// ends with the last sample.
  std::vector<json::StatsPoint> points(const HistoryRange& range) const;

 private:
  struct Ring {
    std::chrono::milliseconds step;
    std::size_t most;
    std::deque<StatsSample> samples = {};
    void add(const StatsSample& sample);
  };
  Ring fine_{.step = HistoryRange::kFineStep,
             .most = HistoryRange::kFineSpan / HistoryRange::kFineStep + 1};
  Ring coarse_{.step = HistoryRange::kCoarseStep,
               .most = HistoryRange::kCoarseSpan / HistoryRange::kCoarseStep + 1};
};

}  // namespace detent::server

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
#include <optional>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "engine/values/engine_stats.h"
#include "protocol/json/stats_point.h"

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
  static constexpr std::chrono::seconds kFineStep{10};
  static constexpr std::chrono::hours kFineSpan{1};
  static constexpr std::chrono::minutes kCoarseStep{5};
  static constexpr std::chrono::hours kCoarseSpan{24};

  /// Takes the sample if the last sample is kFineStep old, or slightly less.
  void add(const StatsSample& sample);

  struct Range {
    std::chrono::milliseconds span{0};
    std::chrono::milliseconds step{0};
  };
  /// The range of a request, with defaults: a span of one hour, and the finest steps that are kept
  /// for the span. Errors: invalid_argument for a span above kCoarseSpan, or for a step that is
  /// longer than the span or not a multiple of the kept steps.
  static Result<Range> range_of(std::optional<std::chrono::milliseconds> span,
                                std::optional<std::chrono::milliseconds> step);
  /// The events of each step of a past range, oldest first, as far as samples exist. The last step
  /// ends with the last sample.
  std::vector<json::StatsPoint> points(const Range& range) const;

 private:
  struct Ring {
    std::chrono::milliseconds step;
    std::size_t most;
    std::deque<StatsSample> samples = {};
    void add(const StatsSample& sample);
  };
  Ring fine_{.step = kFineStep, .most = kFineSpan / kFineStep + 1};
  Ring coarse_{.step = kCoarseStep, .most = kCoarseSpan / kCoarseStep + 1};
};

}  // namespace detent::server

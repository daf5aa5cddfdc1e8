// What the engine's figures were: every 10 s for the last hour, every 5 min for the last day.
//
// A sample is what the engine counted up to an instant; what happened in a span is the difference
// of the samples at its ends, so a span may be as long as any number of them. A histogram is kept
// as its counts only. About 700 bytes a sample, half a megabyte in all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "engine/engine_stats.h"
#include "protocol/json/stats_point.h"

namespace detent::server {

/// The engine's figures at an instant.
struct StatsSample {
  MonotonicTime taken_at{};
  WallTime at{};
  EngineStats stats;  // without queues
};

/// What happened from one sample to a later one; when another engine was opened in between, what
/// happened since that.
json::StatsPoint difference(const StatsSample& from, const StatsSample& to);

/// Thread-compatible.
class StatsHistory {
 public:
  static constexpr std::chrono::seconds kFineStep{10};
  static constexpr std::chrono::hours kFineSpan{1};
  static constexpr std::chrono::minutes kCoarseStep{5};
  static constexpr std::chrono::hours kCoarseSpan{24};

  /// Takes a sample, if one is due: the last is kFineStep old, or a little less.
  void add(const StatsSample& sample);

  struct Range {
    std::chrono::milliseconds span{0};
    std::chrono::milliseconds step{0};
  };
  /// The range that is meant where a part is not given: the last hour, in the finest steps that
  /// there are for the span. Errors: invalid_argument for a span above kCoarseSpan, or a step that
  /// is no multiple of what is kept for the span, or longer than it.
  static Result<Range> range_of(std::optional<std::chrono::milliseconds> span,
                                std::optional<std::chrono::milliseconds> step);
  /// What happened in each step of a range that has passed, oldest first; as far back as there are
  /// samples. The last ends with the last sample.
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

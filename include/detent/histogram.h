// What a histogram of latencies held when it was asked: counts between bounds that double.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace detent {

/// What a histogram held at one moment.
struct HistogramSnapshot {
  std::vector<std::chrono::nanoseconds> bounds;  // upper bounds, inclusive
  std::vector<std::uint64_t> counts;             // one more than bounds: above the last
  std::uint64_t count = 0;
  /// Sum of all values; saturates (after 584 years of recorded waiting) instead of wrapping.
  std::uint64_t sum_ns = 0;

  /// An upper bound of the q-quantile, at most twice its value (q in [0, 1]): the bound of the
  /// bucket it falls in; nanoseconds::max() when that is the last one. Zero when empty.
  std::chrono::nanoseconds quantile(double q) const;
  /// Adds what another one held. Requires: the same bounds, or one of the two is empty.
  void add(const HistogramSnapshot& other);
};

}  // namespace detent

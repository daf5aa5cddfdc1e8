// HistogramSnapshot: the contents of a latency histogram at one moment. The bounds of its buckets
// double.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace detent {

/// The contents of a histogram at one moment.
struct HistogramSnapshot {
  std::vector<std::chrono::nanoseconds> bounds;  // inclusive upper bounds of the buckets
  std::vector<std::uint64_t> counts;  // one more than bounds; the last is above all bounds
  std::uint64_t count = 0;
  /// Sum of all values in nanoseconds. It stops at the largest number instead of wrapping around;
  /// this takes 584 years of recorded waiting.
  std::uint64_t sum_ns = 0;

  /// Returns an upper bound of the q-quantile (q in [0, 1]), at most twice its value: the bound of
  /// the bucket that contains the quantile. Returns nanoseconds::max() if this is the last bucket,
  /// and zero if the histogram is empty. O(buckets).
  std::chrono::nanoseconds quantile(double q) const;
  /// Adds the contents of another histogram. Requires: both have the same bounds, or one is empty.
  void add(const HistogramSnapshot& other);
};

}  // namespace detent

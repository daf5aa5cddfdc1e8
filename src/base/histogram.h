// A histogram of latencies. Each bucket is twice as wide as the previous one, so a small array
// covers the range from a microsecond to hours. To record a value costs a bit scan and two
// additions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "detent/histogram.h"

namespace detent {

/// Bucket i counts the values above bound i - 1 and up to bound i = first * 2^i. A last bucket
/// counts all larger values. The default covers 1 us to 2.4 h.
struct HistogramBuckets {
  std::chrono::nanoseconds first{1000};
  std::size_t count = 34;
};

/// Thread-compatible. Memory: 8 bytes per bucket. After construction, only `snapshot` allocates.
class Histogram {
 public:
  /// Requires: first >= 1 ns, 1 <= count <= 62, and the last bound fits in nanoseconds.
  explicit Histogram(HistogramBuckets buckets = {});

  /// Negative values count as zero.
  void record(std::chrono::nanoseconds value) noexcept;
  /// Adds the counts of another histogram. Requires: the same buckets.
  void merge(const Histogram& other) noexcept;
  HistogramSnapshot snapshot() const;

 private:
  std::size_t bucket_of(std::uint64_t value_ns) const noexcept;

  std::uint64_t first_ns_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t sum_ns_ = 0;
};

}  // namespace detent

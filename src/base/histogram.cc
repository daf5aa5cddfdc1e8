#include "base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "detent/check.h"

namespace detent {

namespace {

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept {
  return b > std::numeric_limits<std::uint64_t>::max() - a
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

}  // namespace

Histogram::Histogram(HistogramBuckets buckets)
    : first_ns_(static_cast<std::uint64_t>(buckets.first.count())), counts_(buckets.count + 1) {
  DETENT_CHECK(buckets.first.count() >= 1);
  DETENT_CHECK(buckets.count >= 1 && buckets.count <= 62);
  // The largest bound is first * 2^(count - 1). It must stay below 2^63.
  DETENT_CHECK(static_cast<std::size_t>(std::bit_width(first_ns_)) + buckets.count - 1 <= 63);
}

std::size_t Histogram::bucket_of(std::uint64_t value_ns) const noexcept {
  if (value_ns <= first_ns_) return 0;
  // The smallest i with value <= first * 2^i is the bit width of ceil(value / first) - 1.
  const std::uint64_t quotient = (value_ns - 1) / first_ns_;
  return std::min(static_cast<std::size_t>(std::bit_width(quotient)), counts_.size() - 1);
}

void Histogram::record(std::chrono::nanoseconds value) noexcept {
  const auto value_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(value.count(), 0));
  ++counts_[bucket_of(value_ns)];
  sum_ns_ = saturating_add(sum_ns_, value_ns);
}

void Histogram::merge(const Histogram& other) noexcept {
  DETENT_CHECK(first_ns_ == other.first_ns_ && counts_.size() == other.counts_.size());
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  sum_ns_ = saturating_add(sum_ns_, other.sum_ns_);
}

HistogramSnapshot Histogram::snapshot() const {
  HistogramSnapshot snapshot;
  for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
    snapshot.bounds.emplace_back(static_cast<std::int64_t>(first_ns_ << i));
  }
  snapshot.counts = counts_;
  for (const std::uint64_t count : counts_) snapshot.count += count;
  snapshot.sum_ns = sum_ns_;
  return snapshot;
}

std::chrono::nanoseconds HistogramSnapshot::quantile(double q) const {
  if (count == 0) return std::chrono::nanoseconds::zero();
  const double rank =
      std::max(1.0, std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count)));
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    below += counts[i];
    if (static_cast<double>(below) >= rank) return bounds[i];
  }
  return std::chrono::nanoseconds::max();
}

void HistogramSnapshot::add(const HistogramSnapshot& other) {
  if (counts.size() < other.counts.size()) {
    bounds = other.bounds;
    counts.resize(other.counts.size());
  }
  for (std::size_t i = 0; i < other.counts.size(); ++i) counts[i] += other.counts[i];
  count += other.count;
  sum_ns = saturating_add(sum_ns, other.sum_ns);
}

}  // namespace detent

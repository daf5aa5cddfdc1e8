#include "base/histogram.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace detent {
namespace {

using std::chrono::nanoseconds;

constexpr HistogramBuckets kSmall{.first = nanoseconds{10}, .count = 4};  // 10 20 40 80

TEST(Histogram, ABoundIsInItsBucketAndALargerValueInTheNext) {
  Histogram histogram(kSmall);
  for (const int value : {-5, 0, 10, 11, 20, 21, 40, 41, 80, 81, 1'000'000}) {
    histogram.record(nanoseconds{value});
  }
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.bounds,
            (std::vector{nanoseconds{10}, nanoseconds{20}, nanoseconds{40}, nanoseconds{80}}));
  EXPECT_EQ(snapshot.counts, (std::vector<std::uint64_t>{3, 2, 2, 2, 2}));
  EXPECT_EQ(snapshot.count, 11u);
  EXPECT_EQ(snapshot.sum_ns, 0u + 10 + 11 + 20 + 21 + 40 + 41 + 80 + 81 + 1'000'000);
}

TEST(Histogram, QuantileIsTheBoundAboveTheRank) {
  Histogram histogram(kSmall);
  EXPECT_EQ(histogram.snapshot().quantile(0.5), nanoseconds{0});
  for (int i = 0; i < 98; ++i) histogram.record(nanoseconds{15});
  histogram.record(nanoseconds{50});
  histogram.record(nanoseconds{500});
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.quantile(0.0), nanoseconds{20});
  EXPECT_EQ(snapshot.quantile(0.98), nanoseconds{20});
  EXPECT_EQ(snapshot.quantile(0.99), nanoseconds{80});
  EXPECT_EQ(snapshot.quantile(1.0), nanoseconds::max());
}

TEST(Histogram, MergeAddsCountsAndSums) {
  Histogram a(kSmall);
  Histogram b(kSmall);
  a.record(nanoseconds{5});
  b.record(nanoseconds{5});
  b.record(nanoseconds{70});
  a.merge(b);
  EXPECT_EQ(a.snapshot().counts, (std::vector<std::uint64_t>{2, 0, 0, 1, 0}));
  EXPECT_EQ(a.snapshot().sum_ns, 80u);
}

TEST(Histogram, SumSaturatesInsteadOfWrapping) {
  Histogram histogram;
  for (int i = 0; i < 3; ++i) histogram.record(nanoseconds::max());
  EXPECT_EQ(histogram.snapshot().sum_ns, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(histogram.snapshot().counts.back(), 3u);
}

}  // namespace
}  // namespace detent

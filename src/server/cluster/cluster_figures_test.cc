#include "server/cluster/cluster_figures.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/histogram.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;

ClusterFigures figures_of(ShardLease lease, std::uint64_t fired, std::chrono::milliseconds late) {
  Histogram histogram;
  histogram.record(late);
  ClusterFigures figures{.of = {{lease, 7}}, .sum = {}};
  figures.sum.counters.fired = fired;
  figures.sum.all.ready = 7;
  figures.sum.lateness = histogram.snapshot();
  figures.sum.late = {.tasks = {0, 1, 2, 3}, .time = {0ms, 1ms, 2ms, late}};
  return figures;
}

TEST(ClusterFigures, AddUpAndComeBackAsTheyWereSent) {
  ClusterFigures sum = figures_of({3, 9}, 100, 1ms);
  sum.add(figures_of({1, 4}, 20, 1s));
  const ClusterFigures read = decode_figures(encode_figures(sum)).value();
  EXPECT_EQ(read.of, (std::vector<ShardBacklog>{{{3, 9}, 7}, {{1, 4}, 7}}));
  EXPECT_EQ(read.sum.counters.fired, 120u);
  EXPECT_EQ(read.sum.all.ready, 14u);
  EXPECT_EQ(read.sum.late, (LateCounts{.tasks = {0, 2, 4, 6}, .time = {0ms, 2ms, 4ms, 1'001ms}}));
  EXPECT_EQ(read.sum.lateness.count, 2u);
  EXPECT_EQ(read.sum.lateness.counts, sum.sum.lateness.counts);
  EXPECT_EQ(read.sum.lateness.bounds, sum.sum.lateness.bounds);
  EXPECT_EQ(read.sum.lateness.sum_ns, sum.sum.lateness.sum_ns);
  EXPECT_TRUE(read.sum.commit_time.counts.empty());
}

TEST(ClusterFigures, AreOfAnotherEpochWhenTheyAreOfOtherEngines) {
  const auto epoch_of = [](std::initializer_list<ShardLease> leases) {
    ClusterFigures sum;
    for (const ShardLease& lease : leases) sum.add(figures_of(lease, 1, 1ms));
    return std::move(sum).stats().epoch;
  };
  const std::uint64_t epoch = epoch_of({{0, 1}, {1, 1}});
  EXPECT_EQ(epoch_of({{1, 1}, {0, 1}}), epoch) << "whatever the order they came in";
  EXPECT_NE(epoch_of({{0, 1}, {1, 2}}), epoch);
  EXPECT_NE(epoch_of({{0, 1}}), epoch);
  EXPECT_NE(epoch_of({{0, 1}, {1, 1}, {2, 1}}), epoch);
}

TEST(ClusterFigures, OfAnotherVersionAreRefused) {
  std::string bytes = encode_figures(figures_of({3, 9}, 100, 1ms));
  ++bytes[0];
  EXPECT_FALSE(decode_figures(bytes));
}

TEST(ClusterFigures, ThatAreCutOffAreRefused) {
  const std::string bytes = encode_figures(figures_of({3, 9}, 100, 1ms));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_figures(std::string_view(bytes).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace detent::server

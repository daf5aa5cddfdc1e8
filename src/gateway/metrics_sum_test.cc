#include "gateway/metrics_sum.h"

#include <gtest/gtest.h>

namespace detent::gateway {
namespace {

TEST(MetricsSum, EqualSamplesAreAddedAndOthersJoinTheirFamily) {
  const std::string sum =
      sum_metrics({"# HELP a How many.\n# TYPE a gauge\na{queue=\"x y\"} 1\na{queue=\"other\"} 2\n"
                   "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_count 3\n"
                   "b_seconds_sum 0.25\nb_seconds_bucket{le=\"+Inf\"} 3\n",
                   "# HELP c New.\n# TYPE c counter\nc 7\n"
                   "# HELP a How many.\n# TYPE a gauge\na{queue=\"x y\"} 10\na{queue=\"z\"} 5\n"
                   "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_count 1\n"
                   "b_seconds_sum 0.5\nb_seconds_bucket{le=\"+Inf\"} 1\n"});
  EXPECT_EQ(sum,
            "# HELP a How many.\n# TYPE a gauge\na{queue=\"x y\"} 11\na{queue=\"other\"} 2\n"
            "a{queue=\"z\"} 5\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_count 4\n"
            "b_seconds_sum 0.75\nb_seconds_bucket{le=\"+Inf\"} 4\n"
            "# HELP c New.\n# TYPE c counter\nc 7\n");
}

TEST(MetricsSum, TheHighestValueCountsForSomeMetrics) {
  const std::string info = "# HELP detent_build_info B.\n# TYPE detent_build_info gauge\n";
  const std::string epoch = "# HELP detent_shard_epoch E.\n# TYPE detent_shard_epoch gauge\n";
  const std::string sum =
      sum_metrics({info + "detent_build_info 1\n" + epoch + "detent_shard_epoch 9\n",
                   info + "detent_build_info 1\n" + epoch + "detent_shard_epoch 4\n"});
  EXPECT_EQ(sum, info + "detent_build_info 1\n" + epoch + "detent_shard_epoch 9\n");
}

TEST(MetricsSum, AQueueIsAsLateAsTheLatestOfItsPartitions) {
  const std::string age =
      "# HELP detent_oldest_ready_age_seconds A.\n# TYPE detent_oldest_ready_age_seconds gauge\n"
      "detent_oldest_ready_age_seconds{queue=\"hot\"} ";
  EXPECT_EQ(sum_metrics({age + "3\n", age + "7.5\n", age + "2\n"}), age + "7.5\n");
}

TEST(MetricsSum, OneFailedStoreIsVisible) {
  const std::string up =
      "# HELP detent_store_up U.\n# TYPE detent_store_up gauge\ndetent_store_up ";
  EXPECT_EQ(sum_metrics({up + "1\n", up + "0\n", up + "1\n"}), up + "0\n");
  EXPECT_EQ(sum_metrics({up + "1\n", up + "1\n"}), up + "1\n");
}

TEST(MetricsSum, WithoutGaugesOnlyCountersAndSummariesAreLeft) {
  const std::string counter = "# HELP a_total A.\n# TYPE a_total counter\na_total 2\n";
  const std::string summary = "# HELP s S.\n# TYPE s summary\ns_count 2\ns_sum 3\n";
  const std::string gauge = "# HELP a A.\n# TYPE a gauge\na 2\n";
  EXPECT_EQ(sum_metrics({counter + gauge + summary}, Families::without_gauges), counter + summary);
  EXPECT_EQ(sum_metrics({}), "");
}

}  // namespace
}  // namespace detent::gateway

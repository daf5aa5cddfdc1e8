#include "gateway/metrics_sum.h"

#include <gtest/gtest.h>

namespace detent::gateway {
namespace {

net::HttpResponse page(std::string text, int status = 200) {
  return {.status = status, .content_type = "text/plain", .body = std::move(text)};
}

TEST(MetricsSum, SamplesThatSeveralHaveAreAddedAndOthersJoinTheirFamily) {
  const net::HttpResponse sum = sum_metrics(
      {page("# HELP a How many.\n# TYPE a gauge\na{queue=\"x y\"} 1\na{queue=\"other\"} 2\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_count 3\n"
            "b_seconds_sum 0.25\nb_seconds_bucket{le=\"+Inf\"} 3\n"),
       page("# HELP c New.\n# TYPE c counter\nc 7\n"
            "# HELP a How many.\n# TYPE a gauge\na{queue=\"x y\"} 10\na{queue=\"z\"} 5\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_count 1\n"
            "b_seconds_sum 0.5\nb_seconds_bucket{le=\"+Inf\"} 1\n")});
  EXPECT_EQ(sum.status, 200);
  EXPECT_EQ(sum.content_type, "text/plain");
  EXPECT_EQ(sum.body,
            "# HELP a How many.\n# TYPE a gauge\na{queue=\"x y\"} 11\na{queue=\"other\"} 2\n"
            "a{queue=\"z\"} 5\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_count 4\n"
            "b_seconds_sum 0.75\nb_seconds_bucket{le=\"+Inf\"} 4\n"
            "# HELP c New.\n# TYPE c counter\nc 7\n");
}

TEST(MetricsSum, OfSomeTheHighestCounts) {
  const std::string info = "# HELP detent_build_info B.\n# TYPE detent_build_info gauge\n";
  const std::string epoch = "# HELP detent_shard_epoch E.\n# TYPE detent_shard_epoch gauge\n";
  const auto sum =
      sum_metrics({page(info + "detent_build_info 1\n" + epoch + "detent_shard_epoch 9\n"),
                   page(info + "detent_build_info 1\n" + epoch + "detent_shard_epoch 4\n")});
  EXPECT_EQ(sum.body, info + "detent_build_info 1\n" + epoch + "detent_shard_epoch 9\n");
}

TEST(MetricsSum, APageThatIsRefusedIsTheAnswer) {
  EXPECT_EQ(sum_metrics({page(""), page("no", 401), page("")}).status, 401);
}

}  // namespace
}  // namespace detent::gateway

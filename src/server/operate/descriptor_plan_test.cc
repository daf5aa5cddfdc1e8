#include "server/operate/descriptor_plan.h"

#include <gtest/gtest.h>

namespace detent::server {
namespace {

struct PlanRow {
  std::size_t limit = 0;
  DescriptorNeeds needs;
  DescriptorPlan plan;
};

TEST(DescriptorPlan, MatchesTheTable) {
  const DescriptorNeeds alone;
  const DescriptorNeeds http_only{.has_beanstalk = false};
  const DescriptorNeeds node{.shards = 12};
  // store_files, others, webhook_calls, peer_calls; HTTP connections, refusals, beanstalk
  const PlanRow rows[] = {
      {128, alone, {20, 32, 16, 0, 35, 5, 20}},
      {256, alone, {32, 64, 32, 0, 74, 10, 44}},
      {1'024, alone, {128, 256, 128, 0, 298, 42, 172}},
      {1'024, http_only, {128, 256, 128, 0, 448, 64, 0}},
      {1'024, node, {0, 256, 10, 256, 228, 32, 132}},
      {4'096, alone, {512, 512, 512, 0, 1'642, 64, 854}},
      {65'536, alone, {512, 512, 512, 0, 10'000, 64, 10'000}},
      {65'536, node, {0, 608, 512, 16'384, 10'000, 64, 10'000}},
      {std::size_t{1} << 30, alone, {512, 512, 512, 0, 10'000, 64, 10'000}},
  };
  for (const PlanRow& row : rows) {
    EXPECT_EQ(plan_descriptors(row.limit, row.needs), row.plan) << row.limit;
  }
}

TEST(DescriptorPlan, NeverSharesOutMoreThanThereIs) {
  for (const bool has_beanstalk : {false, true}) {
    for (const std::size_t shards : {0U, 1U, 12U, 256U}) {
      const DescriptorNeeds needs{.has_beanstalk = has_beanstalk, .shards = shards};
      for (std::size_t limit = least_descriptors(needs); limit < 70'000; limit += limit / 50) {
        const DescriptorPlan plan = plan_descriptors(limit, needs);
        const std::size_t calls = plan.webhook_calls * std::max<std::size_t>(shards, 1);
        EXPECT_GE(plan.others, 3 * shards) << limit;
        EXPECT_LE(plan.store_files + plan.others + calls + plan.peer_calls + plan.http_connections +
                      plan.http_refusals + plan.beanstalk_connections,
                  limit)
            << shards;
        EXPECT_GT(plan.http_connections, 0u) << limit;
        EXPECT_EQ(plan.beanstalk_connections > 0, has_beanstalk) << limit;
        EXPECT_GT(plan.webhook_calls, 0u) << limit;
      }
    }
  }
}

}  // namespace
}  // namespace detent::server

#include "task/largest_queues.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace detent {
namespace {

std::vector<std::string> names_of(std::vector<QueueStats> queues, std::uint64_t most) {
  keep_largest(queues, most);
  std::vector<std::string> names;
  for (const QueueStats& queue : queues) names.push_back(queue.queue);
  return names;
}

TEST(LargestQueues, HaveTheMostTasksOfAllStatesAndAreSortedByName) {
  using Names = std::vector<std::string>;
  const std::vector<QueueStats> queues{{.queue = "d", .scheduled = 2, .dead = 2},
                                       {.queue = "c", .ready = 3},
                                       {.queue = "b", .leased = 3},
                                       {.queue = "a", .scheduled = 1}};
  EXPECT_EQ(names_of(queues, 9), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(names_of(queues, 3), (Names{"b", "c", "d"}));
  EXPECT_EQ(names_of(queues, 2), (Names{"b", "d"})) << "of equal ones the first by name";
  EXPECT_EQ(names_of(queues, 0), Names());
}

// If there are 10,000 queues, the stuck queue can be a small one.
TEST(LargestQueues, TheOldestHaveTheReadyTasksThatHaveBeenDueLongest) {
  using std::chrono::milliseconds;
  std::vector<QueueStats> queues{
      {.queue = "large", .ready = 900, .oldest_ready_age = milliseconds{5}},
      {.queue = "idle", .scheduled = 900, .oldest_ready_age = std::nullopt},
      {.queue = "stuck", .ready = 1, .oldest_ready_age = milliseconds{9'000}},
      {.queue = "also", .ready = 1, .oldest_ready_age = milliseconds{5}}};
  std::vector<QueueStats> some = queues;
  keep_oldest(some, 2);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].queue, "stuck");
  EXPECT_EQ(some[1].queue, "also") << "of equal ones the first by name";
  keep_oldest(queues, 9);
  EXPECT_EQ(queues.size(), 3u) << "without a ready task there is no age";
  keep_oldest(queues, 0);
  EXPECT_TRUE(queues.empty());
}

}  // namespace
}  // namespace detent

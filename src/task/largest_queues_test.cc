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

TEST(LargestQueues, AreThoseWithMostTasksOfAllStatesByName) {
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

}  // namespace
}  // namespace detent

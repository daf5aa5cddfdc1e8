#include "task/largest_queues.h"

#include <algorithm>
#include <functional>

namespace detent {

void keep_largest(std::vector<QueueStats>& queues, std::uint64_t most) {
  const auto tasks = [](const QueueStats& queue) {
    return queue.scheduled + queue.ready + queue.leased + queue.dead;
  };
  if (most < queues.size()) {
    std::ranges::sort(queues, {}, &QueueStats::queue);
    std::ranges::stable_sort(queues, std::greater{}, tasks);
    queues.resize(most);
  }
  std::ranges::sort(queues, {}, &QueueStats::queue);
}

}  // namespace detent

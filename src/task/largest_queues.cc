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

void keep_oldest(std::vector<QueueStats>& queues, std::uint64_t most) {
  std::erase_if(queues, [](const QueueStats& queue) { return !queue.oldest_ready_age; });
  const auto kept = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(most, queues.size()));
  const auto is_older = [](const QueueStats& one, const QueueStats& other) {
    if (one.oldest_ready_age != other.oldest_ready_age) {
      return one.oldest_ready_age > other.oldest_ready_age;
    }
    return one.queue < other.queue;
  };
  std::partial_sort(queues.begin(), queues.begin() + kept, queues.end(), is_older);
  queues.resize(static_cast<std::size_t>(kept));
}

}  // namespace detent

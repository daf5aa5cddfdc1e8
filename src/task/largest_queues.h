// Selects the queues with the most tasks, or with the oldest ready tasks, from given statistics.
#pragma once

#include <cstdint>
#include <vector>

#include "task/task_stats.h"

namespace detent {

/// The order in which queues are selected if not all of them are shown.
enum class QueueOrder : std::uint8_t { by_tasks, by_age };

/// Keeps the `most` queues with the most tasks, sorted by name. Between queues with equally many
/// tasks, the first by name stays.
void keep_largest(std::vector<QueueStats>& queues, std::uint64_t most);

/// Keeps the `most` queues whose oldest ready task has been due the longest. They are sorted by
/// this time, the longest first, and then by name. Queues without a ready task are removed.
void keep_oldest(std::vector<QueueStats>& queues, std::uint64_t most);

/// Keeps the first `most` queues in this order.
inline void keep_first(std::vector<QueueStats>& queues, QueueOrder order, std::uint64_t most) {
  order == QueueOrder::by_age ? keep_oldest(queues, most) : keep_largest(queues, most);
}

}  // namespace detent

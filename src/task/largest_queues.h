// The queues with most tasks, or with the oldest ready tasks, of those whose figures are at hand.
#pragma once

#include <cstdint>
#include <vector>

#include "task/task_stats.h"

namespace detent {

/// Which queues come first where only some are told.
enum class QueueOrder : std::uint8_t { by_tasks, by_age };

/// Leaves the `most` with most tasks, by name; of two with as many the one whose name is first.
void keep_largest(std::vector<QueueStats>& queues, std::uint64_t most);

/// Leaves the `most` whose oldest ready task has been due longest, the longest first, of equal ones
/// the one whose name is first. Queues without a ready task are left out.
void keep_oldest(std::vector<QueueStats>& queues, std::uint64_t most);

/// The one that `order` names.
inline void keep_first(std::vector<QueueStats>& queues, QueueOrder order, std::uint64_t most) {
  order == QueueOrder::by_age ? keep_oldest(queues, most) : keep_largest(queues, most);
}

}  // namespace detent

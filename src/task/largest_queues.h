// The queues with most tasks, of those whose figures are at hand.
#pragma once

#include <cstdint>
#include <vector>

#include "task/task_stats.h"

namespace detent {

/// Leaves the `most` with most tasks, by name; of two with as many the one whose name is first.
void keep_largest(std::vector<QueueStats>& queues, std::uint64_t most);

}  // namespace detent

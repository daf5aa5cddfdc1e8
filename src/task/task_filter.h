// The filter of a list of tasks, for `GET /v1/tasks` and `detent list`.
#pragma once

#include <optional>
#include <string>

#include "task/lifecycle.h"
#include "task/task.h"

namespace detent {

/// A task is wanted when all that is given holds of it.
struct TaskFilter {
  std::optional<std::string> queue = {};
  std::optional<TaskState> state = {};
  std::optional<std::string> key = {};      // the task that it stands for, in each queue
  std::optional<WallTime> due_after = {};   // at this instant or after it
  std::optional<WallTime> due_before = {};  // before it

  friend bool operator==(const TaskFilter&, const TaskFilter&) = default;
};

}  // namespace detent

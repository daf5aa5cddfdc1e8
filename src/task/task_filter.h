// The filter of a list of tasks, for `GET /v1/tasks` and `detent list`.
#pragma once

#include <optional>
#include <string>

#include "task/lifecycle.h"
#include "task/task.h"

namespace detent {

/// A task matches if it matches every given field.
struct TaskFilter {
  std::optional<std::string> queue = {};
  std::optional<TaskState> state = {};
  std::optional<std::string> key = {};      // the task with this key, in each queue
  std::optional<WallTime> due_after = {};   // due at this instant or later
  std::optional<WallTime> due_before = {};  // due before this instant

  friend bool operator==(const TaskFilter&, const TaskFilter&) = default;
};

}  // namespace detent

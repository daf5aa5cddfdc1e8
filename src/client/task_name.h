// The name of a task for a client: the server's id, or the key that the task was scheduled with.
#pragma once

#include <string>
#include <variant>

#include "task/task.h"

namespace detent {

/// The name of a task in its queue, chosen by the client that scheduled the task.
struct TaskKey {
  std::string queue;
  std::string key;

  friend bool operator==(const TaskKey&, const TaskKey&) = default;
};

using TaskName = std::variant<TaskId, TaskKey>;

}  // namespace detent

// A change of a task, as it is reported to watchers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "task/lifecycle.h"
#include "task/task.h"

namespace detent {

/// An event in the life of a task. The report has the state after the event.
enum class TaskEvent : std::uint8_t {
  scheduled,  // accepted, or taken over from elsewhere
  ready,      // its due time came
  leased,
  extended,
  released,
  completed,
  failed,   // a worker reported a failed attempt; the task will be tried again
  expired,  // the lease expired; the task will be tried again, or is ready
  dead,     // out of attempts, or buried
  moved,    // has another due time
  edited,   // has another payload or priority, and the same due time
  redriven,
  cancelled,
  away,  // an external scheduler keeps it until it is nearly due
};
std::string_view to_string(TaskEvent event) noexcept;

struct TaskChange {
  TaskId id;
  std::string queue;
  TaskEvent event = TaskEvent::scheduled;
  TaskState state = TaskState::scheduled;  // after the event
  WallTime at{};

  friend bool operator==(const TaskChange&, const TaskChange&) = default;
};

}  // namespace detent

// The last known state of the external scheduler, which the data folder remembers.
#pragma once

#include <chrono>
#include <cstdint>

#include "task/task.h"

namespace detent {

/// How long after its due time the engine remembers that the copy of a task was forgotten there. An
/// older state of the other system may have the copy again, and it must not count.
inline constexpr std::chrono::hours kForgottenFor{24};

/// Stored here after the other system has stored the same generation. So a lower generation there
/// means that the other system has lost changes: it was emptied, or put back to an older state.
struct ExternalStamp {
  std::uint64_t generation = 0;  // rises with each stamp; 0: no stamp yet
  std::uint64_t tasks = 0;       // the tasks that it kept then; if 0, no task can be lost
  /// All tasks due before this instant had come back, so the external scheduler has only later
  /// tasks.
  WallTime complete_at{};

  friend bool operator==(const ExternalStamp&, const ExternalStamp&) = default;
};

}  // namespace detent

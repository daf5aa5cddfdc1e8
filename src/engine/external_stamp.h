// What the system that keeps far tasks was last seen to have, as the data folder remembers it.
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
  std::uint64_t generation = 0;  // rises with each stamp; 0: there was none yet
  std::uint64_t tasks = 0;       // that it kept then; when 0, nothing can be lost
  /// All tasks that were near at this instant had come back, so none due before is there.
  WallTime complete_at{};

  friend bool operator==(const ExternalStamp&, const ExternalStamp&) = default;
};

}  // namespace detent

// The last known state of the external scheduler. The store of the server keeps it.
#pragma once

#include <chrono>
#include <cstdint>

#include "task/task.h"

namespace detent {

/// The engine remembers for this time after the due time of a task that the external scheduler has
/// forgotten its copy. If the external scheduler is restored from an older backup, it has the copy
/// again, and the copy must not count.
inline constexpr std::chrono::hours kForgottenFor{24};

/// The engine stores a stamp after the external scheduler has stored the same generation. So if the
/// external scheduler has a lower generation, it has lost changes. For example, it was emptied or
/// restored from an older backup.
struct ExternalStamp {
  std::uint64_t generation = 0;  // rises with each stamp; 0: no stamp yet
  std::uint64_t tasks = 0;       // that the external scheduler kept; if 0, no task can be lost
  /// All tasks that were due before this instant had come back. So the external scheduler had only
  /// later tasks.
  WallTime complete_at{};

  friend bool operator==(const ExternalStamp&, const ExternalStamp&) = default;
};

}  // namespace detent

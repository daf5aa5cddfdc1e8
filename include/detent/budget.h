// Budget: how much work one call of `run_ready` may do.
#pragma once

#include <chrono>
#include <cstddef>

#include "detent/advance.h"

namespace detent {

/// The limits of one call of `run_ready`. By default there is no limit.
struct Budget {
  /// The largest number of timers fired or moved, including a wheel's cascades. Never exceeded.
  /// With 0, `run_ready` does no work.
  std::size_t count = kNoLimit;
  /// The longest time on the drive's clock. The drive reads the clock between timers, so one timer
  /// can exceed this limit; `run_ready` documents by how much. At least one timer is always
  /// handled, so that the loop makes progress.
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
};

}  // namespace detent

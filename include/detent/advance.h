// What a queue's `advance` calls and answers, the same for every queue of the family.
#pragma once

#include <cstddef>
#include <limits>

namespace detent {

/// What one call of `advance` did.
struct AdvanceResult {
  std::size_t fired = 0;  ///< timers whose callback ran
  bool more = false;      ///< it stopped at its limit; call again to go on
};

/// No limit to what one call of `advance` does.
inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace detent

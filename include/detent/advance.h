// The result type and the limit of `advance`, shared by every queue of timers.
#pragma once

#include <cstddef>
#include <limits>

namespace detent {

/// The result of one call of `advance`.
struct AdvanceResult {
  std::size_t fired = 0;  ///< number of timers whose callback ran
  bool more = false;      ///< the call stopped at its limit; call `advance` again to continue
};

/// Pass this value as the limit of `advance` to process every due timer in one call.
inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace detent

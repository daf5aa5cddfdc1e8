#include "detent/internal/machine_time.h"

#include <chrono>

namespace detent::internal {

MonotonicTime machine_time() noexcept {
  return MonotonicTime{std::chrono::steady_clock::now().time_since_epoch()};
}

WallInstant machine_wall_time() noexcept {
  return WallInstant{std::chrono::system_clock::now().time_since_epoch()};
}

}  // namespace detent::internal

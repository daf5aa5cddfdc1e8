// Reads the clocks of the machine. Everything else reads time through a Clock (detent/clock.h). A
// Clock that never waits, as the clock of an event loop, needs only this, and no lock.
#pragma once

#include "detent/clock.h"

namespace detent::internal {

/// The time of CLOCK_MONOTONIC.
MonotonicTime machine_time() noexcept;
/// The time of CLOCK_REALTIME.
WallInstant machine_wall_time() noexcept;

}  // namespace detent::internal

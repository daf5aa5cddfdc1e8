// The unit of wheel time.
#pragma once

#include <cstdint>

namespace detent {

/// A point in wheel time: an unsigned 64-bit count of ticks since a start that the owner of the
/// wheel chooses. How long a tick lasts is the owner's choice too; with nanoseconds the range is
/// 584 years. Wheels never read a clock.
using Tick = std::uint64_t;

}  // namespace detent

// The unit of wheel time.
#pragma once

#include <cstdint>

namespace detent {

/// A point in wheel time: an unsigned 64-bit count of ticks. The owner of the wheel chooses the
/// start and the length of a tick. With ticks of one nanosecond the range is 584 years. Wheels
/// never read a clock.
using Tick = std::uint64_t;

}  // namespace detent

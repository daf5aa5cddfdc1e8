// Arithmetic on delays and deadlines that stops at the ends of the time line instead of wrapping.
#pragma once

#include <chrono>

#include "detent/clock.h"

namespace detent::internal {

/// Any duration in nanoseconds, rounded up; at most nanoseconds::max(), at least zero. What is not
/// a number counts as zero.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturate_to_nanoseconds(
    std::chrono::duration<Rep, Period> duration) noexcept {
  using std::chrono::nanoseconds;
  using Wide = std::chrono::duration<long double, std::nano>;
  const Wide wide(duration);
  if (!(wide > Wide::zero())) return nanoseconds::zero();
  if (wide >= Wide(nanoseconds::max())) return nanoseconds::max();
  return std::chrono::ceil<nanoseconds>(duration);
}

/// `time` + `delay`, at most MonotonicTime::max(). Requires: delay >= 0.
constexpr MonotonicTime saturating_add(MonotonicTime time,
                                       std::chrono::nanoseconds delay) noexcept {
  const bool fits = time.time_since_epoch().count() <= 0 || delay <= MonotonicTime::max() - time;
  return fits ? time + delay : MonotonicTime::max();
}

}  // namespace detent::internal

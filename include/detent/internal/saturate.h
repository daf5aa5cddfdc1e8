// Arithmetic on delays, deadlines and dates that stops at the ends of the time line instead of
// wrapping around.
#pragma once

#include <chrono>

#include "detent/clock.h"

namespace detent::internal {

/// Converts any duration to nanoseconds, rounded up. The result is at least zero and at most
/// nanoseconds::max(). A NaN gives zero.
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

/// The common part of the next two functions. `round` converts dates within the time line.
template <class Duration, class Round>
constexpr WallTime saturate_to_wall_time(std::chrono::sys_time<Duration> date,
                                         Round round) noexcept {
  using Wide = std::chrono::duration<long double, std::milli>;
  const Wide wide(date.time_since_epoch());
  if (!(wide > Wide(WallTime::min().time_since_epoch()))) return WallTime::min();
  if (wide >= Wide(WallTime::max().time_since_epoch())) return WallTime::max();
  return round(date);
}

/// Converts any date to whole milliseconds, rounded down. A date beyond an end of the time line
/// gives this end. A NaN gives the earliest date.
template <class Duration>
constexpr WallTime floor_to_wall_time(std::chrono::sys_time<Duration> date) noexcept {
  return saturate_to_wall_time(
      date, [](auto given) { return std::chrono::floor<std::chrono::milliseconds>(given); });
}

/// As above, rounded up.
template <class Duration>
constexpr WallTime ceil_to_wall_time(std::chrono::sys_time<Duration> date) noexcept {
  return saturate_to_wall_time(
      date, [](auto given) { return std::chrono::ceil<std::chrono::milliseconds>(given); });
}

/// Returns `time` + `delay`, at most MonotonicTime::max(). Requires: delay >= 0.
constexpr MonotonicTime saturating_add(MonotonicTime time,
                                       std::chrono::nanoseconds delay) noexcept {
  const bool fits = time.time_since_epoch().count() <= 0 || delay <= MonotonicTime::max() - time;
  return fits ? time + delay : MonotonicTime::max();
}

}  // namespace detent::internal

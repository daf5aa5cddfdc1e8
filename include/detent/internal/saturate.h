// Arithmetic on delays, deadlines and dates that stops at the ends of the time line instead of
// wrapping around.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <ratio>
#include <type_traits>
#include <utility>

#include "detent/clock.h"

namespace detent::internal {

/// Converts any duration to nanoseconds, rounded up. The result is at least zero and at most
/// nanoseconds::max(). A NaN gives zero.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturate_to_nanoseconds(
    std::chrono::duration<Rep, Period> duration) noexcept {
  using std::chrono::nanoseconds;
  using Factor = std::ratio_divide<Period, std::nano>;
  if constexpr (std::integral<Rep> && Factor::den == 1) {
    // Most delays are whole numbers of a unit. Without floating point, the conversion takes a
    // nanosecond instead of several.
    constexpr nanoseconds::rep kMost = nanoseconds::max().count() / Factor::num;
    if (duration.count() <= 0) return nanoseconds::zero();
    if (std::cmp_greater(duration.count(), kMost)) return nanoseconds::max();
    return nanoseconds{static_cast<nanoseconds::rep>(duration.count()) * Factor::num};
  }
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

/// Converts a time since the epoch of any clock to an instant, rounded down. A time beyond an end
/// of the time line gives this end. A NaN gives the earliest instant.
template <class Rep, class Period>
constexpr MonotonicTime floor_to_monotonic_time(
    std::chrono::duration<Rep, Period> since_epoch) noexcept {
  using Wide = std::chrono::duration<long double, std::nano>;
  if constexpr (std::is_same_v<decltype(since_epoch), std::chrono::nanoseconds>) {
    return MonotonicTime{since_epoch};
  }
  const Wide wide(since_epoch);
  if (!(wide > Wide(std::chrono::nanoseconds::min()))) return MonotonicTime::min();
  if (wide >= Wide(std::chrono::nanoseconds::max())) return MonotonicTime::max();
  return MonotonicTime{std::chrono::floor<std::chrono::nanoseconds>(since_epoch)};
}

/// As above, rounded up.
template <class Rep, class Period>
constexpr MonotonicTime ceil_to_monotonic_time(
    std::chrono::duration<Rep, Period> since_epoch) noexcept {
  using Wide = std::chrono::duration<long double, std::nano>;
  const MonotonicTime below = floor_to_monotonic_time(since_epoch);
  const bool is_rounded =
      below < MonotonicTime::max() && Wide(below.time_since_epoch()) < Wide(since_epoch);
  return is_rounded ? below + std::chrono::nanoseconds{1} : below;
}

/// Returns `time` + `delay`, at most MonotonicTime::max(). Requires: delay >= 0.
constexpr MonotonicTime saturating_add(MonotonicTime time,
                                       std::chrono::nanoseconds delay) noexcept {
  const bool fits = time.time_since_epoch().count() <= 0 || delay <= MonotonicTime::max() - time;
  return fits ? time + delay : MonotonicTime::max();
}

/// Returns `time` - `delay`, at least MonotonicTime::min(). Requires: delay >= 0.
constexpr MonotonicTime saturating_subtract(MonotonicTime time,
                                            std::chrono::nanoseconds delay) noexcept {
  return time < MonotonicTime::min() + delay ? MonotonicTime::min() : time - delay;
}

/// Returns the time from one instant to a later instant; zero if `to` is not later. Unsigned
/// inside, because the distance between the ends of the time line has one bit more than a duration.
constexpr std::chrono::nanoseconds time_between(MonotonicTime from, MonotonicTime to) noexcept {
  using std::chrono::nanoseconds;
  if (to <= from) return nanoseconds::zero();
  const std::uint64_t count = static_cast<std::uint64_t>(to.time_since_epoch().count()) -
                              static_cast<std::uint64_t>(from.time_since_epoch().count());
  const auto most = static_cast<std::uint64_t>(nanoseconds::max().count());
  return nanoseconds{static_cast<nanoseconds::rep>(count < most ? count : most)};
}

}  // namespace detent::internal

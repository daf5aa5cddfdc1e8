// Wall time and durations as text, and the one conversion from a clock's reading to stored time.
//
// Times are in RFC 3339. Durations are a number with a unit, or ISO 8601. Years and months have no
// exact length, and leap seconds have no place on the time line. They are rejected by name instead
// of guessed.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "detent/clock.h"

namespace detent {

/// The longest duration anybody may give: 2^32 − 1 seconds, 136 years.
inline constexpr std::chrono::seconds kLongestDuration{4'294'967'295};
/// The first instant that cannot be given or shown: the start of year 10000.
inline constexpr WallTime kWallTimeEnd{
    std::chrono::sys_days{std::chrono::year{10000} / std::chrono::January / 1}};

/// The first whole millisecond at or after `instant`, so that stored times are never early.
constexpr WallTime ceil_to_ms(WallInstant instant) noexcept {
  return std::chrono::ceil<std::chrono::milliseconds>(instant);
}

/// "2026-01-02T03:04:05.678Z". Years outside 0 … 9999 come out longer than RFC 3339 allows.
std::string format_rfc3339(WallTime time);

/// Parses "2026-01-02T03:04:05Z". The fraction may have any number of digits (rounded up to the
/// millisecond), and the offset may be like "+08:00". The instant must be in the years 1970 … 9999.
/// Errors: `invalid_argument` with the reason; the caller sets `field`.
Result<WallTime> parse_rfc3339(std::string_view text);

/// Reads "1500ms", "30s", "5m", "2h", "30d" or ISO 8601 weeks, days, hours, minutes and seconds:
/// "P30D", "P2W", "PT1H30M", "P1DT2H", "PT0.5S" (a fraction of seconds only, rounded up to the
/// millisecond). Refuses signs, years, months and anything above kLongestDuration.
/// Errors: `invalid_argument`, as above.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace detent

// Wall time and durations as text, and the one conversion from a clock's reading to stored time.
//
// Times are in RFC 3339. Durations are a number with a unit, or ISO 8601. Years and months are
// refused, because they have no fixed length. Leap seconds are refused, because wall time has no
// place for them. The error names the reason.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "detent/clock.h"

namespace detent {

/// The longest duration that a user may give: 2^32 - 1 seconds, about 136 years.
inline constexpr std::chrono::seconds kLongestDuration{4'294'967'295};
/// The first instant that is out of range: the start of the year 10000.
inline constexpr WallTime kWallTimeEnd{
    std::chrono::sys_days{std::chrono::year{10000} / std::chrono::January / 1}};

/// The first whole millisecond at or after `instant`, so that stored times are never early.
constexpr WallTime ceil_to_ms(WallInstant instant) noexcept {
  return std::chrono::ceil<std::chrono::milliseconds>(instant);
}

/// Example: "2026-01-02T03:04:05.678Z". A year outside 0 to 9999 makes the text longer than RFC
/// 3339 allows.
std::string format_rfc3339(WallTime time);

/// Parses "2026-01-02T03:04:05Z". The fraction may have any number of digits (rounded up to the
/// millisecond), and the offset may be like "+08:00". The instant must be in the years 1970 … 9999.
/// Errors: `invalid_argument` with the reason; the caller sets `field`.
Result<WallTime> parse_rfc3339(std::string_view text);

/// Reads a duration: "1500ms", "30s", "5m", "2h", "30d", or ISO 8601 weeks, days, hours, minutes
/// and seconds ("P30D", "P2W", "PT1H30M", "P1DT2H", "PT0.5S"). Only seconds may have a fraction,
/// which is rounded up to the millisecond. Refuses signs, years, months, and durations above
/// kLongestDuration.
/// Errors: `invalid_argument` with the reason; the caller sets `field`.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "1500ms", "90s": the exact duration in the largest possible unit.
std::string show_duration(std::chrono::milliseconds duration);
/// "3h 12m", "1s 500ms": rounded down to the two largest units.
std::string show_age(std::chrono::milliseconds age);

}  // namespace detent

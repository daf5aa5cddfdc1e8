// When a receiver wants to be asked again: the header Retry-After (RFC 9110, 10.2.3).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "detent/clock.h"

namespace detent {

/// A receiver that asks for more is asked again after this.
inline constexpr std::chrono::milliseconds kLongestRetryAfter = std::chrono::hours{24};

/// Reads a number of seconds, or a date ("Sun, 06 Nov 1994 08:49:37 GMT"; not the two obsolete
/// forms); one that has passed is 0. Nothing when it is neither.
std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text, WallInstant now);

}  // namespace detent

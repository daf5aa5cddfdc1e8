// When a receiver wants to be asked again: the header Retry-After (RFC 9110, 10.2.3).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "detent/clock.h"

namespace detent {

/// A receiver that asks for more is asked again after this.
inline constexpr std::chrono::milliseconds kLongestRetryAfter = std::chrono::hours{24};
/// A receiver that asks for less ("0", or a date that has passed) is asked again after this. A
/// shorter pause would spend all attempts of a task within milliseconds.
inline constexpr std::chrono::milliseconds kLeastRetryAfter = std::chrono::seconds{1};

/// Parses a number of seconds, or a date ("Sun, 06 Nov 1994 08:49:37 GMT"; not the two obsolete
/// forms). Returns a delay from kLeastRetryAfter to kLongestRetryAfter; empty if the text has
/// another form.
std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text, WallInstant now);

}  // namespace detent

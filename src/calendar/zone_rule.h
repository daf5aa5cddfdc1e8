// The rule by which a time zone's clocks change for ever: the last line of a compiled tz file.
//
// It is POSIX's TZ string with the extensions of RFC 8536 (hours from -167 to 167):
// "CET-1CEST,M3.5.0,M10.5.0/3" is one hour east of UTC, two from the last Sunday of March at 02:00
// to the last Sunday of October at 03:00. Without it every zone would be without daylight saving
// from 2038 on, where the tables of tz files end.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace detent {

/// A yearly date: "M3.5.0" (month, week with 5 for the last, weekday), "J60" (1-365, February 29 is
/// not counted) or "59" (0-365, it is), and the time of that day in seconds of local time.
struct RuleDate {
  enum class Kind : std::uint8_t { month_week_day, julian, day_of_year };
  Kind kind = Kind::month_week_day;
  int month = 0;
  int week = 0;
  int day = 0;
  std::chrono::seconds time_of_day{7200};

  std::chrono::local_seconds in(std::chrono::year year) const;
};

/// A change of the offset from UTC that holds from `at` on.
struct OffsetChange {
  std::chrono::sys_seconds at;
  std::chrono::seconds offset;
};

struct ZoneRule {
  std::chrono::seconds standard{};  // east of UTC
  struct Saving {
    std::chrono::seconds offset{};  // east of UTC
    RuleDate begin;
    RuleDate end;
  };
  std::optional<Saving> saving;

  /// The year's two changes in the order of time. Requires: saving.
  std::array<OffsetChange, 2> changes_in(std::chrono::year year) const;
};

/// Parses a rule; std::nullopt if `text` is not a rule.
std::optional<ZoneRule> parse_zone_rule(std::string_view text);

}  // namespace detent

// The rule for all future clock changes of a time zone: the last line of a compiled tz file.
//
// The rule is a TZ string of POSIX with the extensions of RFC 8536 (hours from -167 to 167).
// Example: "CET-1CEST,M3.5.0,M10.5.0/3" is one hour east of UTC. It is two hours east from the last
// Sunday of March at 02:00 to the last Sunday of October at 03:00. The tables of tz files end in
// 2037, so without the rule no zone would have daylight saving from 2038 on.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace detent {

/// A date of every year, with a time of day in seconds of local time. It has one of three forms:
/// - "M3.5.0": month, week (5 means the last week) and weekday;
/// - "J60": a day from 1 to 365, without February 29;
/// - "59": a day from 0 to 365, with February 29.
struct RuleDate {
  enum class Kind : std::uint8_t { month_week_day, julian, day_of_year };
  Kind kind = Kind::month_week_day;
  int month = 0;
  int week = 0;
  int day = 0;
  std::chrono::seconds time_of_day{7200};

  std::chrono::local_seconds in(std::chrono::year year) const;
};

/// A change of the offset from UTC. The new offset holds from `at` on.
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

  /// The two changes of the year, in the order of time. Requires: `saving` is set.
  std::array<OffsetChange, 2> changes_in(std::chrono::year year) const;
};

/// Parses a rule. Returns nullopt if `text` is not a rule.
std::optional<ZoneRule> parse_zone_rule(std::string_view text);

}  // namespace detent

// A time zone: its offsets from UTC over time, from a compiled file of the tz database.
//
// Time is divided into spans of constant offset. Local time jumps where two spans meet. The file
// has a table of the spans up to about 2037. All later spans follow from the rule at the end of the
// file (zone_rule.h). RFC 8536 defines the format of the file.
//
// The tests compare this class with Howard Hinnant's date library. The version of that library in
// Debian 12 reads the table but not the rule, so it is wrong from 2038 on. The tests compare only
// earlier times.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "calendar/zone_rule.h"
#include "detent/cron.h"

namespace detent {

/// A span of time with a constant offset. Local time in [begin, end) is UTC + offset. The next span
/// has a different offset.
struct OffsetSpan {
  std::chrono::sys_seconds begin;
  std::chrono::sys_seconds end;
  std::chrono::seconds offset;

  std::chrono::local_seconds to_local(std::chrono::sys_seconds time) const noexcept {
    return std::chrono::local_seconds{time.time_since_epoch() + offset};
  }
  std::chrono::sys_seconds to_utc(std::chrono::local_seconds time) const noexcept {
    return std::chrono::sys_seconds{time.time_since_epoch() - offset};
  }
};

/// The start of the first span and the end of the last span. Every date that a caller can ask for
/// is between them.
inline constexpr std::chrono::sys_seconds kBeginOfTime{std::chrono::seconds{-(1LL << 55)}};
inline constexpr std::chrono::sys_seconds kEndOfTime{std::chrono::seconds{1LL << 55}};
/// Larger than the difference of any two offsets.
inline constexpr std::chrono::hours kMostOffsetDifference{50};

/// Immutable, and so thread-safe.
class TimeZone {
 public:
  static TimeZone utc() { return TimeZone("UTC"); }

  /// Reads the zone `name`, in any letter case, from `directory`. "UTC" needs no file. Errors:
  /// `invalid_argument` if there is no such zone, or if its file is unusable.
  static Result<TimeZone> load(std::string_view name,
                               std::string_view directory = "/usr/share/zoneinfo");

  /// The name as the tz database spells it: "Europe/Berlin" for "europe/berlin". Empty after
  /// parse().
  const std::string& name() const noexcept { return name_; }

  /// Reads the content of a compiled file of version 2 or later, without leap seconds.
  static Result<TimeZone> parse(std::span<const std::byte> bytes);

  /// The span that contains `time`. O(log n) for n changes in the table.
  OffsetSpan span_at(std::chrono::sys_seconds time) const;

  /// From this time on, which is after the table, the offsets repeat every 400 years, as the
  /// calendar does.
  std::chrono::sys_seconds repeats_from() const;

  /// The instants at which clocks show `local`, as selected by the policies: up to two, in order.
  std::vector<std::chrono::sys_seconds> instants_of(std::chrono::local_seconds local, Gap gap,
                                                    Repeat repeat) const;

 private:
  TimeZone() = default;
  explicit TimeZone(std::string name) : name_(std::move(name)) {}
  void add_change(OffsetChange change);
  OffsetSpan rule_span_at(std::chrono::sys_seconds time) const;

  std::string name_;
  std::chrono::seconds first_offset_{};     // before the first change of the table
  std::vector<OffsetChange> changes_ = {};  // the table, in order; each one changes the offset
  ZoneRule rule_;                           // holds after the last change of the table
};

}  // namespace detent

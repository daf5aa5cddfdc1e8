// A time zone: which offset from UTC holds when, from a compiled file of the tz database.
//
// Time is cut into spans, each with one offset; where two meet, local time jumps. The spans up to
// 2037 or so are in the file's table, those after follow from its rule (zone_rule.h), for ever.
// The file's format is RFC 8536. The date library of Howard Hinnant, as Debian 12 has it, reads the
// table without the rule and is wrong from 2038 on; until then it is the referee in the tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "calendar/zone_rule.h"
#include "detent/cron.h"

namespace detent {

/// Local time in [begin, end) is UTC + offset. Neighbours' offsets differ.
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

/// The first span begins, and the last ends, further away than any date that is asked for.
inline constexpr std::chrono::sys_seconds kBeginOfTime{std::chrono::seconds{-(1LL << 55)}};
inline constexpr std::chrono::sys_seconds kEndOfTime{std::chrono::seconds{1LL << 55}};
/// More than any two offsets differ.
inline constexpr std::chrono::hours kMostOffsetDifference{50};

/// Immutable.
class TimeZone {
 public:
  static TimeZone utc() { return TimeZone(); }

  /// Reads the zone `name` from `directory`; "UTC" needs no file.
  /// Errors: `invalid_argument`: no such zone, or its file is not one we can use.
  static Result<TimeZone> load(std::string_view name,
                               std::string_view directory = "/usr/share/zoneinfo");

  /// Reads the content of a compiled file, version 2 or later, without leap seconds.
  static Result<TimeZone> parse(std::span<const std::byte> bytes);

  /// O(log table).
  OffsetSpan span_at(std::chrono::sys_seconds time) const;

  /// From when on offsets come again every 400 years, as the calendar does: after the table.
  std::chrono::sys_seconds repeats_from() const;

  /// The instants when clocks show `local`, as selected by the policies: none to two, in order.
  std::vector<std::chrono::sys_seconds> instants_of(std::chrono::local_seconds local, Gap gap,
                                                    Repeat repeat) const;

 private:
  TimeZone() = default;
  void add_change(OffsetChange change);
  OffsetSpan rule_span_at(std::chrono::sys_seconds time) const;

  std::chrono::seconds first_offset_{};     // before the first change
  std::vector<OffsetChange> changes_ = {};  // the table, in order; each changes the offset
  ZoneRule rule_;                           // after the last change
};

}  // namespace detent

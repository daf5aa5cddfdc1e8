// A recurring rule that repeats every n days, weeks, months or years in the calendar of a time
// zone.
//
//     // The quarter's last day at 18:00 in New York, also where the month has 30 days.
//     const auto closing = detent::CalendarInterval::make(
//         {.anchor = jan_31_18h, .unit = detent::CalendarUnit::month, .every = 3},
//         "America/New_York").value();
//     closing.next_after(now);
//
// Each occurrence is counted from the anchor, not from the previous occurrence. A monthly rule with
// the anchor January 31 gives January 31, February 28 and March 31. The local time of day is always
// the anchor's, also across a change to daylight saving time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "detent/calendar_result.h"
#include "detent/clock.h"
#include "detent/cron.h"
#include "detent/internal/saturate.h"

namespace detent {

/// The unit in which `CalendarIntervalOptions::every` counts.
enum class CalendarUnit : std::uint8_t { day, week, month, year };

/// The policy for months that lack the anchor's day: the 31st in a month of 30 days, or February 29
/// outside leap years.
enum class MonthEnd : std::uint8_t {
  clamp,  // move the occurrence to the month's last day
  skip,   // leave out the occurrence of that month
};

/// The rule of a CalendarInterval.
struct CalendarIntervalOptions {
  /// The first occurrence, rounded down to the second. Requires: in the years 1970 to 9999.
  WallTime anchor{};
  CalendarUnit unit = CalendarUnit::month;
  /// The distance between two occurrences in units. Requires: 1 to 100,000.
  std::uint32_t every = 1;
  MonthEnd month_end = MonthEnd::clamp;
  /// The policies for days on which the anchor's time of day does not exist, or comes twice.
  Gap gap = Gap::run_after;
  Repeat repeat = Repeat::first;
};

/// A recurring rule like Cron, with the same time zones. Immutable and thread-safe. Copies are
/// cheap, because they share their state.
class CalendarInterval {
 public:
  /// Makes a rule in the time zone `zone`, a name of the tz database such as "Europe/Berlin".
  /// Returns an error if the zone is unknown, or if the anchor or `every` is out of range.
  static Parsed<CalendarInterval> make(const CalendarIntervalOptions& options,
                                       std::string_view zone = "UTC");

  /// Returns the first occurrence after `time`, or std::nullopt if no occurrence is left before the
  /// year 10000. The first occurrence is always the anchor itself: no policy moves or skips it.
  std::optional<WallTime> next_after(WallTime time) const;
  /// As above, for a date of any precision.
  template <class Duration>
  std::optional<WallTime> next_after(std::chrono::sys_time<Duration> time) const {
    return next_after(internal::floor_to_wall_time(time));
  }

  /// Returns the last occurrence before `time`, or std::nullopt if `time` is not after the anchor.
  std::optional<WallTime> prev_before(WallTime time) const;
  /// As above, for a date of any precision.
  template <class Duration>
  std::optional<WallTime> prev_before(std::chrono::sys_time<Duration> time) const {
    return prev_before(internal::ceil_to_wall_time(time));
  }

  /// Returns the first `count` occurrences after `from`, in order. The vector is shorter if fewer
  /// are left before the year 10000.
  std::vector<WallTime> next(std::size_t count, WallTime from) const;
  /// As above, for a date of any precision.
  template <class Duration>
  std::vector<WallTime> next(std::size_t count, std::chrono::sys_time<Duration> from) const {
    return next(count, internal::floor_to_wall_time(from));
  }

 private:
  struct State;
  explicit CalendarInterval(std::shared_ptr<const State> state) noexcept
      : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;  // shared by all copies; never changes
};

}  // namespace detent

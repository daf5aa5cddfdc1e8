// Every so many days, weeks, months or years from an anchor, by the calendar of a time zone.
//
//     // The quarter's last day at 18:00 in New York, also where the month has 30 days.
//     const auto closing = detent::CalendarInterval::make(
//         {.anchor = jan_31_18h, .unit = detent::CalendarUnit::month, .every = 3},
//         "America/New_York").value();
//     closing.next_after(now);
//
// Each occurrence is counted from the anchor and not from the one before: January 31, February 28,
// March 31. The time of day is the anchor's in that zone, also across daylight saving.
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

enum class CalendarUnit : std::uint8_t { day, week, month, year };

/// What becomes of the 31st in a month of 30 days, and of February 29 in other years.
enum class MonthEnd : std::uint8_t {
  clamp,  // it happens on the month's last day
  skip,   // it does not happen in that month
};

struct CalendarIntervalOptions {
  /// The first occurrence, rounded down to the second. Requires: in the years 1970-9999.
  WallTime anchor{};
  CalendarUnit unit = CalendarUnit::month;
  /// How many units lie between two occurrences, 1 to 100000.
  std::uint32_t every = 1;
  MonthEnd month_end = MonthEnd::clamp;
  /// For days on which the anchor's time of day does not exist, or comes twice.
  Gap gap = Gap::run_after;
  Repeat repeat = Repeat::first;
};

/// A recurring rule like Cron, with the same zones. Immutable, cheap to copy, thread-safe.
class CalendarInterval {
 public:
  /// Errors: an unknown zone, an anchor or an `every` out of range.
  static Parsed<CalendarInterval> make(const CalendarIntervalOptions& options,
                                       std::string_view zone = "UTC");

  /// The first occurrence after `time`; std::nullopt when none is left before the year 10000. The
  /// anchor itself is the first of all, whatever the policies.
  std::optional<WallTime> next_after(WallTime time) const;
  template <class Duration>
  std::optional<WallTime> next_after(std::chrono::sys_time<Duration> time) const {
    return next_after(internal::floor_to_wall_time(time));
  }

  /// The last occurrence before `time`; std::nullopt when `time` is not after the first one.
  std::optional<WallTime> prev_before(WallTime time) const;
  template <class Duration>
  std::optional<WallTime> prev_before(std::chrono::sys_time<Duration> time) const {
    return prev_before(internal::ceil_to_wall_time(time));
  }

  /// The first `count` occurrences after `from`, in order; fewer when no more are left.
  std::vector<WallTime> next(std::size_t count, WallTime from) const;
  template <class Duration>
  std::vector<WallTime> next(std::size_t count, std::chrono::sys_time<Duration> from) const {
    return next(count, internal::floor_to_wall_time(from));
  }

 private:
  struct State;
  explicit CalendarInterval(std::shared_ptr<const State> state) noexcept
      : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;  // owned by the copies together; never changes
};

}  // namespace detent

// When a recurring schedule occurs: its rule as it was read, within its start and end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "detent/calendar_interval.h"
#include "detent/cron.h"
#include "task/recurring_schedule.h"

namespace detent {

/// Immutable, cheap to copy, thread-safe.
class Recurrence {
 public:
  /// Reads the rule, and the zone from the present tzdata of the system. Requires: a schedule that
  /// passed validate(RecurringSchedule). Errors: invalid_argument with the field `cron`, `calendar`
  /// or `time_zone`.
  static Result<Recurrence> make(const RecurringSchedule& schedule);
  /// The same for the schedule of a put request. Errors: also invalid_argument if an interval has a
  /// time zone that does not exist, and as check_period().
  static Result<Recurrence> make_new(const RecurringSchedule& schedule);
  /// Checks the time between two occurrences of a cron expression, which can be very short ("@every
  /// 1ms"). validate(RecurringSchedule) has already checked the period of an interval. Errors:
  /// invalid_argument.
  Result<void> check_period() const;

  /// The first occurrence after `time`; empty if there is no later occurrence. Takes microseconds.
  std::optional<WallTime> next_after(WallTime time) const;
  /// The last occurrence before `time`; empty if there is no earlier occurrence. Costs about 40
  /// calls of next_after().
  std::optional<WallTime> last_before(WallTime time) const;
  /// The first `count` occurrences after `from`, in order; fewer when no more are left.
  std::vector<WallTime> next(std::size_t count, WallTime from) const;
  /// The rule in plain English, without a full stop.
  std::string explain() const;

 private:
  using Rule = std::variant<Cron, CalendarInterval, IntervalRule>;
  Recurrence(Rule rule, const RecurringSchedule& schedule);

  Rule rule_;
  std::optional<WallTime> start_;
  std::optional<WallTime> end_;
  std::string words_;  // the answer of explain()
};

}  // namespace detent

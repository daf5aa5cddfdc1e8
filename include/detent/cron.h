// Cron expressions: recurring dates in a time zone.
//
//     const auto report = detent::Cron::parse("0 9 1 * *", "Asia/Shanghai").value();
//     const auto now = std::chrono::system_clock::now();
//     std::optional<detent::WallTime> due = report.next_after(now);   // the 1st, 09:00 in Shanghai
//     report.explain();   // "At 09:00 on day 1 of the month (Asia/Shanghai)"
//
// Supported syntax: five fields as in crontab(5), or six fields with seconds first; L, W and # as
// in Quartz; @daily and similar names; @every. A search goes from month to month over sets of days,
// never from minute to minute. It costs microseconds, however far away the next occurrence is. Leap
// seconds do not exist here: as in POSIX, a minute has 60 seconds. docs/concepts/time.md describes
// the other effects of wall-clock changes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detent/calendar_result.h"
#include "detent/clock.h"
#include "detent/internal/saturate.h"

namespace detent {

/// The policy for a local time that does not exist, because clocks were put forward over it.
enum class Gap : std::uint8_t {
  skip,       // leave out the occurrence on that day
  run_after,  // run at the first instant after the gap; occurrences in the gap run once together
};

/// The policy for a local time that comes twice, because clocks were put back over it.
enum class Repeat : std::uint8_t {
  first,   // run only the first time
  second,  // run only the second time
  both,    // run both times
};

/// Policies for changes of the clock. The defaults are those of Vixie cron.
struct CronOptions {
  /// No value: follow Vixie cron. The default depends on the field `hour`:
  ///
  /// - All 24 hours (`*`): Gap::skip and Repeat::both. The expression follows real time.
  ///   "*/15 * * * *" runs every quarter of an hour through the whole night.
  /// - Certain hours: Gap::run_after and Repeat::first. Each matching local time runs once.
  std::optional<Gap> gap = std::nullopt;
  std::optional<Repeat> repeat = std::nullopt;
};

/// A recurring rule. Immutable and thread-safe. Copies are cheap, because they share the parsed
/// rule.
///
/// | field        | allowed                | and                                             |
/// |--------------|------------------------|-------------------------------------------------|
/// | second       | 0-59                   | may be left out: then it is 0                   |
/// | minute       | 0-59                   |                                                 |
/// | hour         | 0-23                   |                                                 |
/// | day of month | 1-31                   | ? L (last) L-3 (three before) 15W (Monday to    |
/// |              |                        | Friday nearest to the 15th, same month) LW      |
/// | month        | 1-12 or JAN-DEC        |                                                 |
/// | day of week  | 0-7 or SUN-SAT, 7: SUN | ? FRI#2 (second Friday) FRIL (last Friday)      |
///
/// Each field is `*`, a value, a range `a-b`, or a step. Steps are `*/n`, `a-b/n` and `a/n` (from a
/// to the end). A comma separates several of these. Letters may be lower case. `?` means `*`.
///
/// If both the day of month and the day of week are restricted, a day needs to match only one of
/// them (Vixie's rule). If either field begins with a star or `?`, a day must match both.
///
/// @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly mean the beginning of the
/// named period. A week begins on Sunday. "@every 90s" takes a duration above 0 ("1500ms" "30s"
/// "5m" "2h" "30d" "PT1H30M"). It runs at the multiples of this duration since
/// 1970-01-01T00:00:00Z, in every time zone.
class Cron {
 public:
  /// Parses `expression`. `zone` is a name of the tz database, such as "Europe/Berlin". "UTC" needs
  /// no database. Other zones are read from /usr/share/zoneinfo during this call; parse the
  /// expression again to use a later update of tzdata.
  ///
  /// Errors: a syntax error, an unknown zone, or an expression that can never match ("0 0 30 2 *").
  static Parsed<Cron> parse(std::string_view expression, std::string_view zone = "UTC",
                            const CronOptions& options = {});

  /// Returns the first occurrence after `time`, or std::nullopt if no occurrence is left in the
  /// years 1970 to 9999. Cost: microseconds for any distance; below a millisecond if no occurrence
  /// is left.
  std::optional<WallTime> next_after(WallTime time) const;
  /// As above, for a date of any precision.
  template <class Duration>
  std::optional<WallTime> next_after(std::chrono::sys_time<Duration> time) const {
    return next_after(internal::floor_to_wall_time(time));
  }

  /// Returns the last occurrence before `time`, or std::nullopt if the years 1970 to 9999 have no
  /// earlier occurrence. Costs as much as a few calls of next_after.
  std::optional<WallTime> prev_before(WallTime time) const;
  /// As above, for a date of any precision.
  template <class Duration>
  std::optional<WallTime> prev_before(std::chrono::sys_time<Duration> time) const {
    return prev_before(internal::ceil_to_wall_time(time));
  }

  /// Returns the first `count` occurrences after `from`, in order. The vector is shorter if fewer
  /// are left.
  std::vector<WallTime> next(std::size_t count, WallTime from) const;
  /// As above, for a date of any precision.
  template <class Duration>
  std::vector<WallTime> next(std::size_t count, std::chrono::sys_time<Duration> from) const {
    return next(count, internal::floor_to_wall_time(from));
  }

  /// Describes the rule in one sentence of plain English, without a full stop.
  std::string explain() const;

  /// Returns the parsed expression.
  const std::string& expression() const noexcept;
  /// Returns the name of the time zone.
  const std::string& zone() const noexcept;

 private:
  struct State;
  explicit Cron(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;  // shared by all copies of this Cron; never changes
};

}  // namespace detent

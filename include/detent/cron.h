// Cron expressions: the moments at which something recurs, in a time zone.
//
//     const auto report = detent::Cron::parse("0 9 1 * *", "Asia/Shanghai").value();
//     const auto now = std::chrono::system_clock::now();
//     std::optional<detent::WallTime> due = report.next_after(now);   // the 1st, 09:00 in Shanghai
//     report.explain();   // "At 09:00 on day 1 of the month (Asia/Shanghai)"
//
// Five fields as crontab(5) has them, or six with seconds in front; L, W and # as in Quartz; @daily
// and its kin; @every. A search goes month by month over sets of days, never minute by minute, so
// it costs microseconds however far away the answer is. Leap seconds don't exist here: a minute has
// 60 seconds, as in POSIX. docs/concepts/time.md says what the wall clock does otherwise.
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

/// What becomes of a local time that does not exist, because clocks are put forward over it.
enum class Gap : std::uint8_t {
  skip,       // it does not happen that day
  run_after,  // it happens at the first instant after the gap; all that fall into it, once
};

/// What becomes of a local time that comes twice, because clocks are put back over it.
enum class Repeat : std::uint8_t {
  first,   // it happens the first time
  second,  // it happens the second time
  both,    // it happens both times
};

struct CronOptions {
  /// Not set: as Vixie's cron does it. An expression for every hour (`*`) follows real time: what
  /// falls into the gap is skipped and what comes twice happens twice, so that "*/15 * * * *" is
  /// every quarter of an hour all night. One for certain hours happens once a day: Gap::run_after,
  /// Repeat::first.
  std::optional<Gap> gap = std::nullopt;
  std::optional<Repeat> repeat = std::nullopt;
};

/// A recurring rule. Immutable, cheap to copy (copies share what was parsed), thread-safe.
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
/// Each is `*`, a value, a range `a-b`, a step `*/n`, `a-b/n` or `a/n` (from a to the end), or a
/// list of these with commas. Letters may be small. `?` is `*`.
///
/// Day of month and day of week: when both are restricted, a day that fits either of them is taken
/// (Vixie's rule); when one of them begins with a star (or `?`), a day must fit both.
///
/// @yearly @annually @monthly @weekly @daily @midnight @hourly stand for the beginning of what they
/// name. "@every 90s" takes a duration ("1500ms" "30s" "5m" "2h" "30d" "PT1H30M") and happens at
/// its multiples since 1970-01-01T00:00:00Z, whatever the zone.
class Cron {
 public:
  /// Reads `expression`. `zone` is a name of the tz database, as "Europe/Berlin"; "UTC" needs no
  /// database, others are read from /usr/share/zoneinfo now, so a later update of tzdata is seen by
  /// parsing again. Refuses what can never happen ("0 0 30 2 *").
  static Parsed<Cron> parse(std::string_view expression, std::string_view zone = "UTC",
                            const CronOptions& options = {});

  /// The first occurrence after `time`, of the years 1970-9999; std::nullopt when none is left.
  /// Microseconds, however far away; below a millisecond to find that none is left.
  std::optional<WallTime> next_after(WallTime time) const;
  template <class Duration>
  std::optional<WallTime> next_after(std::chrono::sys_time<Duration> time) const {
    return next_after(internal::floor_to_wall_time(time));
  }

  /// The last occurrence before `time`, of the same years. As a few calls of next_after.
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

  /// What it means, in a sentence of plain English without a full stop.
  std::string explain() const;

  const std::string& expression() const noexcept;
  const std::string& zone() const noexcept;

 private:
  struct State;
  explicit Cron(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;  // owned by the copies of this Cron together; never changes
};

}  // namespace detent

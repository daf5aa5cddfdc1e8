// From local times that fit to instants: the search across the spans of a time zone.
//
// An instant is an occurrence when the local time it has fits, unless that time comes twice and the
// policy wants the other one; or when it is the first after a gap, the policy wants that, and some
// local time in the gap fits. Everything that looks for occurrences goes through `next_occurrence`,
// backwards too: what comes next after a moment never decreases with the moment, so the last
// occurrence before a time is found by bisection, and there is no second search that could
// disagree.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/wall_time.h"
#include "calendar/cron_fields.h"
#include "calendar/time_zone.h"
#include "detent/cron.h"

namespace detent {

struct LocalSchedule {
  CronFields fields;
  TimeZone zone;
  Gap gap = Gap::run_after;
  Repeat repeat = Repeat::first;
};

/// The first occurrence at or after `from` and before the year 10000. Walks over spans only while
/// an occurrence is near; over empty time it jumps. Requires: `from` is in 1970 or later.
std::optional<std::chrono::sys_seconds> next_occurrence(const LocalSchedule& schedule,
                                                        std::chrono::sys_seconds from,
                                                        SearchCost& cost);

template <class F>
concept NextAfter = requires(const F& next_after, WallTime time) {
  { next_after(time) } -> std::same_as<std::optional<WallTime>>;
};

/// The last occurrence before `time`, of a rule whose occurrences are whole seconds. O(log time).
template <NextAfter F>
std::optional<WallTime> last_before(WallTime time, const F& next_after) {
  using std::chrono::seconds;
  const WallTime end = std::min(time, kWallTimeEnd);
  const auto next_before_end = [&](seconds since_1970) {
    const auto next = next_after(WallTime{since_1970});
    return next && *next < end ? next : std::nullopt;
  };
  seconds low{-1};  // something lies between `low` and `end`, and nothing between `high` and it
  seconds high = std::chrono::ceil<seconds>(end.time_since_epoch());
  auto found = next_before_end(low);
  if (!found) return std::nullopt;
  while (high - low > seconds{1}) {
    const seconds middle = low + (high - low) / 2;
    if (const auto next = next_before_end(middle)) {
      found = next;
      low = middle;
    } else {
      high = middle;
    }
  }
  return found;
}

/// The first `count` occurrences after `from`.
template <NextAfter F>
std::vector<WallTime> first_after(std::size_t count, WallTime from, const F& next_after) {
  std::vector<WallTime> times;
  while (times.size() < count) {
    const auto next = next_after(times.empty() ? from : times.back());
    if (!next) break;
    times.push_back(*next);
  }
  return times;
}

}  // namespace detent

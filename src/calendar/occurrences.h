// Finds the instants of matching local times. The search goes through the spans of a time zone.
//
// An instant is an occurrence in one of two cases:
// - Its local time matches. If this local time comes twice, the policy `repeat` must select this
//   instant.
// - It is the first instant after a gap, a local time in the gap matches, and the policy `gap` is
//   run_after.
//
// Every search uses `next_occurrence`. To find the last occurrence before a time, the code searches
// forward in stretches of time and halves them. A separate backward search could give different
// results.
// are halved, so there is no second search that could disagree.
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

/// A cron expression with its time zone and its policies.
struct LocalSchedule {
  CronFields fields;
  TimeZone zone;
  Gap gap = Gap::run_after;
  Repeat repeat = Repeat::first;
};

/// The first occurrence in [from, end). It is always before the year 10000. Jumps over time without
/// matches, and visits single spans only near a match. Gives up after 400 years without an
/// occurrence under one rule of the zone. Requires: `from` is in 1970 or later.
std::optional<std::chrono::sys_seconds> next_occurrence(const LocalSchedule& schedule,
                                                        std::chrono::sys_seconds from,
                                                        std::chrono::sys_seconds end,
                                                        SearchCost& cost);

/// The last occurrence before `end`, in the years 1970 to 9999. Costs about three forward searches
/// over the time between the result and `end`.
std::optional<std::chrono::sys_seconds> last_occurrence(const LocalSchedule& schedule,
                                                        std::chrono::sys_seconds end,
                                                        SearchCost& cost);

template <class F>
concept NextAfter = requires(const F& next_after, WallTime time) {
  { next_after(time) } -> std::same_as<std::optional<WallTime>>;
};

template <class F>
concept FirstIn = requires(const F& first_in, std::chrono::sys_seconds time) {
  { first_in(time, time) } -> std::same_as<std::optional<std::chrono::sys_seconds>>;
};

/// The last occurrence in [begin, end). `first_in(a, b)` must return the first occurrence in [a,
/// b). Searches stretches backwards from `end`, each twice as long as the previous one. Then halves
/// the first stretch that has an occurrence. So little time is searched twice.
template <FirstIn F>
std::optional<std::chrono::sys_seconds> last_in(std::chrono::sys_seconds begin,
                                                std::chrono::sys_seconds end, const F& first_in) {
  using std::chrono::seconds;
  for (seconds length = std::chrono::minutes{1}; end > begin; length *= 2) {
    const auto low = std::max(begin, end - length);
    auto found = first_in(low, end);
    if (!found) {
      end = low;
      continue;
    }
    for (auto after = *found + seconds{1}; after < end;) {
      const auto middle = after + (end - after) / 2;
      if (const auto next = first_in(middle, end)) {
        found = next;
        after = *next + seconds{1};
      } else {
        end = middle;
      }
    }
    return found;
  }
  return std::nullopt;
}

/// Returns the first `count` occurrences after `from`, or fewer if the rule ends.
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

// From local times that fit to instants: the search across the spans of a time zone.
//
// An instant is an occurrence when the local time it has fits, unless that time comes twice and the
// policy wants the other one; or when it is the first after a gap, the policy wants that, and some
// local time in the gap fits. Everything that looks for occurrences goes through `next_occurrence`,
// backwards too: the last one before a time is found by asking for the first one of stretches that
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

struct LocalSchedule {
  CronFields fields;
  TimeZone zone;
  Gap gap = Gap::run_after;
  Repeat repeat = Repeat::first;
};

/// The first occurrence in [from, end), and before the year 10000 whatever `end` is. Walks over
/// spans only while an occurrence is near, and jumps over empty time. Gives up after 400 years
/// without an occurrence under one rule of the zone. Requires: `from` is in 1970 or later.
std::optional<std::chrono::sys_seconds> next_occurrence(const LocalSchedule& schedule,
                                                        std::chrono::sys_seconds from,
                                                        std::chrono::sys_seconds end,
                                                        SearchCost& cost);

/// The last occurrence before `end`, in 1970-9999. As three searches forward over the time between.
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

/// The last occurrence in [begin, end), where `first_in(a, b)` gives the first in [a, b). Searches
/// consecutive stretches backwards, each twice as long as the previous, and then halves the stretch
/// that has an occurrence. So little time is searched twice.
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

#include "calendar/occurrences.h"

namespace detent {
namespace {

using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

/// After 400 years the Gregorian calendar comes again, weekdays too.
constexpr std::chrono::days kCalendarPeriod{146'097};
constexpr sys_seconds kEnd{std::chrono::floor<seconds>(kWallTimeEnd)};

/// Where to begin in `span`, at or after `from`, when the second of two equal times is not wanted.
local_seconds first_wanted(const LocalSchedule& schedule, const OffsetSpan& span,
                           sys_seconds from) {
  const local_seconds begin = span.to_local(from);
  if (schedule.repeat != Repeat::first || span.begin == kBeginOfTime) return begin;
  const OffsetSpan before = schedule.zone.span_at(span.begin - seconds{1});
  return std::max(begin, before.to_local(span.begin));
}

/// Where to end in `span` when the first of two equal times is not wanted.
local_seconds end_wanted(const LocalSchedule& schedule, const OffsetSpan& span,
                         const OffsetSpan& after) {
  const local_seconds end = span.to_local(span.end);
  if (schedule.repeat != Repeat::second) return end;
  return std::min(end, after.to_local(span.end));
}

/// Whether `from` is the first instant after a gap, and some local time in the gap fits.
bool is_run_after_gap(const LocalSchedule& schedule, sys_seconds from, SearchCost& cost) {
  if (schedule.gap != Gap::run_after) return false;
  const OffsetSpan span = schedule.zone.span_at(from);
  if (span.begin != from) return false;
  const OffsetSpan before = schedule.zone.span_at(from - seconds{1});
  const local_seconds end = span.to_local(from);
  const auto match = next_match(schedule.fields, before.to_local(from), end, cost);
  return match && *match < end;
}

}  // namespace

std::optional<sys_seconds> next_occurrence(const LocalSchedule& schedule, sys_seconds from,
                                           sys_seconds end, SearchCost& cost) {
  end = std::min({end, kEnd, std::max(from, schedule.zone.repeats_from()) + kCalendarPeriod});
  const local_seconds until{(end + kMostOffsetDifference).time_since_epoch()};
  // A search that begins there does not come from the span before, where the loop sees it.
  if (from < end && is_run_after_gap(schedule, from, cost)) return from;
  while (from < end) {
    ++cost.spans;
    const OffsetSpan span = schedule.zone.span_at(from);
    const OffsetSpan after = schedule.zone.span_at(span.end);
    const local_seconds begin = first_wanted(schedule, span, from);
    const auto match = next_match(schedule.fields, begin, until, cost);
    const bool may_go_back = span.end - span.to_utc(begin) < kMostOffsetDifference;
    if (!match && !may_go_back) return std::nullopt;

    // Without a match, what follows the span may have local times before `begin` once more.
    std::optional<sys_seconds> found;
    if (match && *match < end_wanted(schedule, span, after)) {
      found = span.to_utc(*match);
    } else if (match && schedule.gap == Gap::run_after && *match >= span.to_local(span.end) &&
               *match < after.to_local(span.end)) {
      found = span.end;
    }
    if (found) return *found < end ? found : std::nullopt;

    // No local time from `begin` to the match fits. When the span is long, all that follows it has
    // local times after `begin`, so up to shortly before the match there is nothing to look at.
    from = span.end;
    if (!may_go_back) {
      from = std::max(from, sys_seconds{match->time_since_epoch()} - kMostOffsetDifference);
    }
  }
  return std::nullopt;
}

std::optional<sys_seconds> last_occurrence(const LocalSchedule& schedule, sys_seconds end,
                                           SearchCost& cost) {
  const auto first_in = [&](sys_seconds low, sys_seconds high) {
    return next_occurrence(schedule, low, high, cost);
  };
  end = std::min(end, kEnd);
  const sys_seconds repeats_from = std::max(schedule.zone.repeats_from(), sys_seconds{});
  if (end - kCalendarPeriod > repeats_from) {
    if (const auto found = last_in(end - kCalendarPeriod, end, first_in)) return found;
    end = repeats_from;  // a whole period is empty, so all of them are
  }
  return last_in(sys_seconds{}, end, first_in);
}

}  // namespace detent

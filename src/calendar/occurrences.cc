#include "calendar/occurrences.h"

namespace detent {
namespace {

using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

/// The length of 400 years. After it, the Gregorian calendar repeats, including the weekdays.
constexpr std::chrono::days kCalendarPeriod{146'097};
constexpr sys_seconds kEnd{std::chrono::floor<seconds>(kWallTimeEnd)};

/// The local time at which the search in `span` begins, at or after `from`. With Repeat::first, it
/// skips the local times that the previous span had already.
local_seconds first_wanted(const LocalSchedule& schedule, const OffsetSpan& span,
                           sys_seconds from) {
  const local_seconds begin = span.to_local(from);
  if (schedule.repeat != Repeat::first || span.begin == kBeginOfTime) return begin;
  const OffsetSpan before = schedule.zone.span_at(span.begin - seconds{1});
  return std::max(begin, before.to_local(span.begin));
}

/// The local time at which the search in `span` ends. With Repeat::second, it ends before the local
/// times that the next span repeats.
local_seconds end_wanted(const LocalSchedule& schedule, const OffsetSpan& span,
                         const OffsetSpan& after) {
  const local_seconds end = span.to_local(span.end);
  if (schedule.repeat != Repeat::second) return end;
  return std::min(end, after.to_local(span.end));
}

/// True if `from` is the first instant after a gap, a local time in the gap matches, and the policy
/// moves it to `from`.
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
  // If the search begins with the first instant after a gap, the loop below does not see the span
  // before the gap. So check the gap here.
  if (from < end && is_run_after_gap(schedule, from, cost)) return from;
  while (from < end) {
    ++cost.spans;
    const OffsetSpan span = schedule.zone.span_at(from);
    const OffsetSpan after = schedule.zone.span_at(span.end);
    const local_seconds begin = first_wanted(schedule, span, from);
    const auto match = next_match(schedule.fields, begin, until, cost);
    const bool may_go_back = span.end - span.to_utc(begin) < kMostOffsetDifference;
    if (!match && !may_go_back) return std::nullopt;

    // Even without a match, the next spans may have local times before `begin` again.
    std::optional<sys_seconds> found;
    if (match && *match < end_wanted(schedule, span, after)) {
      found = span.to_utc(*match);
    } else if (match && schedule.gap == Gap::run_after && *match >= span.to_local(span.end) &&
               *match < after.to_local(span.end)) {
      found = span.end;
    }
    if (found) return *found < end ? found : std::nullopt;

    // No local time from `begin` to the match fits. If the span is long, all later spans have only
    // local times after `begin`. So the search can jump to shortly before the match.
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
    end = repeats_from;  // one empty period means that all later periods are empty
  }
  return last_in(sys_seconds{}, end, first_in);
}

}  // namespace detent

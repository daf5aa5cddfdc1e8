#include "detent/calendar_interval.h"

#include <algorithm>
#include <string>
#include <utility>

#include "calendar/occurrences.h"

namespace detent {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::uint32_t kLargestEvery = 100'000;
constexpr local_days kLastDay{std::chrono::year{10001} / std::chrono::January / 1};

/// The number of months since the start of the year 0.
std::int64_t month_number(local_days day) {
  const std::chrono::year_month_day date{day};
  return static_cast<int>(date.year()) * 12LL + static_cast<unsigned>(date.month()) - 1;
}

/// The distance from one occurrence to the next, in days or in months.
struct Step {
  enum class Kind : std::uint8_t { by_days, by_months };
  Kind kind;
  std::int64_t count;  // above 0
};

Step step_of(const CalendarIntervalOptions& options) {
  switch (options.unit) {
    case CalendarUnit::day:
      break;
    case CalendarUnit::week:
      return {Step::Kind::by_days, 7LL * options.every};
    case CalendarUnit::month:
      return {Step::Kind::by_months, options.every};
    case CalendarUnit::year:
      return {Step::Kind::by_months, 12LL * options.every};
  }
  return {Step::Kind::by_days, options.every};
}

}  // namespace

struct CalendarInterval::State {
  CalendarIntervalOptions options;
  Step step;
  TimeZone zone;
  sys_seconds anchor;
  local_seconds local_anchor;

  local_days anchor_day() const { return std::chrono::floor<days>(local_anchor); }

  /// The day of the occurrence `index`, or nullopt if its month does not have this day. Returns
  /// kLastDay for every day from kLastDay on.
  std::optional<local_days> day_of(std::int64_t index) const {
    if (step.kind == Step::Kind::by_days) {
      return std::min(anchor_day() + days{index * step.count}, kLastDay);
    }
    const std::chrono::year_month_day anchor_date{anchor_day()};
    const std::int64_t month = month_number(anchor_day()) + index * step.count;
    if (month / 12 > 10000) return kLastDay;
    const auto of_month = std::chrono::year{static_cast<int>(month / 12)} /
                          std::chrono::month{static_cast<unsigned>(month % 12) + 1};
    const auto last = (of_month / std::chrono::last).day();
    if (anchor_date.day() > last && options.month_end == MonthEnd::skip) return std::nullopt;
    return local_days{of_month / std::min(anchor_date.day(), last)};
  }

  /// The index of an occurrence that is not after `time`. It is at most a few below the last such
  /// occurrence.
  std::int64_t index_before(sys_seconds time) const {
    const local_days day = std::chrono::floor<days>(zone.span_at(time).to_local(time));
    const std::int64_t elapsed = step.kind == Step::Kind::by_days
                                     ? (day - anchor_day()).count()
                                     : month_number(day) - month_number(anchor_day());
    return std::max<std::int64_t>(elapsed / step.count - 3, 0);
  }
};

Parsed<CalendarInterval> CalendarInterval::make(const CalendarIntervalOptions& options,
                                                std::string_view zone) {
  if (options.every < 1 || options.every > kLargestEvery) {
    return CalendarError{"a calendar interval must have 1 to " + std::to_string(kLargestEvery) +
                         " units, got " + std::to_string(options.every)};
  }
  if (options.anchor < WallTime{} || options.anchor >= kWallTimeEnd) {
    return CalendarError{"the anchor of a calendar interval must be in the years 1970 to 9999"};
  }
  auto loaded = TimeZone::load(zone);
  if (!loaded) return CalendarError{loaded.error().message};
  const auto anchor = std::chrono::floor<seconds>(options.anchor);
  const local_seconds local = loaded->span_at(anchor).to_local(anchor);
  return CalendarInterval(std::make_shared<const State>(
      State{options, step_of(options), *std::move(loaded), anchor, local}));
}

std::optional<WallTime> CalendarInterval::next_after(WallTime time) const {
  const State& state = *state_;
  if (time < state.anchor) return state.anchor;
  if (time >= kWallTimeEnd) return std::nullopt;
  const auto time_of_day = state.local_anchor - state.anchor_day();
  const auto first = state.index_before(std::chrono::floor<seconds>(time));
  for (std::int64_t index = std::max<std::int64_t>(first, 1);; ++index) {
    const auto day = state.day_of(index);
    if (!day) continue;
    if (*day == kLastDay) return std::nullopt;
    const auto instants =
        state.zone.instants_of(*day + time_of_day, state.options.gap, state.options.repeat);
    for (const sys_seconds instant : instants) {
      if (instant > time) {
        return instant < kWallTimeEnd ? std::optional<WallTime>(instant) : std::nullopt;
      }
    }
  }
}

std::optional<WallTime> CalendarInterval::prev_before(WallTime time) const {
  const auto first_in = [this](sys_seconds low, sys_seconds high) -> std::optional<sys_seconds> {
    const auto next = next_after(WallTime{low} - std::chrono::milliseconds{1});
    return next && *next < high ? std::optional(std::chrono::floor<seconds>(*next)) : std::nullopt;
  };
  return last_in(state_->anchor, std::chrono::ceil<seconds>(std::min(time, kWallTimeEnd)),
                 first_in);
}

std::vector<WallTime> CalendarInterval::next(std::size_t count, WallTime from) const {
  return first_after(count, from, [this](WallTime time) { return next_after(time); });
}

}  // namespace detent

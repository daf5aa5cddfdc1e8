#include "engine/schedules/recurrence.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/wall_time.h"
#include "calendar/occurrences.h"
#include "calendar/time_zone.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

// The values of task/ and of the library's headers, which do not know each other.
constexpr std::array kUnits{CalendarUnit::day, CalendarUnit::week, CalendarUnit::month,
                            CalendarUnit::year};
constexpr std::array kUnitWords{"day", "week", "month", "year"};

std::optional<Gap> to_gap(std::optional<ScheduleGap> gap) {
  if (!gap) return std::nullopt;
  return *gap == ScheduleGap::skip ? Gap::skip : Gap::run_after;
}

std::optional<Repeat> to_repeat(std::optional<ScheduleRepeat> repeat) {
  if (!repeat) return std::nullopt;
  constexpr std::array kRepeats{Repeat::first, Repeat::second, Repeat::both};
  return kRepeats[static_cast<std::size_t>(*repeat)];
}

Error to_error(const CalendarError& error, std::string_view field) {
  if (error.column == 0) return {ErrorCode::invalid_argument, error.message, "time_zone"};
  return {ErrorCode::invalid_argument,
          "column " + std::to_string(error.column) + ": " + error.message, std::string(field)};
}

std::string duration_words(milliseconds period) {
  struct Unit {
    milliseconds length;
    const char* word;
  };
  constexpr std::array kLengths{
      Unit{std::chrono::days{1}, "day"}, Unit{std::chrono::hours{1}, "hour"},
      Unit{std::chrono::minutes{1}, "minute"}, Unit{std::chrono::seconds{1}, "second"}};
  for (const Unit& unit : kLengths) {
    if (period % unit.length != milliseconds{0}) continue;
    const auto count = period / unit.length;
    if (count == 1) return unit.word;
    return std::to_string(count) + " " + unit.word + "s";
  }
  return std::to_string(period.count()) + " ms";
}

/// A rule that a schedule goes by has one.
WallTime anchor_of(const auto& rule) { return rule.anchor.value_or(WallTime{}); }

std::string in_words(const IntervalRule& rule) {
  return "Every " + duration_words(rule.period) + " from " + format_rfc3339(anchor_of(rule)) +
         " on";
}

std::string in_words(const CalendarRule& rule, const std::string& zone) {
  const std::string unit = kUnitWords[static_cast<std::size_t>(rule.unit)];
  const std::string every = rule.every == 1 ? unit : std::to_string(rule.every) + " " + unit + "s";
  return "Every " + every + " from " + format_rfc3339(anchor_of(rule)) + " on (" + zone + ")";
}

std::optional<WallTime> next_of(const IntervalRule& rule, WallTime time) {
  const WallTime anchor = anchor_of(rule);
  if (time < anchor) return anchor;
  const WallTime next = anchor + ((time - anchor) / rule.period + 1) * rule.period;
  return next < kWallTimeEnd ? std::optional(next) : std::nullopt;
}

std::optional<WallTime> last_of(const IntervalRule& rule, WallTime time) {
  const WallTime anchor = anchor_of(rule);
  if (time <= anchor) return std::nullopt;
  return anchor + (time - milliseconds{1} - anchor) / rule.period * rule.period;
}

}  // namespace

Recurrence::Recurrence(Rule rule, const RecurringSchedule& schedule)
    : rule_(std::move(rule)), start_(schedule.start), end_(schedule.end) {
  if (const auto* const cron = std::get_if<Cron>(&rule_)) {
    words_ = cron->explain();
  } else if (const auto* const calendar = std::get_if<CalendarRule>(&schedule.rule)) {
    words_ = in_words(*calendar, schedule.time_zone);
  } else {
    words_ = in_words(std::get<IntervalRule>(rule_));
  }
}

Result<Recurrence> Recurrence::make(const RecurringSchedule& schedule) {
  if (const auto* const rule = std::get_if<CronRule>(&schedule.rule)) {
    const Parsed<Cron> cron =
        Cron::parse(rule->expression, schedule.time_zone,
                    {.gap = to_gap(schedule.gap), .repeat = to_repeat(schedule.repeat)});
    if (!cron) return to_error(cron.error(), "cron");
    return Recurrence(cron.value(), schedule);
  }
  if (const auto* const rule = std::get_if<CalendarRule>(&schedule.rule)) {
    CalendarIntervalOptions options{.anchor = anchor_of(*rule),
                                    .unit = kUnits[static_cast<std::size_t>(rule->unit)],
                                    .every = rule->every,
                                    .month_end = rule->month_end == CalendarRule::MonthEnd::clamp
                                                     ? MonthEnd::clamp
                                                     : MonthEnd::skip};
    options.gap = to_gap(schedule.gap).value_or(options.gap);
    options.repeat = to_repeat(schedule.repeat).value_or(options.repeat);
    const Parsed<CalendarInterval> calendar = CalendarInterval::make(options, schedule.time_zone);
    if (!calendar) return to_error(calendar.error(), "calendar");
    return Recurrence(calendar.value(), schedule);
  }
  return Recurrence(std::get<IntervalRule>(schedule.rule), schedule);
}

Result<Recurrence> Recurrence::make_new(const RecurringSchedule& schedule) {
  ASSIGN_OR_RETURN(Recurrence rule, make(schedule));
  // make() has loaded the zone of the other rules. An interval does not use its zone.
  if (std::holds_alternative<IntervalRule>(schedule.rule)) {
    const Result<TimeZone> zone = TimeZone::load(schedule.time_zone);
    if (!zone) return Error{ErrorCode::invalid_argument, zone.error().message, "time_zone"};
  }
  TRY(rule.check_period());
  return rule;
}

Result<void> Recurrence::check_period() const {
  const auto* const cron = std::get_if<Cron>(&rule_);
  if (cron == nullptr) return ok();
  const std::vector<WallTime> first = cron->next(2, WallTime{} - milliseconds{1});
  return first.size() < 2 ? ok() : validate_period("cron", first[1] - first[0]);
}

std::optional<WallTime> Recurrence::next_after(WallTime time) const {
  if (start_) time = std::max(time, *start_ - milliseconds{1});
  const std::optional<WallTime> next = std::visit(
      [time](const auto& rule) -> std::optional<WallTime> {
        if constexpr (requires { rule.next_after(time); }) {
          return rule.next_after(time);
        } else {
          return next_of(rule, time);
        }
      },
      rule_);
  if (!next || (end_ && *next >= *end_)) return std::nullopt;
  return next;
}

std::optional<WallTime> Recurrence::last_before(WallTime time) const {
  if (end_) time = std::min(time, *end_);
  const std::optional<WallTime> last = std::visit(
      [time](const auto& rule) -> std::optional<WallTime> {
        if constexpr (requires { rule.prev_before(time); }) {
          return rule.prev_before(time);
        } else {
          return last_of(rule, time);
        }
      },
      rule_);
  if (!last || (start_ && *last < *start_)) return std::nullopt;
  return last;
}

std::vector<WallTime> Recurrence::next(std::size_t count, WallTime from) const {
  return first_after(count, from, [this](WallTime time) { return next_after(time); });
}

std::string Recurrence::explain() const { return words_; }

}  // namespace detent

#include "detent/cron.h"

#include <utility>
#include <variant>

#include "calendar/cron_explain.h"
#include "calendar/cron_parser.h"
#include "calendar/occurrences.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The first multiple of `period`, counted from 1970, that is after `time`.
std::optional<WallTime> next_multiple(milliseconds period, WallTime time) {
  if (time < WallTime{}) return WallTime{};
  if (time >= kWallTimeEnd) return std::nullopt;
  const WallTime next{(time.time_since_epoch() / period + 1) * period};
  return next < kWallTimeEnd ? std::optional(next) : std::nullopt;
}

std::optional<WallTime> previous_multiple(milliseconds period, WallTime time) {
  if (time <= WallTime{}) return std::nullopt;
  const WallTime last = std::min(time, kWallTimeEnd) - milliseconds{1};
  return WallTime{last.time_since_epoch() / period * period};
}

}  // namespace

struct Cron::State {
  std::string expression;
  std::string zone;
  CronRule rule;
  std::variant<LocalSchedule, milliseconds> schedule;
};

Parsed<Cron> Cron::parse(std::string_view expression, std::string_view zone,
                         const CronOptions& options) {
  const auto parsed = parse_cron(expression);
  if (!parsed) return parsed.error();
  auto loaded = TimeZone::load(zone);
  if (!loaded) return CalendarError{loaded.error().message, 0};
  const CronRule& rule = parsed.value();
  State state{std::string(expression), loaded->name(), rule, milliseconds{}};
  if (const auto* fields = std::get_if<CronFields>(&rule)) {
    const bool is_real_time = fields->has_every_hour();
    state.schedule =
        LocalSchedule{*fields, *std::move(loaded),
                      options.gap.value_or(is_real_time ? Gap::skip : Gap::run_after),
                      options.repeat.value_or(is_real_time ? Repeat::both : Repeat::first)};
  } else {
    state.schedule = std::get<milliseconds>(rule);
  }
  return Cron(std::make_shared<const State>(std::move(state)));
}

std::optional<WallTime> Cron::next_after(WallTime time) const {
  if (const auto* period = std::get_if<milliseconds>(&state_->schedule)) {
    return next_multiple(*period, time);
  }
  SearchCost cost;
  // Times before 1970 give the same result as the last second before 1970, and that cannot
  // overflow.
  const auto from = std::chrono::floor<seconds>(std::max(time, WallTime{seconds{-1}}));
  return next_occurrence(std::get<LocalSchedule>(state_->schedule), from + seconds{1},
                         std::chrono::sys_seconds::max(), cost);
}

std::optional<WallTime> Cron::prev_before(WallTime time) const {
  if (const auto* period = std::get_if<milliseconds>(&state_->schedule)) {
    return previous_multiple(*period, time);
  }
  SearchCost cost;
  return last_occurrence(std::get<LocalSchedule>(state_->schedule),
                         std::chrono::ceil<seconds>(std::min(time, kWallTimeEnd)), cost);
}

std::vector<WallTime> Cron::next(std::size_t count, WallTime from) const {
  return first_after(count, from, [this](WallTime time) { return next_after(time); });
}

std::string Cron::explain() const {
  const std::string text = explain_cron(state_->rule);
  return std::holds_alternative<milliseconds>(state_->rule) ? text
                                                            : text + " (" + state_->zone + ")";
}

const std::string& Cron::expression() const noexcept { return state_->expression; }
const std::string& Cron::zone() const noexcept { return state_->zone; }

}  // namespace detent

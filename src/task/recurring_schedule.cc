#include "task/recurring_schedule.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/fnv.h"
#include "base/wall_time.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxPeriod = kMaxDelay;
constexpr std::uint32_t kMaxEvery = 100'000;

Error invalid(std::string_view field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}

Result<void> validate_instant(std::string_view field, const std::optional<WallTime>& instant) {
  if (!instant || (*instant >= WallTime{} && *instant < kWallTimeEnd)) return ok();
  return invalid(field, std::string(field) + " must be in the years 1970 to 9999");
}

Result<void> validate_rule(const RecurringSchedule& schedule) {
  if (const auto* interval = std::get_if<IntervalRule>(&schedule.rule)) {
    TRY(validate_period("every", interval->period));
    return validate_instant("anchor", interval->anchor);
  }
  if (const auto* calendar = std::get_if<CalendarRule>(&schedule.rule)) {
    if (calendar->every < 1 || calendar->every > kMaxEvery) {
      return invalid("calendar", "every must be 1 to " + std::to_string(kMaxEvery) +
                                     " units, got " + std::to_string(calendar->every));
    }
    return validate_instant("anchor", calendar->anchor);
  }
  if (std::get<CronRule>(schedule.rule).expression.size() > kMaxCronBytes) {
    return invalid("cron",
                   "a cron expression must be at most " + std::to_string(kMaxCronBytes) + " bytes");
  }
  return ok();
}

}  // namespace

Result<void> validate_period(std::string_view field, milliseconds period) {
  if (period >= kLeastPeriod && period <= kMaxPeriod) return ok();
  return invalid(field, "the interval must be 1 s to 4294967295 s, got " +
                            std::to_string(period.count()) + " ms");
}

Result<void> validate(const RecurringSchedule& schedule) {
  if (!is_queue_name(schedule.name) || schedule.name.size() > kMaxScheduleNameBytes) {
    return invalid("name", "a schedule's name must be 1 to " +
                               std::to_string(kMaxScheduleNameBytes) +
                               " letters, digits and - + / ; : . $ _ ( ), not starting with a "
                               "hyphen");
  }
  TRY(validate_rule(schedule));
  if (schedule.time_zone.size() > kMaxTimeZoneBytes) {
    return invalid("time_zone", "a time zone's name must be at most " +
                                    std::to_string(kMaxTimeZoneBytes) + " bytes");
  }
  TRY(validate(ScheduleRequest{
      .queue = schedule.queue, .payload = schedule.payload, .rules = schedule.rules}));
  if (schedule.count == 0) return invalid("count", "count must be at least 1");
  TRY(validate_instant("start", schedule.start));
  TRY(validate_instant("end", schedule.end));
  if (schedule.start && schedule.end && *schedule.end <= *schedule.start) {
    return invalid("end", "end must be after start");
  }
  if (schedule.jitter < milliseconds{0} || schedule.jitter > kMaxJitter) {
    return invalid("jitter", "jitter must be 0 to 24 h");
  }
  if (schedule.misfire_grace < milliseconds{0} || schedule.misfire_grace > kMaxDelay) {
    return invalid("misfire_grace", "misfire_grace must be 0 to 4294967295 s");
  }
  if (schedule.misfire_limit < 1 || schedule.misfire_limit > kMaxMisfires) {
    return invalid("misfire_limit", "misfire_limit must be 1 to " + std::to_string(kMaxMisfires));
  }
  return ok();
}

std::string_view state_of(const ScheduleView& view) noexcept {
  if (!view.broken.empty()) return "broken";
  if (view.record.progress.paused) return "paused";
  return view.next_at ? "active" : "over";
}

std::string_view to_string(CalendarRule::Unit unit) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"day", "week", "month", "year"};
  return kNames[static_cast<std::size_t>(unit)];
}
std::string_view to_string(CalendarRule::MonthEnd month_end) noexcept {
  return month_end == CalendarRule::MonthEnd::clamp ? "clamp" : "skip";
}
std::string_view to_string(ScheduleGap gap) noexcept {
  return gap == ScheduleGap::skip ? "skip" : "run_after";
}
std::string_view to_string(ScheduleRepeat repeat) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"first", "second", "both"};
  return kNames[static_cast<std::size_t>(repeat)];
}
std::string_view to_string(Misfire misfire) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"skip", "once", "all"};
  return kNames[static_cast<std::size_t>(misfire)];
}
std::string_view to_string(ScheduleOverlap overlap) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"allow", "skip", "queue_one"};
  return kNames[static_cast<std::size_t>(overlap)];
}

std::string occurrence_key(const RecurringSchedule& schedule, WallTime occurrence) {
  return schedule.name + "@" + format_rfc3339(occurrence);
}

milliseconds phase_of(const RecurringSchedule& schedule) noexcept {
  const auto range = static_cast<std::uint64_t>(schedule.jitter.count()) + 1;
  // The low bits of FNV-1a are its weakest, so they are shifted out.
  return milliseconds{static_cast<std::int64_t>((fnv1a(schedule.name) >> 20) % range)};
}

}  // namespace detent

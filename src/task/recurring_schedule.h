// A recurring schedule: the rule by which an engine creates tasks, and its progress. Values only.
// engine/schedules/recurrence.h computes the occurrences of a rule, and
// engine/schedules/schedule_registry.h decides about them. docs/guides/recurring.md is the guide
// for users.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "task/limits.h"
#include "task/request.h"
#include "task/task.h"

namespace detent {

/// A cron expression, with extensions. See docs/reference/cron.md.
struct CronRule {
  std::string expression;

  friend bool operator==(const CronRule&, const CronRule&) = default;
};

/// Occurrences every `period` from the anchor on, including the anchor. It counts real time, so the
/// time zone has no effect.
struct IntervalRule {
  std::chrono::milliseconds period{0};
  std::optional<WallTime> anchor =
      {};  // none: ScheduleRegistry::put() uses `start` or the current time

  friend bool operator==(const IntervalRule&, const IntervalRule&) = default;
};

/// Occurrences every `every` units from the anchor on, by the calendar in the schedule's time zone.
struct CalendarRule {
  enum class Unit : std::uint8_t { day, week, month, year };
  enum class MonthEnd : std::uint8_t { clamp, skip };
  std::optional<WallTime> anchor = {};  // as in IntervalRule
  Unit unit = Unit::month;
  std::uint32_t every = 1;
  MonthEnd month_end = MonthEnd::clamp;

  friend bool operator==(const CalendarRule&, const CalendarRule&) = default;
};

/// The policy for local times that do not exist or come twice, as in detent/cron.h.
enum class ScheduleGap : std::uint8_t { skip, run_after };
enum class ScheduleRepeat : std::uint8_t { first, second, both };

/// An occurrence is missed if the engine handles it more than `misfire_grace` late, because the
/// engine was not running or the clock was put forward. The policy for missed occurrences:
enum class Misfire : std::uint8_t {
  skip,  // no task
  once,  // one task, for the last of them
  all,   // a task each, for the last `misfire_limit` of them
};

/// The policy for an occurrence while the task of the previous occurrence is alive.
enum class ScheduleOverlap : std::uint8_t {
  allow,      // another task
  skip,       // no task
  queue_one,  // one task, created when the living task ends; of several occurrences, the first
};

/// The part that a user sets.
struct RecurringSchedule {
  std::string name;  // the form of a queue name, at most kMaxScheduleNameBytes
  std::variant<CronRule, IntervalRule, CalendarRule> rule;
  std::string time_zone = "UTC";
  std::optional<ScheduleGap> gap;        // empty: the default of Cron or CalendarInterval
  std::optional<ScheduleRepeat> repeat;  // empty: as for `gap`
  // For each task that it creates.
  std::string queue;
  Payload payload;
  TaskRules rules;
  /// The schedule ends after this many tasks. Tasks from a trigger do not count.
  std::optional<std::uint64_t> count;
  /// The schedule has no occurrences before `start`, or at or after `end`.
  std::optional<WallTime> start;
  std::optional<WallTime> end;
  /// Each task is due up to this long after its occurrence. The delay depends only on the
  /// schedule's name, so it is equal for all its tasks. So schedules with equal times do not all
  /// become due at the same moment.
  std::chrono::milliseconds jitter{0};
  Misfire misfire = Misfire::once;
  std::chrono::milliseconds misfire_grace{60'000};
  std::uint32_t misfire_limit = 100;  // 1 … kMaxMisfires
  ScheduleOverlap overlap = ScheduleOverlap::allow;

  friend bool operator==(const RecurringSchedule&, const RecurringSchedule&) = default;
};

/// The progress of a schedule.
struct ScheduleProgress {
  WallTime created_at{};
  WallTime decided_to{};              // the occurrences up to here are decided
  std::uint64_t made = 0;             // tasks created for occurrences
  std::uint64_t overlapped = 0;       // occurrences without a task because of `overlap`
  std::optional<WallTime> last_at;    // the occurrence of the last created task
  TaskId last_task;                   // the newest task, also from a trigger; 0: no task yet
  std::optional<WallTime> queued_at;  // ScheduleOverlap::queue_one: this occurrence waits
  bool paused = false;                // occurrences pass without a task

  friend bool operator==(const ScheduleProgress&, const ScheduleProgress&) = default;
};

/// The stored form of a schedule.
struct ScheduleRecord {
  RecurringSchedule schedule;
  ScheduleProgress progress;

  friend bool operator==(const ScheduleRecord&, const ScheduleRecord&) = default;
};

/// A schedule and its current state.
struct ScheduleView {
  ScheduleRecord record;
  /// The next occurrence. Empty: the schedule is paused, complete or broken.
  std::optional<WallTime> next_at;
  std::string words;        // the rule in plain English
  std::string broken = {};  // why this server cannot read the rule; empty: it can

  friend bool operator==(const ScheduleView&, const ScheduleView&) = default;
};

/// A preview of a schedule.
struct SchedulePreview {
  std::string words;  // the rule in plain English
  std::vector<WallTime> next;
};

/// "active", "paused", "over" (no more occurrences) or "broken".
std::string_view state_of(const ScheduleView& view) noexcept;

std::string_view to_string(CalendarRule::Unit unit) noexcept;
std::string_view to_string(CalendarRule::MonthEnd month_end) noexcept;
std::string_view to_string(ScheduleGap gap) noexcept;
std::string_view to_string(ScheduleRepeat repeat) noexcept;
std::string_view to_string(Misfire misfire) noexcept;
std::string_view to_string(ScheduleOverlap overlap) noexcept;

/// Checks the time between two occurrences. Errors: invalid_argument, naming `field`.
Result<void> validate_period(std::string_view field, std::chrono::milliseconds period);

/// Rejects an invalid schedule, with the name of the field. Recurrence::make() checks the rule and
/// the time zone. For a cron expression, call validate_period() after it was parsed.
Result<void> validate(const RecurringSchedule& schedule);

/// The key of the task of an occurrence: "NAME@2026-01-31T09:00:00.000Z". While the server keeps
/// this key, a back-fill or a restored dump cannot create a second task for the occurrence.
std::string occurrence_key(const RecurringSchedule& schedule, WallTime occurrence);
/// The delay between an occurrence and the due time of its task: 0 … jitter. It never changes for a
/// schedule.
std::chrono::milliseconds phase_of(const RecurringSchedule& schedule) noexcept;

}  // namespace detent

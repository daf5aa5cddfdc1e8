// The verbs of recurring schedules, and their step of a turn.
//
// A turn creates the tasks of a schedule. The task and the step of its schedule are in the same
// commit. All these verbs can also answer not_found.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"
#include "engine/verbs/task_verbs.h"
#include "task/recurring_schedule.h"

namespace detent {

class ScheduleVerbs : public VerbGroup {
 public:
  /// Makes or replaces a schedule, as ScheduleRegistry::put(). Durable.
  Result<PutSchedule> put_schedule(RecurringSchedule schedule);
  /// Copies a schedule from another store, as ScheduleRegistry::restore(). Restore the tasks of the
  /// schedule first, so that no task is created a second time. Durable.
  Result<bool> restore_schedule(ScheduleRecord record);
  Result<ScheduleView> find_schedule(const std::string& name) const;
  /// At most `limit` schedules after the name `after`, by name.
  Result<std::vector<ScheduleView>> schedules_after(std::string_view after,
                                                    std::size_t limit) const;
  Result<std::vector<WallTime>> next_occurrences(const std::string& name, std::size_t count) const;
  /// A preview of put_schedule(): the rule in words, and its next occurrences, at most `count`.
  /// Changes nothing.
  Result<SchedulePreview> preview_schedule(RecurringSchedule schedule, std::size_t count) const;
  /// Removes a schedule. Its tasks stay. Durable.
  Result<void> remove_schedule(const std::string& name);
  /// Durable.
  Result<ScheduleView> pause_schedule(const std::string& name);
  Result<ScheduleView> resume_schedule(const std::string& name);
  /// Makes a task now. Durable. Errors: as schedule().
  Result<TaskSnapshot> trigger_schedule(const std::string& name);
  /// Checks that a back-fill of this range may begin. Errors: as
  /// ScheduleRegistry::check_backfill(); invalid_argument if the range ends before it begins. Cost:
  /// one search per occurrence.
  Result<void> check_backfill(const std::string& name, WallTime from, WallTime to) const;
  /// One step of a back-fill: creates the tasks of past occurrences, from `from` on and before
  /// `to`, due now. A step handles at most 1 000 occurrences. While the answer has `next` and no
  /// `stop`, call again from `next` on in a later turn. Durable. Errors: conflict if the schedule
  /// is broken or paused; unavailable after end_waits().
  Result<BackfillStep> backfill(const std::string& name, WallTime from, WallTime to,
                                std::size_t limit);

 protected:
  /// `tasks` must outlive it.
  ScheduleVerbs(EngineParts& parts, TaskVerbs& tasks) noexcept : VerbGroup(parts), tasks_(tasks) {}
  ~ScheduleVerbs() = default;

  /// Creates the tasks of occurrences that are due, a bounded number of them.
  void decide_schedules();

 private:
  class Occurrences;

  TaskVerbs& tasks_;
};

}  // namespace detent

#include "engine/verbs/schedule_verbs.h"

#include <algorithm>
#include <utility>

namespace detent {
namespace {

/// The most occurrences decided in one turn. After a long stop there may be very many of them, and
/// requests and commits must not wait until all are decided.
constexpr std::size_t kOccurrencesATurn = 1'000;
constexpr std::size_t kBackfillLimit = 1'000;

}  // namespace

class ScheduleVerbs::Occurrences final : public OccurrenceTasks {
 public:
  Occurrences(EngineParts& parts, TaskVerbs& verbs) noexcept : parts_(parts), verbs_(verbs) {}

  Result<bool> lives(TaskId id) override {
    const Result<FoundTask> found = parts_.tasks.find(id);
    if (found) return is_live(found->state);
    const ErrorCode code = found.error().code;
    // A damaged task is never handed out, so it does not live.
    if (code == ErrorCode::not_found || code == ErrorCode::data_loss) return false;
    return found.error();
  }

  Result<std::optional<TaskId>> make(const RecurringSchedule& schedule, WallTime occurrence,
                                     WallTime due) override {
    TRY(parts_.expect_working());
    // The occurrence may be in the future, if the clock was ahead when the occurrence was queued.
    ScheduleRequest request{.queue = schedule.queue,
                            .payload = schedule.payload,
                            .rules = schedule.rules,
                            .due = std::min(due, parts_.time.wall_now()),
                            .key = occurrence_key(schedule, occurrence)};
    TRY(validate(request));
    // A schedule is on the home shard of its queue. Its tasks stay on this shard, whatever their
    // keys.
    const Result<TaskSnapshot> task = verbs_.accept(std::move(request));
    // The key already stands for a task. Its content may differ, because the schedule may have been
    // edited since.
    if (!task && task.error().code == ErrorCode::conflict) return std::optional<TaskId>();
    if (!task) return task.error();
    if (task->was_there) return std::optional<TaskId>();
    return std::optional(task->task.id);
  }

 private:
  EngineParts& parts_;
  TaskVerbs& verbs_;
};

Result<PutSchedule> ScheduleVerbs::put_schedule(RecurringSchedule schedule) {
  TRY(parts_.expect_working());
  const std::string name = schedule.name;
  ASSIGN_OR_RETURN(const bool was_there,
                   parts_.records.schedules().put(std::move(schedule), parts_.time.wall_now()));
  ASSIGN_OR_RETURN(ScheduleView view, parts_.records.schedules().view(name));
  return PutSchedule{.view = std::move(view), .was_there = was_there};
}

Result<bool> ScheduleVerbs::restore_schedule(ScheduleRecord record) {
  TRY(parts_.expect_working());
  return parts_.records.schedules().restore(std::move(record), parts_.time.wall_now());
}

Result<ScheduleView> ScheduleVerbs::find_schedule(const std::string& name) const {
  TRY(parts_.expect_working());
  return parts_.records.schedules().view(name);
}

Result<std::vector<ScheduleView>> ScheduleVerbs::schedules_after(std::string_view after,
                                                                 std::size_t limit) const {
  TRY(parts_.expect_working());
  return parts_.records.schedules().page(after, limit);
}

Result<std::vector<WallTime>> ScheduleVerbs::next_occurrences(const std::string& name,
                                                              std::size_t count) const {
  TRY(parts_.expect_working());
  return parts_.records.schedules().next(name, count, parts_.time.wall_now());
}

Result<SchedulePreview> ScheduleVerbs::preview_schedule(RecurringSchedule schedule,
                                                        std::size_t count) const {
  TRY(parts_.expect_working());
  return parts_.records.schedules().preview(std::move(schedule), count, parts_.time.wall_now());
}

Result<void> ScheduleVerbs::remove_schedule(const std::string& name) {
  TRY(parts_.expect_working());
  return parts_.records.schedules().remove(name);
}

Result<ScheduleView> ScheduleVerbs::pause_schedule(const std::string& name) {
  TRY(parts_.expect_working());
  TRY(parts_.records.schedules().pause(name));
  return parts_.records.schedules().view(name);
}

Result<ScheduleView> ScheduleVerbs::resume_schedule(const std::string& name) {
  TRY(parts_.expect_working());
  TRY(parts_.records.schedules().resume(name, parts_.time.wall_now()));
  return parts_.records.schedules().view(name);
}

Result<TaskSnapshot> ScheduleVerbs::trigger_schedule(const std::string& name) {
  TRY(parts_.expect_working());
  Occurrences tasks(parts_, tasks_);
  ASSIGN_OR_RETURN(const TaskId id,
                   parts_.records.schedules().trigger(name, parts_.time.wall_now(), tasks));
  return tasks_.get(id);
}

Result<void> ScheduleVerbs::check_backfill(const std::string& name, WallTime from,
                                           WallTime to) const {
  TRY(parts_.expect_working());
  if (to < from) {
    return Error{ErrorCode::invalid_argument, "to must not be before from", "to"};
  }
  return parts_.records.schedules().check_backfill(name, from, to, parts_.time.wall_now());
}

Result<BackfillStep> ScheduleVerbs::backfill(const std::string& name, WallTime from, WallTime to,
                                             std::size_t limit) {
  TRY(parts_.expect_working());
  TRY(parts_.hand_out.expect_going_on());
  Occurrences tasks(parts_, tasks_);
  return parts_.records.schedules().backfill(name, from, to, std::min(limit, kBackfillLimit),
                                             parts_.time.wall_now(), tasks);
}

void ScheduleVerbs::decide_schedules() {
  Occurrences tasks(parts_, tasks_);
  parts_.records.schedules().decide(parts_.time.wall_now(), kOccurrencesATurn, tasks);
}

}  // namespace detent

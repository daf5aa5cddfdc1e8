// Recurring schedules: their verbs, and their step of a turn.
#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace detent {
namespace {

/// The most occurrences decided in one turn. After a long stop there may be very many of them, and
/// requests and commits must not wait until all are decided.
constexpr std::size_t kOccurrencesATurn = 1'000;
constexpr std::size_t kBackfillLimit = 1'000;

}  // namespace

class Engine::Occurrences final : public OccurrenceTasks {
 public:
  explicit Occurrences(Engine& engine) noexcept : engine_(engine) {}

  Result<bool> lives(TaskId id) override {
    const Result<FoundTask> found = engine_.tasks_.find(id);
    if (found) {
      return found->state == TaskState::scheduled || found->state == TaskState::ready ||
             found->state == TaskState::leased;
    }
    const ErrorCode code = found.error().code;
    // A damaged task is never handed out, so it does not live.
    if (code == ErrorCode::not_found || code == ErrorCode::data_loss) return false;
    return found.error();
  }

  Result<std::optional<TaskId>> make(const RecurringSchedule& schedule, WallTime occurrence,
                                     WallTime due) override {
    if (engine_.stopped_by()) return *engine_.stopped_by();
    // The occurrence may be in the future, if the clock was ahead when the occurrence was queued.
    ScheduleRequest request{.queue = schedule.queue,
                            .payload = schedule.payload,
                            .rules = schedule.rules,
                            .due = std::min(due, engine_.time_.wall_now()),
                            .key = occurrence_key(schedule, occurrence)};
    TRY(validate(request));
    // A schedule is on the home shard of its queue. Its tasks stay on this shard, whatever their
    // keys.
    const Result<TaskSnapshot> task = engine_.accept(std::move(request));
    // The key already stands for a task. Its content may differ, because the schedule may have been
    // edited since.
    if (!task && task.error().code == ErrorCode::conflict) return std::optional<TaskId>();
    if (!task) return task.error();
    if (task->was_there) return std::optional<TaskId>();
    return std::optional(task->task.id);
  }

 private:
  Engine& engine_;
};

Result<PutSchedule> Engine::put_schedule(RecurringSchedule schedule) {
  if (stopped_by()) return *stopped_by();
  const std::string name = schedule.name;
  ASSIGN_OR_RETURN(const bool was_there,
                   records_.schedules().put(std::move(schedule), time_.wall_now()));
  ASSIGN_OR_RETURN(ScheduleView view, records_.schedules().view(name));
  return PutSchedule{.view = std::move(view), .was_there = was_there};
}

Result<bool> Engine::restore_schedule(ScheduleRecord record) {
  if (stopped_by()) return *stopped_by();
  return records_.schedules().restore(std::move(record), time_.wall_now());
}

Result<ScheduleView> Engine::find_schedule(const std::string& name) const {
  if (stopped_by()) return *stopped_by();
  return records_.schedules().view(name);
}

Result<std::vector<ScheduleView>> Engine::schedules_after(std::string_view after,
                                                          std::size_t limit) const {
  if (stopped_by()) return *stopped_by();
  return records_.schedules().page(after, limit);
}

Result<std::vector<WallTime>> Engine::next_occurrences(const std::string& name,
                                                       std::size_t count) const {
  if (stopped_by()) return *stopped_by();
  return records_.schedules().next(name, count, time_.wall_now());
}

Result<SchedulePreview> Engine::preview_schedule(RecurringSchedule schedule,
                                                 std::size_t count) const {
  if (stopped_by()) return *stopped_by();
  return records_.schedules().preview(std::move(schedule), count, time_.wall_now());
}

Result<void> Engine::remove_schedule(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  return records_.schedules().remove(name);
}

Result<ScheduleView> Engine::pause_schedule(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  TRY(records_.schedules().pause(name));
  return records_.schedules().view(name);
}

Result<ScheduleView> Engine::resume_schedule(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  TRY(records_.schedules().resume(name, time_.wall_now()));
  return records_.schedules().view(name);
}

Result<TaskSnapshot> Engine::trigger_schedule(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  Occurrences tasks(*this);
  ASSIGN_OR_RETURN(const TaskId id, records_.schedules().trigger(name, time_.wall_now(), tasks));
  return get(id);
}

Result<void> Engine::check_backfill(const std::string& name, WallTime from, WallTime to) const {
  if (stopped_by()) return *stopped_by();
  if (to < from) {
    return Error{ErrorCode::invalid_argument, "to must not be before from", "to"};
  }
  return records_.schedules().check_backfill(name, from, to, time_.wall_now());
}

Result<BackfillStep> Engine::backfill(const std::string& name, WallTime from, WallTime to,
                                      std::size_t limit) {
  if (stopped_by()) return *stopped_by();
  TRY(expect_going_on());
  Occurrences tasks(*this);
  return records_.schedules().backfill(name, from, to, std::min(limit, kBackfillLimit),
                                       time_.wall_now(), tasks);
}

void Engine::decide_schedules() {
  Occurrences tasks(*this);
  records_.schedules().decide(time_.wall_now(), kOccurrencesATurn, tasks);
}

}  // namespace detent

// Recurring schedules: their verbs, and their step of a turn.
#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {
namespace {

/// How often the rules of schedules are read anew, as tzdata may be newer; so many in one turn.
constexpr Tick kRefreshTicks = 3'600'000;
constexpr std::size_t kRefreshLimit = 50;
/// Occurrences decided in one turn, so that requests and commits come between after a long stop.
constexpr std::size_t kOccurrencesATurn = 1'000;
constexpr std::size_t kBackfillLimit = 1'000;

}  // namespace

class Engine::Occurrences final : public OccurrenceTasks {
 public:
  explicit Occurrences(Engine& engine) noexcept : engine_(engine) {}

  Result<bool> lives(TaskId id) override {
    const Result<Found> found = engine_.find(id);
    if (found) {
      return found->state == TaskState::scheduled || found->state == TaskState::ready ||
             found->state == TaskState::leased;
    }
    const ErrorCode code = found.error().code;
    // A damaged one is never handed out.
    if (code == ErrorCode::not_found || code == ErrorCode::data_loss) return false;
    return found.error();
  }

  Result<std::optional<TaskId>> make(const RecurringSchedule& schedule, WallTime occurrence,
                                     WallTime due) override {
    const Result<TaskSnapshot> task =
        engine_.schedule({.queue = schedule.queue,
                          .payload = schedule.payload,
                          .rules = schedule.rules,
                          .due = due,
                          .key = occurrence_key(schedule, occurrence)});
    // The key stands for a task: what that was asked with may have been another edition.
    if (!task && task.error().code == ErrorCode::conflict) return std::optional<TaskId>();
    if (!task) return task.error();
    if (task->was_there) return std::optional<TaskId>();
    return std::optional(task->task.id);
  }

 private:
  Engine& engine_;
};

Result<PutSchedule> Engine::put_schedule(RecurringSchedule schedule) {
  if (stopped_by_) return *stopped_by_;
  const std::string name = schedule.name;
  ASSIGN_OR_RETURN(const bool was_there, schedules_.put(std::move(schedule), time_.wall_now()));
  ASSIGN_OR_RETURN(ScheduleView view, schedules_.view(name));
  return PutSchedule{.view = std::move(view), .was_there = was_there};
}

Result<bool> Engine::restore_schedule(ScheduleRecord record) {
  if (stopped_by_) return *stopped_by_;
  return schedules_.restore(std::move(record));
}

Result<ScheduleView> Engine::find_schedule(const std::string& name) const {
  if (stopped_by_) return *stopped_by_;
  return schedules_.view(name);
}

Result<std::vector<ScheduleView>> Engine::schedules_after(std::string_view after,
                                                          std::size_t limit) const {
  if (stopped_by_) return *stopped_by_;
  return schedules_.page(after, limit);
}

Result<std::vector<WallTime>> Engine::next_occurrences(const std::string& name,
                                                       std::size_t count) const {
  if (stopped_by_) return *stopped_by_;
  return schedules_.next(name, count, time_.wall_now());
}

Result<SchedulePreview> Engine::preview_schedule(RecurringSchedule schedule,
                                                 std::size_t count) const {
  if (stopped_by_) return *stopped_by_;
  return schedules_.preview(std::move(schedule), count, time_.wall_now());
}

Result<void> Engine::remove_schedule(const std::string& name) {
  if (stopped_by_) return *stopped_by_;
  return schedules_.remove(name);
}

Result<ScheduleView> Engine::pause_schedule(const std::string& name) {
  if (stopped_by_) return *stopped_by_;
  TRY(schedules_.pause(name));
  return schedules_.view(name);
}

Result<ScheduleView> Engine::resume_schedule(const std::string& name) {
  if (stopped_by_) return *stopped_by_;
  TRY(schedules_.resume(name, time_.wall_now()));
  return schedules_.view(name);
}

Result<TaskSnapshot> Engine::trigger_schedule(const std::string& name) {
  if (stopped_by_) return *stopped_by_;
  Occurrences tasks(*this);
  ASSIGN_OR_RETURN(const TaskId id, schedules_.trigger(name, time_.wall_now(), tasks));
  return get(id);
}

Result<BackfillStep> Engine::backfill(const std::string& name, WallTime from, WallTime to) {
  if (stopped_by_) return *stopped_by_;
  if (to < from) {
    return Error{ErrorCode::invalid_argument, "the range ends before it begins", "to"};
  }
  Occurrences tasks(*this);
  return schedules_.backfill(name, from, to, kBackfillLimit, time_.wall_now(), tasks);
}

Result<void> Engine::restore_schedules() {
  ASSIGN_OR_RETURN(std::vector<ScheduleRecord> records, store_.schedules());
  schedules_.restore(std::move(records));
  next_refresh_ = time_.now() + kRefreshTicks;
  return ok();
}

void Engine::decide_schedules() {
  Occurrences tasks(*this);
  schedules_.decide(time_.wall_now(), kOccurrencesATurn, tasks);
}

void Engine::refresh_schedules() {
  if (time_.now() < next_refresh_) return;
  const bool is_round = schedules_.refresh(kRefreshLimit);
  next_refresh_ = time_.now() + (is_round ? kRefreshTicks : 0);
}

}  // namespace detent

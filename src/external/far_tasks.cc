#include "external/far_tasks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/wall_time.h"
#include "detent/check.h"
#include "task/retry.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// The external scheduler may be unable to keep any task of a batch. These tasks stay here, and
/// every round reads them again. After this many such batches, step() waits for the interval.
constexpr int kMostVainBatches = 10;

Error refused(std::string message, std::string field) {
  return {ErrorCode::invalid_argument, std::move(message), std::move(field)};
}

}  // namespace

Result<void> validate(const FarTasksOptions& options) {
  if (options.batch == 0) return refused("must be greater than 0", "batch");
  if (options.claim <= milliseconds{0}) return refused("must be greater than 0", "claim");
  if (options.interval <= milliseconds{0}) return refused("must be greater than 0", "interval");
  if (options.near <= options.interval) return refused("must be longer than interval", "near");
  if (options.far <= options.near) return refused("must be longer than near", "far");
  if (options.far > kMaxDelay) return refused("must be at most 4294967295 s", "far");
  return ok();
}

FarTasks::FarTasks(LocalTasks& local, ExternalScheduler& external, const Clock& clock,
                   const FarTasksOptions& options, std::uint64_t seed)
    : local_(local), external_(external), clock_(clock), options_(options), rng_(seed) {
  DETENT_CHECK(validate(options).has_value());
}

MonotonicTime FarTasks::step() {
  Result<bool> more = move_batches();
  if (more) {
    stats_.failures_in_row = 0;
    return *more ? clock_.now() : clock_.now() + options_.interval;
  }
  ++stats_.errors;
  ++stats_.failures_in_row;
  stats_.last_error = std::move(more).error();
  return clock_.now() + retry_delay(options_.backoff, stats_.failures_in_row, rng_);
}

Result<bool> FarTasks::move_batches() {
  const WallTime now = ceil_to_ms(clock_.wall_now());
  // Hand back first, because only these tasks are urgent.
  ASSIGN_OR_RETURN(const bool more_near, hand_back(now));
  ASSIGN_OR_RETURN(const bool more_marks, clean_up());
  if (stats_.lost) return more_near || more_marks;
  ASSIGN_OR_RETURN(const bool more_far, hand_over(now));
  return more_near || more_marks || more_far;
}

Result<bool> FarTasks::hand_back(WallTime now) {
  ASSIGN_OR_RETURN(Taken taken, external_.take({.now = now,
                                                .until = now + options_.near,
                                                .limit = options_.batch,
                                                .claim = options_.claim}));
  stats_.damaged += taken.damaged.size();
  if (!taken.damaged.empty()) stats_.last_damage = taken.damaged.back();
  const bool is_full = taken.tasks.size() + taken.damaged.size() >= options_.batch;
  // Look after take(), so that the result is valid for the taken tasks.
  TRY(look_for_loss());
  if (stats_.lost) TRY(refuse_what_had_come_back(taken.tasks));
  if (!taken.tasks.empty()) {
    ASSIGN_OR_RETURN(const std::size_t count, local_.put_back(taken.tasks));
    stats_.handed_back += count;
  }
  if (!is_full && !stats_.lost) complete_at_ = now;
  return is_full;
}

Result<bool> FarTasks::clean_up() {
  ASSIGN_OR_RETURN(const std::vector<TaskId> ids, local_.marked(options_.batch));
  if (ids.empty()) return false;
  TRY(external_.forget(ids));
  std::optional<ExternalStamp> stamp;
  if (!stats_.lost) {
    ASSIGN_OR_RETURN(stamp, put_stamp());
  }
  TRY(local_.unmark(ids, stamp));
  if (stamp) stamp_ = stamp;
  return ids.size() >= options_.batch;
}

Result<bool> FarTasks::hand_over(WallTime now) {
  ASSIGN_OR_RETURN(std::vector<Task> tasks, local_.far_tasks(now + options_.far, options_.batch));
  const bool is_full = tasks.size() >= options_.batch;
  std::erase_if(tasks, [this](const Task& task) { return !external_.keeps(task); });
  vain_batches_ = tasks.empty() && is_full ? vain_batches_ + 1 : 0;
  if (vain_batches_ == kMostVainBatches) vain_batches_ = 0;
  if (tasks.empty()) return vain_batches_ > 0;
  TRY(local_.mark(tasks));
  TRY(external_.put(tasks));
  ASSIGN_OR_RETURN(const ExternalStamp stamp, put_stamp());
  // Look for a loss between put() and the first stamp: before that, there is no earlier generation
  // that could be missing.
  if (stamp.tasks < tasks.size()) {
    return Error{ErrorCode::unavailable,
                 "the external scheduler accepted " + std::to_string(tasks.size()) +
                     " tasks, but keeps only " + std::to_string(stamp.tasks),
                 ""};
  }
  ASSIGN_OR_RETURN(const std::size_t count, local_.hand_over(tasks, stamp));
  stamp_ = stamp;
  stats_.handed_over += count;
  return is_full || count < tasks.size();
}

Result<void> FarTasks::look_for_loss() {
  if (!stamp_) {
    ASSIGN_OR_RETURN(stamp_, local_.stamp());
    complete_at_ = std::max(complete_at_, stamp_->complete_at);
  }
  ASSIGN_OR_RETURN(const std::uint64_t there, external_.generation());
  generation_there_ = there;
  std::uint64_t tasks = 0;
  if (there < stamp_->generation) {
    ASSIGN_OR_RETURN(tasks, external_.size());
  }
  // If the external scheduler had no tasks, it could not lose one. But if it has tasks at present,
  // an older state was restored. That counts as a loss, too.
  if (there >= stamp_->generation || (stamp_->tasks == 0 && tasks == 0)) {
    stats_.lost.reset();
    return ok();
  }
  stats_.lost = Error{
      ErrorCode::unavailable,
      "it has lost changes: its generation is " + std::to_string(there) + " and must be at least " +
          std::to_string(stamp_->generation) + "; it keeps " + std::to_string(tasks) +
          " tasks and kept " + std::to_string(stamp_->tasks) + " before" +
          "; restore its data, or accept the loss: " + external_.stamp_command(stamp_->generation),
      ""};
  return ok();
}

/// Returns whether this task, which is there during a loss, had already come back before the loss.
bool FarTasks::had_come_back(const Task& task) const {
  return stats_.lost && task.due_at <= stamp_->complete_at;
}

/// Marks the tasks that had already come back, so that clean_up() forgets them there. Removes them
/// from `tasks`.
Result<void> FarTasks::refuse_what_had_come_back(std::vector<Task>& tasks) {
  // Do not use ranges::stable_partition: clang 14 cannot compile the subrange that it returns.
  const auto old = std::stable_partition(tasks.begin(), tasks.end(),
                                         [this](const Task& task) { return !had_come_back(task); });
  if (old == tasks.end()) return ok();
  TRY(local_.mark(std::span<const Task>(old, tasks.end())));
  tasks.erase(old, tasks.end());
  return ok();
}

/// Stores the next generation there. Returns the stamp that the caller must store here next.
Result<ExternalStamp> FarTasks::put_stamp() {
  // After an error, the stored stamp can be the old or the new one, so stamp_ must be read again.
  const ExternalStamp last = *std::exchange(stamp_, std::nullopt);
  const std::uint64_t generation = std::max(generation_there_, last.generation) + 1;
  TRY(external_.stamp(generation_there_, generation));
  generation_there_ = generation;
  ASSIGN_OR_RETURN(const std::uint64_t tasks, external_.size());
  return ExternalStamp{.generation = generation, .tasks = tasks, .complete_at = complete_at_};
}

Result<std::optional<Task>> FarTasks::find(TaskId id) {
  ASSIGN_OR_RETURN(const bool is_known, local_.is_here_or_marked(id));
  if (is_known) return std::optional<Task>();
  ASSIGN_OR_RETURN(std::optional<Task> task, external_.find(id));
  TRY(look_for_loss());
  if (!task && stats_.lost) return *stats_.lost;
  if (task && had_come_back(*task)) return std::optional<Task>();
  return task;
}

Result<bool> FarTasks::fetch(TaskId id) {
  ASSIGN_OR_RETURN(const std::optional<Task> task, find(id));
  if (!task) return false;
  ASSIGN_OR_RETURN(const std::size_t count, local_.put_back(std::span(&*task, 1)));
  stats_.handed_back += count;
  return true;
}

}  // namespace detent

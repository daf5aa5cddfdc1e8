// Moves far tasks to an external scheduler, and back when they are near.
//
// While a task moves, both places have a copy of it, so it cannot be lost. On the way there, the
// copy is stored there first and then removed here. On the way back, the copy is stored here first
// and then removed there.
//
// The marks decide which copy counts. They are stored here only. A mark on an id means: there may
// be a copy there, and it does not count. FarTasks sets the mark before it puts a task there. The
// durable write that removes the task here also removes the mark: from then on the copy there
// counts. The durable write that puts the task back here sets the mark again. Therefore each task
// counts in exactly one place, however often either side or the network fails:
//  1. Every task that has not ended is here, or is there without a mark.
//  2. A task without a mark is in one place only. So a task that ended here does not come back.
// The next step cleans up the marks: it removes the copies there and then the marks here. So there
// are marks for about one batch of tasks at a time, and not for all tasks that are there.
//
// The external scheduler can lose changes: somebody empties it, or restores an older state.
// Therefore each batch that changes it ends with a stamp. A stamp stores a rising number, the
// generation, there first. Then the durable write that relies on the batch stores the number here.
// Each step, and each find() or fetch(), compares the two numbers. If the number there is lower,
// changes were lost. The exception is an external scheduler that had no tasks at the stamp and has
// none at present. A loss lasts until the data is restored, or until the operator accepts the loss
// by storing the number. During a loss:
//  3. No further task is handed over. The search for a task that is not there ends with an error,
//     because the task may be one of the lost ones.
//  4. A copy that had been forgotten there, because its task came back or stayed here, does not
//     count. LocalTasks remembers each forgotten copy until long after its due time. For older
//     copies, FarTasks uses the time of the last complete look: every task that was due before this
//     time had come back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "engine/values/external_stamp.h"
#include "external/external_scheduler.h"
#include "task/task.h"

namespace detent {

/// The store of tasks here, as FarTasks needs it. Each call is atomic. Between two calls, tasks may
/// change, end or become due. A call that changes something returns ok after the change is durable.
/// After an error, the change has happened completely or not at all, and the caller does not know
/// which.
class LocalTasks {
 public:
  virtual ~LocalTasks() = default;

  /// Returns at most `limit` scheduled tasks that are due after `after`, in any order. If a call
  /// returns `limit` tasks, the next call continues with other tasks, until all were returned once.
  virtual Result<std::vector<Task>> far_tasks(WallTime after, std::size_t limit) = 0;
  /// Marks the ids of these tasks. Ids that are already marked keep their marks.
  virtual Result<void> mark(std::span<const Task> tasks) = 0;
  /// Removes every task that is still exactly as given, together with its mark. Tasks that have
  /// changed or ended since keep their marks. Also stores the stamp. Returns the number of removed
  /// tasks. All of this is one durable write.
  virtual Result<std::size_t> hand_over(std::span<const Task> tasks,
                                        const ExternalStamp& stamp) = 0;
  /// Stores these tasks under their own ids, and marks them. It skips a task that is here, and a
  /// task that is marked, because its copy there does not count. If the copy of a task was
  /// forgotten and the task was not handed over since, the call marks the task but does not store
  /// it. Returns the number of stored tasks. All of this is one durable write.
  virtual Result<std::size_t> put_back(std::span<const Task> tasks) = 0;
  /// Returns at most `limit` marked ids. The result is empty only if no id is marked.
  virtual Result<std::vector<TaskId>> marked(std::size_t limit) = 0;
  /// Removes these marks, and remembers that the copies there were forgotten. The same durable
  /// write stores the stamp, if one is given.
  virtual Result<void> unmark(std::span<const TaskId> ids,
                              const std::optional<ExternalStamp>& stamp) = 0;
  /// Returns true if a copy there does not count: the task is here, is marked, or was forgotten.
  virtual Result<bool> is_here_or_marked(TaskId id) = 0;
  /// The stamp that was stored last, or ExternalStamp{} if there is none.
  virtual Result<ExternalStamp> stamp() = 0;
};

struct FarTasksOptions {
  /// Tasks that are due within this time from now are handed back. The external scheduler can be
  /// down for almost this long without making a task late.
  std::chrono::milliseconds near = std::chrono::hours{1};
  /// Tasks that are due later than this time from now are handed over. It is longer than `near`, so
  /// that no task moves forth and back repeatedly.
  std::chrono::milliseconds far = std::chrono::hours{2};
  /// The time between two steps when there is nothing to do. Shorter than `near`.
  std::chrono::milliseconds interval = std::chrono::minutes{1};
  std::chrono::milliseconds claim = std::chrono::minutes{1};
  std::size_t batch = 1'000;  // the most tasks that a step hands back, cleans up or hands over
  Backoff backoff{std::chrono::milliseconds{500}, std::chrono::milliseconds{30'000}};
};
/// Refuses options that contradict each other. The error names the field.
Result<void> validate(const FarTasksOptions& options);

/// Counts since the construction of FarTasks.
struct FarTasksStats {
  std::uint64_t handed_over = 0;
  std::uint64_t handed_back = 0;
  std::uint64_t damaged = 0;  // records that could not be read and were set aside there
  std::uint64_t errors = 0;   // steps that failed
  std::uint32_t failures_in_row = 0;
  /// The error of the last step that failed.
  std::optional<Error> last_error = {};
  /// Why the last record that was set aside could not be read.
  std::optional<Error> last_damage = {};
  /// Set while changes are lost: what was lost, and what to do.
  std::optional<Error> lost = {};
};

/// For use by one thread. This should not be a thread that serves requests, because the calls wait
/// for the external scheduler. A step needs memory for one batch; between steps it needs none.
class FarTasks {
 public:
  /// Requires: validate(options) is ok. `seed` seeds the jitter of the backoff.
  FarTasks(LocalTasks& local, ExternalScheduler& external, const Clock& clock,
           const FarTasksOptions& options, std::uint64_t seed);

  /// Hands back, cleans up and hands over, at most one batch of each. Returns when to call again:
  /// now if there is more to do, else after the interval. After an error, which stats() has, it
  /// returns the end of the backoff.
  MonotonicTime step();

  /// Returns a task that is there, and leaves it there. Returns std::nullopt if the task is not
  /// there, or if the copy there does not count. Errors: stats().lost, if the task may be lost.
  Result<std::optional<Task>> find(TaskId id);
  /// Moves a task back here immediately, so that it can be moved, run, cancelled or changed.
  /// Returns false if the task is not there, or if the copy there does not count. In that case the
  /// caller should look here again, because the task may have come back since. Errors: as find().
  Result<bool> fetch(TaskId id);

  const FarTasksStats& stats() const noexcept { return stats_; }

 private:
  /// move_batches(), hand_back(), clean_up() and hand_over() return whether there is more to do.
  Result<bool> move_batches();
  Result<bool> hand_back(WallTime now);
  Result<bool> clean_up();
  Result<bool> hand_over(WallTime now);
  Result<void> look_for_loss();
  bool had_come_back(const Task& task) const;
  Result<void> refuse_what_had_come_back(std::vector<Task>& tasks);
  Result<ExternalStamp> put_stamp();

  LocalTasks& local_;
  ExternalScheduler& external_;
  const Clock& clock_;
  const FarTasksOptions options_;
  Rng rng_;
  FarTasksStats stats_;
  int vain_batches_ = 0;                // batches in a row without a task that can be handed over
  std::optional<ExternalStamp> stamp_;  // the stamp stored here; empty if it must be read again
  std::uint64_t generation_there_ = 0;  // at the last comparison
  WallTime complete_at_{};              // the complete_at of the next stamp
};

}  // namespace detent

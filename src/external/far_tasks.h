// Moves far tasks over to an external scheduler, and back when they are near.
//
// A task is moved with two copies in between, never none: over by a copy there, then the removal
// here; back by a copy here, then the removal there. Which copy counts is decided here alone, by
// marks. A mark on an id says: there may be a copy there, and it does not count. It is set before a
// task is put there, and goes in the same durable write that removes the task here: at that instant
// the copy there begins to count. It is set again in the write that puts the task back. So however
// often either side, or the way between, fails, each task counts in exactly one place:
//  1. Every task that was not ended is here, or is there without a mark.
//  2. A task without a mark is in one place only. (So what was ended here does not come back.)
// Marks that were left are cleaned up in the next step: the copy is forgotten there, then the mark
// goes. So there are marks for a batch or so at a time, not for all tasks that are there.
//
// The other system may lose what it kept: it is emptied, or put back to an older state. Therefore
// each batch that changed it ends with a stamp: a number that rises, stored there, then here in the
// durable write that relies on the batch. Each step, and each look for a task, compares the two. A
// lower number there means a loss, except when it kept no tasks and has none. Until the number
// there is restored, or somebody accepts the loss and sets it:
//  3. No further task is handed over, and a task that is not found there may be lost: an error.
//  4. No copy counts that had been forgotten there, because its task came back or stayed.
//  LocalTasks
//     remembers each until long after it was due; and what was due before the last look at which
//     all near tasks had come back had come back.
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
#include "engine/external_stamp.h"
#include "external/external_scheduler.h"
#include "task/task.h"

namespace detent {

/// What is needed of those who keep tasks here. Each call is one step that nothing else comes
/// between; between two calls tasks may change, end or become due. What changes something is
/// durable when it returns ok; after an error it is unknown whether it happened, as a whole.
class LocalTasks {
 public:
  virtual ~LocalTasks() = default;

  /// Tasks that wait and are due after `after`, at most `limit`, in any order: others than in the
  /// call before when that found `limit` of them, until all have been met.
  virtual Result<std::vector<Task>> far_tasks(WallTime after, std::size_t limit) = 0;
  /// Marks these ids; those that are marked stay so.
  virtual Result<void> mark(std::span<const Task> tasks) = 0;
  /// Removes, with its mark, every task that is here just as it is given, and stores the stamp. The
  /// others keep their marks. Returns: how many were removed. One durable write.
  virtual Result<std::size_t> hand_over(std::span<const Task> tasks,
                                        const ExternalStamp& stamp) = 0;
  /// Puts these tasks under their own ids, and marks them; but not one that is marked already,
  /// whose copy there does not count, nor one that is here. One whose copy was forgotten before,
  /// and which was not handed over since, is only marked. Returns: how many were put. One durable
  /// write.
  virtual Result<std::size_t> put_back(std::span<const Task> tasks) = 0;
  /// Some ids that are marked, at most `limit`; none only when there is none.
  virtual Result<std::vector<TaskId>> marked(std::size_t limit) = 0;
  /// Remembers that their copies were forgotten there. Stores the stamp, if there is one, in the
  /// same durable write.
  virtual Result<void> unmark(std::span<const TaskId> ids,
                              const std::optional<ExternalStamp>& stamp) = 0;
  /// Whether a copy there does not count: also one that was forgotten.
  virtual Result<bool> is_here_or_marked(TaskId id) = 0;
  /// The one stored last; a default one when there is none.
  virtual Result<ExternalStamp> stamp() = 0;
};

struct FarTasksOptions {
  /// Tasks due within `near` from now are handed back. It is how long the other system may be down
  /// without a task being late.
  std::chrono::milliseconds near = std::chrono::hours{1};
  /// Tasks due later than `far` from now are handed over. Above `near`, so that none goes to and
  /// fro.
  std::chrono::milliseconds far = std::chrono::hours{2};
  /// Between two looks when there is nothing to do. Below `near`.
  std::chrono::milliseconds interval = std::chrono::minutes{1};
  std::chrono::milliseconds claim = std::chrono::minutes{1};
  std::size_t batch = 1'000;  // tasks a step handles at a time, of each kind
  Backoff backoff{std::chrono::milliseconds{500}, std::chrono::milliseconds{30'000}};
};
/// Refuses options that contradict each other, naming the field.
Result<void> validate(const FarTasksOptions& options);

/// Counts since it was made.
struct FarTasksStats {
  std::uint64_t handed_over = 0;
  std::uint64_t handed_back = 0;
  std::uint64_t damaged = 0;  // set aside there
  std::uint64_t errors = 0;   // steps that failed
  std::uint32_t failures_in_row = 0;
  /// Of the last step that failed.
  std::optional<Error> last_error = {};
  /// Why the last record that was set aside could not be read.
  std::optional<Error> last_damage = {};
  /// The other system has lost changes, as of the last look: how many, and what to do.
  std::optional<Error> lost = {};
};

/// Confined to one thread, which should not be the one that serves callers: its calls wait for the
/// other system. Costs memory for one batch during a step, nothing between steps.
class FarTasks {
 public:
  /// Requires: validate(options) is ok. `seed` is for the jitter of the backoff.
  FarTasks(LocalTasks& local, ExternalScheduler& external, const Clock& clock,
           const FarTasksOptions& options, std::uint64_t seed);

  /// Hands back, cleans up and hands over, a batch of each. Returns: when to call again. That is
  /// now when there is more to do, and after a backoff when something failed, which stats() tells.
  MonotonicTime step();

  /// A task that is there, as it is, without fetching it. Nothing: as for fetch(). Errors:
  /// stats().lost for a task that may be among the lost ones.
  Result<std::optional<Task>> find(TaskId id);
  /// Fetches a task at once, so that it can be moved, run, cancelled or changed here. False: it is
  /// not there, or that copy does not count; one that was not here before may have come, so look
  /// once more. Errors: also as find().
  Result<bool> fetch(TaskId id);

  const FarTasksStats& stats() const noexcept { return stats_; }

 private:
  /// Each returns whether there is more to do.
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
  int vain_batches_ = 0;                // in a row
  std::optional<ExternalStamp> stamp_;  // as it is stored here, if that is known
  std::uint64_t generation_there_ = 0;  // as of the last look
  WallTime complete_at_{};              // for the next stamp
};

}  // namespace detent

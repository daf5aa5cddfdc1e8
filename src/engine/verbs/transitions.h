// Carries out the changes of a task's state (task/lifecycle.h) in the parts: in memory, in the
// counts of its queue, in the forecast, and in the records that the next commit writes.
//
// All changes of a state go through this class, except the changes that only touch memory:
// become_due, lease, extend, and release without a new record (LoadedTasks). Thread-compatible.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/rng.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/task_news.h"
#include "engine/records/task_records.h"
#include "engine/values/engine_time.h"
#include "engine/window/load_window.h"
#include "engine/window/loaded_tasks.h"
#include "task/lifecycle.h"
#include "task/request.h"

namespace detent {

/// How an attempt failed: the verb, and the verb that replaces it after the last attempt.
struct AttemptEnd {
  TaskVerb verb;
  TaskVerb last;
};
inline constexpr AttemptEnd kFailed{TaskVerb::fail, TaskVerb::fail_last};
inline constexpr AttemptEnd kRanOut{TaskVerb::run_out, TaskVerb::run_out_last};

class Transitions {
 public:
  /// The parts that it uses. All must outlive it.
  struct Parts {
    const EngineTime& time;
    QueueRegistry& queues;
    TaskNews& news;
    TaskRecords& records;
    LoadedTasks& tasks;
    LoadWindow& window;
  };
  /// `seed` is for the jitter of retries.
  Transitions(Parts parts, std::uint64_t seed) : parts_(parts), rng_(seed) {}

  // Every function here asks the table for the state after `verb`, and carries out this outcome.
  // The table must allow the verb: a verb that may be refused is checked with next_state() first.

  /// A new task. `verb` is schedule, restore or restore_dead. Requires: its queue has a number.
  void add(Queue& queue, Task&& task, TaskVerb verb, Deadline deadline);

  // Without a lease.

  /// Gives a task another due time: it is scheduled or ready. A dead task becomes live.
  TaskSnapshot reschedule(FoundTask found, TaskVerb verb, Deadline deadline);
  /// The same with the due time now, because of a request.
  TaskSnapshot make_due(FoundTask found, TaskVerb verb);
  /// Stages the changed record of a task that keeps its due time and its state.
  TaskSnapshot edit(FoundTask found);
  /// Loads a ready task of the store. If the window does not reach its place, the task moves to the
  /// ready lane of its queue, because a task of that lane may be in memory at any place.
  LoadedTask* load_ready(const FoundTask& found);

  // From leased. The task leaves the memory, and returns if its new place is within the window.

  /// Adds an ended attempt to the record of the task.
  void note_attempt(const Lease& lease, Task& task, std::string error);
  /// The attempt failed: the task comes back after a delay, or is dead after its last attempt.
  LeaseOutcome fail_attempt(const Lease& lease, Task task, AttemptEnd end, const FailRequest& how);
  /// Ends the lease of a task whose record has changed. A task that is ready after `verb` keeps its
  /// due time. A task that is scheduled is due after `delay`.
  void end_lease(LoadedTask& loaded, Task task, TaskVerb verb,
                 std::chrono::milliseconds delay = {});
  /// The lease expired before its holder ended it.
  void run_out(const Lease& lease, Task task);

  // To completed or cancelled.

  /// The task has ended: stages its removal, or its record among the ended tasks, and removes it
  /// from memory.
  Result<void> remove(FoundTask found, TaskVerb verb);
  Result<void> remove(LoadedTask& loaded, TaskVerb verb);

 private:
  void place(Queue& queue, Task&& task, std::optional<Place> from, Deadline deadline);
  void put_dead(Queue& queue, Task&& task, std::optional<Place> from);
  TaskState due_state(TaskState next, const Deadline& deadline) const;
  void note_end(TaskId id, Queue& queue, TaskState end);

  const Parts parts_;
  Rng rng_;
};

}  // namespace detent

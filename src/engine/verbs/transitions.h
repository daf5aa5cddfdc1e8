// Carries out the changes of a task's state (task/lifecycle.h) in the parts: in memory, in the
// counts of its queue, in the forecast, and in the records that the next commit writes.
//
// A verb decides which change it makes. All changes of a state go through this class, except the
// change from ready to leased and back, which only touches memory (LoadedTasks). Thread-compatible.
#pragma once

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

  // To scheduled or ready.

  /// Stages a live task at its place in the due order. The task is also in memory if the place is
  /// within the window. `from` is the place that it leaves (empty for a new task).
  void place(Queue& queue, Task task, std::optional<Place> from, Deadline deadline);
  /// Gives a task that is not leased another due time. A dead task becomes live.
  TaskSnapshot put_at(FoundTask found, Deadline deadline);
  /// The same with the due time now, because of a request.
  TaskSnapshot put_now(FoundTask found);
  /// Stages the changed record of a task that keeps its due time.
  TaskSnapshot put_changed(FoundTask found);
  /// Loads a ready task of the store. If the window does not reach its place, the task moves to the
  /// ready lane of its queue, because a task of that lane may be in memory at any place.
  LoadedTask* load_ready(const FoundTask& found);

  // From leased.

  /// Adds an ended attempt to the record of the task.
  void note_attempt(const Lease& lease, Task& task, std::string error);
  /// The attempt of a leased task failed: the task comes back after a delay, or is dead after its
  /// last attempt. `verb` is fail or run_out.
  LeaseOutcome end_attempt(const Lease& lease, Task task, TaskVerb verb, const FailRequest& how);
  /// The task becomes dead.
  void rest_dead(LoadedTask& loaded, Task task, TaskVerb verb);
  /// Ends the lease of a task whose record has changed. The task becomes ready at `deadline`.
  /// Without a deadline, it is ready immediately and keeps its due time.
  void put_record_back(LoadedTask& loaded, Task task, std::optional<Deadline> deadline);
  /// The lease expired before its holder ended it.
  void run_out(const Lease& lease, Task task);

  // To completed or cancelled.

  /// The task has ended: stages its removal, or its record among the ended tasks, and removes it
  /// from memory.
  Result<void> remove(FoundTask found, TaskVerb verb);
  Result<void> remove(LoadedTask& loaded, TaskVerb verb);

 private:
  void tell_end(TaskId id, const Queue& queue, TaskState end);

  const Parts parts_;
  Rng rng_;
};

}  // namespace detent

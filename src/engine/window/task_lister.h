// The list of tasks, one step at a time.
//
// The list has three parts. Each part has an order that does not change while no verb touches the
// task: dead tasks by their place in the lane, live tasks by (due time, id), ended tasks by place.
// A live task is in the due order or in a ready lane, and may spill from one to the other at any
// time. So the list merges both by due time. A ready lane is sorted by priority first. Each of its
// priorities is a **run** in due order, and the lister finds a run with one look into the store.
//
// A step reads some records of each source. If the read of a source ends early, the step ends at
// the place of the earliest such end. The next step continues there. The store does not show the
// changes of this turn yet, so the step takes these tasks from the staged records.
// It has no state except its references. Thread-compatible.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/task_records.h"
#include "engine/values/engine_time.h"
#include "engine/values/engine_values.h"
#include "engine/window/loaded_tasks.h"
#include "store/store.h"
#include "task/task_filter.h"

namespace detent {

class TaskLister {
 public:
  /// The parts that it reads; all must outlive it.
  struct Parts {
    Store& store;
    const EngineTime& time;
    const QueueRegistry& queues;
    TaskRecords& records;
    const LoadedTasks& tasks;
  };
  explicit TaskLister(Parts parts) noexcept : parts_(parts) {}

  /// As Engine::list().
  Result<TaskList> list(const TaskFilter& filter, Place after, std::size_t limit);

 private:
  /// A part of the list: all its tasks after some place, up to and including `until`.
  struct Stretch {
    std::vector<StoredTask> tasks;  // in any order
    Place until;                    // as a place of the list
    bool is_last = false;           // no part follows
  };

  Result<Stretch> list_dead(const TaskFilter& filter, Place after);
  Result<Stretch> list_live(const TaskFilter& filter, Place after);
  Result<Stretch> list_leased(const TaskFilter& filter, Place after);
  Result<Stretch> list_ended(Place after);
  Result<Stretch> list_by_key(const TaskFilter& filter);
  Result<std::vector<Place>> ready_runs(const TaskFilter& filter);
  template <class Look>
  void look_at_queues(const TaskFilter& filter, std::uint64_t QueueCounts::*count, Look look) const;
  TaskList pick(const TaskFilter& filter, Place after, Stretch stretch, std::size_t limit) const;

  const Parts parts_;
};

}  // namespace detent

// The list of tasks, a step at a time.
//
// The list has three parts, each in an order that a task keeps while nobody touches it: the dead,
// by place in their lanes; the live, by (due time, id); the ended, by place. A live task may lie in
// the due order or in a ready lane, and spill from one to the other at any time; so the two are
// merged by due time. A ready lane is sorted by priority first: each of its priorities is a **run**
// in due order, found with one look into the store.
//
// A step reads some records of each source. Up to the first place at which one of them was cut
// short it has all there are; what is behind that is left to the next step. What this turn has
// changed the store does not show yet: it is taken from what is staged instead.
// It has no state but what it looks at. Thread-compatible.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "engine/engine_time.h"
#include "engine/engine_values.h"
#include "engine/loaded_tasks.h"
#include "engine/queue_book.h"
#include "engine/task_records.h"
#include "store/store.h"
#include "task/task_filter.h"

namespace detent {

class TaskLister {
 public:
  /// What it looks at; all must outlive it.
  struct Parts {
    Store& store;
    const EngineTime& time;
    const QueueBook& queues;
    TaskRecords& records;
    const LoadedTasks& tasks;
  };
  explicit TaskLister(Parts parts) noexcept : parts_(parts) {}

  /// As Engine::list().
  Result<TaskList> list(const TaskFilter& filter, Place after, std::size_t limit);

 private:
  /// A part of the list: all that there are after some place, up to and with `until`.
  struct Stretch {
    std::vector<StoredTask> tasks;  // in any order
    Place until;                    // as a place of the list
    bool is_last = false;           // nothing comes after it
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

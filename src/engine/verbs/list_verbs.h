// The verbs that read tasks and change no task: lists, the first task of a queue in each state, and
// the time that a task still needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"
#include "task/task_filter.h"

namespace detent {

class ListVerbs : public VerbGroup {
 public:
  using VerbGroup::VerbGroup;

  /// One part of a list: at most `limit` > 0 tasks that match the filter, after the place `after`.
  /// The list begins with the dead tasks, queue by queue, in the order of their death. The live
  /// tasks follow by due time. The ended tasks are last, the next task to be forgotten first. A
  /// call reads a bounded number of records, so the answer may be short or empty. To continue, call
  /// again with its `next`. If no verb touches a task between two calls, the list has the task
  /// exactly once, even if the task moves between memory and disk. Damaged records are passed over.
  /// Errors: resource_exhausted if the ready tasks on disk have too many priorities for a merge by
  /// due time, or if a key must be searched in too many queues.
  Result<TaskList> list(const TaskFilter& filter, Place after, std::size_t limit);
  /// Tasks of all states by id, to copy a store that is in use. A task that exists during the whole
  /// copy is read exactly once. The answer shows the last commit; a leased task is shown as before
  /// its lease.
  Result<TaskPage> tasks_after(TaskId after, std::size_t limit);

  // The first task of a queue in a state, with its payload. For ready tasks this is the next task
  // that would be handed out. For dead tasks it is the task that has been dead longest. Errors:
  // not_found if there is no such task.
  Result<TaskSnapshot> first_ready(const std::string& queue);
  Result<TaskSnapshot> first_dead(const std::string& queue);
  /// Searches the due order of all queues for the next due task of the queue, in steps, as purge()
  /// does. If a step does not find it, `found` is empty, and `next` is the place for the next call.
  Result<ScheduledStep> first_scheduled(const std::string& queue, Place from = begin_of(Lane::due));
  /// The time until the lease of a task expires, or until a scheduled task is ready. 0 in the other
  /// states. Errors: not_found.
  Result<std::chrono::milliseconds> time_left(TaskId id);
};

}  // namespace detent

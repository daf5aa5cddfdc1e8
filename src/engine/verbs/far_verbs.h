// The verbs of far tasks, which an external scheduler keeps (external/far_tasks.h).
//
// While a task is away, no verb finds it and no count includes it. A mark on an id says that the
// copy in the external scheduler is not valid. All these changes, except unmark(), are synced with
// the next commit, whatever `sync_interval` is. Otherwise a power cut could remove them here, while
// the external scheduler keeps its side.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/values/external_stamp.h"
#include "engine/verbs/engine_parts.h"
#include "engine/verbs/task_verbs.h"

namespace detent {

class FarVerbs : public VerbGroup {
 public:
  /// Tasks after `after` in the due order that are only on disk, as of the last commit.
  Result<TaskPage> far_tasks(Place after, std::size_t limit);
  /// Marks tasks. Pass the copies of the external scheduler: after a copy is forgotten, its due
  /// time decides how long the engine remembers the id.
  void mark(std::span<const Task> tasks);
  /// Removes marks, after the external scheduler has forgotten the copies. Requires: the marks are
  /// in the last commit.
  Result<void> unmark(std::span<const TaskId> ids);
  /// At most `limit` > 0 marked ids, as of the last commit. Empty only if no id is marked.
  Result<std::vector<TaskId>> marked(std::size_t limit);
  /// Removes tasks and their marks, because the external scheduler now keeps the tasks. A task is
  /// removed if the stored task equals the given task, is only on disk and has no key. Tasks with a
  /// key stay, because a key stands for a task that is here. Returns the number of removed tasks.
  Result<std::size_t> hand_over(std::span<const Task> tasks);
  /// Restores and marks tasks that the external scheduler hands back. A marked task is skipped. A
  /// task that is already here is only marked. A task is also only marked if its copy was
  /// forgotten, until kForgottenFor after its due time, unless it was handed over again since.
  /// Returns the number of restored tasks. An error of one task is as for restore(); the call
  /// continues with the other tasks.
  Result<std::size_t> put_back(std::span<const Task> tasks);
  /// Whether a copy in the external scheduler is not valid, because the task is here, is marked, or
  /// its copy was forgotten.
  Result<bool> is_here_or_marked(TaskId id);
  void set_external_stamp(const ExternalStamp& stamp);
  /// The stored stamp. A default stamp if there is none, or if it cannot be read.
  Result<ExternalStamp> external_stamp();

 protected:
  /// `tasks` must outlive it.
  FarVerbs(EngineParts& parts, TaskVerbs& tasks) noexcept : VerbGroup(parts), tasks_(tasks) {}
  ~FarVerbs() = default;

 private:
  Result<bool> is_marked(TaskId id);
  Result<bool> was_forgotten(TaskId id);
  Result<bool> put_back(const Task& task);
  Result<KeyRecord> lasting_key(std::string_view key);

  TaskVerbs& tasks_;
};

}  // namespace detent

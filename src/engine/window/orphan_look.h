// Looks for orphans among the tasks in memory, a small part at a time. An orphan is a task in a
// state that no code would ever end.
//
// Examples are a leased task without a timer for the end of its lease, a scheduled task without a
// timer, and a ready task in no order. Systems that keep such a state on disk have tasks that are
// stuck for ever (asynq #1144, BullMQ #2384, oban #364). Here an orphan would be a bug and would
// exist only in memory. The count should stay 0, and a restart hands the task out. So an orphan is
// counted once and left unchanged, so that it can be examined. Thread-compatible.
#pragma once

#include <cstdint>

#include "detent/tick.h"
#include "engine/window/loaded_tasks.h"

namespace detent {

class OrphanLook {
 public:
  /// Looks at the next part of the tasks. Does nothing if the last part was looked at shortly
  /// before.
  void go_on(LoadedTasks& tasks, Tick now);
  /// The number of orphans found since the start.
  std::uint64_t found() const noexcept { return found_; }

 private:
  std::uint32_t at_ = 0;  // the slot that was looked at last
  Tick next_ = 0;         // the earliest time of the next look
  std::uint64_t found_ = 0;
};

}  // namespace detent

// A look, a small part at a time, at the tasks in memory: for one that no step would touch again.
//
// A leased task without the timer that ends its lease, a scheduled one without the timer that fires
// it, a ready one in no order: systems that keep such a state on disk find tasks stuck in it for
// ever (asynq #1144, BullMQ #2384, oban #364). Here it would be a bug, and is in memory only: the
// count should stay 0, and a restart hands the task out. So what is found is counted, once, and
// left as it is, for whoever looks into it. Thread-compatible.
#pragma once

#include <cstdint>

#include "detent/tick.h"
#include "engine/loaded_tasks.h"

namespace detent {

class OrphanLook {
 public:
  /// Goes on with the look, unless the last part of it was a moment ago.
  void go_on(LoadedTasks& tasks, Tick now);
  /// Found since the start.
  std::uint64_t found() const noexcept { return found_; }

 private:
  std::uint32_t at_ = 0;  // the slot that was looked at last
  Tick next_ = 0;         // not before
  std::uint64_t found_ = 0;
};

}  // namespace detent

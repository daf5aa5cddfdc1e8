// A look, a small part at a time, at the tasks in memory: for one that no step would touch again.
//
// A leased task without the timer that ends its lease, a scheduled one without the timer that fires
// it, a ready one in no order: systems that keep such a state on disk find tasks stuck in it for
// ever (asynq #1144, BullMQ #2384, oban #364). Here it would be a bug, and is in memory only: the
// count should stay 0, and a restart hands the task out. So what is found is counted, once, and
// left as it is, for whoever looks into it.
#include <algorithm>

#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {
namespace {

/// Slots looked at in a turn, and the least time between two looks: a million tasks in two minutes
/// for 0.1 % of the thread's time while it is busy. An idle engine has one turn a second, and takes
/// 17 minutes.
constexpr std::uint32_t kLookSlots = 1'000;
constexpr Tick kLookTicks = 100;

}  // namespace

void Engine::look_for_orphans() {
  if (time_.now() < next_look_) return;
  next_look_ = time_.now() + kLookTicks;
  const std::uint32_t limit = loaded_.index_limit();
  for (std::uint32_t looks = 0; looks < std::min(kLookSlots, limit); ++looks) {
    look_at_ = look_at_ + 1 < limit ? look_at_ + 1 : 0;
    LoadedTask* const task = loaded_.find(look_at_);
    if (task == nullptr || task->is_orphan || !would_be_stuck(*task)) continue;
    task->is_orphan = true;
    ++orphans_;
  }
}

/// Invariant 2 of one task. O(log n) of the ready ones.
bool Engine::would_be_stuck(LoadedTask& task) const {
  switch (task.state) {
    case TaskState::scheduled:
      return !due_wheel_.is_pending(task.index);
    case TaskState::ready:
      return !task.ready_tasks().in_memory.contains(&task);
    case TaskState::leased: {
      const auto lease = leases_.find(task.lease);
      return !due_wheel_.is_pending(task.index) || lease == leases_.end() ||
             lease->second.task != &task;
    }
    case TaskState::dead:
    case TaskState::completed:
    case TaskState::cancelled:
      break;
  }
  return true;  // these are never in memory
}

}  // namespace detent

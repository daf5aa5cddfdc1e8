#include "engine/window/orphan_look.h"

#include <algorithm>

namespace detent {
namespace {

/// The number of slots in one look, and the least time between two looks. A busy engine looks at a
/// million tasks in two minutes, which takes 0.1 % of the time of its thread. An idle engine has
/// one turn per second, so it needs 17 minutes.
constexpr std::uint32_t kLookSlots = 1'000;
constexpr Tick kLookTicks = 100;

}  // namespace

void OrphanLook::go_on(LoadedTasks& tasks, Tick now) {
  if (now < next_) return;
  next_ = now + kLookTicks;
  const std::uint32_t limit = tasks.slot_limit();
  for (std::uint32_t looks = 0; looks < std::min(kLookSlots, limit); ++looks) {
    at_ = at_ + 1 < limit ? at_ + 1 : 0;
    LoadedTask* const task = tasks.at(at_);
    if (task == nullptr || task->is_orphan || !tasks.would_be_stuck(*task)) continue;
    task->is_orphan = true;
    ++found_;
  }
}

}  // namespace detent

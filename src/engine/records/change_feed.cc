#include "engine/records/change_feed.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace detent {

void ChangeFeed::note(TaskChange change) {
  // Once a change was missed, all later changes are missed too. So missed changes always come after
  // the reported changes.
  if (noted_.missed > 0 || noted_.changes.size() >= kMaxChanges) {
    ++noted_.missed;
  } else {
    noted_.changes.push_back(std::move(change));
  }
}

void ChangeFeed::publish() {
  if (noted_.changes.empty() && noted_.missed == 0) return;
  bool was_empty = false;
  {
    const MutexLock lock(mutex_);
    if (!is_watched()) return drop();
    was_empty = waiting_.changes.empty() && waiting_.missed == 0;
    const std::size_t room =
        waiting_.missed > 0 ? 0 : kMaxChanges - std::min(kMaxChanges, waiting_.changes.size());
    const std::size_t told = std::min(room, noted_.changes.size());
    const auto end = noted_.changes.begin() + static_cast<std::ptrdiff_t>(told);
    std::move(noted_.changes.begin(), end, std::back_inserter(waiting_.changes));
    waiting_.missed += noted_.changes.size() - told + noted_.missed;
  }
  drop();
  if (was_empty) bell_.ring();
}

void ChangeFeed::drop() noexcept {
  noted_.changes.clear();
  noted_.missed = 0;
}

void ChangeFeed::unwatch() {
  is_watched_.store(false, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  waiting_ = {};
}

ChangeFeed::Taken ChangeFeed::take() {
  const MutexLock lock(mutex_);
  return std::exchange(waiting_, {});
}

}  // namespace detent

// The queues that have counters of their own in the metrics. The number is limited, because each of
// them is a label. All engines of a process share the set: their pages are added up, and the sum
// must not have more labels than one page. Thread-safe.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "base/mutex.h"

namespace detent {

class CountedQueues {
 public:
  static constexpr std::size_t kMost = 100;

  /// Whether the queue has counters of its own. A queue gets them if there is room, and keeps them.
  bool admit(const std::string& queue) DETENT_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (queues_.contains(queue)) return true;
    if (queues_.size() == kMost) return false;
    queues_.insert(queue);
    return true;
  }

 private:
  Mutex mutex_;
  std::set<std::string> queues_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent

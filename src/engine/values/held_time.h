// A clock that runs only while a limit holds back the tasks of a queue. The difference of two
// readings is the time between them in which no task of the queue could be handed out. So a task
// has to remember only one reading, and waiting tasks cost no time when a limit begins or ends.
// Pure. Thread-compatible.
#pragma once

#include <algorithm>

#include "detent/clock.h"

namespace detent {

class HeldTime {
 public:
  using Duration = MonotonicTime::duration;

  /// Tasks are held back from now until `until`, if no change comes before. If `until` is not after
  /// now, tasks are not held back.
  void hold(MonotonicTime now, MonotonicTime until) noexcept {
    total_ = total(now);
    from_ = now;
    until_ = until;
  }
  Duration total(MonotonicTime now) const noexcept {
    return total_ + std::max(std::min(now, until_) - from_, Duration{0});
  }
  /// Whether the last call of hold() held tasks back. This hold may have ended since.
  bool is_running() const noexcept { return until_ != MonotonicTime{}; }

 private:
  Duration total_{0};
  MonotonicTime from_{};
  MonotonicTime until_{};
};

}  // namespace detent

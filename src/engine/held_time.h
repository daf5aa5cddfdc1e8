// For how long a queue's tasks have been held back by a limit, in all: a clock that runs only while
// one does. What it shows at two instants tells how much of the time between them a task could not
// have been handed out, whoever asked; so a task needs to remember one reading, and a limit that
// comes and goes costs nothing for those that wait. Pure. Thread-compatible.
#pragma once

#include <algorithm>

#include "detent/clock.h"

namespace detent {

class HeldTime {
 public:
  using Duration = MonotonicTime::duration;

  /// Tasks are held back from now to `until`, if nothing changes; not later than now: they are not.
  void hold(MonotonicTime now, MonotonicTime until) noexcept {
    total_ = total(now);
    from_ = now;
    until_ = until;
  }
  Duration total(MonotonicTime now) const noexcept {
    return total_ + std::max(std::min(now, until_) - from_, Duration{0});
  }
  /// Whether hold() said of a time to come, or that has come since, that tasks are held back.
  bool is_running() const noexcept { return until_ != MonotonicTime{}; }

 private:
  Duration total_{0};
  MonotonicTime from_{};
  MonotonicTime until_{};
};

}  // namespace detent

// LinkedTimer: the timer of every queue that keeps its timers in lists: a link, a deadline and its
// queue.
//
// A store defines its timer by `using Timer = LinkedTimer<SlotStore>;`. Callers derive their types
// from the timer, or give them timers as members (detent/member_timer.h).
#pragma once

#include <type_traits>

#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// One timer: 32 bytes, no allocation. The caller owns it, and the queue only links it. Destroying
/// it cancels it. Neither copyable nor movable, because the queue points to it. Thread safety:
/// while it is pending, only the thread that uses its queue may use it.
///
/// `Queue` has a function `cancel(Timer&)`. `Part` is a part of the queue that also uses the links.
template <class Queue, class Part = Queue>
class LinkedTimer {
 public:
  LinkedTimer() noexcept = default;
  ~LinkedTimer() {
    if (queue_ != nullptr) queue_->cancel(*this);
  }
  LinkedTimer(const LinkedTimer&) = delete;
  LinkedTimer& operator=(const LinkedTimer&) = delete;

  /// Returns true from `schedule` until the timer fires or is cancelled. Inside its own callback a
  /// timer is not pending, unless the callback scheduled it again.
  bool is_pending() const noexcept { return queue_ != nullptr; }

  /// Returns the last deadline of the timer, or 0 if it was never scheduled.
  Tick deadline() const noexcept { return deadline_; }

 private:
  friend Queue;
  friend Part;

  // Returns the timer of a link.
  static LinkedTimer& of(Link& link) noexcept {
    static_assert(std::is_standard_layout_v<LinkedTimer>, "link_'s address must be its timer's");
    static_assert(sizeof(void*) != 8 || sizeof(LinkedTimer) == 32,
                  "a timer is two links, a deadline and its queue");
    return reinterpret_cast<LinkedTimer&>(link);
  }
  static const LinkedTimer& of(const Link& link) noexcept {
    return reinterpret_cast<const LinkedTimer&>(link);
  }

  Link link_;  // first, so that a link and its timer have the same address
  Tick deadline_ = 0;
  Queue* queue_ = nullptr;  // the queue on which it is pending, or null
};

}  // namespace detent::internal

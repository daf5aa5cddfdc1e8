// The timer of every queue that keeps its timers in lists: a link, a deadline and its queue.
//
// A store names it as its own: `using Timer = LinkedTimer<SlotStore>;`. Users make their type one,
// or give it members that are (detent/member_timer.h).
#pragma once

#include <type_traits>

#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent::internal {

/// One timer: 32 bytes, no allocation. The user owns it; the queue only links it. Destroying it
/// cancels it. Neither copyable nor movable, because the queue points at it. Belongs to the queue
/// on which it is pending, and to the thread that uses that queue. `Queue` has a `cancel(Timer&)`;
/// `Part` is a part of it that works with links too.
template <class Queue, class Part = Queue>
class LinkedTimer {
 public:
  LinkedTimer() noexcept = default;
  ~LinkedTimer() {
    if (queue_ != nullptr) queue_->cancel(*this);
  }
  LinkedTimer(const LinkedTimer&) = delete;
  LinkedTimer& operator=(const LinkedTimer&) = delete;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending() const noexcept { return queue_ != nullptr; }

  /// Returns: the deadline it was last given; 0 before the first.
  Tick deadline() const noexcept { return deadline_; }

 private:
  friend Queue;
  friend Part;

  // The timer whose link this is.
  static LinkedTimer& of(Link& link) noexcept {
    static_assert(std::is_standard_layout_v<LinkedTimer>, "link_'s address must be its timer's");
    static_assert(sizeof(LinkedTimer) == 32, "a timer is two links, a deadline and its queue");
    return reinterpret_cast<LinkedTimer&>(link);
  }
  static const LinkedTimer& of(const Link& link) noexcept {
    return reinterpret_cast<const LinkedTimer&>(link);
  }

  Link link_;  // first, so that a link's address is its timer's
  Tick deadline_ = 0;
  Queue* queue_ = nullptr;  // where it is pending; null when it is not
};

}  // namespace detent::internal

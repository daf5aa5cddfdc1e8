// What is scheduled on a TimerWheel: a base class that links the user's object into the wheel.
//
// Make your type a Timer, or give it one as a member. Include detent/timer_wheel.h to use it: the
// destructor is defined there.
#pragma once

#include <type_traits>

#include "detent/internal/link_list.h"
#include "detent/tick.h"

namespace detent {

class TimerWheel;

/// One timer: 32 bytes, no allocation. The user owns it; the wheel only links it. Destroying it
/// cancels it. Neither copyable nor movable, because the wheel points at it. Belongs to the wheel
/// on which it is pending, and to the thread that uses that wheel.
class Timer {
 public:
  Timer() noexcept = default;
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending() const noexcept { return wheel_ != nullptr; }

  /// Returns: the deadline it was last given; 0 before the first.
  Tick deadline() const noexcept { return deadline_; }

 private:
  friend class TimerWheel;

  internal::Link link_;  // first, so that a link's address is its timer's
  Tick deadline_ = 0;
  TimerWheel* wheel_ = nullptr;  // where it is pending; null when it is not
};

static_assert(std::is_standard_layout_v<Timer>, "a pointer to link_ must convert to its Timer");
static_assert(sizeof(Timer) == 32, "a timer is two links, a deadline and its wheel");

}  // namespace detent

// Timer: the base class of objects that are scheduled on a TimerWheel.
//
// Derive your type from Timer. If an object needs several timers, or timers as members, use
// detent/member_timer.h: a plain member has no safe cast back to its object. Include
// detent/timer_wheel.h to use a Timer, because that file defines the members that need the wheel.
#pragma once

#include <cstdint>

#include "detent/internal/cell_lists.h"
#include "detent/tick.h"

namespace detent {

class TimerWheel;

namespace internal {
struct TimerOwners;
}

/// One timer: 16 bytes in the caller's object, and 16 bytes in the wheel while it is pending. The
/// caller owns the timer, and the wheel only points to it. Therefore a timer is neither copyable
/// nor movable. Destroying a timer cancels it. Thread safety: while a timer is pending, only the
/// thread that uses its wheel may use the timer.
class Timer {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): it sets one member of the union
  Timer() noexcept : deadline_(0) {}
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Returns true from `schedule` until the timer fires or is cancelled. Inside its own callback a
  /// timer is not pending, unless the callback scheduled it again. O(1).
  bool is_pending() const noexcept { return cell_ != internal::kNoCell; }

  /// Returns the deadline of a pending timer. After the timer has fired, returns the deadline of
  /// that firing. Returns 0 if the timer was cancelled or never scheduled. O(1).
  Tick deadline() const noexcept;

 private:
  friend class TimerWheel;
  friend struct internal::TimerOwners;

  internal::CellNumber cell_ = internal::kNoCell;  // its cell in the wheel while pending
  union {
    TimerWheel* wheel_;  // while pending: the wheel
    Tick deadline_;      // otherwise: the value of deadline()
  };
};

static_assert(sizeof(void*) != 8 || sizeof(Timer) == 16,
              "a timer is the number of its cell, and its wheel or deadline");

}  // namespace detent

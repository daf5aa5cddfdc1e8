// What is scheduled on a TimerWheel: a base class of the user's object.
//
// Make your type a Timer. To give it one or several as members, take detent/member_timer.h: no cast
// leads from a plain member back to its object. Include detent/timer_wheel.h to use it: what needs
// the wheel is defined there.
#pragma once

#include <cstdint>

#include "detent/internal/cell_lists.h"
#include "detent/tick.h"

namespace detent {

class TimerWheel;

namespace internal {
struct TimerOwners;
}

/// One timer: 16 bytes in the user's object, 16 in the wheel while it is pending. The user owns it;
/// the wheel only points at it. Destroying it cancels it. Neither copyable nor movable, because the
/// wheel points at it. Belongs to the wheel on which it is pending, and to the thread that uses
/// that wheel.
class Timer {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): one of the union is.
  Timer() noexcept : deadline_(0) {}
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending() const noexcept { return cell_ != internal::kNoCell; }

  /// Returns: while it is pending, its deadline; once it has fired, the deadline it fired for; 0
  /// when it was cancelled or never scheduled.
  Tick deadline() const noexcept;

 private:
  friend class TimerWheel;
  friend struct internal::TimerOwners;

  internal::CellNumber cell_ = internal::kNoCell;  // in the wheel where it is pending
  union {
    TimerWheel* wheel_;  // while it is pending: where
    Tick deadline_;      // else: what deadline() says
  };
};

static_assert(sizeof(Timer) == 16, "a timer is the number of its cell, and its wheel or deadline");

}  // namespace detent

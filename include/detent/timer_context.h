// TimerContext: lets a periodic or recurring job end its own timer.
//
//     scheduler.schedule_every({.period = 1s}, [&](detent::TimerContext& timer) {
//       if (download.is_complete()) timer.stop();
//     }).release();
#pragma once

#include <utility>

#include "detent/timer_handle.h"

namespace detent {

/// Names the timer that calls the job, during this call. Use it only on the thread of the call. The
/// timer needs one allocation more. Apart from that, there is no cost until `stop` is called.
class TimerContext {
 public:
  TimerContext(const TimerContext&) = delete;
  TimerContext& operator=(const TimerContext&) = delete;

  /// Ends the timer: the current run continues, and no further run follows. After the run the job
  /// is destroyed. The timer counts as completed if this run was its last, otherwise as cancelled.
  /// May be called several times. Does nothing if `Scheduler::stop` handed the job back and the
  /// program calls the job itself, even from inside the job of another timer. Cost: as
  /// TimerHandle::cancel.
  void stop() noexcept;

 private:
  friend class PeriodicJob;
  friend class RecurringJob;
  /// Finds the timer that runs the callable at `called` on this thread. There may be no such timer.
  explicit TimerContext(const void* called) noexcept;
  explicit TimerContext(std::pair<internal::TimerOwner*, internal::TimerId> run) noexcept
      : owner_(run.first), id_(run.second) {}

  internal::TimerOwner* owner_;  // null: no timer calls the job
  internal::TimerId id_;
};

}  // namespace detent

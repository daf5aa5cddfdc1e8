// TimerContext: what a periodic or recurring job gets if it wants to end its own timer.
//
//     scheduler.schedule_every({.period = 1s}, [&](detent::TimerContext& timer) {
//       if (download.is_complete()) timer.stop();
//     }).release();
#pragma once

#include <utility>

#include "detent/timer_handle.h"

namespace detent {

/// Names the timer that calls the job, during that call. Confined to the thread of the call. Costs
/// nothing until `stop`, and one more allocation for the timer.
class TimerContext {
 public:
  TimerContext(const TimerContext&) = delete;
  TimerContext& operator=(const TimerContext&) = delete;

  /// Ends the timer: this run goes on, and no other run follows. Then the job is destroyed, and the
  /// timer counts as cancelled, or as completed if this run was its last. May be called again. Does
  /// nothing if `Scheduler::stop` has handed the job back and the program calls it, also from
  /// inside the job of another timer. Cost as TimerHandle::cancel.
  void stop() noexcept;

 private:
  friend class PeriodicJob;
  friend class RecurringJob;
  /// The timer that calls what `called` points to, on this thread; none if no timer does.
  explicit TimerContext(const void* called) noexcept;
  explicit TimerContext(std::pair<internal::SchedulerShard*, internal::TimerId> run) noexcept
      : shard_(run.first), id_(run.second) {}

  internal::SchedulerShard* shard_;  // null: no timer calls the job
  internal::TimerId id_;
};

}  // namespace detent

// TimerGroup: timers that share a clock of their own. One call cancels, pauses, slows down or
// speeds up all of them. Uses: cool-downs and buffs in a game, time-outs of a job that can be
// suspended.
//
//     detent::TimerGroup battle(scheduler);
//     auto buff = battle.schedule_after(10s, [&] { hero.strength -= 5; });
//     battle.pause();                                   // a dialogue; the buff keeps what is left
//     battle.resume();
//     battle.set_rate(0.25);                            // slow motion
//     battle.cancel_all();                              // the hero left
//
// Group time starts at the scheduler's time and runs at `rate` times its speed; it stands still
// while the group is paused. Deadlines are instants of group time and do not change. Therefore
// pause and set_rate touch no timer of the group. They change the clock, and move the single timer
// that the group has in its scheduler.
//
// Source: a game loop that scales its time step, as Unity's Time.timeScale.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/periodic.h"
#include "detent/scheduler.h"
#include "detent/scheduler_options.h"
#include "detent/scheduler_report.h"
#include "detent/source_location.h"
#include "detent/timer_handle.h"

namespace detent {

/// Options of a TimerGroup.
struct TimerGroupOptions {
  /// Deadlines are rounded up to multiples of this in group time, and then to the scheduler's
  /// resolution. Zero: use the scheduler's resolution. Requires: not negative.
  std::chrono::nanoseconds resolution{};
  /// Receives each exception of a job of the group. Null: the scheduler's error handler receives
  /// it.
  std::function<void(std::exception_ptr)> error_handler = nullptr;
};

/// A group of timers with its own clock. Thread-safe. Every function may be called from inside a
/// job, unless its comment says otherwise. Handles may outlive the group.
///
/// Jobs run on the scheduler's executor. If the scheduler has no executor, its driver thread runs
/// them, inside the group's timer. They have the guarantees of detent/scheduler.h, counted in group
/// time. A job is never early by group time. Group time is computed in exact fractions, so changes
/// of the rate add no error. If a handle moves a timer to a date, the timer runs only while the
/// group runs, and not before the date.
///
/// For the scheduler the group is one timer, named "timer group", which counts towards the
/// capacity. After the scheduler has stopped, no timer of the group fires. Drain::hand_back also
/// returns the group's timer. Its job runs the due timers of the group, or does nothing if the
/// group no longer exists. Jobs that the group has already given to the executor also run after
/// `stop`, until the group is destroyed. A job of the group must not call the scheduler's `stop`
/// with run_due or run_pending: `stop` waits for the group's timer, and this timer may wait for the
/// job's thread.
///
/// Cost: 28 KB per group, two thirds of it for the wheel (detent/dense_wheel.h); the first timer
/// adds 10 KB. `pause`, `resume` and `set_rate` take a tenth of a microsecond for any number of
/// timers.
class TimerGroup {
 public:
  /// The range of rates that `set_rate` accepts.
  static constexpr double kMinRate = 1.0 / 1024;
  static constexpr double kMaxRate = 1024;

  /// Makes a group and schedules its timer on `scheduler`. If the scheduler is full, this follows
  /// its `when_full`, as for any periodic timer. If the scheduler refuses the timer, because it has
  /// stopped or is full, the group refuses all timers. Requires: `scheduler` outlives the group.
  explicit TimerGroup(Scheduler& scheduler, const TimerGroupOptions& options = {},
                      SourceLocation where = SourceLocation::current());
  /// Drops the timers of the group and waits until no job runs. Requires: not called from inside
  /// one of these jobs.
  ~TimerGroup();
  TimerGroup(const TimerGroup&) = delete;
  TimerGroup& operator=(const TimerGroup&) = delete;

  /// As the functions of Scheduler, in group time. `created` and `phase_key` of a periodic timer
  /// place its first tick on the wall clock, as if the rate were 1.
  template <class Rep, class Period>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, Job job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current()) {
    return schedule_after_ns(internal::saturate_to_nanoseconds(delay), std::move(job), options,
                             where);
  }
  TimerHandle schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());
  TimerHandle schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current());

  /// Cancels all timers. A job that runs finishes its run, and no further run follows. Returns the
  /// number of cancelled timers whose job was not running; their jobs have been destroyed. Cost:
  /// O(timers), under the group's lock.
  std::size_t cancel_all();

  /// Stops group time; `resume` starts it again at the same rate. Jobs that are already due still
  /// run. O(1). Pausing a paused group, or resuming a running group, has no effect.
  void pause();
  void resume();
  /// Returns true between `pause` and `resume`.
  bool is_paused() const;

  /// Sets the speed of group time relative to the scheduler's time. On a paused group, the rate
  /// applies after `resume`. Every rate is used exactly as given. O(1). Requires: kMinRate <= rate
  /// <= kMaxRate.
  void set_rate(double rate);
  /// Returns the last rate that was set, initially 1, also while paused.
  double rate() const;

  /// Returns group time in whole nanoseconds, rounded down, at most MonotonicTime::max().
  MonotonicTime now() const;

  /// Returns counts of this group's timers only. `pending` is the number of these timers. `wakeups`
  /// counts how often the group's own timer woke the group.
  SchedulerStats stats() const;

 private:
  class Impl;

  TimerHandle schedule_after_ns(std::chrono::nanoseconds delay, Job job,
                                const TimerOptions& options, SourceLocation where);

  std::unique_ptr<Impl> impl_;
};

}  // namespace detent

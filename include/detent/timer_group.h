// TimerGroup: many timers with a clock of their own, which can be cancelled, paused and slowed down
// or sped up all at once. Cool-downs and buffs of a game, time-outs of a job that can be suspended.
//
//     detent::TimerGroup battle(scheduler);
//     auto buff = battle.schedule_after(10s, [&] { hero.strength -= 5; });
//     battle.pause();                                   // a dialogue; the buff keeps what is left
//     battle.resume();
//     battle.set_rate(0.25);                            // slow motion
//     battle.cancel_all();                              // the hero left
//
// Group time starts as the scheduler's and runs at `rate` times its speed, not at all when paused.
// Deadlines are instants of group time and stay where they are, so what concerns all timers touches
// none of them: it changes the clock and moves the one timer that the group has in its scheduler.
//
// A game loop that scales its time step does the same; Unity has it as Time.timeScale.
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

struct TimerGroupOptions {
  /// Deadlines are rounded up to multiples of this, in group time, and then to the scheduler's
  /// resolution. Zero: the scheduler's. Requires: not negative.
  std::chrono::nanoseconds resolution{};
  /// Gets what a job of the group throws. Null: the scheduler's does.
  std::function<void(std::exception_ptr)> error_handler = nullptr;
};

/// Thread-safe; every operation may be called from inside a job unless it says otherwise. Handles
/// may outlive the group.
///
/// Jobs run where the scheduler's do: on its executor, or on its driver thread inside the group's
/// timer. They keep the scheduler's promises (detent/scheduler.h), counted in group time: never
/// early by it, and exact, because it is computed in fractions that lose nothing, however often the
/// rate changes. What a handle moves to a date runs while the group does, not before the date.
///
/// To the scheduler the group is one timer, named "timer group", which counts towards its capacity.
/// Once the scheduler has stopped, no timer of the group fires; Drain::hand_back returns the
/// group's timer as well, whose job lets what is due in the group run, or does nothing when the
/// group is gone. Jobs that the group has given to the executor run after `stop` too, until the
/// group is destroyed. A job of the group must not call the scheduler's `stop` with run_due or
/// run_pending: that waits for the group's timer, which may wait for the job's thread.
///
/// Cost: 28 KB a group, two thirds of it its wheel (detent/dense_wheel.h); with the first timer
/// 10 KB more. `pause`, `resume` and `set_rate` take a tenth of a microsecond, however many timers
/// there are.
class TimerGroup {
 public:
  /// What `set_rate` takes.
  static constexpr double kMinRate = 1.0 / 1024;
  static constexpr double kMaxRate = 1024;

  /// Takes a timer of `scheduler`, as its schedule_every does. If that is refused, because the
  /// scheduler has stopped or is full, the group refuses all timers. `scheduler` must outlive it.
  explicit TimerGroup(Scheduler& scheduler, const TimerGroupOptions& options = {},
                      SourceLocation where = SourceLocation::current());
  /// Drops its timers and waits until no job runs. Requires: not called from inside one of them.
  ~TimerGroup();
  TimerGroup(const TimerGroup&) = delete;
  TimerGroup& operator=(const TimerGroup&) = delete;

  /// As Scheduler's, in group time. (A periodic timer's `created` and `phase_key` place its first
  /// tick by the wall clock as if the group ran at the rate 1.)
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

  /// Cancels all timers; those whose jobs run finish that run, and there will be no other.
  /// Returns: how many were cancelled, not counting those; their jobs have been destroyed.
  /// O(timers), under the group's lock.
  std::size_t cancel_all();

  /// Stops group time, and starts it again at the same rate. Jobs that are due already still run.
  /// O(1). Does nothing when it is (not) paused.
  void pause();
  void resume();
  bool is_paused() const;

  /// From now on group time runs at `rate` times the scheduler's speed, or will once it is resumed.
  /// Any rate is exact, as the number it is. O(1). Requires: kMinRate <= rate <= kMaxRate.
  void set_rate(double rate);
  /// Returns: what was set last, at first 1; paused or not.
  double rate() const;

  /// Group time: whole nanoseconds, rounded down, at most MonotonicTime::max().
  MonotonicTime now() const;

  /// Of the group's timers alone. `pending` is how many there are, `wakeups` how often they needed
  /// the scheduler.
  SchedulerStats stats() const;

 private:
  class Impl;

  TimerHandle schedule_after_ns(std::chrono::nanoseconds delay, Job job,
                                const TimerOptions& options, SourceLocation where);

  std::unique_ptr<Impl> impl_;
};

}  // namespace detent

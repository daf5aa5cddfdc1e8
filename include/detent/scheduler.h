// Scheduler: timers for programs with threads. Give it a delay and a job; it runs the job then.
//
//     detent::Scheduler scheduler;
//     detent::TimerHandle timer = scheduler.schedule_after(250ms, [b = std::move(buffer)] { … });
//     timer.cancel();                                   // or let the handle go out of scope
//     auto beat = scheduler.schedule_every({.period = 30s}, send_heartbeat);
//
// One driver thread owns a timing wheel behind a lock and sleeps until its next wake-up (no
// ticking: idle costs nothing). Jobs run without the lock, on the driver thread or on the Executor
// given.
//
// Promises. A job never runs before its deadline by the clock given. A timer ends exactly once: it
// ran, was cancelled, or was dropped by stop. What a job captured is destroyed as soon as its timer
// has ended. Runs of one periodic timer never overlap. After `stop` has returned (or the
// destructor) no job runs. Jobs may throw; they may schedule, cancel and stop.
//
// Time. Delays are measured on the monotonic clock and do not follow steps of the wall clock. For a
// date (`schedule_at` with a WallTime) the delay is computed when it is scheduled, and the date is
// checked again before the job runs: it is never early by the wall clock either, but a wall clock
// stepped forward meanwhile makes it late by that step.
//
// Read next: src/runtime/scheduler_core.h (how the threads meet), detent/executor.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/internal/saturate.h"
#include "detent/timer_handle.h"
#include "detent/unique_function.h"

namespace detent {

struct SchedulerOptions {
  /// Deadlines are rounded up to multiples of this. 10 us is below the noise of a sleeping thread
  /// (tens of microseconds), so it costs no lateness to speak of, and coarse enough that a timer an
  /// hour ahead wakes the driver at most four times before it is due. Requires: positive.
  std::chrono::nanoseconds resolution = std::chrono::microseconds{10};
  /// Null: the machine's clock. Otherwise it must outlive the scheduler.
  Clock* clock = nullptr;
  /// Where jobs run. Null: on the driver thread. Otherwise it must outlive the scheduler.
  Executor* executor = nullptr;
  /// Gets what a job throws, on the thread that ran it, perhaps on several at once. Must not throw.
  /// Without one an exception that leaves a job ends the process, as it does for a std::thread.
  std::function<void(std::exception_ptr)> error_handler = nullptr;
};

/// What happens to the ticks of a periodic timer that pass while its job still runs. (Ticks that
/// pass while the clock jumps are made up for by the one run that is due then, either way.)
enum class MissedTick : std::uint8_t {
  run_once,  // run once at once for all of them, then go on in phase
  skip,      // leave them out and go on in phase
};

struct PeriodicOptions {
  /// Runs are due at multiples of this after the call, however late single runs are: no drift.
  /// Requires: positive.
  std::chrono::nanoseconds period{};
  /// How many times it runs; 0: until it is cancelled.
  std::uint64_t count = 0;
  MissedTick missed = MissedTick::run_once;
};

/// What `stop` does with timers that are pending.
enum class Drain : std::uint8_t {
  drop,       // destroys their jobs
  run_due,    // runs those that are due, then drops the others
  hand_back,  // returns them
};

/// A timer that `stop` handed back.
struct PendingJob {
  MonotonicTime deadline;
  Job job;
  std::optional<PeriodicOptions> periodic;  // with `count` as what is left of it
};

/// Counts since the start. scheduled == completed + cancelled + dropped + pending + running.
struct SchedulerStats {
  std::uint64_t scheduled = 0;  // timers, those refused after `stop` included
  std::uint64_t completed = 0;  // timers whose last run is over
  std::uint64_t cancelled = 0;
  std::uint64_t dropped = 0;  // by `stop`: destroyed, handed back or refused
  std::uint64_t pending = 0;  // now; due ones that wait for their executor included
  std::uint64_t running = 0;  // now
  std::uint64_t runs = 0;     // calls of jobs
};

/// Thread-safe; every operation may be called from inside a job unless it says otherwise.
class Scheduler {
 public:
  /// Starts the driver thread. Throws std::system_error when that fails.
  explicit Scheduler(SchedulerOptions options = {});
  /// Stops with Drain::drop. Requires: not called from inside one of its own jobs.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Runs `job` once, `delay` from now: at once (but not in this call) when that is not positive,
  /// as late as the clock can tell when it is huge. O(1) and one allocation, for the job.
  /// Returns: the handle that cancels it when destroyed; an empty one, the job destroyed, when the
  /// scheduler has stopped. Requires (all schedule_…): `job` is not empty.
  template <class Rep, class Period>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, Job job) {
    return schedule_after_ns(internal::saturate_to_nanoseconds(delay), std::move(job));
  }

  /// The same for an instant; one that has passed is due at once.
  TimerHandle schedule_at(MonotonicTime deadline, Job job);
  /// The same for a date; see "Time" above.
  TimerHandle schedule_at(WallTime due, Job job);

  /// Runs `job` every period, the first time one period from now, at a fixed rate. A run that
  /// throws does not end it.
  TimerHandle schedule_every(const PeriodicOptions& options, Job job);

  /// Ends all timers and waits until no job runs; from inside a job it does not wait. Later calls,
  /// from whatever thread, only wait. What is scheduled from now on is refused.
  /// Returns: with Drain::hand_back the timers that had not run, in no order; a periodic one whose
  /// job is running is dropped. Otherwise nothing.
  std::vector<PendingJob> stop(Drain drain = Drain::drop);

  SchedulerStats stats() const;

 private:
  TimerHandle schedule_after_ns(std::chrono::nanoseconds delay, Job job);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent

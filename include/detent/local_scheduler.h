// LocalScheduler: the Scheduler for a program with one event loop and no threads. It has the same
// calls and the same handles, takes no lock, and starts no thread. Your loop drives it.
//
//     detent::LocalScheduler timers;
//     detent::TimerHandle timer = timers.schedule_after(250ms, [b = std::move(buffer)] { … });
//     timer.cancel();                                   // or let the handle go out of scope
//     timers.schedule_every({.period = 30s}, send_heartbeat).release();
//     while (serving) {
//       wait_for_io(timers.time_to_next());             // sleeps no longer than this
//       timers.begin_turn();                            // reads the clock, once for the turn
//       handle_io();
//       timers.run_ready({.time = 2ms});                // runs due jobs
//     }
//
// The page docs/guides/own-loop.md shows how to drive it from epoll, Boost.Asio, libuv and a loop
// of your own.
//
// Guarantees. As of the Scheduler: a job never runs before its deadline on the given clock. A timer
// ends exactly once: its last run is over, it was cancelled, or `stop` dropped it or handed it
// back. As soon as a timer has ended, its job and the captured objects are destroyed. Jobs run only
// inside `run_ready`, in the order of LocalSchedulerOptions::order. Jobs may throw, schedule,
// cancel (also their own timer) and stop. A job must not call `run_ready` or `begin_turn`, and must
// not destroy the scheduler.
//
// Threads. Thread-compatible, together with its handles: only one thread at a time may use the
// scheduler or any of its handles. If other threads schedule, take a Scheduler. The code needs no
// thread library, and a child process of fork() can continue to use it.
//
// Turns. A turn begins with `begin_turn`, or else with `run_ready`, and ends with `run_ready`. The
// clock is read once at its beginning. Delays count from this time, so timers that one turn
// schedules with equal delays have equal deadlines. A handler that takes 5 ms and then schedules a
// delay of 10 ms therefore waits 5 ms less. Outside of a turn, each call reads the clock itself,
// and the delay is exact.
//
// Differences from the Scheduler. It has no keyed timers, no executor and no alerts: a job runs
// where your loop runs. At its capacity it refuses timers. Coroutines and DelayMap need a
// Scheduler. QueueDrive (detent/queue_drive.h) is smaller: it drives timers that are parts of your
// own objects or numbers, with one callback for all of them.
//
// Cost. A timer takes 128 bytes and its place in the wheel (about 20 bytes). Scheduling allocates
// if the job is larger than four pointers or not trivially copyable, and sometimes to grow
// (amortised). docs/internals/runtime.md has the times.
//
// Read next: detent/scheduler.h and src/runtime/scheduler/timer_shard.h, whose code it shares.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "detent/advance.h"
#include "detent/budget.h"
#include "detent/clock.h"
#include "detent/drain.h"
#include "detent/internal/saturate.h"
#include "detent/periodic.h"
#include "detent/recurring.h"
#include "detent/scheduler_options.h"
#include "detent/scheduler_report.h"
#include "detent/source_location.h"
#include "detent/timer_handle.h"
#include "detent/unique_function.h"

namespace detent {

/// Options of a LocalScheduler. The fields that a Scheduler also has mean the same.
struct LocalSchedulerOptions {
  /// Deadlines are rounded up to multiples of this. Requires: above 0.
  std::chrono::nanoseconds resolution = std::chrono::microseconds{10};
  /// Null: the machine's clock, CLOCK_MONOTONIC. Otherwise the clock must outlive the scheduler.
  Clock* clock = nullptr;
  /// Receives each exception of a job. Must not throw. Without a handler, such an exception ends
  /// the process.
  std::function<void(std::exception_ptr)> error_handler = nullptr;
  /// The largest number of timers, pending and running. More timers are refused: the handle is
  /// empty.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  DueOrder order = DueOrder::deadline;
  /// While timers for dates are pending, `time_to_next` and `next_wakeup` give at most this time,
  /// so that `run_ready` notices a step of the wall clock. Zero: `run_ready` notices it when the
  /// loop calls it for another reason.
  std::chrono::nanoseconds wall_check = std::chrono::seconds{1};
  /// How long before the next deadline `time_to_next` and `next_wakeup` wake the loop. `run_ready`
  /// then reads the clock again and again until the deadline, as the driver of a Scheduler with
  /// SchedulerOptions::spin. Requires: not negative, and zero if the clock is a ManualClock.
  std::chrono::nanoseconds spin{};
  /// The seed of random choices. No value: the seed is random.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// Runs jobs at their deadlines, on the thread of an event loop. Thread-compatible, see above. If
/// an allocation for a timer fails, the process ends.
class LocalScheduler {
 public:
  explicit LocalScheduler(LocalSchedulerOptions options = {});
  /// Calls stop(Drain::drop). Handles may outlive the scheduler. Requires: not called from inside a
  /// job of this scheduler.
  ~LocalScheduler();
  LocalScheduler(const LocalScheduler&) = delete;
  LocalScheduler& operator=(const LocalScheduler&) = delete;

  /// Runs `job` once, `delay` from now(). If `delay` is 0 or less, the job is due immediately, but
  /// does not run inside this call. A delay beyond the end of the clock is shortened to its end.
  ///
  /// Returns: a handle that cancels the timer when the handle is destroyed. If the scheduler has
  /// stopped or is full, the handle is empty and the job has been destroyed.
  ///
  /// Cost: O(1); see "Cost" above. Requires (for every schedule_… function): `job` is not empty.
  template <class Rep, class Period>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, Job job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current()) {
    return schedule_after_ns(internal::saturate_to_nanoseconds(delay), std::move(job), options,
                             where);
  }

  /// Runs `job` once at an instant of clock(). An instant in the past is due immediately, and its
  /// lateness counts from that instant. Otherwise as schedule_after.
  TimerHandle schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());
  /// Runs `job` once at a date, rounded up to milliseconds. The timer follows the wall clock, as in
  /// a Scheduler. Otherwise as schedule_after.
  template <class Duration>
  TimerHandle schedule_at(std::chrono::sys_time<Duration> due, Job job,
                          const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current()) {
    return schedule_at_date(internal::ceil_to_wall_time(due), std::move(job), options, where);
  }
  /// Runs `job` periodically (detent/periodic.h), as Scheduler::schedule_every. After each run of a
  /// repeating timer the clock is read, to find missed ticks.
  TimerHandle schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current());
  /// Runs `job` at the dates of `rule` (detent/recurring.h), as Scheduler::schedule_on.
  TimerHandle schedule_on(RecurringRule rule, RecurringJob job,
                          const RecurringOptions& recurring = {}, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());

  // ---- The loop ---------------------------------------------------------------------------------

  /// Begins a turn: reads the clock for the calls until the end of the next `run_ready`. Call it
  /// when the loop has woken, before the loop handles events that schedule timers. Without it, each
  /// of these calls reads the clock. Called again before `run_ready`, it reads the clock again.
  /// Requires: not called from inside a job.
  void begin_turn() noexcept;
  /// Returns the time of the turn. Outside of a turn, reads the clock.
  MonotonicTime now() const noexcept;

  /// Runs the jobs of due timers, until no due timer is left or the budget is used up, and ends the
  /// turn. Returns the number of jobs that ran. `more` is true if the budget ended the call; then
  /// the next call continues there. `more` can be true although no job ran.
  ///
  /// - The time of the turn decides which timers are due. A timer that a job schedules runs in a
  ///   later call, also if it is due immediately. So the call always ends.
  /// - Budget::count limits the jobs that run. Without this limit and Budget::time, a call takes as
  ///   long as all due jobs.
  /// - With Budget::time the scheduler reads the clock after each job. It exceeds the limit by less
  ///   than one job, if jobs take about equally long. At least one due job runs.
  /// - A job may be cancelled or moved by another job in the same call. It then does not run.
  ///
  /// Requires: not called from inside a job.
  AdvanceResult run_ready(const Budget& budget = {}) noexcept;

  /// Returns how long the loop may sleep; std::nullopt if no timer is pending. Returns zero if a
  /// timer is due or if a budget cut `run_ready` short. The time is never too long. It can be
  /// shorter than the time to the next deadline, and `run_ready` then runs no job. A loop that
  /// sleeps in coarser units must round up. Reads the clock.
  std::optional<std::chrono::nanoseconds> time_to_next() const noexcept;
  /// As time_to_next, but returns an instant, for timers that take an absolute time (timerfd's
  /// TFD_TIMER_ABSTIME). If a timer is due, the instant is in the past. Does not read the clock.
  std::optional<MonotonicTime> next_wakeup() const noexcept;

  // ---- The end ----------------------------------------------------------------------------------

  /// Ends timers, and refuses new timers from now on. Never waits.
  ///
  /// - Drain::drop destroys the pending jobs. Drain::hand_back returns them.
  /// - Drain::run_due runs the due jobs and destroys the others. Called from inside a job, it lets
  ///   the running `run_ready` do this.
  /// - Drain::run_pending drops repeating timers. The loop must call `run_ready` until
  ///   `time_to_next` is empty.
  ///
  /// A job that is running continues. A later call with a stronger Drain overrides an earlier call.
  /// Returns: with Drain::hand_back, the timers that did not run, in an unspecified order;
  /// otherwise nothing.
  std::vector<PendingJob> stop(Drain drain = Drain::drop);
  /// Returns true until `stop` is called.
  bool is_running() const noexcept;

  // ---- Observation ------------------------------------------------------------------------------

  /// Returns counts since the start. `wakeups` counts the calls of `run_ready`. O(1).
  SchedulerStats stats() const;
  /// Returns the lateness of jobs and its causes. A run counts as begun at the time of its turn.
  LatenessReport lateness() const;
  /// Returns the current timers, at most `limit`, in an unspecified order. O(timers).
  std::vector<TimerInfo> pending_timers(
      std::size_t limit = std::numeric_limits<std::size_t>::max()) const;
  /// Returns the number of deadlines in each of `bins` spans, as Scheduler::forecast. O(timers).
  /// Requires: width > 0.
  std::vector<std::uint64_t> forecast(std::chrono::nanoseconds width, std::size_t bins) const;
  /// Returns the clock of this scheduler. The default clock has no `wait`.
  const Clock& clock() const noexcept;

 private:
  TimerHandle schedule_after_ns(std::chrono::nanoseconds delay, Job&& job,
                                const TimerOptions& options, SourceLocation where);
  TimerHandle schedule_at_date(WallTime due, Job&& job, const TimerOptions& options,
                               SourceLocation where);

  // Owned together with the handles, so that a handle may outlive the scheduler.
  internal::LocalTimers* timers_;
};

}  // namespace detent

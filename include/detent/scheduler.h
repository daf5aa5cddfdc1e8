// Scheduler: timers for programs with threads. Give it a delay and a job; it runs the job then.
//
//     detent::Scheduler scheduler;
//     detent::TimerHandle timer = scheduler.schedule_after(250ms, [b = std::move(buffer)] { … });
//     timer.cancel();                                   // or let the handle go out of scope
//     auto beat = scheduler.schedule_every({.period = 30s}, send_heartbeat);
//     auto monthly = scheduler.schedule_on(Cron::parse("0 9 1 * *", "Asia/Shanghai").value(), f);
//     scheduler.schedule_keyed("inspect:7", {.period = 1min, .count = 3}, inspect);
//
// Timers are kept in shards, each a timing wheel behind a lock; a thread schedules on one of them.
// One driver thread sleeps until the earliest wake-up of them all (no ticking: idle costs nothing).
// Jobs run without a lock, on the driver thread or on the Executor given.
//
// Promises. A job never runs before its deadline by the clock given. A timer ends exactly once: it
// ran, was cancelled, or was dropped by stop. What a job captured is destroyed as soon as its timer
// has ended, without a lock. Runs of one timer never overlap. After `stop` has returned
// (or the destructor) no job runs. Jobs may throw; they may schedule, cancel and stop.
//
// Fork. A child process of fork() has a copy of the timers and no driver thread. There, scheduling
// or moving a timer stops the process with a message; `cancel` and `cancel_key` answer not_pending;
// `stats` and all that tells of timers answer that there are none; `stop` and the destructor return
// at once, and neither run nor destroy jobs. Make schedulers after the fork.
//
// Time. Delays are measured on the monotonic clock and do not follow steps of the wall clock. A
// timer for a date (WallTime) does: the driver compares the clocks (SchedulerOptions::wall_check)
// and sets such timers anew when the wall clock was stepped; it is never early by the wall clock.
//
// Read next: detent/scheduler_options.h, periodic.h, recurring.h, simulation.h (to test with), and
// src/runtime/scheduler_core.h (how the threads meet).
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/periodic.h"
#include "detent/recurring.h"
#include "detent/scheduler_options.h"
#include "detent/scheduler_report.h"
#include "detent/source_location.h"
#include "detent/timer_handle.h"
#include "detent/unique_function.h"

namespace detent {

class Sleep;       // detent/coroutine.h
class Simulation;  // detent/simulation.h
class TimerGroup;  // detent/timer_group.h

namespace internal {
class SchedulerImpl;
class WakeupTimer;
}  // namespace internal

/// What `stop` does with timers that are pending. `drop` and `hand_back` are stronger than
/// `run_due`, and that is stronger than `run_pending`.
enum class Drain : std::uint8_t {
  drop,         // destroys their jobs
  run_due,      // runs those that are due, then drops the others
  run_pending,  // runs all but the periodic ones, each at its time; those are dropped
  hand_back,    // returns them
};

/// A timer that `stop` handed back.
struct PendingJob {
  MonotonicTime deadline;
  std::optional<WallTime> date;  // for one scheduled for a date
  Job job;                       // a keyed one passes its key, which is the name
  // These two with `count` as what is left of it; 0 stays 0.
  std::optional<PeriodicOptions> periodic;
  std::optional<RecurringOptions> recurring;  // `job` passes the occurrence that was to come
  std::string name;
};

/// The job of a keyed timer: a callable of `void(std::string_view key)`, or of `void()`.
class KeyedJob {
 public:
  template <class F>
  requires(std::invocable<std::decay_t<F>&, std::string_view>)
      KeyedJob(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : call_(std::forward<F>(f)) {}
  template <class F>
  requires(std::invocable<std::decay_t<F>&> && !std::invocable<std::decay_t<F>&, std::string_view>)
      KeyedJob(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : call_(without_key(UniqueFunction<void()>(std::forward<F>(f)))) {}

  void operator()(std::string_view key) { call_(key); }
  explicit operator bool() const noexcept { return static_cast<bool>(call_); }

 private:
  using Call = UniqueFunction<void(std::string_view)>;
  static Call without_key(UniqueFunction<void()> job) {
    if (!job) return {};
    return [job = std::move(job)](std::string_view) mutable { job(); };
  }

  Call call_;
};

/// What to do with a timer whose key another one has.
enum class SameKey : std::uint8_t {
  keep,     // leave the other one; the new one is not scheduled
  replace,  // cancel the other one; a run of it that has begun goes on
};

enum class KeyedResult : std::uint8_t {
  scheduled,
  replaced,  // scheduled, and another one cancelled
  kept,      // not scheduled: the key was taken
  refused,   // the scheduler has stopped, or was full (with WhenFull::run_in_caller it may have
             // run); one that it was to replace is cancelled all the same
};

/// Thread-safe; every operation may be called from inside a job unless it says otherwise. Running
/// out of memory for a timer ends the process.
class Scheduler {
 public:
  /// Starts the driver thread. Throws std::system_error when that fails.
  explicit Scheduler(SchedulerOptions options = {});
  /// Stops with Drain::drop; after an earlier `stop` only waits for that to be over. To bound that
  /// wait, call `stop` again with a stronger Drain or a deadline.
  /// Requires: not called from inside one of its own jobs.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Runs `job` once, `delay` from now: at once (but not in this call) when that is not positive,
  /// as late as the clock can tell when it is huge. O(1); allocates when the job is bigger than
  /// four pointers, and amortised for room.
  /// Returns: the handle that cancels it when destroyed; an empty one, the job destroyed, when the
  /// scheduler has stopped or is full. Requires (all schedule_…): `job` is not empty.
  template <class Rep, class Period>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, Job job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current()) {
    return schedule_after_ns(internal::saturate_to_nanoseconds(delay), std::move(job), options,
                             where);
  }

  /// The same for an instant of clock(), as `clock().now() + 1s`. An instant that has passed is due
  /// at once, and its lateness counts from that instant.
  TimerHandle schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());
  /// The same for a date, rounded up to milliseconds; see "Time" above.
  template <class Duration>
  TimerHandle schedule_at(std::chrono::sys_time<Duration> due, Job job,
                          const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current()) {
    return schedule_at_date(internal::ceil_to_wall_time(due), std::move(job), options, where);
  }

  /// Runs `job` periodically (detent/periodic.h), the first time one period from now unless
  /// `created` or `phase_key` say otherwise. A run that throws does not end it. A job that takes a
  /// TimerContext& can end the timer with its `stop()`.
  TimerHandle schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current());

  /// Runs `job` on the dates of `rule` after now (detent/recurring.h): a Cron, a CalendarInterval,
  /// anything with their `next_after`, or a callable like it. It follows the wall clock, see "Time"
  /// above. A date that had its run has no other when the clock is stepped back over it, unless by
  /// more than 26 hours: then the clock was wrong before, and the rule goes on from the new time. A
  /// run that throws does not end it. One that is moved by its handle stands for the occurrences
  /// until then, the next one included. As schedule_after, but allocates.
  /// Returns: also an empty handle when the rule has no date to come.
  TimerHandle schedule_on(RecurringRule rule, RecurringJob job,
                          const RecurringOptions& recurring = {}, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());

  // ---- Keyed timers: they belong to the scheduler, one for each key -----------------------------

  /// Runs `job` once, `delay` from now. The key is the timer's until it has ended; it also is its
  /// name. A job that schedules its own key anew passes SameKey::replace. O(1) average, under one
  /// lock for all keys; allocates.
  template <class Rep, class Period>
  KeyedResult schedule_keyed(std::string_view key, std::chrono::duration<Rep, Period> delay,
                             KeyedJob job, SameKey same_key = SameKey::keep,
                             SourceLocation where = SourceLocation::current()) {
    return schedule_keyed_ns(key, internal::saturate_to_nanoseconds(delay), std::move(job),
                             same_key, where);
  }
  /// Runs `job` periodically.
  KeyedResult schedule_keyed(std::string_view key, const PeriodicOptions& periodic, KeyedJob job,
                             SameKey same_key = SameKey::keep,
                             SourceLocation where = SourceLocation::current());
  /// Runs SchedulerOptions::default_job. Requires: there is one.
  KeyedResult schedule_keyed(std::string_view key, const PeriodicOptions& periodic,
                             SameKey same_key = SameKey::keep,
                             SourceLocation where = SourceLocation::current());

  /// As TimerHandle::cancel; not_pending when no timer has the key. The key is free at once.
  CancelResult cancel_key(std::string_view key);
  /// Returns: the timer that has the key now, if one has.
  std::optional<TimerInfo> find_key(std::string_view key) const;

  // ---- Coroutines: include detent/coroutine.h to call these -------------------------------------

  /// `co_await scheduler.sleep_for(100ms, token)` gives true when the time has passed, false when
  /// it was stopped: by the token, or with the scheduler.
  template <class Rep, class Period>
  Sleep sleep_for(std::chrono::duration<Rep, Period> delay, std::stop_token token = {});
  Sleep sleep_until(MonotonicTime deadline, std::stop_token token = {});
  template <class Duration>
  Sleep sleep_until(std::chrono::sys_time<Duration> due, std::stop_token token = {});

  // ---- The end ----------------------------------------------------------------------------------

  /// Ends all timers and waits until no job runs; from inside a job it does not wait. What is
  /// scheduled from now on is refused. A later call, from any thread, overrides an earlier one if
  /// its Drain is stronger: then both calls return as soon as no job runs. Otherwise it only waits.
  /// Returns: with Drain::hand_back the timers that had not run, in no order; a periodic one whose
  /// job is running is dropped. Otherwise nothing.
  std::vector<PendingJob> stop(Drain drain = Drain::drop);
  /// The same with a deadline, an instant of clock(): what has not begun to run by then is dropped.
  /// The call still waits for jobs that run at the deadline, because no job runs after `stop`. A
  /// later call may set an earlier deadline, whatever its Drain.
  std::vector<PendingJob> stop(Drain drain, MonotonicTime deadline);
  /// The same, with the deadline `limit` from now; at once when `limit` is not positive.
  template <class Rep, class Period>
  std::vector<PendingJob> stop(Drain drain, std::chrono::duration<Rep, Period> limit) {
    return stop(drain,
                internal::saturating_add(clock().now(), internal::saturate_to_nanoseconds(limit)));
  }
  /// Returns: whether `stop` has not been called.
  bool is_running() const noexcept;

  // ---- What it tells ----------------------------------------------------------------------------

  SchedulerStats stats() const;
  LatenessReport lateness() const;
  /// Returns: the timers there are, in no order, at most `limit`. Takes the locks for short times,
  /// one after the other, so what changes meanwhile may be missing or stale.
  std::vector<TimerInfo> pending_timers(
      std::size_t limit = std::numeric_limits<std::size_t>::max()) const;
  /// Returns: for each of `bins` spans [i × width, (i + 1) × width) from now, how many deadlines
  /// are in it; overdue ones are in the first, periodic ones are counted once. O(timers), in short
  /// steps as `pending_timers`. Requires: width > 0.
  std::vector<std::uint64_t> forecast(std::chrono::nanoseconds width, std::size_t bins) const;

  const Clock& clock() const noexcept;

 private:
  friend class Simulation;
  friend class TimerGroup;
  friend class internal::WakeupTimer;
  friend Scheduler& default_scheduler();
  explicit Scheduler(std::unique_ptr<internal::SchedulerImpl> impl) noexcept;

  TimerHandle schedule_after_ns(std::chrono::nanoseconds delay, Job&& job,
                                const TimerOptions& options, SourceLocation where);
  TimerHandle schedule_at_date(WallTime due, Job&& job, const TimerOptions& options,
                               SourceLocation where);
  KeyedResult schedule_keyed_ns(std::string_view key, std::chrono::nanoseconds delay, KeyedJob job,
                                SameKey same_key, SourceLocation where);

  std::unique_ptr<internal::SchedulerImpl> impl_;
};

/// A scheduler for the whole process, with default options, made when it is first asked for. It is
/// never destroyed, so the destructor of any static object may use it. When the process exits it
/// stops with Drain::drop, at the moment at which a static object that was made in its place would
/// be destroyed; from then on it refuses timers. exit() waits for a job that runs, unless that job
/// called it. The library itself never uses this scheduler.
Scheduler& default_scheduler();

}  // namespace detent

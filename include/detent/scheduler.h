// Scheduler: timers for programs with threads. Pass a delay and a job, and the scheduler runs the
// job after the delay.
//
//     detent::Scheduler scheduler;
//     detent::TimerHandle timer = scheduler.schedule_after(250ms, [b = std::move(buffer)] { … });
//     timer.cancel();                                   // or let the handle go out of scope
//     auto beat = scheduler.schedule_every({.period = 30s}, send_heartbeat);
//     auto monthly = scheduler.schedule_on(Cron::parse("0 9 1 * *", "Asia/Shanghai").value(), f);
//     scheduler.schedule_keyed("inspect:7", {.period = 1min, .count = 3}, inspect);
//
// The timers are divided into shards. Each shard is a timing wheel with its own lock, and each
// thread schedules on one of them. One driver thread sleeps until the earliest wake-up of all
// shards. It does not tick, so an idle scheduler uses no CPU time. Jobs run without a lock, on the
// driver thread or on the given Executor.
//
// Guarantees. A job never runs before its deadline on the given clock. A timer ends exactly once:
// its last run is over, it was cancelled, or `stop` dropped it or handed it back. As soon as a
// timer has ended, its job and the captured objects are destroyed, without a lock. Only a job that
// `stop` hands back is not destroyed: it goes to the caller. Runs of one timer never overlap. No
// job runs after `stop` or the destructor has returned. (`stop` called from inside a job is the
// exception: it returns while jobs run.) Jobs may throw; SchedulerOptions::error_handler gets the
// exception. Jobs may schedule, cancel and stop.
//
// Fork. A child process of fork() has a copy of the timers, but no driver thread. In the child,
// scheduling or moving a timer stops the process with a message. `cancel` and `cancel_key` return
// not_pending. `stats` and the other queries report an empty scheduler. `stop` and the destructor
// return immediately, and neither run nor destroy jobs. Create schedulers after the fork.
//
// Time. Delays are measured on the monotonic clock and ignore steps of the wall clock. A timer for
// a date (WallTime) follows the wall clock. The driver compares the two clocks
// (SchedulerOptions::wall_check), and moves these timers when the wall clock was stepped. Such a
// timer is never early by the wall clock.
//
// Read next: detent/scheduler_options.h, periodic.h, recurring.h, simulation.h (for tests), and
// src/runtime/scheduler/scheduler_core.h (how the threads work together).
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

class Sleep;       // detent/coroutine.h
class Simulation;  // detent/simulation.h
class TimerGroup;  // detent/timer_group.h

namespace internal {
class SchedulerImpl;
class WakeupTimer;
}  // namespace internal

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

  /// Runs the job. Requires: the job is not empty.
  void operator()(std::string_view key) { call_(key); }
  /// Returns false if there is no job to call.
  explicit operator bool() const noexcept { return static_cast<bool>(call_); }

 private:
  using Call = UniqueFunction<void(std::string_view)>;
  static Call without_key(UniqueFunction<void()> job) {
    if (!job) return {};
    return [job = std::move(job)](std::string_view) mutable { job(); };
  }

  Call call_;
};

/// What to do if another timer already has the key.
enum class SameKey : std::uint8_t {
  keep,     // leave the other timer; do not schedule the new timer
  replace,  // cancel the other timer; a run that has begun continues
};

/// The result of scheduling a keyed timer.
enum class KeyedResult : std::uint8_t {
  scheduled,
  replaced,  // scheduled, and the other timer with the key was cancelled
  kept,      // not scheduled, because another timer has the key
  // not scheduled: the scheduler has stopped or is full (with WhenFull::run_in_caller the job may
  // have run in the call). With SameKey::replace the other timer was cancelled nevertheless, and no
  // timer has the key.
  refused,
};

/// Runs jobs at their deadlines. Thread-safe. Every function may be called from inside a job,
/// unless its comment says otherwise. If an allocation for a timer fails, the process ends.
class Scheduler {
 public:
  /// Starts the driver thread. Throws std::system_error if the thread cannot be started.
  explicit Scheduler(SchedulerOptions options = {});
  /// Calls stop(Drain::drop). After an earlier `stop`, only waits until that `stop` is finished. To
  /// limit the wait, call `stop` again with a stronger Drain or with a deadline. Requires: not
  /// called from inside a job of this scheduler.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Runs `job` once, `delay` from now. If `delay` is 0 or less, the job is due immediately, but
  /// does not run inside this call. A delay beyond the end of the clock is shortened to its end.
  ///
  /// Returns: a handle that cancels the timer when the handle is destroyed. If the scheduler has
  /// stopped or is full, the handle is empty and the job has been destroyed.
  ///
  /// Cost: O(1). Allocates if the job is larger than four pointers or not trivially copyable, and
  /// sometimes to grow the wheel (amortised). Requires (for every schedule_… function): `job` is
  /// not empty.
  template <class Rep, class Period>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, Job job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current()) {
    return schedule_after_ns(internal::saturate_to_nanoseconds(delay), std::move(job), options,
                             where);
  }

  /// Runs `job` once at an instant of clock(), for example `clock().now() + 1s`. An instant in the
  /// past is due immediately, and its lateness counts from that instant. Otherwise as
  /// schedule_after.
  TimerHandle schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());
  /// Runs `job` once at a date, rounded up to milliseconds. The timer follows the wall clock; see
  /// "Time" above. Otherwise as schedule_after.
  template <class Duration>
  TimerHandle schedule_at(std::chrono::sys_time<Duration> due, Job job,
                          const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current()) {
    return schedule_at_date(internal::ceil_to_wall_time(due), std::move(job), options, where);
  }

  /// Runs `job` periodically (detent/periodic.h). The first run is one period from now, unless
  /// PeriodicOptions::created or phase_key give another instant. An exception from a run does not
  /// end the timer. A job that takes a TimerContext& can end its timer with `stop()`. Result and
  /// cost as schedule_after.
  TimerHandle schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                             const TimerOptions& options = {},
                             SourceLocation where = SourceLocation::current());

  /// Runs `job` at the dates of `rule` after now (detent/recurring.h). A rule is a Cron, a
  /// CalendarInterval, an object with the same `next_after`, or a callable. An exception from a run
  /// does not end the timer.
  ///
  /// The timer follows the wall clock; see "Time" above. If the clock is stepped back over a date
  /// that already ran, the date does not run again. After a step back of more than 26 hours the
  /// rule restarts from the new time, because the earlier clock was wrong.
  ///
  /// If a TimerHandle moves the timer, the moved run replaces all occurrences up to the new time,
  /// and at least the next occurrence.
  ///
  /// Returns: as schedule_after; the handle is also empty if the rule has no future date. Cost: as
  /// schedule_after, and an allocation.
  TimerHandle schedule_on(RecurringRule rule, RecurringJob job,
                          const RecurringOptions& recurring = {}, const TimerOptions& options = {},
                          SourceLocation where = SourceLocation::current());

  // ---- Keyed timers -----------------------------------------------------------------------------
  // The scheduler owns these timers, so there is no handle. Each key has at most one timer.

  /// Runs `job` once, `delay` from now. The timer has the key until it ends, also while its job
  /// runs; the key is also its name. A job that schedules its own key again must therefore pass
  /// SameKey::replace. Cost: O(1) on average, under one lock for all keys; allocates.
  template <class Rep, class Period>
  KeyedResult schedule_keyed(std::string_view key, std::chrono::duration<Rep, Period> delay,
                             KeyedJob job, SameKey same_key = SameKey::keep,
                             SourceLocation where = SourceLocation::current()) {
    return schedule_keyed_ns(key, internal::saturate_to_nanoseconds(delay), std::move(job),
                             same_key, where);
  }
  /// Runs `job` periodically, as schedule_every. Otherwise as above.
  KeyedResult schedule_keyed(std::string_view key, const PeriodicOptions& periodic, KeyedJob job,
                             SameKey same_key = SameKey::keep,
                             SourceLocation where = SourceLocation::current());
  /// Runs SchedulerOptions::default_job periodically. Requires: default_job is set.
  KeyedResult schedule_keyed(std::string_view key, const PeriodicOptions& periodic,
                             SameKey same_key = SameKey::keep,
                             SourceLocation where = SourceLocation::current());

  /// Cancels the timer that has `key`, as TimerHandle::cancel. Returns not_pending if no timer has
  /// the key. The key can be used again immediately.
  CancelResult cancel_key(std::string_view key);
  /// Returns the timer that has `key` now, or std::nullopt.
  std::optional<TimerInfo> find_key(std::string_view key) const;

  // ---- Coroutines: include detent/coroutine.h to call these -------------------------------------

  /// `co_await scheduler.sleep_for(100ms, token)` returns true if the time has passed, and false if
  /// the token or the scheduler was stopped first.
  template <class Rep, class Period>
  Sleep sleep_for(std::chrono::duration<Rep, Period> delay, std::stop_token token = {});
  /// As above, but sleeps until an instant.
  Sleep sleep_until(MonotonicTime deadline, std::stop_token token = {});
  /// As above, but sleeps until a date, with the rules of schedule_at.
  template <class Duration>
  Sleep sleep_until(std::chrono::sys_time<Duration> due, std::stop_token token = {});

  // ---- The end ----------------------------------------------------------------------------------

  /// Ends all timers and waits until no job runs. Called from inside a job, it does not wait. From
  /// now on, the scheduler refuses new timers.
  ///
  /// A later call with a stronger Drain, from any thread, overrides an earlier call. Both calls
  /// then return as soon as no job runs. A later call with an equal or weaker Drain only waits.
  ///
  /// Returns: with Drain::hand_back, the timers that did not run, in an unspecified order. A
  /// periodic timer whose job is running is dropped instead. With another Drain the vector is
  /// empty.
  std::vector<PendingJob> stop(Drain drain = Drain::drop);
  /// As above, with a deadline, which is an instant of clock(). Jobs that have not begun before the
  /// deadline are dropped. The call still waits for jobs that run at the deadline, because no job
  /// may run after `stop`. A later call may set an earlier deadline, whatever its Drain.
  std::vector<PendingJob> stop(Drain drain, MonotonicTime deadline);
  /// As above, with the deadline `limit` from now. A limit of 0 or less drops pending jobs
  /// immediately.
  template <class Rep, class Period>
  std::vector<PendingJob> stop(Drain drain, std::chrono::duration<Rep, Period> limit) {
    return stop(drain,
                internal::saturating_add(clock().now(), internal::saturate_to_nanoseconds(limit)));
  }
  /// Returns true until `stop` is called.
  bool is_running() const noexcept;

  // ---- Observation ------------------------------------------------------------------------------

  /// Returns counts since the start. Takes each shard's lock for a short time.
  SchedulerStats stats() const;
  /// Returns the lateness of jobs and its causes.
  LatenessReport lateness() const;
  /// Returns the current timers, at most `limit`, in an unspecified order. The call takes the locks
  /// of the shards one after the other, each for a short time. Changes during the call can be
  /// missing from the result.
  std::vector<TimerInfo> pending_timers(
      std::size_t limit = std::numeric_limits<std::size_t>::max()) const;
  /// Returns the number of deadlines in each of `bins` spans [i × width, (i + 1) × width) from now.
  /// Overdue timers count in the first span, and timers after the last span do not count. A
  /// periodic or recurring timer counts once, for its next run. Cost: O(timers), in short steps as
  /// pending_timers. Requires: width > 0.
  std::vector<std::uint64_t> forecast(std::chrono::nanoseconds width, std::size_t bins) const;

  /// Returns the clock of this scheduler.
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

/// Returns a scheduler for the whole process, with default options. The first call creates it. It
/// is never destroyed, so the destructor of any static object may use it.
///
/// At process exit it stops with Drain::drop, and refuses timers from then on. The time of this
/// stop is in the order of std::atexit: after the destructors of static objects that were created
/// later than the scheduler, and before those of static objects that were created earlier. exit()
/// waits for a running job, unless this job called exit(). The library itself never uses this
/// scheduler. Thread-safe.
Scheduler& default_scheduler();

}  // namespace detent

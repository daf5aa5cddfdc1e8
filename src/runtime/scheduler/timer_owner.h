// The owner of a TimerShard, for its handles and its jobs: the shard of a Scheduler
// (scheduler_shard.h), or a LocalScheduler (runtime/drive/local_scheduler.cc). The path of a due
// timer through its run is here, once for both:
//
//   queued ─ begin_run: take the job ─► call it ─► rearm: back into the wheel;  or destroy it ─►
//   end_run
//
// A handle has a share of its owner. The owner counts the shares itself: the shard of a Scheduler
// under its lock, and a LocalScheduler without a lock. So scheduling and cancelling a timer counts
// no reference atomically.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "detent/clock.h"
#include "detent/drain.h"
#include "detent/timer_handle.h"
#include "detent/unique_function.h"
#include "runtime/dates/recurring_dates.h"
#include "runtime/scheduler/timer_shard.h"

namespace detent::internal {

/// What a call does with the share that its caller has.
enum class Share : std::uint8_t { keep, give_back, give_back_unless_running };

/// Implementations state their thread safety.
class TimerOwner {
 public:
  TimerOwner() = default;
  TimerOwner(const TimerOwner&) = delete;
  TimerOwner& operator=(const TimerOwner&) = delete;

  // ---- Called by handles ----
  virtual CancelResult cancel(TimerId id, Share share) noexcept = 0;
  virtual CancelResult cancel_and_wait(TimerId id) noexcept = 0;
  virtual bool move_by(TimerId id, std::chrono::nanoseconds delay) = 0;
  virtual bool move_to(TimerId id, MonotonicTime due_at) = 0;
  virtual bool move_to(TimerId id, WallTime date) = 0;
  virtual bool is_pending(TimerId id) const noexcept = 0;
  /// Takes back the share of a handle. The timer continues.
  virtual void take_share() noexcept = 0;

  /// Runs the job of a queued timer. Does nothing if the timer was cancelled or moved since then.
  /// Returns whether the job was called.
  bool run(TimerId id) noexcept;

  /// The scheduler of this owner. Only its address is used.
  virtual const void* scheduler() const noexcept = 0;

 protected:
  ~TimerOwner() = default;

 private:
  bool run_occurrence(TimerId id, Job job, RecurringDates& dates) noexcept;

  // ---- The steps of a run. The jobs are called and destroyed between them ----
  /// Moves the job to `job`. Empty if the timer must not run; the caller then destroys the job, if
  /// there is one.
  virtual std::optional<BegunRun> begin_run(TimerId id, Job& job) noexcept = 0;
  virtual BegunRun begin_occurrence(TimerId id, MonotonicTime now) noexcept = 0;
  virtual ClockReading read_clocks() const noexcept = 0;
  /// Calls the job and counts its exception.
  virtual void call(Job& job, const BegunRun& begun) noexcept = 0;
  // The next two functions put a repeating timer and its `job` back into the wheel. They return
  // false if the timer has ended.
  virtual bool rearm(TimerId id, Job& job) noexcept = 0;
  virtual bool rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                         Job& job) noexcept = 0;
  /// Ends a timer whose job has been destroyed.
  virtual void end_run(TimerId id) noexcept = 0;
};

/// Marks the current thread as inside a job, for the lifetime of this object.
class InsideJob {
 public:
  /// `called`: the address of the callable. It tells this job from a job that it calls itself.
  InsideJob(TimerOwner& owner, TimerId id, const void* called) noexcept;
  ~InsideJob();
  InsideJob(const InsideJob&) = delete;
  InsideJob& operator=(const InsideJob&) = delete;

  /// Whether the calling thread is inside the job of this timer.
  static bool of(const TimerOwner& owner, TimerId id) noexcept;
  /// Whether the calling thread is inside a job of this scheduler.
  static bool of_scheduler(const void* scheduler) noexcept;
  /// The timer whose job runs on this thread, if `called` is the innermost job of this thread;
  /// otherwise null. `called`: the target of a job, or the dates of a recurring job.
  static std::pair<TimerOwner*, TimerId> run_that_calls(const void* called) noexcept;

 private:
  TimerOwner& owner_;
  const TimerId id_;
  const void* const called_;
  const InsideJob* const outer_;
};

/// Calls a job, and hands its exception to the handler. Returns false if the job threw. Without a
/// handler, an exception ends the process.
bool call_job(Job& job, const std::function<void(std::exception_ptr)>& error_handler) noexcept;

/// How strict a stop is: the fewer jobs it runs, the higher the number. A stop overrides stops with
/// a lower number. No stop has 0.
int strength(std::optional<Drain> drain) noexcept;

/// Notices steps of the wall clock against the monotonic clock. Thread-compatible.
class WallSteps {
 public:
  explicit WallSteps(const ClockReading& clocks) noexcept : offset_(offset_of(clocks)) {}

  /// Whether the wall clock was stepped since the last call that returned true, or since the
  /// construction.
  bool was_stepped(const ClockReading& clocks) noexcept;

 private:
  static std::chrono::nanoseconds offset_of(const ClockReading& clocks) noexcept {
    return clocks.wall.time_since_epoch() - clocks.now.time_since_epoch();
  }

  std::chrono::nanoseconds offset_;
};

}  // namespace detent::internal

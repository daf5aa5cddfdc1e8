// One shard of a scheduler: its timers behind a lock, and the path of a timer through it.
//
//   schedule ─ lock: into the wheel ─► driver ─ lock: collect due timers ─► executor ─► run
//   run ─ lock: take the job ─► call it ─► destroy it ─► lock: end;  or lock: back into the wheel
//
// The lock is held only for short steps, and never while a job is called or destroyed. A timer is
// cancelled, moved or run under the lock. The first of these operations wins. The others find the
// timer in another state, or no timer with the generation of the id. A thread that waits for the
// end of a job also waits for the destruction of the job: the job is destroyed before the timer is
// ended under the lock.
//
// No wake-up is lost. At the end of each look at a shard, in the same critical section, the driver
// writes when it will look again (`looks_at_`). A thread that needs an earlier look sees this in
// its own critical section and wakes the driver. If the driver is not asleep yet, the wake-up is
// kept (Driver). A driver that will come in time is not woken.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "base/mutex.h"
#include "detent/timer_handle.h"
#include "runtime/scheduler/timer_shard.h"

namespace detent::internal {

class SchedulerCore;

/// Stops the process because a scheduler is used in a child process of fork().
[[noreturn]] void fail_after_fork() noexcept;
inline void expect_home(const HomeProcess& home) noexcept {
  if (home.was_left()) [[unlikely]]
    fail_after_fork();
}

/// The result of one look at a shard.
struct Look {
  bool again = false;  // work is left; look again immediately
  bool has_dates = false;
  std::optional<MonotonicTime> until = std::nullopt;  // otherwise, the next look; empty: never
};

/// Thread-safe. Owned by the scheduler, its handles, and queued jobs at the executor. Once it is
/// closed and quiet it has no timers and does not use its core, which may be gone. In a child
/// process of fork() it takes no lock, because another thread may have held the lock. There it
/// answers that there is no timer, or stops the process if a timer would be expected to fire.
class alignas(64) SchedulerShard final : public std::enable_shared_from_this<SchedulerShard> {
 public:
  SchedulerShard(SchedulerCore& core, const TickScale& scale, std::uint64_t seed);

  const SchedulerCore* core() const noexcept { return &core_; }

  // ---- Called by users ----
  /// Returns TimerId{} if the shard is closed. `timer` then stays unchanged.
  TimerId add(NewTimer&& timer) noexcept;
  void count_refused() noexcept;
  void count_rejected() noexcept;
  CancelResult cancel(TimerId id) noexcept;
  CancelResult cancel_and_wait(TimerId id) noexcept;
  bool move_by(TimerId id, std::chrono::nanoseconds delay);
  bool move_to(TimerId id, MonotonicTime due_at);
  bool move_to(TimerId id, WallTime date);
  /// Makes a periodic timer run next at `due_at`, also while its job is running.
  bool move_next_run(TimerId id, MonotonicTime due_at);
  /// Returns how many timers were cancelled. Running jobs continue.
  std::size_t cancel_all();
  bool is_pending(TimerId id) const noexcept;
  std::optional<TimerInfo> info_of(TimerId id) const;

  // ---- Called by the driver ----
  /// Appends the due timers to `due`. `wall_stepped`: the wall clock was stepped since the last
  /// look.
  Look look(const ClockReading& clocks, MonotonicTime woke_at, bool wall_stepped,
            std::vector<TimerId>& due);
  /// Runs the job of a queued timer. Does nothing if the timer was cancelled or moved since then.
  void run(TimerId id) noexcept;
  /// Runs a job that has no timer, on the thread of the caller that wanted to schedule it.
  void run_in_caller(Job job) noexcept;

  // ---- The end ----
  /// Refuses new timers from now on. Returns the timers that were removed. If it is called again
  /// with a stronger drain, it removes more timers.
  std::vector<PendingJob> close(Drain drain);
  /// Removes timers and destroys their jobs.
  void drop(TakeAll which);
  /// Whether no job is running or queued.
  bool is_quiet() const noexcept;
  /// Waits until is_quiet().
  void await_quiet() noexcept;

  // ---- Figures ----
  SchedulerStats stats() const;
  void add_to(LatenessLedger& ledger) const;
  /// Calls `append(timers, first, count)` for one range of indices after the other, each time under
  /// the lock, until `append` returns false.
  template <class Append>
  void for_ranges(Append&& append) const {
    constexpr std::uint32_t kRange = 1024;
    bool more = true;
    for (std::uint32_t first = 0; more; first += kRange) {
      MutexLock lock(mu_);
      more = append(timers_, first, kRange);
    }
  }

  /// Whether the calling thread is inside a job of `core`.
  static bool is_inside_job_of(const SchedulerCore& core) noexcept;
  /// The timer whose job runs on this thread, if `called` is the innermost job of this thread;
  /// otherwise null. `called`: the target of a job, or the dates of a recurring job.
  static std::pair<SchedulerShard*, TimerId> run_that_calls(const void* called) noexcept;

 private:
  bool can_move(TimerId id) const noexcept DETENT_REQUIRES(mu_);
  bool move(TimerId id, const DueTime& due, std::optional<WallTime> date) DETENT_REQUIRES(mu_);
  void wake_driver_if_late() noexcept DETENT_REQUIRES(mu_);
  void tell_stop() noexcept DETENT_REQUIRES(mu_);
  void after_no_run(TimerId id, Job& job) noexcept DETENT_REQUIRES(mu_);
  void run_occurrence(TimerId id, Job job, RecurringDates& dates) noexcept;
  void call(Job& job, const BegunRun& begun) noexcept;
  TimerShard::Repeat repeat() const noexcept DETENT_REQUIRES(mu_);
  // The next two functions put a repeating timer and its `job` back into the wheel. They return
  // false if the timer has ended.
  bool rearm(TimerId id, Job& job) noexcept;
  bool rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                 Job& job) noexcept;
  void end(TimerId id, Job job) noexcept;

  // Constant after construction.
  SchedulerCore& core_;
  const HomeProcess home_;

  mutable Mutex mu_;
  CondVar run_ended_;  // signalled when a run ends, or the last queued timer is gone
  TimerShard timers_ DETENT_GUARDED_BY(mu_);
  // The driver looks at this shard at this tick at the latest, even if nothing wakes it.
  Tick looks_at_ DETENT_GUARDED_BY(mu_) = 0;
  // Whether the driver knows that there are dates. If so, it compares both clocks.
  bool knows_dates_ DETENT_GUARDED_BY(mu_) = false;
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
  bool runs_pending_ DETENT_GUARDED_BY(mu_) = false;  // closed only with Drain::run_pending
};

}  // namespace detent::internal

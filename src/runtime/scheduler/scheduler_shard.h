// One shard of a scheduler: its timers behind a lock, and the path of a timer through it.
//
//   schedule ─ lock: into the wheel ─► driver ─ lock: collect due timers ─► executor ─► run
//   run ─ lock: take the job ─► call it ─► destroy it ─► lock: end;  or lock: back into the wheel
//
// The lock is held only for short steps, and never while a job is called or destroyed. A timer is
// cancelled, moved or run under the lock. The first of these operations wins. The others find the
// timer in another state, or no timer with the generation of the id. A thread that waits for the
// end of a job also waits for the destruction of the job: the job is destroyed before the timer is
// ended under the lock. timer_owner.h has the path of a run.
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
#include "runtime/scheduler/timer_owner.h"
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
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final, so no base deletes it
class alignas(64) SchedulerShard final : public TimerOwner,
                                         public std::enable_shared_from_this<SchedulerShard> {
 public:
  SchedulerShard(SchedulerCore& core, const TickScale& scale, std::uint64_t seed);

  /// Makes a shard. Its core must call `leave` at its end.
  static std::shared_ptr<SchedulerShard> make(SchedulerCore& core, const TickScale& scale,
                                              std::uint64_t seed);
  /// The core ends. From now on only handles and queued jobs own the shard.
  void leave() noexcept;

  const void* scheduler() const noexcept override { return &core_; }

  // ---- Called by users ----
  /// Returns TimerId{} if the shard is closed. `timer` then stays unchanged. Otherwise the caller
  /// gets a share for the handle.
  TimerId add(NewTimer&& timer) noexcept;
  void count_refused() noexcept;
  void count_rejected() noexcept;
  CancelResult cancel(TimerId id, Share share) noexcept override;
  CancelResult cancel_and_wait(TimerId id) noexcept override;
  bool move_by(TimerId id, std::chrono::nanoseconds delay) override;
  bool move_to(TimerId id, MonotonicTime due_at) override;
  bool move_to(TimerId id, WallTime date) override;
  /// Makes a periodic timer run next at `due_at`, also while its job is running.
  bool move_next_run(TimerId id, MonotonicTime due_at);
  /// Returns how many timers were cancelled. Running jobs continue.
  std::size_t cancel_all();
  bool is_pending(TimerId id) const noexcept override;
  void take_share() noexcept override;
  std::optional<TimerInfo> info_of(TimerId id) const;

  // ---- Called by the driver ----
  /// Appends the due timers to `due`. `wall_stepped`: the wall clock was stepped since the last
  /// look.
  Look look(const ClockReading& clocks, MonotonicTime woke_at, bool wall_stepped,
            std::vector<TimerId>& due);
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

 private:
  bool can_move(TimerId id) const noexcept DETENT_REQUIRES(mu_);
  bool move(TimerId id, const DueTime& due, std::optional<WallTime> date) DETENT_REQUIRES(mu_);
  void wake_driver_if_late() noexcept DETENT_REQUIRES(mu_);
  void tell_stop() noexcept DETENT_REQUIRES(mu_);
  void after_no_run(TimerId id, Job& job) noexcept DETENT_REQUIRES(mu_);
  TimerShard::Repeat repeat() const noexcept DETENT_REQUIRES(mu_);
  std::shared_ptr<SchedulerShard> give_back_share() noexcept DETENT_REQUIRES(mu_);

  // ---- The steps of a run ----
  std::optional<BegunRun> begin_run(TimerId id, Job& job) noexcept override;
  BegunRun begin_occurrence(TimerId id, MonotonicTime now) noexcept override;
  ClockReading read_clocks() const noexcept override;
  void call(Job& job, const BegunRun& begun) noexcept override;
  bool rearm(TimerId id, Job& job) noexcept override;
  bool rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                 Job& job) noexcept override;
  void end_run(TimerId id) noexcept override;

  // Constant after construction.
  SchedulerCore& core_;
  const HomeProcess home_;

  mutable Mutex mu_;
  CondVar run_ended_;  // signalled when a run ends, or the last queued timer is gone
  TimerShard timers_ DETENT_GUARDED_BY(mu_);
  // The shared ownership of the core and of all handles together: the core has called `leave`, and
  // no handle has a share, when it is empty.
  std::shared_ptr<SchedulerShard> self_ DETENT_GUARDED_BY(mu_);
  std::size_t shares_ DETENT_GUARDED_BY(mu_) = 0;  // of handles
  bool left_ DETENT_GUARDED_BY(mu_) = false;
  // The driver looks at this shard at this tick at the latest, even if nothing wakes it.
  Tick looks_at_ DETENT_GUARDED_BY(mu_) = 0;
  // Whether the driver knows that there are dates. If so, it compares both clocks.
  bool knows_dates_ DETENT_GUARDED_BY(mu_) = false;
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
  bool runs_pending_ DETENT_GUARDED_BY(mu_) = false;  // closed only with Drain::run_pending
};

}  // namespace detent::internal

// A scheduler without its thread: shards, and the steps of its driver.
//
// A step looks at each shard, hands due timers to the executor, and returns when the next step is
// needed. The shard of a timer handles all its events (scheduler_shard.h). The core handles the
// executor, exceptions of jobs, the limit of timers, and the stop:
//
//   stop ─ close every shard ─► tell the driver ─► its last steps drop jobs that may not run, and
//        wait until no shard has a running or queued job, or until the deadline
//
// The driver stays until then, so that a later `stop` can still set a deadline. A stronger `stop`
// closes the shards again, which removes more timers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "detent/timer_handle.h"
#include "runtime/scheduler/admission.h"
#include "runtime/scheduler/driver.h"
#include "runtime/scheduler/new_timer.h"
#include "runtime/scheduler/scheduler_shard.h"
#include "runtime/scheduler/timer_owner.h"
#include "runtime/scheduler/timer_shard.h"

namespace detent::internal {

/// The next action after a step.
struct Step {
  enum class Next : std::uint8_t { again, sleep, end } next = Next::again;
  std::optional<MonotonicTime> until = std::nullopt;  // of a sleep; empty: until it is woken
};

/// Thread-safe, but only the driver may call `step`. Must outlive its last job. Handles may outlive
/// it.
class SchedulerCore final {
 public:
  /// Whether a caller may wait for room.
  enum class Waiting : std::uint8_t { allowed, never };

  /// `home`: the process in which the driver's thread runs.
  SchedulerCore(SchedulerOptions options, Driver& driver, Waiting waiting, HomeProcess home);
  ~SchedulerCore();
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;

  // ---- Called by users ----
  TimerHandle schedule(NewTimer&& timer);
  /// Returns how many timers were cancelled. Running jobs continue.
  std::size_t cancel_all();
  /// Makes a periodic timer run next at `due_at`, even if its job is running. Does nothing if the
  /// timer has ended.
  static void move_next_run(const TimerHandle& handle, MonotonicTime due_at);
  /// `deadline` is MonotonicTime::max() for a stop without a deadline.
  std::vector<PendingJob> stop(Drain drain, MonotonicTime deadline);
  /// Drops pending timers unless a stop came before. Waits for the end in both cases.
  void stop_or_wait();
  bool is_stopping() const noexcept;
  /// The deadline of a timer that is scheduled now with this delay. A delay of 0 or less means now.
  DueTime due_after(std::chrono::nanoseconds delay) const noexcept {
    return internal::due_after(delay, clock_.now());
  }
  /// The deadline of a timer that is scheduled now for an instant, which may have passed.
  DueTime due_by(MonotonicTime at) const noexcept { return {.at = at, .set_at = clock_.now()}; }
  /// Reads the wall clock second: time that passes between the two reads can only make a date
  /// later, never earlier.
  ClockReading read_clocks() const noexcept;
  /// A new seed for a random generator.
  std::uint64_t next_seed() noexcept;

  // ---- Called by the driver ----
  Step step();

  // ---- Figures ----
  SchedulerStats stats() const;
  LatenessReport lateness() const;
  std::vector<TimerInfo> pending_timers(std::size_t limit) const;
  std::vector<std::uint64_t> forecast(std::chrono::nanoseconds width, std::size_t bins) const;
  /// The timer of a handle, if it has not ended.
  static std::optional<TimerInfo> info_of(const TimerHandle& handle);

  // ---- Used by shards ----
  const HomeProcess& home() const noexcept { return home_; }
  const SchedulerOptions& options() const noexcept { return options_; }
  Clock& clock() const noexcept { return clock_; }
  Driver& driver() const noexcept { return driver_; }
  Admission& admission() noexcept { return admission_; }
  /// Calls a job. Returns false if the job threw.
  bool call(Job& job) noexcept;
  void check_lateness(const BegunRun& run) const noexcept;

 private:
  const std::shared_ptr<SchedulerShard>& shard_of_this_thread() const noexcept;
  TimerHandle add(NewTimer&& timer);
  TimerHandle schedule_counted(NewTimer&& timer);
  TimerHandle schedule_when_full(NewTimer&& timer);
  void run_in_caller(NewTimer&& timer);
  void check_pending(std::size_t count) const noexcept;
  void hand_out(SchedulerShard& shard) noexcept;
  bool execute(SchedulerShard& shard, TimerId id) noexcept;
  std::vector<PendingJob> close_shards(Drain drain);
  bool is_past_stop(MonotonicTime now) const noexcept;
  Step drop(TakeAll which) noexcept;
  bool is_quiet() const noexcept;
  Step wait_for_quiet() noexcept;

  // Constant after construction.
  SystemClock machine_;
  const SchedulerOptions options_;
  Clock& clock_;
  Driver& driver_;
  const Waiting waiting_;
  const HomeProcess home_;
  const TickScale scale_;
  std::vector<std::shared_ptr<SchedulerShard>> shards_;  // with their handles: timer_handle.h

  // With its own synchronisation.
  Admission admission_;

  mutable Mutex mu_;
  Rng rng_ DETENT_GUARDED_BY(mu_);
  // stop_called_: the strongest drain that `stop` was called with. stopping_: the strongest drain
  // with which all shards have been closed.
  std::optional<Drain> stop_called_ DETENT_GUARDED_BY(mu_);
  std::optional<Drain> stopping_ DETENT_GUARDED_BY(mu_);
  std::uint64_t errors_ DETENT_GUARDED_BY(mu_) = 0;
  std::uint64_t wakeups_ DETENT_GUARDED_BY(mu_) = 0;

  // When jobs that have not begun are dropped; max: never. `stop` writes it under mu_ and then
  // wakes the driver. The driver reads it without mu_ before each job. Relaxed: no other data
  // depends on it.
  std::atomic<MonotonicTime> stop_by_ = MonotonicTime::max();

  // Used only by the driver.
  std::vector<TimerId> due_;
  MonotonicTime woke_at_;
  bool slept_ = false;
  WallSteps wall_steps_;
};

}  // namespace detent::internal

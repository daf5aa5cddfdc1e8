// The timers of a scheduler, without threads or clocks: what is pending, due, running, and what
// each operation makes of that.
//
// All of it lives under one lock that the owner holds (scheduler_core.h). Times come in as
// arguments. Jobs only pass through: they are never called and never destroyed here, because both
// may run the user's code; whoever holds the lock gets them handed out. To shard the scheduler,
// make several of these, each with its own lock and driver.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "detent/clock.h"
#include "detent/scheduler.h"
#include "detent/timer_handle.h"
#include "detent/timer_wheel.h"
#include "detent/unique_function.h"
#include "runtime/tick_scale.h"
#include "runtime/timer_slab.h"

namespace detent::internal {

/// Both clocks read together.
struct ClockReading {
  MonotonicTime now;
  WallInstant wall;
};

/// How long until the wall clock shows `due`, seen at `wall`; zero when it has, saturating.
std::chrono::nanoseconds time_until(WallTime due, WallInstant wall) noexcept;

/// What a new timer is.
struct NewTimer {
  Job job;
  MonotonicTime due_at;
  std::optional<WallTime> due_at_wall = std::nullopt;
  std::optional<PeriodicOptions> periodic = std::nullopt;
};

/// Which timers `take_all` takes.
enum class TakeAll : std::uint8_t { pending, pending_and_queued };

/// Thread-compatible.
class TimerShard {
 public:
  /// What one call of `collect` takes at most, so that the lock is never held for long.
  static constexpr std::size_t kBatch = 256;

  explicit TimerShard(const TickScale& scale) : scale_(scale) {}

  TimerId add(NewTimer& timer);
  /// Counts a timer that was offered after the end.
  void count_refused() noexcept { ++scheduled_, ++dropped_; }

  /// When `collect` next has something to do; may be early, never late. Empty: never.
  std::optional<MonotonicTime> next_wakeup() const noexcept;

  /// Appends the ids of timers that are due, at most kBatch, earliest first, and marks them queued.
  /// Requires: `due` has that much room, so that nothing is allocated. Returns: whether it stopped
  /// before it was through; ask again at once.
  bool collect(const ClockReading& clocks, std::vector<TimerId>& due) noexcept;

  /// Takes the timer out, its job to `job`, or, when it runs, sees to it that it runs no more.
  CancelResult cancel(TimerId id, Job& job) noexcept;

  /// Queued → running, with the job moved to `job`. Returns: false when it was cancelled or moved
  /// meanwhile and must not run.
  bool begin_run(TimerId id, Job& job) noexcept;
  /// Running → pending at its next tick, with `job` moved back. Returns: false when there is no
  /// next run; then the caller destroys the job and calls `end_run`.
  bool rearm(TimerId id, Job& job, MonotonicTime now) noexcept;
  /// Running → free.
  void end_run(TimerId id) noexcept;

  /// Gives a timer that has not begun another deadline. Returns: whether there was one.
  bool move(TimerId id, MonotonicTime due_at) noexcept;

  bool is_pending(TimerId id) const noexcept;
  bool is_running(TimerId id) const noexcept;
  /// Whether no job is running or waits for its executor.
  bool is_quiet() const noexcept { return running_ == 0 && queued_ == 0; }

  /// Takes out every timer that has not begun, and counts it as dropped.
  std::vector<PendingJob> take_all(TakeAll which);

  SchedulerStats stats() const noexcept;

 private:
  void arm(TimerEntry& entry, MonotonicTime due_at) noexcept;
  void on_due(TimerEntry& entry, const ClockReading& clocks, std::vector<TimerId>& due) noexcept;
  Job take_out(TimerEntry& entry) noexcept;

  TickScale scale_;
  TimerWheel wheel_;  // before slab_: entries leave it when they are destroyed
  TimerSlab slab_;
  std::size_t queued_ = 0;
  std::size_t running_ = 0;
  std::uint64_t scheduled_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace detent::internal

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
#include <memory>
#include <optional>
#include <vector>

#include "base/slab.h"
#include "detent/clock.h"
#include "detent/dense_wheel.h"
#include "detent/scheduler.h"
#include "detent/timer_handle.h"
#include "detent/unique_function.h"
#include "runtime/tick_scale.h"

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

/// A timer goes by the index of its entry, in the slab and in the wheel. Its id has a generation
/// besides, so that an id finds nothing once its timer has ended, whoever has the index then.
/// Thread-compatible.
class TimerShard {
 public:
  /// What one call of `collect` takes at most, so that the lock is never held for long.
  static constexpr std::size_t kBatch = 256;

  explicit TimerShard(const TickScale& scale) : scale_(scale) {}

  /// Returns: an id that no other timer has or had.
  TimerId add(NewTimer& timer);
  /// Counts a timer that was offered after the end.
  void count_refused() noexcept { ++scheduled_, ++dropped_; }

  /// When `collect` next has something to do; may be early, never late. Empty: never.
  std::optional<MonotonicTime> next_wakeup() const noexcept;

  /// Appends the ids of timers that are due, at most kBatch, in the order of the wheel, and marks
  /// them queued. Requires: `due` has that much room, so that nothing is allocated. Returns:
  /// whether it stopped before it was through; ask again at once.
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
  // Moves: pending → queued → running → the end, or back to pending for a periodic timer; queued →
  // pending when it is moved; pending and queued → the end when it is cancelled.
  enum class State : std::uint8_t {
    pending,  // in the wheel
    queued,   // due and handed to the executor, not begun
    running,  // its job is being called; the job is not in the entry meanwhile
  };

  struct Entry {
    std::uint32_t index;
    State state = State::pending;
    bool cancelled = false;  // while it runs: there is to be no other run
    std::uint64_t generation = 0;
    Job job;
    MonotonicTime due_at;                       // exact; the tick in the wheel is this rounded up
    std::optional<WallTime> due_at_wall;        // for a timer scheduled for a date
    std::unique_ptr<PeriodicOptions> periodic;  // null for one shot; `count` is the runs left

    TimerId id() const noexcept { return {.index = index, .generation = generation}; }
  };

  Entry* find(TimerId id) const noexcept;
  void arm(Entry& entry, MonotonicTime due_at) noexcept;
  void on_due(Entry& entry, const ClockReading& clocks, std::vector<TimerId>& due) noexcept;
  Job take_out(Entry& entry) noexcept;
  void end(Entry& entry) noexcept;

  TickScale scale_;
  Slab<Entry> slab_;
  DenseWheel wheel_;
  std::size_t queued_ = 0;
  std::size_t running_ = 0;
  std::uint64_t scheduled_ = 0;  // the last generation, too
  std::uint64_t completed_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace detent::internal

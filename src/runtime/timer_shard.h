// Some of a scheduler's timers, without threads, locks or clocks: their states, and the effect of
// each operation on them.
//
// The owner holds one lock for all of it (scheduler_shard.h), and passes the times. This class
// never calls or destroys jobs, because both may run user code. It hands jobs to the holder of the
// lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/slab.h"
#include "detent/clock.h"
#include "detent/dense_wheel.h"
#include "detent/internal/tick_scale.h"
#include "detent/scheduler.h"
#include "runtime/lateness_ledger.h"
#include "runtime/periodic_ticks.h"
#include "runtime/recurring_dates.h"
#include "runtime/slack.h"

namespace detent::internal {

/// Both clocks read together.
struct ClockReading {
  MonotonicTime now;
  WallInstant wall;
};

/// The wall clock in the unit of dates. A date compared in nanoseconds would overflow in 2262.
WallTime whole_ms(WallInstant wall) noexcept;

/// How long until the wall clock shows `due`, seen at `wall`; zero when it has, saturating.
std::chrono::nanoseconds time_until(WallTime due, WallInstant wall) noexcept;

/// Fields that only some timers have; null for a plain one-shot timer.
struct TimerDetails {
  std::optional<PeriodicTicks> periodic = std::nullopt;
  std::optional<WallTime> date = std::nullopt;  // it is scheduled for a date
  // Of one that recurs; lives in its job. While that runs, its thread has it, without the lock.
  RecurringDates* recurring = nullptr;
  std::string name = {};
  std::chrono::nanoseconds slack{};
  SlackUse slack_use = SlackUse::coalesce;
  std::optional<MonotonicTime> next_run = std::nullopt;  // while it runs: see move_next_run
};

/// A deadline, and the time when it was set. If the deadline had already passed then, it is due
/// immediately.
struct DueTime {
  MonotonicTime at;
  MonotonicTime set_at = MonotonicTime::min();
};

/// A new timer.
struct NewTimer {
  Job job;
  DueTime due;
  SourceLocation where = {};
  std::unique_ptr<TimerDetails> details = nullptr;
};

/// Which timers `take_all` takes.
enum class TakeAll : std::uint8_t { pending, pending_and_queued, repeating };

/// A run that begins.
struct BegunRun {
  bool repeats = false;
  RecurringDates* recurring = nullptr;  // then these two are told by `begin_occurrence`
  std::chrono::nanoseconds lateness{};
  bool was_last_late = false;  // by more than the threshold, the run of this shard before it
};

/// A timer has the index of its entry, in the slab and in the wheel. Its id also has a generation,
/// so that the id finds no timer after its timer has ended, even if another timer has the index.
/// Thread-compatible.
class TimerShard {
 public:
  /// The most timers that one call of `collect` takes, so that the lock is never held for long.
  static constexpr std::size_t kBatch = 256;

  TimerShard(const TickScale& scale, DueOrder order, std::uint64_t seed);

  /// Returns: an id that no other timer has or had.
  TimerId add(NewTimer&& timer);
  /// Count a timer that was offered after the end, or when there was no room.
  void count_refused() noexcept { ++scheduled_, ++dropped_; }
  void count_rejected() noexcept { ++scheduled_, ++rejected_; }
  void count_error() noexcept { ++errors_; }

  /// When `collect` next has something to do; may be early, never late. Empty: never.
  std::optional<Tick> next_wakeup() const noexcept { return wheel_.next_wakeup(); }

  /// Appends the ids of timers that are due, in the order of DueOrder, and marks them queued. With
  /// DueOrder::deadline at most kBatch. `woke_at`: when the driver woke. Returns: whether it
  /// stopped before it was through; ask again at once.
  bool collect(const ClockReading& clocks, MonotonicTime woke_at, std::vector<TimerId>& due);

  /// Gives pending timers with a date new ticks, after the wall clock was stepped. O(size()).
  void retime(const ClockReading& clocks) noexcept;
  bool has_dates() const noexcept { return dated_ != 0; }

  /// Takes the timer out, its job to `job`, or, when it runs, sees to it that it runs no more.
  CancelResult cancel(TimerId id, Job& job) noexcept;

  /// Takes a timer that is in the wheel out for good, its job to `job`. Returns: whether it was
  /// there.
  bool drop(TimerId id, Job& job) noexcept;

  /// Queued → running at `now`; moves the job to `job`. Empty if the timer was cancelled or moved
  /// since and must not run.
  std::optional<BegunRun> begin_run(TimerId id, const ClockReading& clocks, Job& job) noexcept;
  /// Counts the run of a recurring timer that has begun, once it is settled that there is one.
  BegunRun begin_occurrence(TimerId id, MonotonicTime now) noexcept;
  /// Running → pending at its next tick; moves `job` back. Returns false if there is no next run or
  /// `repeat` forbids it. The caller then destroys the job and calls `end_run`.
  enum class Repeat : std::uint8_t { may, must_not };
  bool rearm(TimerId id, MonotonicTime now, Repeat repeat, Job& job) noexcept;
  /// The same for a recurring timer, at `next`; without one there is no next run.
  bool rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                 Repeat repeat, Job& job) noexcept;
  /// Running → free.
  void end_run(TimerId id) noexcept;

  /// Gives a timer that has not begun another deadline. Returns: whether there was one.
  bool move(TimerId id, const DueTime& due, std::optional<WallTime> date);
  /// The same for a periodic timer, and when it is running, for the run after that.
  bool move_next_run(TimerId id, const DueTime& due);

  /// Cancels all timers: appends the jobs of those that have not begun.
  void cancel_all(std::vector<Job>& jobs);

  bool is_pending(TimerId id) const noexcept;
  /// Whether it is pending and not yet queued.
  bool is_in_wheel(TimerId id) const noexcept;
  bool is_running(TimerId id) const noexcept;
  /// The tick for which a timer was scheduled or moved last.
  Tick armed_for() const noexcept { return armed_for_; }
  /// The wheel's tick `tick` as time.
  MonotonicTime time_of(Tick tick) const noexcept { return scale_.time_of(tick); }
  /// Whether no job is running or waits for its executor.
  bool is_quiet() const noexcept { return running_ == 0 && queued_ == 0; }

  /// Takes out timers that have not begun, and counts them as dropped.
  std::vector<PendingJob> take_all(TakeAll which);

  SchedulerStats stats() const noexcept;
  const LatenessLedger& ledger() const noexcept { return ledger_; }
  std::optional<TimerInfo> info_of(TimerId id) const;
  /// Appends the descriptions of the timers with `count` indices from `first` on. Returns whether
  /// there are more indices.
  bool describe(std::uint32_t first, std::uint32_t count, std::vector<TimerInfo>& infos) const;
  /// The same, only when they are due: pending ones, running ones not.
  bool deadlines(std::uint32_t first, std::uint32_t count, std::vector<MonotonicTime>& due) const;

  /// The lateness above which `BegunRun::was_last_late` speaks.
  void set_late_threshold(std::chrono::nanoseconds threshold) { late_threshold_ = threshold; }

 private:
  // Moves: pending → queued → running → the end, or back to pending for a periodic timer; queued →
  // pending when it is moved; pending and queued → the end when it is cancelled.
  enum class State : std::uint8_t {
    pending,  // in the wheel
    queued,   // due and handed to the executor, not begun
    running,  // its job is being called and is not in the entry
    unarmed,  // being added
  };

  // Two cache lines: all that moving a timer needs is in the first.
  struct alignas(64) Entry {
    std::uint32_t index;
    State state = State::unarmed;
    bool cancelled = false;  // while it runs: no further run
    bool exhausted = false;  // one that repeats: that was its last run
    std::uint64_t generation = 0;
    MonotonicTime due_at = {};  // exact
    Tick tick = 0;              // when it fires: tick_of its deadline, or later by slack
    Tick wheel_tick = 0;        // its deadline in the wheel: `tick` or an earlier value
    std::unique_ptr<TimerDetails> details = nullptr;
    SourceLocation where = {};

    Job job = {};
    MonotonicTime woke_at = {};  // these two once it is queued
    MonotonicTime queued_at = {};

    TimerId id() const noexcept { return {.index = index, .generation = generation}; }
    bool is_periodic() const noexcept { return details != nullptr && details->periodic; }
    bool is_recurring() const noexcept {
      return details != nullptr && details->recurring != nullptr;
    }
    bool repeats() const noexcept { return is_periodic() || is_recurring(); }
    bool is_dated() const noexcept { return details != nullptr && details->date; }
    bool has_slack() const noexcept {
      return details != nullptr && details->slack > std::chrono::nanoseconds::zero();
    }
  };

  Entry* find(TimerId id) const noexcept;
  void arm(Entry& entry, const DueTime& due) noexcept;
  Tick tick_of(const DueTime& due) const noexcept;
  void put_in_wheel(Entry& entry) noexcept;
  Tick tick_within_slack(const Entry& entry, Tick tick) noexcept;
  void leave_valley(const Entry& entry) noexcept;
  void set_date(Entry& entry, std::optional<WallTime> date) noexcept;
  void on_due(Entry& entry, const ClockReading& clocks, MonotonicTime woke_at,
              std::vector<TimerId>& due) noexcept;
  static bool is_before_date(const Entry& entry, const ClockReading& clocks) noexcept;
  void arm_for_date(Entry& entry, const ClockReading& clocks) noexcept;
  void sort_by_deadline(std::vector<TimerId>& due) const;
  BegunRun count_run(const Entry& entry, MonotonicTime now) noexcept;
  bool may_rearm(Entry& entry, bool has_next, Repeat repeat) noexcept;
  void rearm_at(Entry& entry, const DueTime& due, std::optional<WallTime> date, Job& job) noexcept;
  void record(const Entry& entry, MonotonicTime now) noexcept;
  void take_out(Entry& entry, Job& job) noexcept;
  void end(Entry& entry) noexcept;
  TimerInfo describe(const Entry& entry) const;
  template <std::invocable<const Entry&> Visit>
  bool for_range(std::uint32_t first, std::uint32_t count, Visit&& visit) const {
    const std::uint32_t end = std::min(slab_.index_limit(), first + count);
    for (std::uint32_t index = first; index < end; ++index) {
      if (const Entry* const entry = slab_.find(index)) visit(*entry);
    }
    return end < slab_.index_limit();
  }

  TickScale scale_;
  DueOrder order_;
  Slab<Entry> slab_;
  DenseWheel wheel_;
  ValleyMap valleys_;
  Rng rng_;
  LatenessLedger ledger_;
  std::chrono::nanoseconds late_threshold_ = std::chrono::nanoseconds::max();
  bool last_was_late_ = false;
  bool took_postponed_ = false;  // the batch being collected has some
  Tick armed_for_ = 0;
  std::size_t dated_ = 0;
  std::size_t queued_ = 0;
  std::size_t running_ = 0;
  std::uint64_t generations_ = 0;  // the last generation that was given out
  std::uint64_t scheduled_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t errors_ = 0;
};

}  // namespace detent::internal

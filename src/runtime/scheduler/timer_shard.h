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
#include "runtime/dates/periodic_ticks.h"
#include "runtime/dates/recurring_dates.h"
#include "runtime/dates/slack.h"
#include "runtime/scheduler/lateness_ledger.h"

namespace detent::internal {

/// Both clocks read together.
struct ClockReading {
  MonotonicTime now;
  WallInstant wall;
};

/// The wall clock in milliseconds, the unit of dates. In nanoseconds, dates after 2262 would
/// overflow.
WallTime whole_ms(WallInstant wall) noexcept;

/// The time from `wall` until the wall clock shows `due`; zero if it already does. Saturates.
std::chrono::nanoseconds time_until(WallTime due, WallInstant wall) noexcept;

/// Fields that only some timers have; null for a plain one-shot timer.
struct TimerDetails {
  std::optional<PeriodicTicks> periodic = std::nullopt;
  std::optional<WallTime> date = std::nullopt;  // for a timer that is scheduled for a date
  // For a recurring timer. The object lives in the job. While the job runs, its thread uses the
  // object without the lock.
  RecurringDates* recurring = nullptr;
  std::string name = {};
  std::chrono::nanoseconds slack{};
  SlackUse slack_use = SlackUse::coalesce;
  std::optional<MonotonicTime> next_run = std::nullopt;  // set by move_next_run during a run
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

/// Adds each instant to the count of its span [i × width, (i + 1) × width) from `now`. Instants in
/// the past count in the first span, and instants after the last span do not count.
void count_by_bin(const std::vector<MonotonicTime>& due, MonotonicTime now,
                  std::chrono::nanoseconds width, std::vector<std::uint64_t>& counts) noexcept;

/// Which timers `take_all` takes.
enum class TakeAll : std::uint8_t { pending, pending_and_queued, repeating };

/// Facts about a run that begins.
struct BegunRun {
  bool repeats = false;
  RecurringDates* recurring = nullptr;  // if set, begin_occurrence gives the fields below
  std::chrono::nanoseconds lateness{};
  bool was_last_late = false;  // the previous run of this shard was later than the threshold
};

/// The index of a timer is the index of its entry in the slab and of its timer in the wheel. The id
/// of a timer is this index and a generation. So an id finds no timer after its timer has ended,
/// even if a new timer has the same index. Thread-compatible.
class TimerShard {
 public:
  /// The most timers that one call of `collect` takes, so that the lock is never held for long.
  static constexpr std::size_t kBatch = 256;

  TimerShard(const TickScale& scale, DueOrder order, std::uint64_t seed);

  /// Returns an id that no other timer has or had.
  TimerId add(NewTimer&& timer) {
    return add(std::move(timer.job), timer.due, timer.where, std::move(timer.details));
  }
  TimerId add(Job&& job, const DueTime& due, SourceLocation where,
              std::unique_ptr<TimerDetails> details = nullptr);
  /// These two count a timer that was refused after the end, or rejected because there was no room.
  void count_refused() noexcept { ++scheduled_, ++dropped_; }
  void count_rejected() noexcept { ++scheduled_, ++rejected_; }
  void count_error() noexcept { ++errors_; }

  /// The tick of the next work of `collect`. It may be early, but never late. Empty: never.
  std::optional<Tick> next_wakeup() const noexcept { return wheel_.next_wakeup(); }

  /// Appends the ids of due timers, in the order of DueOrder, and marks them queued. With
  /// DueOrder::deadline it takes at most kBatch timers. `woke_at`: when the driver woke. Returns
  /// whether more work may be left, so that the caller must call again immediately.
  bool collect(const ClockReading& clocks, MonotonicTime woke_at, std::vector<TimerId>& due);

  /// Gives pending timers with a date new ticks, after the wall clock was stepped. O(size()).
  void retime(const ClockReading& clocks) noexcept;
  bool has_dates() const noexcept { return dated_ != 0; }

  /// Removes a timer that has not begun, and moves its job to `job`. A running timer stays, but
  /// does not run again.
  CancelResult cancel(TimerId id, Job& job) noexcept;

  /// Removes a timer that is in the wheel, counts it as dropped, and moves its job to `job`.
  /// Returns whether the timer was in the wheel.
  bool drop(TimerId id, Job& job) noexcept;

  /// Changes a queued timer to running at `now`, and moves its job to `job`. Empty if the timer was
  /// cancelled or moved since it was queued, and must not run.
  std::optional<BegunRun> begin_run(TimerId id, const ClockReading& clocks, Job& job) noexcept;
  /// Counts the run of a recurring timer, after its dates have decided that it runs.
  BegunRun begin_occurrence(TimerId id, MonotonicTime now) noexcept;
  /// Changes a running timer to pending at its next tick, and moves `job` back. Returns false if
  /// there is no next run or `repeat` forbids it. The caller then destroys the job and calls
  /// `end_run`.
  enum class Repeat : std::uint8_t { may, must_not };
  bool rearm(TimerId id, MonotonicTime now, Repeat repeat, Job& job) noexcept;
  /// Like rearm, for a recurring timer with the next date `next`. An empty `next` means no next
  /// run.
  bool rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                 Repeat repeat, Job& job) noexcept;
  /// Ends a running timer and frees its entry.
  void end_run(TimerId id) noexcept;

  /// Gives another deadline to a timer that has not begun. Returns whether there was such a timer.
  bool move(TimerId id, const DueTime& due, std::optional<WallTime> date);
  /// Like move, for a periodic timer. If the timer is running, changes the time of the following
  /// run.
  bool move_next_run(TimerId id, const DueTime& due);

  /// Cancels all timers. Appends the jobs of the timers that have not begun.
  void cancel_all(std::vector<Job>& jobs);

  bool is_pending(TimerId id) const noexcept;
  /// Whether the timer is pending and not yet queued.
  bool is_in_wheel(TimerId id) const noexcept;
  bool is_running(TimerId id) const noexcept;
  /// The tick of the timer that was scheduled or moved last.
  Tick armed_for() const noexcept { return armed_for_; }
  /// The time of the tick `tick`.
  MonotonicTime time_of(Tick tick) const noexcept { return scale_.time_of(tick); }
  bool has_queued() const noexcept { return queued_ != 0; }
  /// Whether no job is running or queued.
  bool is_quiet() const noexcept { return running_ == 0 && queued_ == 0; }

  /// Removes timers that have not begun, and counts them as dropped.
  std::vector<PendingJob> take_all(TakeAll which);

  /// The number of timers, pending and running.
  std::size_t size() const noexcept { return slab_.size(); }
  /// The generation of the timer that was added last.
  std::uint64_t last_generation() const noexcept { return generations_; }
  SchedulerStats stats() const noexcept;
  const LatenessLedger& ledger() const noexcept { return ledger_; }
  std::optional<TimerInfo> info_of(TimerId id) const;
  /// Appends the descriptions of the timers with the `count` indices from `first` on. Returns
  /// whether there are more indices.
  bool describe(std::uint32_t first, std::uint32_t count, std::vector<TimerInfo>& infos) const;
  /// Like describe, but appends only deadlines. Running timers are left out.
  bool deadlines(std::uint32_t first, std::uint32_t count, std::vector<MonotonicTime>& due) const;

  /// Sets the lateness above which a run counts as late for `BegunRun::was_last_late`.
  void set_late_threshold(std::chrono::nanoseconds threshold) { late_threshold_ = threshold; }

 private:
  // Changes of the state: pending → queued → running → the end. A repeating timer goes from running
  // back to pending. A queued timer that is moved goes back to pending. A pending or queued timer
  // that is cancelled ends.
  enum class State : std::uint8_t {
    pending,  // in the wheel
    queued,   // due and handed to the executor, not begun
    running,  // its job is being called and is not in the entry
    unarmed,  // being added
  };

  // Two cache lines. Moving a timer uses only the first line.
  struct alignas(64) Entry {
    // A constructor, because compilers clear an aggregate as a whole. That takes longer than the
    // other work of adding a timer.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): `arm` sets the ticks
    explicit Entry(std::uint32_t place) noexcept : index(place) {}
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): `arm` sets the ticks
    Entry(std::uint32_t place, std::uint64_t number, Job&& work, SourceLocation from,
          std::unique_ptr<TimerDetails>&& more) noexcept
        : index(place),
          generation(number),
          details(std::move(more)),
          where(from),
          job(std::move(work)) {}

    std::uint32_t index;
    State state = State::unarmed;
    bool cancelled = false;  // only while it runs: no further run
    bool exhausted = false;  // only a repeating timer: it has no further run
    std::uint64_t generation = 0;
    // Set by `arm`. The deadline is exact.
    MonotonicTime due_at;
    Tick tick;        // when it fires: tick_of its deadline, or a tick in its slack
    Tick wheel_tick;  // its deadline in the wheel: `tick` or earlier
    std::unique_ptr<TimerDetails> details = nullptr;
    SourceLocation where = {};

    Job job = {};
    // Set when the timer is queued.
    MonotonicTime woke_at;
    MonotonicTime queued_at;

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
  bool took_postponed_ = false;  // the present batch contains postponed timers
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

// ---- Scheduling and cancelling, inline in the owners --------------------------------------------

inline TimerShard::Entry* TimerShard::find(TimerId id) const noexcept {
  Entry* const entry = slab_.find(id.index);
  return entry != nullptr && entry->generation == id.generation ? entry : nullptr;
}

/// The first tick at or after the deadline. If the deadline had already passed when it was set, the
/// tick that had begun at that time. Only the tick is earlier then: the deadline, and with it the
/// lateness, stays as it is.
inline Tick TimerShard::tick_of(const DueTime& due) const noexcept {
  const Tick tick = scale_.tick_at_or_after(due.at);
  return due.at > due.set_at ? tick : std::min(tick, scale_.tick_at_or_before(due.set_at));
}

inline void TimerShard::put_in_wheel(Entry& entry) noexcept {
  entry.wheel_tick = entry.tick;
  wheel_.schedule(entry.index, entry.tick);
}

inline void TimerShard::leave_valley(const Entry& entry) noexcept {
  if (!entry.has_slack()) return;
  if (entry.details->slack_use == SlackUse::fill_valleys) valleys_.remove(entry.tick);
}

// Postponing is lazy: a timer that moves to a later time keeps its place in the wheel. When the
// wheel reaches this place, the timer is put at its real tick. So moving a timer again and again
// changes only its entry (Varghese and Lauck, 1987).
inline void TimerShard::arm(Entry& entry, const DueTime& due) noexcept {
  // A deadline before the first tick counts as the first tick, so that no lateness exceeds the
  // running time of the scheduler.
  const MonotonicTime due_at = std::max(due.at, scale_.start());
  Tick tick = tick_of(due);
  if (entry.has_slack()) [[unlikely]] {
    if (entry.state == State::pending) leave_valley(entry);
    tick = tick_within_slack(entry, tick);
  }
  const bool is_in_wheel = entry.state == State::pending;
  entry.state = State::pending;
  entry.due_at = due_at;
  entry.tick = tick;
  armed_for_ = tick;
  if (!is_in_wheel || tick < entry.wheel_tick) put_in_wheel(entry);
}

inline TimerId TimerShard::add(Job&& job, const DueTime& due, SourceLocation where,
                               std::unique_ptr<TimerDetails> details) {
  Entry& entry = slab_.emplace(++generations_, std::move(job), where, std::move(details));
  if (entry.is_dated()) ++dated_;
  ++scheduled_;
  arm(entry, due);
  return entry.id();
}

inline void TimerShard::end(Entry& entry) noexcept {
  DETENT_CHECK(!wheel_.is_pending(entry.index));
  DETENT_CHECK(!entry.job);
  if (entry.is_dated()) --dated_;
  slab_.erase(entry);
}

inline void TimerShard::take_out(Entry& entry, Job& job) noexcept {
  if (entry.state == State::pending) {
    leave_valley(entry);
    wheel_.cancel(entry.index);
  } else {
    DETENT_CHECK(entry.state == State::queued);
    --queued_;
  }
  job = std::move(entry.job);
  end(entry);
}

inline CancelResult TimerShard::cancel(TimerId id, Job& job) noexcept {
  Entry* const entry = find(id);
  if (entry == nullptr) return CancelResult::not_pending;
  if (entry->state == State::running) {
    entry->cancelled = true;
    return CancelResult::running;
  }
  take_out(*entry, job);
  ++cancelled_;
  return CancelResult::cancelled;
}

}  // namespace detent::internal

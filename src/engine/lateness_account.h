// How late tasks fired, and why they were handed out after they were due, in parts that add up:
//
//     due ──── opened ──── ready ──────────────── handed out
//         before_start    engine    limit + worker
//
// What was due already when the engine was opened came too late for it. From then on until the task
// fired, the engine was behind. After that it lay ready: for as long as a limit of its queue, or
// the one on all leases, let nobody have it, that limit held it back (held_time.h); the rest of the
// time nobody asked. A task whose due time had passed when it was made counts from then on.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/histogram.h"
#include "detent/clock.h"
#include "detent/tick.h"
#include "engine/engine_time.h"
#include "engine/held_time.h"
#include "engine/queue.h"
#include "task/lateness.h"

namespace detent {

class LatenessAccount {
 public:
  /// The engine is opened now. Both must outlive it.
  LatenessAccount(const Clock& clock, const EngineTime& time)
      : clock_(clock), time_(time), opened_at_(clock.now()) {}

  MonotonicTime opened_at() const noexcept { return opened_at_; }

  /// A task that was to fire at `tick` did so `now`.
  void note_fired(Tick tick, MonotonicTime now) { fired_.record(now - time_.when(tick)); }
  /// A limit of the queue, or what it has used up of it, may have changed, or whether as many tasks
  /// are leased as may be of all queues. A few branches for a queue that has no limit.
  void note_limits(Queue& queue, bool is_full_of_leases);
  /// Time in which no task of the queue could have been handed out. Where both limits were reached
  /// at once it counts twice; note_hand_out() bounds that.
  HeldTime::Duration held_total(const Queue& queue, MonotonicTime now) const noexcept;
  /// Counts the lateness of a ready task that is handed out now; returns its parts if it is late.
  LatenessParts note_hand_out(const LoadedTask& task);

  HistogramSnapshot fired() const { return fired_.snapshot(); }
  LateCounts late() const noexcept { return {.tasks = late_tasks_, .time = late_time_}; }

 private:
  MonotonicTime held_until(const Queue& queue) const;

  const Clock& clock_;
  const EngineTime& time_;
  const MonotonicTime opened_at_;
  Histogram fired_;
  HeldTime all_held_;  // every queue: as many are leased as may be
  bool is_full_of_leases_ = false;
  ByCause<std::uint64_t> late_tasks_{};
  ByCause<std::chrono::milliseconds> late_time_{};  // nanoseconds of many would soon overflow
  ByCause<std::chrono::nanoseconds> late_rest_{};   // of it, below a millisecond
};

}  // namespace detent

// How late tasks fired, and why they were handed out after their due time. The parts add up:
//
//     due ──── opened ──── ready ──────────────── handed out
//         before_start    engine    limit + worker
//
// before_start is the time until the engine was opened, if the task was already due. From then
// until the task fired, the engine was behind. The rest is the time in which the task was ready.
// The limit part is the time in which a limit of the queue, or the limit of all leases, held the
// task back (held_time.h). In the other time, no worker asked for it. If a task is created after
// its due time, it counts from its creation.
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

  /// Records that a task with the tick `tick` fired at `now`.
  void note_fired(Tick tick, MonotonicTime now) { fired_.record(now - time_.when(tick)); }
  /// Call this after a change of a limit of the queue or of its used part, or if the engine reached
  /// or left its limit of leases. A few branches for a queue without limits.
  void note_limits(Queue& queue, bool is_full_of_leases);
  /// The time in which no task of the queue could be handed out. If both limits were reached
  /// together, the time counts twice; note_hand_out() bounds that.
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

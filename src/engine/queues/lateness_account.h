// How late tasks fired, and why they were handed out after their due time. The parts add up:
//
//     due ──── opened ──── ready ──────────────── handed out
//         before_start    engine    limit + worker
//
// - before_start: the time until the engine was opened, if the task was already due then.
// - engine: the time from then until the task became ready. In this time the engine was behind.
// - limit: the task was ready, but a limit of the queue or the limit of all leases held it back
//   (held_time.h).
// - worker: the rest of the time while the task was ready. No worker asked for it.
//
// If a task was created after its due time, its lateness counts from its creation.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/histogram.h"
#include "detent/clock.h"
#include "detent/tick.h"
#include "engine/queues/queue.h"
#include "engine/values/engine_time.h"
#include "engine/values/held_time.h"
#include "task/lateness.h"

namespace detent {

class LatenessAccount {
 public:
  /// Call this when the engine is opened. Both arguments must outlive this object.
  LatenessAccount(const Clock& clock, const EngineTime& time)
      : clock_(clock), time_(time), opened_at_(clock.now()) {}

  MonotonicTime opened_at() const noexcept { return opened_at_; }

  /// Records that a task with the tick `tick` fired at `now`.
  void note_fired(Tick tick, MonotonicTime now) { fired_.record(now - time_.when(tick)); }
  /// Call this after a change of a limit of the queue, after a change of the used part of a limit,
  /// and if the engine reached or left its limit of leases. Cost: a few branches for a queue
  /// without limits.
  void note_limits(Queue& queue, bool is_full_of_leases);
  /// The time in which no task of the queue could be handed out. If a limit of the queue and the
  /// limit of all leases were reached at the same time, this time counts twice. note_hand_out()
  /// limits the result to the time in which the task was ready.
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
  HeldTime all_held_;  // runs while the limit of all leases is reached
  bool is_full_of_leases_ = false;
  ByCause<std::uint64_t> late_tasks_{};
  // Sums over all hand-outs. In nanoseconds, the sum of many tasks would soon overflow.
  ByCause<std::chrono::milliseconds> late_time_{};
  ByCause<std::chrono::nanoseconds> late_rest_{};  // the rest of each sum, below a millisecond
};

}  // namespace detent

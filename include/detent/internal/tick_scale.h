// The one place where time becomes ticks and ticks become time. Deadlines are rounded up and the
// present is rounded down, so a timer may be late by less than a tick, never early.
#pragma once

#include <chrono>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/tick.h"

namespace detent::internal {

/// Tick n is the instant `start` + n × `resolution`. Immutable.
class TickScale {
 public:
  /// Requires: resolution > 0.
  TickScale(MonotonicTime start, std::chrono::nanoseconds resolution)
      : start_(start), resolution_(resolution) {
    DETENT_CHECK(resolution > std::chrono::nanoseconds::zero());
  }

  std::chrono::nanoseconds resolution() const noexcept { return resolution_; }

  /// The first tick at or after `deadline`; 0 for what lies before the start.
  Tick tick_at_or_after(MonotonicTime deadline) const noexcept {
    const Tick tick = tick_at_or_before(deadline);
    return tick + (tick * unit() < since_start(deadline) ? 1 : 0);
  }

  /// The last tick at or before `now`; 0 for what lies before the start.
  Tick tick_at_or_before(MonotonicTime now) const noexcept { return since_start(now) / unit(); }

  /// When `tick` begins; at most MonotonicTime::max().
  MonotonicTime time_of(Tick tick) const noexcept {
    const auto most = static_cast<Tick>(std::chrono::nanoseconds::max() / resolution_);
    if (tick > most) return MonotonicTime::max();
    return saturating_add(start_, static_cast<std::chrono::nanoseconds::rep>(tick) * resolution_);
  }

 private:
  Tick unit() const noexcept { return static_cast<Tick>(resolution_.count()); }

  /// Unsigned, so that the distance between any two instants fits.
  Tick since_start(MonotonicTime time) const noexcept {
    if (time <= start_) return 0;
    return static_cast<Tick>(time.time_since_epoch().count()) -
           static_cast<Tick>(start_.time_since_epoch().count());
  }

  MonotonicTime start_;
  std::chrono::nanoseconds resolution_;
};

}  // namespace detent::internal

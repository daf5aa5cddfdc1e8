// The one place where time becomes ticks and ticks become time. Deadlines are rounded up and the
// present is rounded down, so a timer may be late by less than a tick, never early.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

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
      : start_(start),
        unit_(static_cast<Tick>(resolution.count())),
        reciprocal_(std::numeric_limits<Tick>::max() / std::max<Tick>(1, unit_)),
        most_(static_cast<Tick>(std::numeric_limits<std::int64_t>::max()) /
              std::max<Tick>(1, unit_)) {
    DETENT_CHECK(resolution > std::chrono::nanoseconds::zero());
  }

  std::chrono::nanoseconds resolution() const noexcept {
    return std::chrono::nanoseconds{static_cast<std::int64_t>(unit_)};
  }

  /// The first tick at or after `deadline`; 0 for what lies before the start.
  Tick tick_at_or_after(MonotonicTime deadline) const noexcept {
    const Tick nanoseconds = since_start(deadline);
    const Tick tick = whole_units(nanoseconds);
    return tick + (tick * unit_ < nanoseconds ? 1 : 0);
  }

  /// The last tick at or before `now`; 0 for what lies before the start.
  Tick tick_at_or_before(MonotonicTime now) const noexcept { return whole_units(since_start(now)); }

  /// When `tick` begins; at most MonotonicTime::max().
  MonotonicTime time_of(Tick tick) const noexcept {
    if (tick > most_) return MonotonicTime::max();
    return saturating_add(start_,
                          std::chrono::nanoseconds{static_cast<std::int64_t>(tick * unit_)});
  }

 private:
  /// nanoseconds / unit_, by a multiplication with the reciprocal, which comes out at most two too
  /// low (Granlund and Montgomery, PLDI 1994): a division takes as long as the wheel does.
  Tick whole_units(Tick nanoseconds) const noexcept {
    __extension__ using Wide = unsigned __int128;
    auto units = static_cast<Tick>((Wide{nanoseconds} * reciprocal_) >> 64);
    while (nanoseconds - units * unit_ >= unit_) ++units;
    return units;
  }

  /// Unsigned, so that the distance between any two instants fits.
  Tick since_start(MonotonicTime time) const noexcept {
    if (time <= start_) return 0;
    return static_cast<Tick>(time.time_since_epoch().count()) -
           static_cast<Tick>(start_.time_since_epoch().count());
  }

  MonotonicTime start_;
  Tick unit_;  // nanoseconds
  Tick reciprocal_;
  Tick most_;  // the last tick whose beginning can be told
};

}  // namespace detent::internal

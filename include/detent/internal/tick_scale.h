// TickScale: the only conversion between time and ticks. Deadlines are rounded up and the present
// is rounded down. A timer can therefore be late by less than one tick, and is never early.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/internal/uint128.h"
#include "detent/tick.h"

namespace detent::internal {

/// Tick n is the instant `start` + n × `resolution`. Immutable, so thread-safe.
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

  /// Returns the length of a tick.
  std::chrono::nanoseconds resolution() const noexcept {
    return std::chrono::nanoseconds{static_cast<std::int64_t>(unit_)};
  }

  /// Returns the beginning of tick 0.
  MonotonicTime start() const noexcept { return start_; }

  /// Returns the first tick at or after `deadline`; 0 if the deadline is before the start.
  Tick tick_at_or_after(MonotonicTime deadline) const noexcept {
    const Tick nanoseconds = since_start(deadline);
    const Tick tick = whole_units(nanoseconds);
    return tick + (tick * unit_ < nanoseconds ? 1 : 0);
  }

  /// Returns the last tick at or before `now`; 0 if `now` is before the start.
  Tick tick_at_or_before(MonotonicTime now) const noexcept { return whole_units(since_start(now)); }

  /// Returns the beginning of `tick`, at most MonotonicTime::max().
  MonotonicTime time_of(Tick tick) const noexcept {
    if (tick > most_) return MonotonicTime::max();
    return saturating_add(start_,
                          std::chrono::nanoseconds{static_cast<std::int64_t>(tick * unit_)});
  }

 private:
  /// Returns nanoseconds / unit_. Multiplies by the reciprocal, because a division takes as long as
  /// the wheel itself. The product is at most two too low, and the loop corrects it (Granlund and
  /// Montgomery, PLDI 1994).
  Tick whole_units(Tick nanoseconds) const noexcept {
    auto units = static_cast<Tick>((Uint128{nanoseconds} * reciprocal_) >> 64);
    while (nanoseconds - units * unit_ >= unit_) ++units;
    return units;
  }

  /// Nanoseconds since the start. Unsigned, so that the distance between any two instants fits.
  Tick since_start(MonotonicTime time) const noexcept {
    if (time <= start_) return 0;
    return static_cast<Tick>(time.time_since_epoch().count()) -
           static_cast<Tick>(start_.time_since_epoch().count());
  }

  MonotonicTime start_;
  Tick unit_;  // nanoseconds
  Tick reciprocal_;
  Tick most_;  // the last tick whose beginning is at most MonotonicTime::max()
};

}  // namespace detent::internal

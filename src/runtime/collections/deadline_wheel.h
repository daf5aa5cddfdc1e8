// A DenseWheel whose deadlines are instants. DelayMap and IdleTimeouts keep their deadlines in it.
//
// A tick is a nanosecond, so deadlines are exact, and `advance` fires exactly the due timers. Only
// wake-ups are rounded up, to multiples of a resolution, so that close deadlines share a wake-up.
// Read first: detent/dense_wheel.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/clock.h"
#include "detent/dense_wheel.h"
#include "detent/internal/tick_scale.h"

namespace detent::internal {

/// Thread-compatible. Cost and rules for callbacks are as for DenseWheel.
class DeadlineWheel {
 public:
  /// Requires: resolution > 0.
  DeadlineWheel(MonotonicTime start, std::chrono::nanoseconds resolution)
      : nanoseconds_(start, std::chrono::nanoseconds{1}), wakeups_(start, resolution) {}

  /// Arms or moves the timer with the number `index`. A move to a later deadline is one store.
  void set(std::uint32_t index, MonotonicTime deadline) noexcept {
    wheel_.postpone(index, nanoseconds_.tick_at_or_after(deadline));
  }
  bool cancel(std::uint32_t index) noexcept { return wheel_.cancel(index); }
  bool is_pending(std::uint32_t index) const noexcept { return wheel_.is_pending(index); }

  /// Calls `on_fire(index)` for timers that are due at `now`, earliest first. Fires or moves at
  /// most `limit` timers. Returns whether it stopped at the limit, so that more work may be left.
  template <IndexCallback OnFire>
  bool advance(MonotonicTime now, OnFire&& on_fire, std::size_t limit) noexcept {
    return wheel_.advance(nanoseconds_.tick_at_or_before(now), on_fire, limit).more;
  }

  /// When to call `advance` next. This is at most one resolution after its next work.
  std::optional<MonotonicTime> next_wakeup() const noexcept {
    const std::optional<Tick> tick = wheel_.next_wakeup();
    if (!tick) return std::nullopt;
    return wakeups_.time_of(wakeups_.tick_at_or_after(nanoseconds_.time_of(*tick)));
  }

  std::size_t size() const noexcept { return wheel_.size(); }
  void check_invariants() const noexcept { wheel_.check_invariants(); }

 private:
  TickScale nanoseconds_;
  TickScale wakeups_;
  DenseWheel wheel_;
};

}  // namespace detent::internal

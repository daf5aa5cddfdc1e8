// The only place where the engine's times are converted: wall instants ↔ ticks ↔ monotonic time.
//
// A tick of the engine's wheel is one millisecond of **steady time**. Steady time starts as the
// wall time at the start of the engine, in milliseconds since 1970, and continues with the
// monotonic clock. So a due time in wall milliseconds is directly a tick, until the wall clock is
// stepped. The step is then the `shift` between wall time and steady time. Tasks scheduled by delay
// keep their tick, and tasks scheduled for a date get a new tick. Every conversion to a tick rounds
// up, so a task may be late, but never early. Thread-compatible.
#pragma once

#include <chrono>

#include "detent/clock.h"
#include "detent/tick.h"
#include "task/request.h"

namespace detent {

/// When a task becomes ready: its stored due time, its tick, and whether the tick changes when the
/// wall clock is stepped.
struct Deadline {
  WallTime due_at{};
  Tick tick = 0;
  bool follows_wall = false;
};

class EngineTime {
 public:
  explicit EngineTime(const Clock& clock);

  /// Steady time now, in whole ticks that have passed (rounded down).
  Tick now() const noexcept;
  /// Wall time now: steady time plus the shift noticed last (rounded down).
  WallTime wall_now() const noexcept;

  /// The first tick at which the whole `delay` from now has passed.
  Tick tick_after(std::chrono::milliseconds delay) const noexcept;
  /// The wall instant `delay` from now, rounded up: the due time of a task scheduled by delay.
  WallTime wall_after(std::chrono::milliseconds delay) const noexcept;
  /// The first tick at which the wall clock shows `at` or later, if it is not stepped again.
  Tick tick_at(WallTime at) const noexcept;
  /// The deadline that a request asks for. If the date has passed, the tick is now, because the
  /// time before the request is not lateness.
  Deadline deadline_of(const Due& due) const noexcept;
  /// The deadline of a task that is due at a date. If the date has passed, so has the tick.
  Deadline dated(WallTime due_at) const noexcept;
  /// Whether this deadline has come.
  bool has_come(const Deadline& deadline) const noexcept { return deadline.tick <= now(); }
  /// The instant when now() becomes `tick`.
  MonotonicTime when(Tick tick) const noexcept;

  /// Compares the wall clock with steady time. If the wall clock was stepped since the last call,
  /// stores the new shift and returns true. Steps below 0.5 ms are ignored, because two clocks
  /// cannot be read at exactly the same moment.
  bool notice_step() noexcept;

 private:
  std::chrono::nanoseconds steady() const noexcept;  // since 1970, at this moment
  /// Wall time minus monotonic time, from two readings that are as close together as possible.
  std::chrono::nanoseconds read_offset() const noexcept;

  const Clock& clock_;
  std::chrono::nanoseconds offset_;    // wall − monotonic when the engine started
  std::chrono::nanoseconds shift_{0};  // wall − steady, as last noticed
};

}  // namespace detent

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

/// When a task goes on: its due instant as stored, its tick, and whether it follows the wall clock
/// when that is stepped.
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
  /// As it is asked for. A date that has passed asks for now: the time before is not lateness.
  Deadline deadline_of(const Due& due) const noexcept;
  /// Of a task that is due at a date, which may have passed.
  Deadline dated(WallTime due_at) const noexcept;
  /// The state of a live task with this deadline.
  TaskState state_at(const Deadline& deadline) const noexcept {
    return deadline.tick <= now() ? TaskState::ready : TaskState::scheduled;
  }
  /// The instant when now() becomes `tick`.
  MonotonicTime when(Tick tick) const noexcept;

  /// Compares the wall clock with steady time; returns true when it was stepped since the last
  /// call (by more than reading two clocks can blur), and takes the new shift.
  bool notice_step() noexcept;

 private:
  std::chrono::nanoseconds steady() const noexcept;  // since 1970, at this moment
  /// Wall minus monotonic time, read as closely together as the machine allows.
  std::chrono::nanoseconds read_offset() const noexcept;

  const Clock& clock_;
  std::chrono::nanoseconds offset_;    // wall − monotonic when the engine started
  std::chrono::nanoseconds shift_{0};  // wall − steady, as last noticed
};

}  // namespace detent

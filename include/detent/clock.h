// Time, and waiting for it: the one seam between the library and the machine's clocks.
//
// Two kinds of time never mix, because their types differ. Monotonic time only moves forward and is
// what waiting uses. Wall time is what people and disks use; it can be stepped at any moment.
// A thread waits through the clock as well, so that under a ManualClock waiting takes no real time
// and a test decides when a sleeper wakes. Only src/base/clock.cc reads the machine's clocks.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace detent {

/// An instant on a clock that never steps, as Clock::now() gives it; its zero has no meaning. No
/// time_point of std::chrono::steady_clock: a ManualClock has such instants as well.
struct MonotonicTimeline {
  using rep = std::chrono::nanoseconds::rep;
  using period = std::chrono::nanoseconds::period;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<MonotonicTimeline>;
  static constexpr bool is_steady = true;
};
using MonotonicTime = MonotonicTimeline::time_point;

/// An instant of the calendar (UTC), to the nanosecond as a clock reads it.
using WallInstant = std::chrono::sys_time<std::chrono::nanoseconds>;
/// An instant of the calendar as it is stored and shown: whole milliseconds since 1970 (UTC).
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// What one thread sleeps on and others ring. A ring is remembered until a wait takes it, so one
/// that comes between two waits is not lost; several rings may be taken as one. Thread-safe.
/// Must outlive every wait on it.
class Doorbell {
 public:
  /// Who rings it: others, when they want something; or a thread that is at work, when it is done.
  enum class Ringer { others, work };

  Doorbell();
  explicit Doorbell(Ringer ringer);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Wakes the thread that waits, or lets its next wait return at once. Takes one short lock.
  void ring() noexcept;

 private:
  friend class SystemClock;
  friend class ManualClock;
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads time and waits for it. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime now() const noexcept = 0;
  virtual WallInstant wall_now() const noexcept = 0;

  /// Blocks until `bell` is rung (and takes the ring) or now() has reached `until`; without `until`
  /// only a ring ends it. Never returns early without either. Returns true when it took a ring.
  /// Requires: at most one thread at a time waits on one bell.
  virtual bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept = 0;
};

/// The machine's clocks: CLOCK_MONOTONIC and CLOCK_REALTIME. Waits with the finest timer slack the
/// kernel offers.
class SystemClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override;
  WallInstant wall_now() const noexcept override;
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override;
};

/// A clock that stands still until it is told to move. A thread that waits on it wakes when
/// `advance` reaches what it waits for. Thread-safe.
class ManualClock final : public Clock {
 public:
  /// Starts at monotonic zero and the wall time given (default: 2020-01-01T00:00:00Z).
  explicit ManualClock(WallInstant wall = WallInstant{std::chrono::seconds{1'577'836'800}});
  ~ManualClock() override;

  MonotonicTime now() const noexcept override;
  WallInstant wall_now() const noexcept override;
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override;

  /// Moves both times forward by `delta` >= 0, at most to their ends, and wakes whoever waited for
  /// that.
  void advance(std::chrono::nanoseconds delta);
  /// Steps the wall clock, forward or back; monotonic time stands still.
  void step_wall(std::chrono::nanoseconds delta);
  /// Blocks until `count` threads wait on this clock without a ring to take: the moment at which
  /// everything that could happen now has happened. One that waits for another's work
  /// (Doorbell::Ringer::work) does not count: something will happen yet. For tests; takes no time
  /// itself.
  void await_waiters(int count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detent

// Clock: reads time and waits for it. All access to the machine's clocks goes through this
// interface.
//
// Monotonic time and wall time have different types, so they cannot be mixed. Monotonic time only
// moves forward, and waiting uses it. People and disks use wall time, which can be stepped at any
// moment. Threads also wait through the clock. Under a ManualClock waiting takes no real time, and
// the test decides when a thread wakes. Only src/base/machine_time.cc reads the machine's clocks.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace detent {

/// The timeline of monotonic instants, as Clock::now() returns them. Its zero has no meaning. The
/// type differs from std::chrono::steady_clock, because a ManualClock also produces such instants.
struct MonotonicTimeline {
  using rep = std::chrono::nanoseconds::rep;
  using period = std::chrono::nanoseconds::period;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<MonotonicTimeline>;
  static constexpr bool is_steady = true;
};
using MonotonicTime = MonotonicTimeline::time_point;

/// An instant of the calendar (UTC) in nanoseconds, as a clock reads it.
using WallInstant = std::chrono::sys_time<std::chrono::nanoseconds>;
/// An instant of the calendar as it is stored and shown: whole milliseconds since 1970 (UTC).
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// One thread sleeps on a Doorbell, and other threads wake it with `ring`. A ring is remembered
/// until a wait takes it, so a ring between two waits is not lost. Several rings before one wait
/// count as one. Thread-safe. Must outlive every wait on it.
class Doorbell {
 public:
  /// Who rings: `others` when they need the sleeper, or `work`: a running thread when it has
  /// finished.
  enum class Ringer { others, work };

  Doorbell();
  /// Makes a Doorbell that `ringer` rings; by default Ringer::others.
  explicit Doorbell(Ringer ringer);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Wakes the waiting thread, or makes its next wait return immediately. Takes one short lock.
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
  /// Returns the monotonic time.
  virtual MonotonicTime now() const noexcept = 0;
  /// Returns the wall-clock time.
  virtual WallInstant wall_now() const noexcept = 0;

  /// Blocks until `bell` rings or now() reaches `until`. Without `until`, only a ring ends the
  /// wait. Never returns without one of these reasons. Returns true if it took a ring. Requires: at
  /// most one thread at a time waits on one bell.
  virtual bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept = 0;
};

/// The machine's clocks, CLOCK_MONOTONIC and CLOCK_REALTIME. Waits with the smallest timer slack
/// that the kernel offers. Thread-safe.
class SystemClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override;
  WallInstant wall_now() const noexcept override;
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override;
};

/// A clock for tests. Its time changes only through `advance` and `step_wall`. A waiting thread
/// wakes when `advance` reaches the end of its wait. Thread-safe.
class ManualClock final : public Clock {
 public:
  /// Starts at monotonic zero and the given wall time (default: 2020-01-01T00:00:00Z).
  explicit ManualClock(WallInstant wall = WallInstant{std::chrono::seconds{1'577'836'800}});
  ~ManualClock() override;

  MonotonicTime now() const noexcept override;
  WallInstant wall_now() const noexcept override;
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override;

  /// Moves both times forward by `delta` >= 0, at most to their maximum. Wakes each thread whose
  /// wait has ended.
  void advance(std::chrono::nanoseconds delta);
  /// Steps the wall clock forward or back by `delta`. Monotonic time does not change.
  void step_wall(std::chrono::nanoseconds delta);
  /// Blocks until `count` threads wait on this clock without a ring to take. At that moment all
  /// work that can happen now has happened. A thread that waits for another thread's work
  /// (Doorbell::Ringer::work) does not count, because that work is still running. For tests.
  void await_waiters(int count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detent

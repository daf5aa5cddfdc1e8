// Simulation: runs a scheduler and its executor on virtual time, in one thread. The same seed
// repeats the same run. It is for tests of programs that use timers: a simulated year takes
// milliseconds, and no thread sleeps.
//
//     detent::Simulation simulation(seed);
//     Cache cache(simulation.scheduler());              // the code under test takes a Scheduler&
//     simulation.run_for(24h * 365);
//     EXPECT_EQ(cache.size(), 0u);
//
// The simulation runs the real code of the scheduler, including its locks. Only the driver thread
// and the job threads are replaced: the calling thread plays their parts. At each step it chooses
// at random between the driver and the ready jobs. Different seeds show different interleavings,
// and one seed always shows the same interleaving. Time stands still while any step is possible,
// and then jumps to the next due timer.
//
// The simulation can also produce difficult conditions: jobs that wait for the executor
// (`job_delay`), slow jobs (advance the clock inside the job), a suspended machine, and a stepped
// wall clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "detent/scheduler_options.h"

namespace detent {

/// Options of a Simulation.
struct SimulationOptions {
  /// The wall time at the start; default 2020-01-01T00:00:00Z.
  WallInstant start = WallInstant{std::chrono::seconds{1'577'836'800}};
  /// Each job waits for the executor for a random time up to this. Requires: not negative.
  std::chrono::nanoseconds job_delay{};
  /// Options of the simulated scheduler. The simulation itself sets `clock`, `executor`, `seed` and
  /// `shards`; other values of these options have no effect. By default `wall_check` is zero,
  /// because the simulation reports each `step_wall` and `suspend` to the scheduler immediately.
  /// With DueOrder::by_schedule, ready jobs run in the order in which the scheduler hands them out.
  /// Otherwise the seed chooses the order.
  SchedulerOptions scheduler = {.wall_check = std::chrono::nanoseconds::zero()};
};

/// A scheduler on virtual time. Confined to one thread. A job may use only `scheduler()`, `clock()`
/// and `executor()`. The scheduler's `stop(Drain::run_pending)` itself moves the clock, to the last
/// timer or to the given deadline.
class Simulation {
 public:
  /// Makes a simulation whose random choices depend only on `seed`.
  explicit Simulation(std::uint64_t seed, SimulationOptions options = {});
  /// Stops the scheduler with Drain::drop.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Returns the simulated scheduler. Pass it to the code under test.
  Scheduler& scheduler() noexcept;
  /// Returns the virtual clock. A job may advance it to simulate a long run. Outside a job, use
  /// `run_for`.
  ManualClock& clock() noexcept;
  /// Returns the executor. It runs its jobs inside `run_for`, in an order that the seed chooses.
  Executor& executor() noexcept;

  /// Lets `duration` pass and runs all jobs that become due, including those due at the end. If
  /// jobs moved the clock, more time has passed by the same amount. Requires: duration >= 0.
  void run_for(std::chrono::nanoseconds duration);

  /// Simulates a suspended machine: the wall clock advances by `duration`, the monotonic clock
  /// stands still.
  void suspend(std::chrono::nanoseconds duration);
  /// Steps the wall clock forward or back by `delta`. The scheduler notices the step immediately.
  void step_wall(std::chrono::nanoseconds delta);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent

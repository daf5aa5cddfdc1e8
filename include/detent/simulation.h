// Simulation: a scheduler and its executor on virtual time, in one thread, repeatable by a seed.
// For the tests of programs that use timers: a year passes in milliseconds, nothing sleeps.
//
//     detent::Simulation simulation(seed);
//     Cache cache(simulation.scheduler());              // the code under test takes a Scheduler&
//     simulation.run_for(24h * 365);
//     EXPECT_EQ(cache.size(), 0u);
//
// It runs the scheduler's own code, locks included; only the thread that drives it and the threads
// that run jobs are played by this one. Between two steps of the driver and the jobs that are ready
// it chooses at random, so different seeds show different interleavings, and the same seed the same
// one. Time stands still while anything can run, and then jumps to where something is due.
//
// Adversities: jobs that wait for their executor (`job_delay`), jobs that take long (advance the
// clock inside them), a machine that is suspended, a wall clock that is stepped.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "detent/scheduler_options.h"

namespace detent {

struct SimulationOptions {
  /// What the wall clock shows at the start; default 2020-01-01T00:00:00Z.
  WallInstant start = WallInstant{std::chrono::seconds{1'577'836'800}};
  /// Each job waits for its executor a random time up to this. Requires: not negative.
  std::chrono::nanoseconds job_delay{};
  /// The scheduler's options; `clock`, `executor`, `seed` and `shards` are the simulation's.
  /// Without wall checks unless you set them: `step_wall` and `suspend` are noticed at once. With
  /// DueOrder::by_schedule jobs that are ready run in that order, otherwise in one the seed
  /// chooses.
  SchedulerOptions scheduler = {.wall_check = std::chrono::nanoseconds::zero()};
};

/// Confined to one thread. Inside a job only `scheduler()`, `clock()` and `executor()` may be used.
/// The scheduler's `stop(Drain::run_pending)` moves the clock itself, to the last timer or to the
/// deadline given.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, SimulationOptions options = {});
  /// Stops the scheduler with Drain::drop.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Scheduler& scheduler() noexcept;
  /// May be moved inside a job, to make it take that long. Outside of jobs use `run_for`.
  ManualClock& clock() noexcept;
  /// Runs what it is given in `run_for`, in an order chosen by the seed.
  Executor& executor() noexcept;

  /// Lets `duration` pass, with all that is due in it; what is due at its end runs too. Later than
  /// that by as much as jobs moved the clock. Requires: duration >= 0.
  void run_for(std::chrono::nanoseconds duration);

  /// The machine is suspended: the wall clock goes on, the monotonic one stands still.
  void suspend(std::chrono::nanoseconds duration);
  /// Steps the wall clock, forward or back; the scheduler notices at once.
  void step_wall(std::chrono::nanoseconds delta);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent

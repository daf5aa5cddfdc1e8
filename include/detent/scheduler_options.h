// Options of a Scheduler and of a single timer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>

#include "detent/clock.h"
#include "detent/executor.h"

namespace detent {

/// What happens to a timer if the scheduler is full.
enum class WhenFull : std::uint8_t {
  fail,   // refuse the timer: the handle is empty
  block,  // the caller waits until there is room
  // the caller waits until the timer is due and runs the job itself. The handle is empty, and an
  // exception of the job goes to the error handler.
  run_in_caller,
};

/// The order in which jobs that are due together are handed out.
enum class DueOrder : std::uint8_t {
  deadline,  // fastest: by deadline in each batch of up to 256 timers of one shard
  // By deadline; equal deadlines in the order of scheduling. The scheduler then has one shard, so
  // all threads share one lock. Requires: `shards` is 0 or 1. On a pool of several threads the jobs
  // still run in parallel.
  by_schedule,
};

/// The report that a value has crossed a threshold; see AlertOptions.
struct Alert {
  enum class Kind : std::uint8_t { pending, errors, lateness } kind = Kind::pending;
  /// The number of timers, the number of errors, or the lateness in nanoseconds.
  std::uint64_t value = 0;
};

/// Thresholds for alerts. A threshold without a value is not watched. No threshold is watched
/// without an `on_alert`.
struct AlertOptions {
  /// Alerts each time the number of timers, pending and running, rises to this value. Costs a lock
  /// that all shards share.
  std::optional<std::size_t> pending = std::nullopt;
  /// Alerts after this number of exceptions from jobs, and after each multiple of it.
  std::optional<std::uint64_t> errors = std::nullopt;
  /// Alerts if a job begins later than this after its deadline. A series of late runs causes one
  /// alert: a late run directly after another late run of its shard causes none.
  std::optional<std::chrono::nanoseconds> lateness = std::nullopt;
  /// Receives the alerts. Called without a lock on the thread that noticed the crossing, possibly
  /// on several threads in parallel. May use the scheduler. Must not throw.
  std::function<void(const Alert&)> on_alert = nullptr;
};

/// Options of a Scheduler.
struct SchedulerOptions {
  /// Deadlines are rounded up to multiples of this. The default of 10 us is below the wake-up noise
  /// of a thread (tens of microseconds), so it adds almost no lateness. It is also coarse enough
  /// that a timer one hour ahead wakes the driver at most four times before it is due. Requires:
  /// above 0.
  std::chrono::nanoseconds resolution = std::chrono::microseconds{10};
  /// Null: the machine's clock. Otherwise the clock must outlive the scheduler.
  Clock* clock = nullptr;
  /// Runs the jobs. Null: the driver thread runs them. Otherwise the executor must outlive the
  /// scheduler.
  Executor* executor = nullptr;
  /// Receives each exception of a job, on the thread that ran the job, possibly on several threads
  /// in parallel. Also receives an exception of the executor that refuses a job; the driver thread
  /// then runs that job. Must not throw. Without a handler, such an exception ends the process, as
  /// in a std::thread.
  std::function<void(std::exception_ptr)> error_handler = nullptr;
  /// The number of shards. Each shard has a wheel and a lock, and each thread schedules on one
  /// shard. 0: four shards per processor, at most 64.
  std::size_t shards = 0;
  /// The largest number of timers, pending and running. A limit costs a lock that all shards share.
  /// Requires: at least 1.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  /// The policy for timers beyond `capacity`. Delays count from the call, however long the call
  /// waits.
  ///
  /// Where waiting would cause a deadlock, `block` and `run_in_caller` act as `fail`: inside a job
  /// of this scheduler, and in a Simulation. `run_in_caller` also acts as `fail` for periodic
  /// timers and for dates.
  WhenFull when_full = WhenFull::fail;
  DueOrder order = DueOrder::deadline;
  AlertOptions alerts = {};
  /// The job of keyed timers that have no job of their own; receives the key.
  std::function<void(std::string_view)> default_job = nullptr;
  /// The interval at which the driver compares the wall clock with the monotonic clock, to notice a
  /// step. The driver does this only while timers for dates are pending. Zero: only when the driver
  /// is awake for another reason.
  std::chrono::nanoseconds wall_check = std::chrono::seconds{1};
  /// How long before the next deadline the driver wakes up. It then reads the clock again and again
  /// until the deadline. So jobs are not late by the time that the kernel needs to wake a thread
  /// (typically 5 to 50 us), if `spin` is longer than this time. The price is up to `spin` of CPU
  /// time for each wake-up. If jobs must start within 5 us, take 50 us, and a `resolution` of 1 us.
  /// Requires: not negative. With a ManualClock, the driver spins until the test moves the clock.
  std::chrono::nanoseconds spin{};
  /// The seed of random choices: PeriodicOptions::jitter and SlackUse::fill_valleys. No value: the
  /// seed is random.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// How the scheduler uses the slack of a timer.
enum class SlackUse : std::uint8_t {
  coalesce,      // fire together with other timers: fewer wake-ups
  fill_valleys,  // fire at a tick with few other timers: an even load
};

/// Options of one timer.
struct TimerOptions {
  /// A name for people, shown in dumps. The name is copied. A name that is not empty costs an
  /// allocation.
  std::string_view name = {};
  /// How much later than its deadline the scheduler may let the timer fire. `slack_use` says for
  /// which purpose. The default is 0: at the deadline, rounded up to the resolution. Requires: not
  /// negative.
  std::chrono::nanoseconds slack{};
  SlackUse slack_use = SlackUse::coalesce;
};

}  // namespace detent

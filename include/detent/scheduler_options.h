// What can be set about a Scheduler and about one of its timers.
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

/// What happens to a timer for which there is no room.
enum class WhenFull : std::uint8_t {
  fail,           // it is refused: an empty handle
  block,          // the caller waits until there is room
  run_in_caller,  // the caller waits until the timer is due, and runs the job itself; an empty
                  // handle; what the job throws goes to the error handler
};

/// In which order the jobs that are due together are handed out.
enum class DueOrder : std::uint8_t {
  deadline,     // by deadline in each shard, as far as the driver takes timers at once (256);
                // otherwise in no order that is promised: the fastest
  by_schedule,  // by deadline, equal ones in the order in which they were scheduled. Requires:
                // `shards` 0 or 1. On a pool of several threads they still run side by side.
};

/// Told when a threshold is crossed; see AlertOptions.
struct Alert {
  enum class Kind : std::uint8_t { pending, errors, lateness } kind = Kind::pending;
  /// How many timers there are, how many errors there were, or how many nanoseconds late.
  std::uint64_t value = 0;
};

/// Thresholds; those that are set are watched, if there is an `on_alert`.
struct AlertOptions {
  /// The number of timers has risen to this; told each time it does. Watching it costs a lock
  /// shared by all shards.
  std::optional<std::size_t> pending = std::nullopt;
  /// Jobs have thrown this often, and each time as many times more.
  std::optional<std::uint64_t> errors = std::nullopt;
  /// A job began later than this after its deadline, and its shard's run before it did not.
  std::optional<std::chrono::nanoseconds> lateness = std::nullopt;
  /// Called on the thread that noticed, without a lock; perhaps on several at once. It may use the
  /// scheduler. Must not throw.
  std::function<void(const Alert&)> on_alert = nullptr;
};

struct SchedulerOptions {
  /// Deadlines are rounded up to multiples of this. 10 us is below the noise of a sleeping thread
  /// (tens of microseconds), so it costs no lateness to speak of, and coarse enough that a timer an
  /// hour ahead wakes the driver at most four times before it is due. Requires: positive.
  std::chrono::nanoseconds resolution = std::chrono::microseconds{10};
  /// Null: the machine's clock. Otherwise it must outlive the scheduler.
  Clock* clock = nullptr;
  /// Where jobs run. Null: on the driver thread. Otherwise it must outlive the scheduler.
  Executor* executor = nullptr;
  /// Gets what a job throws, on the thread that ran it, perhaps on several at once. Also gets what
  /// the executor throws instead of taking a job; then the driver thread runs that job. Must not
  /// throw. Without a handler such an exception ends the process, as it does for a std::thread.
  std::function<void(std::exception_ptr)> error_handler = nullptr;
  /// How many parts the timers are kept in, each with a wheel and a lock of its own; a thread
  /// schedules on one of them. 0: four times the number of processors, at most 64.
  std::size_t shards = 0;
  /// How many timers there may be, pending and running. A limit costs a lock shared by all shards.
  /// Requires: at least 1.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  /// `block` and `run_in_caller` act as `fail` where waiting would wait for itself: inside a job of
  /// this scheduler and in a Simulation. `run_in_caller` acts as `fail` for periodic timers and
  /// dates. Delays count from the call, however long it waits.
  WhenFull when_full = WhenFull::fail;
  DueOrder order = DueOrder::deadline;
  AlertOptions alerts = {};
  /// What keyed timers that were given no job of their own run; gets the key.
  std::function<void(std::string_view)> default_job = nullptr;
  /// How often the wall clock is compared with the monotonic one while timers scheduled for a date
  /// are pending, so that a step is noticed. Zero: only when the driver is awake anyway.
  std::chrono::nanoseconds wall_check = std::chrono::seconds{1};
  /// Seeds what is random (jitter, valleys). Empty: from the machine's entropy.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// What to do with slack.
enum class SlackUse : std::uint8_t {
  coalesce,      // fire together with others: fewer wake-ups
  fill_valleys,  // fire where few others do: an even load
};

/// What can be set about one timer.
struct TimerOptions {
  /// For people: appears in dumps. Copied; one that is not empty costs an allocation.
  std::string_view name = {};
  /// The timer may fire this much later than its deadline, to save work. Requires: not negative.
  std::chrono::nanoseconds slack{};
  SlackUse slack_use = SlackUse::coalesce;
};

}  // namespace detent

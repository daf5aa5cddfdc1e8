// Statistics of a Scheduler: counts, lateness and its causes, and pending timers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "detent/histogram.h"
#include "detent/source_location.h"

namespace detent {

/// Counts since the start. Always: scheduled == completed + cancelled + dropped + rejected +
/// pending + running.
struct SchedulerStats {
  std::uint64_t scheduled = 0;  // number of timers, including refused timers
  std::uint64_t completed = 0;  // timers whose last run is over
  std::uint64_t cancelled = 0;
  std::uint64_t dropped = 0;   // by `stop`: destroyed, handed back or refused
  std::uint64_t rejected = 0;  // over the capacity, including those that ran in the caller
  std::uint64_t pending = 0;   // pending now, including due timers that wait for the executor
  std::uint64_t running = 0;   // running now
  std::uint64_t runs = 0;      // calls of jobs, without jobs that ran in the caller
  std::uint64_t errors = 0;    // calls of jobs that threw, including jobs that ran in the caller
  std::uint64_t wakeups = 0;   // times that the driver woke from sleep
};

/// The delay between deadlines and starts of jobs, split by cause. Each run adds its lateness to
/// `total` and its parts to the causes. The sums of the causes add up to the sum of `total`.
struct LatenessReport {
  HistogramSnapshot total;
  HistogramSnapshot rounding;  // from the deadline to the tick to which it is rounded up
  HistogramSnapshot slack;     // from there to the tick chosen within the slack
  HistogramSnapshot wake_up;   // until the driver looked; all of it if the timer was already due
  HistogramSnapshot budget;    // until its batch was handed out, after earlier batches
  HistogramSnapshot executor;  // until the job began
};

/// The state of a timer that has not ended.
enum class TimerState : std::uint8_t {
  pending,
  queued,  // due, and waits for the executor
  running,
};

/// A timer as it was at one moment.
struct TimerInfo {
  std::string name = {};
  SourceLocation scheduled_at = {};  // the call that scheduled the timer
  TimerState state = TimerState::pending;
  MonotonicTime deadline = {};
  std::optional<WallTime> date = std::nullopt;  // set if the timer was scheduled for a date
  std::optional<std::chrono::nanoseconds> period = std::nullopt;  // set for a periodic timer
};

}  // namespace detent

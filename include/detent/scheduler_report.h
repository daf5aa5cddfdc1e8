// What a Scheduler tells about itself: counts, lateness and its causes, the timers that are
// pending.
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

/// Counts since the start. scheduled == completed + cancelled + dropped + rejected + pending +
/// running.
struct SchedulerStats {
  std::uint64_t scheduled = 0;  // timers, those refused included
  std::uint64_t completed = 0;  // timers whose last run is over
  std::uint64_t cancelled = 0;
  std::uint64_t dropped = 0;   // by `stop`: destroyed, handed back or refused
  std::uint64_t rejected = 0;  // for want of room, those that ran in their caller included
  std::uint64_t pending = 0;   // now; due ones that wait for their executor included
  std::uint64_t running = 0;   // now
  std::uint64_t runs = 0;      // calls of timers' jobs; not of those that ran in their caller
  std::uint64_t errors = 0;    // calls of jobs that threw, those in their caller included
  std::uint64_t wakeups = 0;   // of the driver, from sleep
};

/// How late jobs began after their deadlines, and why. Each run adds its lateness to `total` and
/// its parts to the causes, so the causes' sums add up to the total's.
struct LatenessReport {
  HistogramSnapshot total;
  HistogramSnapshot rounding;  // from the deadline to the tick it is rounded up to
  HistogramSnapshot slack;     // on to the tick chosen within the slack
  HistogramSnapshot wake_up;   // until the driver looked; all of it for one that was due already
  HistogramSnapshot budget;    // until its batch was handed out: others were before it
  HistogramSnapshot executor;  // until the job began
};

enum class TimerState : std::uint8_t {
  pending,
  queued,  // due, and waits for the executor
  running,
};

/// One timer, as it was at some moment.
struct TimerInfo {
  std::string name = {};
  SourceLocation scheduled_at = {};  // the call that scheduled it
  TimerState state = TimerState::pending;
  MonotonicTime deadline = {};
  std::optional<WallTime> date = std::nullopt;                    // for one scheduled for a date
  std::optional<std::chrono::nanoseconds> period = std::nullopt;  // for a periodic one
};

}  // namespace detent

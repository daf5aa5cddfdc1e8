// Drain: what happens to pending timers when a scheduler stops, and the timers that it hands back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "detent/clock.h"
#include "detent/periodic.h"
#include "detent/recurring.h"
#include "detent/unique_function.h"

namespace detent {

/// The treatment of pending timers by `stop`. `drop` and `hand_back` are equally strong. Both are
/// stronger than `run_due`, and `run_due` is stronger than `run_pending`.
enum class Drain : std::uint8_t {
  drop,         // destroys their jobs
  run_due,      // runs the due jobs, then drops the other timers
  run_pending,  // runs each timer at its time, but drops periodic and recurring timers
  hand_back,    // returns the timers to the caller
};

/// A timer that `stop` handed back.
struct PendingJob {
  MonotonicTime deadline;
  std::optional<WallTime> date;  // set if the timer was scheduled for a date
  Job job;  // takes no argument; passes the key (keyed) or the next occurrence (recurring) itself
  // `count` in these two options is the number of remaining runs; 0 (no limit) stays 0.
  std::optional<PeriodicOptions> periodic;    // set for a periodic timer
  std::optional<RecurringOptions> recurring;  // set for a recurring timer
  std::string name;                           // for a keyed timer, its key
};

}  // namespace detent

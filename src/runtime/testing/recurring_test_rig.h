// The base of the tests of recurring timers: a rule that needs no calendar, and a Simulation that
// records its runs. Tests only.
#pragma once

#include <chrono>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "detent/recurring.h"
#include "detent/simulation.h"

namespace detent {

/// A rule whose dates are the multiples of a period since 1970.
struct Every {
  std::chrono::milliseconds period;

  std::optional<WallTime> next_after(WallTime time) const {
    return WallTime{(time.time_since_epoch() / period + 1) * period};
  }
};

/// The time of a run, and the occurrence that it stands for. Both count from the simulation's
/// start.
struct OccurrenceRun {
  std::chrono::milliseconds ran_at;
  std::chrono::milliseconds occurrence;

  friend bool operator==(const OccurrenceRun&, const OccurrenceRun&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const OccurrenceRun& run) {
  return out << run.ran_at.count() << " ms for " << run.occurrence.count();
}

/// A simulation with one recurring job. It starts at the beginning of 2020.
class RecurringRig {
 public:
  explicit RecurringRig(SimulationOptions options = {}) : simulation_(1, std::move(options)) {}

  Simulation& simulation() { return simulation_; }
  Scheduler& scheduler() { return simulation_.scheduler(); }
  static WallTime at(std::chrono::milliseconds since_start) { return start() + since_start; }
  std::chrono::milliseconds wall() {
    return std::chrono::floor<std::chrono::milliseconds>(simulation_.clock().wall_now()) - start();
  }

  /// A job that records its runs. Each run takes `takes`.
  RecurringJob job(std::chrono::milliseconds takes = {}) {
    return [this, takes](WallTime occurrence) {
      runs_.push_back({.ran_at = wall(), .occurrence = occurrence - start()});
      simulation_.clock().advance(takes);
    };
  }
  TimerHandle every(std::chrono::milliseconds period, const RecurringOptions& options = {}) {
    return scheduler().schedule_on(Every{period}, job(), options);
  }
  const std::vector<OccurrenceRun>& runs() const { return runs_; }

 private:
  static WallTime start() { return std::chrono::sys_days{std::chrono::year{2020} / 1 / 1}; }

  std::vector<OccurrenceRun> runs_;
  Simulation simulation_;
};

}  // namespace detent

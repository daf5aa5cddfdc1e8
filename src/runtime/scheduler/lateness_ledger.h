// The lateness ledger: how late each run began, split into causes. The parts add up to the
// lateness.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/histogram.h"
#include "detent/clock.h"
#include "detent/scheduler_report.h"

namespace detent::internal {

/// The points in time that one timer passes between its deadline and its run.
struct RunTimes {
  MonotonicTime deadline;
  MonotonicTime tick;         // the deadline, rounded up to a tick
  MonotonicTime chosen_tick;  // the tick that its slack chose
  MonotonicTime woke_at;      // when the driver woke up
  MonotonicTime queued_at;    // when the driver took the timer out of the wheel
  MonotonicTime began_at;
};

/// Thread-compatible. Each call of `record` is O(1).
class LatenessLedger {
 public:
  void record(const RunTimes& run) noexcept {
    // If the driver was already awake when the tick came, the wake-up caused no lateness.
    const MonotonicTime woke_at = std::clamp(run.woke_at, run.chosen_tick, run.queued_at);
    total_.record(run.began_at - run.deadline);
    rounding_.record(run.tick - run.deadline);
    slack_.record(run.chosen_tick - run.tick);
    wake_up_.record(woke_at - run.chosen_tick);
    budget_.record(run.queued_at - woke_at);
    executor_.record(run.began_at - run.queued_at);
  }

  void merge(const LatenessLedger& other) noexcept {
    total_.merge(other.total_);
    rounding_.merge(other.rounding_);
    slack_.merge(other.slack_);
    wake_up_.merge(other.wake_up_);
    budget_.merge(other.budget_);
    executor_.merge(other.executor_);
  }

  LatenessReport report() const {
    return {.total = total_.snapshot(),
            .rounding = rounding_.snapshot(),
            .slack = slack_.snapshot(),
            .wake_up = wake_up_.snapshot(),
            .budget = budget_.snapshot(),
            .executor = executor_.snapshot()};
  }

 private:
  Histogram total_;
  Histogram rounding_;
  Histogram slack_;
  Histogram wake_up_;
  Histogram budget_;
  Histogram executor_;
};

}  // namespace detent::internal

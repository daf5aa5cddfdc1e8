// The lateness ledger: how late each run began, split into causes that add up.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/histogram.h"
#include "detent/clock.h"
#include "detent/scheduler_report.h"

namespace detent::internal {

/// The stations of one timer on its way from its deadline to its run.
struct RunTimes {
  MonotonicTime deadline;
  MonotonicTime tick;         // the deadline rounded up
  MonotonicTime chosen_tick;  // the one within its slack
  MonotonicTime woke_at;      // when the driver woke for it
  MonotonicTime queued_at;    // when the driver took it out of the wheel
  MonotonicTime began_at;
};

/// Thread-compatible. O(1) a run.
class LatenessLedger {
 public:
  void record(const RunTimes& run) noexcept {
    // The driver may have been awake before the tick came.
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

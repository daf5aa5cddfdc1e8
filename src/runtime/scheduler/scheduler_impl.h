// The implementation of a Scheduler, with any driver.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "detent/scheduler.h"
#include "runtime/dates/recurring_dates.h"
#include "runtime/scheduler/driver.h"
#include "runtime/scheduler/keyed_timers.h"
#include "runtime/scheduler/scheduler_core.h"

namespace detent::internal {

/// The callable that the timer of a recurring job runs. The shard also uses `dates`, to recognise
/// the running job and to compute its dates.
struct RecurringRun {
  RecurringDates dates;
  RecurringJob job;

  void run() { job.run(&dates, dates.occurrence()); }
};

/// Thread-safe.
class SchedulerImpl {
 public:
  /// The driver must outlive this object, and must not use the core after the end of this object.
  SchedulerImpl(SchedulerOptions options, Driver& driver, SchedulerCore::Waiting waiting,
                HomeProcess home)
      : core_(std::move(options), driver, waiting, home), keyed_(std::make_shared<KeyedTimers>()) {}
  virtual ~SchedulerImpl() = default;
  SchedulerImpl(const SchedulerImpl&) = delete;
  SchedulerImpl& operator=(const SchedulerImpl&) = delete;

  SchedulerCore& core() noexcept { return core_; }
  KeyedTimers& keyed() noexcept { return *keyed_; }

  NewTimer one_shot(Job&& job, const DueTime& due, const TimerOptions& options,
                    SourceLocation where) const {
    return {.job = std::move(job),
            .due = due,
            .where = where,
            .details = needs_details(options) ? details_of(options) : nullptr};
  }

  NewTimer for_date(Job&& job, WallTime date, const TimerOptions& options,
                    SourceLocation where) const {
    NewTimer timer{.job = std::move(job),
                   .due = core_.due_on(date),
                   .where = where,
                   .details = details_of(options)};
    timer.details->date = date;
    return timer;
  }

  NewTimer periodic(Job&& job, const PeriodicOptions& periodic, const TimerOptions& options,
                    SourceLocation where) {
    const MonotonicTime now = core_.clock().now();
    const WallInstant wall = core_.clock().wall_now();
    NewTimer timer{
        .job = std::move(job), .due = {}, .where = where, .details = details_of(options)};
    timer.details->periodic.emplace(periodic, now, wall, core_.next_seed());
    timer.due = {.at = timer.details->periodic->due_at(), .set_at = now};
    return timer;
  }

  /// Empty if the rule has no future date.
  std::optional<NewTimer> recurring(RecurringRule&& rule, RecurringJob&& job,
                                    const RecurringOptions& recurring, const TimerOptions& options,
                                    SourceLocation where) {
    auto run = std::make_unique<RecurringRun>(RecurringRun{
        .dates = {std::move(rule), recurring, core_.next_seed()}, .job = std::move(job)});
    const auto first = run->dates.first(whole_ms(core_.clock().wall_now()));
    if (!first) return std::nullopt;
    NewTimer timer = for_date({}, *first, options, where);
    timer.details->recurring = &run->dates;
    timer.job = [run = std::move(run)] { run->run(); };
    return timer;
  }

 protected:
  /// For the destructors of derived classes. After this call no job runs.
  void stop() {
    DETENT_CHECK(!SchedulerShard::is_inside_job_of(core_));
    core_.stop_or_wait();
  }

 private:
  static bool needs_details(const TimerOptions& options) {
    return !options.name.empty() || options.slack != std::chrono::nanoseconds::zero();
  }
  static std::unique_ptr<TimerDetails> details_of(const TimerOptions& options) {
    DETENT_CHECK(options.slack >= std::chrono::nanoseconds::zero());
    auto details = std::make_unique<TimerDetails>();
    details->name = options.name;
    details->slack = options.slack;
    details->slack_use = options.slack_use;
    return details;
  }

  SchedulerCore core_;
  // Also owned by the jobs of its timers, which `stop` may hand back: keyed_timers.h.
  const std::shared_ptr<KeyedTimers> keyed_;
};

}  // namespace detent::internal

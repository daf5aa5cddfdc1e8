#include "runtime/scheduler/new_timer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "detent/check.h"
#include "detent/internal/saturate.h"

namespace detent::internal {

using std::chrono::nanoseconds;

/// The callable that the timer of a recurring job runs. The shard also uses `dates`, to recognise
/// the running job and to compute its dates.
struct RecurringRun {
  RecurringDates dates;
  RecurringJob job;

  void run() { job.run(&dates, dates.occurrence()); }
};

std::unique_ptr<TimerDetails> details_of(const TimerOptions& options) {
  DETENT_CHECK(options.slack >= nanoseconds::zero());
  auto details = std::make_unique<TimerDetails>();
  details->name = options.name;
  details->slack = options.slack;
  details->slack_use = options.slack_use;
  return details;
}

DueTime due_on(WallTime date, const ClockReading& clocks) noexcept {
  return {.at = saturating_add(clocks.now, time_until(date, clocks.wall)), .set_at = clocks.now};
}

NewTimer timer_for_date(Job&& job, WallTime date, const ClockReading& clocks,
                        const TimerOptions& options, SourceLocation where) {
  NewTimer timer{.job = std::move(job),
                 .due = due_on(date, clocks),
                 .where = where,
                 .details = details_of(options)};
  timer.details->date = date;
  return timer;
}

NewTimer periodic_timer(Job&& job, const PeriodicOptions& periodic, const ClockReading& clocks,
                        std::uint64_t seed, const TimerOptions& options, SourceLocation where) {
  NewTimer timer{.job = std::move(job), .due = {}, .where = where, .details = details_of(options)};
  timer.details->periodic.emplace(periodic, clocks.now, clocks.wall, seed);
  timer.due = {.at = timer.details->periodic->due_at(), .set_at = clocks.now};
  return timer;
}

std::optional<NewTimer> recurring_timer(RecurringWork&& work, const RecurringOptions& recurring,
                                        const ClockReading& clocks, std::uint64_t seed,
                                        const TimerOptions& options, SourceLocation where) {
  auto run = std::make_unique<RecurringRun>(
      RecurringRun{.dates = {std::move(work.rule), recurring, seed}, .job = std::move(work.job)});
  const std::optional<WallTime> first = run->dates.first(whole_ms(clocks.wall));
  if (!first) return std::nullopt;
  NewTimer timer = timer_for_date({}, *first, clocks, options, where);
  timer.details->recurring = &run->dates;
  timer.job = [run = std::move(run)] { run->run(); };
  return timer;
}

}  // namespace detent::internal

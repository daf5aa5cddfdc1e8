// New timers, from the arguments of the schedule_… functions. The functions read no clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "detent/internal/saturate.h"
#include "detent/periodic.h"
#include "detent/recurring.h"
#include "detent/scheduler_options.h"
#include "detent/source_location.h"
#include "detent/unique_function.h"
#include "runtime/scheduler/timer_shard.h"

namespace detent::internal {

/// The deadline of a timer that is scheduled at `now` with this delay. A delay of 0 or less means
/// now.
inline DueTime due_after(std::chrono::nanoseconds delay, MonotonicTime now) noexcept {
  return {.at = saturating_add(now, std::max(delay, std::chrono::nanoseconds::zero())),
          .set_at = now};
}
/// The deadline of a timer that is scheduled for a date.
DueTime due_on(WallTime date, const ClockReading& clocks) noexcept;

std::unique_ptr<TimerDetails> details_of(const TimerOptions& options);

inline bool has_details(const TimerOptions& options) noexcept {
  return !options.name.empty() || options.slack != std::chrono::nanoseconds::zero();
}
inline NewTimer one_shot_timer(Job&& job, const DueTime& due, const TimerOptions& options,
                               SourceLocation where) {
  return {.job = std::move(job),
          .due = due,
          .where = where,
          .details = has_details(options) ? details_of(options) : nullptr};
}
NewTimer timer_for_date(Job&& job, WallTime date, const ClockReading& clocks,
                        const TimerOptions& options, SourceLocation where);
/// `seed` is for the jitter.
NewTimer periodic_timer(Job&& job, const PeriodicOptions& periodic, const ClockReading& clocks,
                        std::uint64_t seed, const TimerOptions& options, SourceLocation where);

/// A rule and its job.
struct RecurringWork {
  RecurringRule rule;
  RecurringJob job;
};
/// Empty if the rule has no future date. `seed` is for the jitter.
std::optional<NewTimer> recurring_timer(RecurringWork&& work, const RecurringOptions& recurring,
                                        const ClockReading& clocks, std::uint64_t seed,
                                        const TimerOptions& options, SourceLocation where);

}  // namespace detent::internal

// Recurring timers: a rule that gives the dates, the number of runs, and the policy for dates that
// passed before the job could run.
//
//     const auto monthly = detent::Cron::parse("0 9 1 * *", "Asia/Shanghai").value();
//     auto m = scheduler.schedule_on(monthly, report);
//     auto n = scheduler.schedule_on(monthly, [](WallTime due) { … }, {.count = 12, .end = t});
//
// The Scheduler itself knows no calendar. A rule is any object that can give the first date after a
// given date. Only programs that pass a Cron or a CalendarInterval link detent::calendar. The dates
// follow the wall clock: if it is stepped, the scheduler waits for the date by the new wall time.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "detent/clock.h"
#include "detent/periodic.h"
#include "detent/timer_context.h"
#include "detent/unique_function.h"

namespace detent {

namespace internal {
struct RecurringRun;
}

/// A type with a list of dates: Cron, CalendarInterval, or a type of your own. `next_after(t)`
/// gives the first date after `t`.
template <class Rule>
concept HasOccurrences = requires(const Rule& rule, WallTime time) {
  { rule.next_after(time) } -> std::same_as<std::optional<WallTime>>;
};

/// Holds a rule of any type: an object with `next_after`, or a callable
/// `std::optional<WallTime>(WallTime)`. The rule gets a date and returns its first date after that
/// date, or std::nullopt if no date is left.
///
/// Requires: the returned date is later than the given date. The rule returns the same date for the
/// same question, and does not throw.
///
/// The scheduler calls the rule from one thread at a time, without a lock, one to three times per
/// run. After missed occurrences it searches for the last of them and calls the rule about 40
/// times. With MissedOccurrence::all it may call the rule 40 times for each occurrence that it
/// runs.
class RecurringRule {
 public:
  template <HasOccurrences Rule>
  RecurringRule(Rule rule)  // NOLINT(google-explicit-constructor): a Cron is passed as one
      : next_after_([rule = std::move(rule)](WallTime time) { return rule.next_after(time); }) {}
  template <class F>
  requires(std::is_invocable_r_v<std::optional<WallTime>, std::decay_t<F>&, WallTime>)
      RecurringRule(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : next_after_(std::forward<F>(f)) {}

  /// Returns the first date after `time`, or std::nullopt.
  std::optional<WallTime> next_after(WallTime time) { return next_after_(time); }

 private:
  UniqueFunction<std::optional<WallTime>(WallTime)> next_after_;
};

/// The job of a recurring timer. Its parameter `occurrence` is the date that the rule gave for this
/// run, even if the job runs later. The scheduler uses the first of these forms that the callable
/// accepts:
///
/// - `void(WallTime occurrence)`
/// - `void()`
/// - `void(TimerContext&, WallTime occurrence)`, for a job that ends its own timer
/// - `void(TimerContext&)`, the same without the date
class RecurringJob {
 public:
  // A form is tried only if the callable accepts none of the earlier forms. A generic lambda is
  // therefore not instantiated with arguments that its body cannot use.
  template <class F>
  requires(std::invocable<std::decay_t<F>&, WallTime> || std::invocable<std::decay_t<F>&> ||
           std::invocable<std::decay_t<F>&, TimerContext&, WallTime> ||
           std::invocable<std::decay_t<F>&, TimerContext&>)
      RecurringJob(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : call_(call_of(std::forward<F>(f))) {}

  /// Returns false if there is no job to call, for example after constructing from an empty
  /// std::function.
  explicit operator bool() const noexcept { return static_cast<bool>(call_); }

 private:
  friend struct internal::RecurringRun;
  using Call = UniqueFunction<void(TimerContext&, WallTime)>;
  template <class F>
  static Call call_of(F&& f) {
    using Target = std::decay_t<F>;
    if constexpr (std::invocable<Target&, WallTime>) {
      UniqueFunction<void(WallTime)> job(std::forward<F>(f));
      if (!job) return {};
      return
          [job = std::move(job)](TimerContext&, WallTime occurrence) mutable { job(occurrence); };
    } else if constexpr (std::invocable<Target&>) {
      Job job(std::forward<F>(f));
      if (!job) return {};
      return [job = std::move(job)](TimerContext&, WallTime) mutable { job(); };
    } else if constexpr (std::invocable<Target&, TimerContext&, WallTime>) {
      return Call(std::forward<F>(f));
    } else {
      UniqueFunction<void(TimerContext&)> job(std::forward<F>(f));
      if (!job) return {};
      return [job = std::move(job)](TimerContext& context, WallTime) mutable { job(context); };
    }
  }

  /// `called` is the address of the callable that the timer runs.
  void run(const void* called, WallTime occurrence) {
    TimerContext context(called);
    call_(context, occurrence);
  }

  Call call_;
};

/// The policy for missed occurrences. An occurrence is missed if its date passes before its run can
/// begin. Possible reasons: the machine was suspended, the executor was late, or the wall clock was
/// put forward over the date.
enum class MissedOccurrence : std::uint8_t {
  once,  // run once immediately for all missed occurrences, with the date of the last
  skip,  // as `once`, but only if the last is overdue by at most `grace` (default: one minute)
  all,   // run once for each of the last `most_missed` occurrences, one after another
};

/// The policy for occurrences that pass while the job still runs. Runs of one timer never overlap.
/// A long job that should not delay later runs can pass its work to an Executor.
enum class Overlap : std::uint8_t {
  run_after,  // wait for the end of the run, then count as missed; with `once` they share one run
  skip,       // leave them out
};

/// Options of a recurring timer.
struct RecurringOptions {
  /// The number of runs; 0: no limit, until the timer is cancelled or the rule has no further date.
  /// Occurrences that are left out do not count.
  std::uint64_t count = 0;
  /// The first and the last date of the rule that may run, both included. Occurrences outside are
  /// left out. The limits apply to the dates of the rule: because of `jitter` or a delay, the run
  /// for a date before `end` can begin after `end`. Occurrences before the call that scheduled the
  /// timer never run, even if they are after `start`.
  std::optional<WallTime> start = std::nullopt;
  std::optional<WallTime> end = std::nullopt;
  MissedOccurrence missed = MissedOccurrence::once;
  /// With MissedOccurrence::all: the largest number of missed occurrences that run after one delay.
  /// Requires: at least 1.
  std::uint32_t most_missed = 100;
  /// A missed occurrence that is overdue by more than this is left out. No value: one minute with
  /// MissedOccurrence::skip, otherwise no limit. Requires: not negative.
  std::optional<std::chrono::milliseconds> grace = std::nullopt;
  Overlap overlap = Overlap::run_after;
  /// Delays each run of the timer by the same random offset in [0, jitter). The offset is chosen
  /// when the timer is scheduled. Timers with equal rules then do not all run at the same moment. A
  /// run is overdue (see `grace`) only after its date plus the offset. Requires: not negative.
  std::chrono::milliseconds jitter{};
  /// If not empty, the offset is a hash of this key instead of random. A key has the same offset in
  /// every process and after each restart. Different keys are spread evenly.
  std::string jitter_key = {};
};

}  // namespace detent

// What a recurring timer is: the dates of a rule, how many runs, and what becomes of those that
// come too late.
//
//     const auto monthly = detent::Cron::parse("0 9 1 * *", "Asia/Shanghai").value();
//     auto m = scheduler.schedule_on(monthly, report);
//     auto n = scheduler.schedule_on(monthly, [](WallTime due) { … }, {.count = 12, .end = t});
//
// The Scheduler knows no calendar. A rule is whatever can tell the first date after another one; it
// is wrapped where schedule_on is called, so only programs that pass a Cron or a CalendarInterval
// link detent::calendar. Dates follow the wall clock, as those of schedule_at do.
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

/// Has the dates at which something recurs: Cron, CalendarInterval, or a type of yours.
template <class Rule>
concept HasOccurrences = requires(const Rule& rule, WallTime time) {
  { rule.next_after(time) } -> std::same_as<std::optional<WallTime>>;
};

/// A rule of any type: one that has occurrences, or a callable `std::optional<WallTime>(WallTime)`.
/// Asked for the first date after a given one; nothing when none is left. The answer must be later
/// than what was asked, the same each time, and must not throw. Asked by one thread at a time,
/// without a lock, one to three times a run; what becomes of missed ones takes about 40 questions.
class RecurringRule {
 public:
  template <HasOccurrences Rule>
  RecurringRule(Rule rule)  // NOLINT(google-explicit-constructor): a Cron is passed as one
      : next_after_([rule = std::move(rule)](WallTime time) { return rule.next_after(time); }) {}
  template <class F>
  requires(std::is_invocable_r_v<std::optional<WallTime>, std::decay_t<F>&, WallTime>)
      RecurringRule(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : next_after_(std::forward<F>(f)) {}

  std::optional<WallTime> next_after(WallTime time) { return next_after_(time); }

 private:
  UniqueFunction<std::optional<WallTime>(WallTime)> next_after_;
};

/// The job of a recurring timer. It gets the date that the rule gave for this run, whatever the
/// time is now. The job is called in the first of these forms that the callable accepts:
///  1. `void(WallTime occurrence)`
///  2. `void()`
///  3. `void(TimerContext&, WallTime occurrence)`, for a job that ends its own timer
///  4. `void(TimerContext&)`, the same without the date
class RecurringJob {
 public:
  // A form is tried only if the callable accepts none of the forms before it: a generic lambda is
  // not asked whether it accepts what it cannot use.
  template <class F>
  requires(std::invocable<std::decay_t<F>&, WallTime> || std::invocable<std::decay_t<F>&> ||
           std::invocable<std::decay_t<F>&, TimerContext&, WallTime> ||
           std::invocable<std::decay_t<F>&, TimerContext&>)
      RecurringJob(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : call_(call_of(std::forward<F>(f))) {}

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

  /// `called`: what the timer calls.
  void run(const void* called, WallTime occurrence) {
    TimerContext context(called);
    call_(context, occurrence);
  }

  Call call_;
};

/// What becomes of occurrences that passed before a run could begin: the machine was suspended, the
/// executor late, the wall clock put forward over them.
enum class MissedOccurrence : std::uint8_t {
  once,  // one run at once stands for all of them; its date is the last one's
  skip,  // the same within `grace`, a minute unless set; later than that they are left out
  all,   // each gets its run, one right after the other: the last `most_missed` of them
};

/// What becomes of occurrences that come while the job still runs. Runs of one timer never overlap;
/// a job that takes long and shall hands its work to an Executor.
enum class Overlap : std::uint8_t {
  run_after,  // they wait for its end and then are missed ones: with `once` one run stands for all
  skip,       // they are left out
};

struct RecurringOptions {
  /// How many times it runs; 0: until it is cancelled or the rule ends. What is left out does not
  /// count.
  std::uint64_t count = 0;
  /// Occurrences before `start` or after `end` don't happen; those at these instants do. None that
  /// had passed when it was scheduled happens, even if it is after `start`.
  std::optional<WallTime> start = std::nullopt;
  std::optional<WallTime> end = std::nullopt;
  MissedOccurrence missed = MissedOccurrence::once;
  /// With MissedOccurrence::all: how many missed ones get a run at one time. Requires: at least 1.
  std::uint32_t most_missed = 100;
  /// A missed occurrence that is overdue by more than this is left out. Not set: a minute with
  /// MissedOccurrence::skip, otherwise no limit. Requires: not negative.
  std::optional<std::chrono::milliseconds> grace = std::nullopt;
  Overlap overlap = Overlap::run_after;
  /// Runs are due later than their dates, all of one timer by the same offset, at random within
  /// [0, jitter). Spreads load that equal rules would pile up. Requires: not negative.
  std::chrono::milliseconds jitter{};
  /// Not empty: the offset is a hash of this key. The same key has the same one in every process
  /// and after each restart; different keys are spread evenly.
  std::string jitter_key = {};
};

}  // namespace detent

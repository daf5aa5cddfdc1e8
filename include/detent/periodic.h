// What a periodic timer is: its period, how many runs, what becomes of runs that come too late, and
// where in the period it ticks.
//
//     auto beat = scheduler.schedule_every(
//         {.period = 30s, .missed = MissedTick::skip, .phase_key = host}, send_heartbeat);
//     scheduler.schedule_every({.period = 200ms, .count = 5, .jitter = 0.2}, retry).release();
//     scheduler.schedule_every({.period = 1s}, [&](TimerContext& timer) { timer.stop();
//     }).release();
//
// A timer at a fixed rate ticks at start + k × period for ever, however late single runs are: the
// next tick is counted from the last tick and not from the clock, so nothing adds up.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "detent/clock.h"
#include "detent/timer_context.h"
#include "detent/unique_function.h"

namespace detent {

/// What happens when ticks pass before their runs can begin: the job's last run took longer than a
/// period, the machine was busy, or it slept. The run that is due when the timer is looked at again
/// always happens; the policy decides about the other ticks that passed. A tick that falls exactly
/// on the end of a run has not passed; one with jitter passes at its own due time.
/// (The names of tokio's MissedTickBehavior, and two more.)
enum class MissedTick : std::uint8_t {
  coalesce,  // one run at once stands for all of them; then on in phase
  skip,      // ticks that pass while the job runs are left out; then on in phase
  delay,     // one run at once stands for all of them, and the phase starts anew from it
  burst,     // every tick gets its run, one right after the other, until it has caught up
  spread,    // every tick gets its run, at least `catch_up` apart, until it has caught up
};

/// Where a period starts.
enum class Pace : std::uint8_t {
  fixed_rate,   // at ticks, start + k × period
  fixed_delay,  // when the run before is over; there are no missed ticks
};

struct PeriodicOptions {
  /// Requires: positive.
  std::chrono::nanoseconds period{};
  /// How many times it runs; 0: until it is cancelled.
  std::uint64_t count = 0;
  MissedTick missed = MissedTick::coalesce;
  Pace pace = Pace::fixed_rate;
  /// Each run is due up to this part of a period after its tick, at random and independently, never
  /// before it. Spreads load that equal periods would pile up. Requires: within [0, 1].
  double jitter = 0;
  /// With MissedTick::spread: the least time between the beginnings of two runs. Zero: a tenth of
  /// the period. More than half a period counts as half, so that it does catch up. Requires: not
  /// negative.
  std::chrono::nanoseconds catch_up{};
  /// Ticks are at created + k × period by the wall clock, k ≥ 1, the first one being after now: a
  /// restart keeps the rhythm ("25 s, created 20 s ago" runs in 5 s). Ticks of the past don't run
  /// and don't count. The wall clock is read once, when the timer is scheduled.
  std::optional<WallTime> created = std::nullopt;
  /// Not empty: ticks are where a hash of this key puts them within the period, counted from
  /// 1970-01-01T00:00:00Z by the wall clock. The same key ticks at the same moments in every
  /// process and after each restart; different keys are spread evenly. Requires: no `created`.
  std::string phase_key = {};
};

/// The job of a periodic timer: a callable of `void()`. If it does not accept that, it is one of
/// `void(TimerContext&)`, which can end its own timer.
class PeriodicJob {
 public:
  // The second form is tried only if the callable does not accept the first.
  template <class F>
  requires(std::invocable<std::decay_t<F>&> || std::invocable<std::decay_t<F>&, TimerContext&>)
      PeriodicJob(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : job_(job_of(std::forward<F>(f))) {}

  /// Returns: the job as a timer keeps it; empty when the callable was.
  Job take() && noexcept { return std::move(job_); }

 private:
  template <class F>
  static Job job_of(F&& f) {
    if constexpr (std::invocable<std::decay_t<F>&>) {
      return Job(std::forward<F>(f));
    } else {
      return with_context(UniqueFunction<void(TimerContext&)>(std::forward<F>(f)));
    }
  }
  /// What a timer calls, so its address tells whether a timer calls it.
  struct WithContext {
    UniqueFunction<void(TimerContext&)> call;
    void operator()() {
      TimerContext context(this);
      call(context);
    }
  };
  static Job with_context(UniqueFunction<void(TimerContext&)> call) {
    if (!call) return {};
    return WithContext{std::move(call)};
  }

  Job job_;
};

}  // namespace detent

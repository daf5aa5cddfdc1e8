// Periodic timers: the period, the number of runs, the policy for late runs, and the phase (the
// position of the ticks within the period).
//
//     auto beat = scheduler.schedule_every(
//         {.period = 30s, .missed = MissedTick::skip, .phase_key = host}, send_heartbeat);
//     scheduler.schedule_every({.period = 200ms, .count = 5, .jitter = 0.2}, retry).release();
//     scheduler.schedule_every({.period = 1s}, [&](TimerContext& timer) { timer.stop();
//     }).release();
//
// A timer at a fixed rate always ticks at start + k × period, for k ≥ 1, however late single runs
// are. `start` is the call of schedule_every, so the first run is one period after the call. The
// options `created` and `phase_key` give another start. The next tick is counted from the last tick
// and not from the clock, so delays do not accumulate.
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

/// The policy for missed ticks. A tick is missed if it passes before its run can begin. Possible
/// reasons: the previous run took longer than a period, or the machine was busy or asleep. As soon
/// as the timer can run again, it runs for the missed ticks: once or several times, as the policy
/// says. Only ticks that `skip` leaves out get no run.
///
/// A tick exactly at the end of a run is not missed. With jitter, each tick has its own random due
/// time after the tick, and is missed only after this due time. Source: tokio's MissedTickBehavior
/// has the names burst, delay and skip.
enum class MissedTick : std::uint8_t {
  coalesce,  // run once immediately for all missed ticks; then continue in phase
  skip,      // as coalesce, but leave out ticks that pass while the job itself runs
  delay,     // run once immediately for all missed ticks; this run starts a new phase
  burst,     // run once for each missed tick, one run directly after another
  spread,    // run once for each missed tick, with at least `catch_up` between two starts
};

/// The instant from which a period counts.
enum class Pace : std::uint8_t {
  fixed_rate,   // from ticks: start + k × period
  fixed_delay,  // from the end of the previous run; ticks are never missed
};

/// Options of a periodic timer.
struct PeriodicOptions {
  /// The time between two ticks. Requires: above 0.
  std::chrono::nanoseconds period{};
  /// The number of runs; 0: no limit, until the timer is cancelled.
  std::uint64_t count = 0;
  MissedTick missed = MissedTick::coalesce;
  Pace pace = Pace::fixed_rate;
  /// Delays each run by a random time between 0 and `jitter` × `period` after its tick. Each run
  /// has its own random delay. Timers with equal periods then do not all run at the same moment.
  /// Requires: within [0, 1].
  double jitter = 0;
  /// With MissedTick::spread: the shortest time between the starts of two runs. Zero: a tenth of
  /// the period. A value above half a period counts as half a period, because otherwise the timer
  /// would not catch up. Requires: not negative.
  std::chrono::nanoseconds catch_up{};
  /// Places the ticks at created + k × period on the wall clock, for k ≥ 1. The first run is at the
  /// first of these ticks that is in the future. A restarted program thus keeps its rhythm: with a
  /// period of 25 s, a timer created 20 s ago first runs in 5 s. Ticks in the past do not run and
  /// do not count. The wall clock is read once, when the timer is scheduled.
  std::optional<WallTime> created = std::nullopt;
  /// If not empty, a hash of this key places the ticks within the period, counted from
  /// 1970-01-01T00:00:00Z on the wall clock. A key has the same ticks in every process and after
  /// each restart. Different keys are spread evenly. Requires: `created` is not set.
  std::string phase_key = {};
};

/// The job of a periodic timer: a callable `void()`. A callable that does not accept this form is
/// called as `void(TimerContext&)`, and can end its own timer.
class PeriodicJob {
 public:
  // The second form is tried only if the callable does not accept the first.
  template <class F>
  requires(std::invocable<std::decay_t<F>&> || std::invocable<std::decay_t<F>&, TimerContext&>)
      PeriodicJob(F&& f)  // NOLINT(google-explicit-constructor): a lambda is passed as one
      : job_(job_of(std::forward<F>(f))) {}

  /// Returns the job in the form that a timer stores; empty if the callable was empty.
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
  /// The callable that a timer runs. Its address tells whether a timer runs it.
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

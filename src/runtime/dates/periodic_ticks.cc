#include "runtime/dates/periodic_ticks.h"

#include <algorithm>
#include <utility>

#include "base/fnv.h"
#include "base/rng.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "detent/internal/uint128.h"

namespace detent::internal {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr std::uint32_t kNanosecondsInMillisecond = 1'000'000;

/// A negative number of units becomes 2^128 minus its amount.
template <class Duration>
constexpr Uint128 units_of(Duration duration) noexcept {
  return static_cast<Uint128>(duration.count());
}

/// The time from `wall` until the first tick after it: at least one nanosecond, saturating.
nanoseconds first_wait(const PeriodicOptions& options, WallInstant wall) noexcept {
  const nanoseconds period = options.period;
  const nanoseconds now = wall.time_since_epoch();
  if (options.created) {
    const WallTime created = *options.created;
    // The nanoseconds between any two dates need 84 bits, with the sign.
    const Uint128 age =
        units_of(now) - units_of(created.time_since_epoch()) * kNanosecondsInMillisecond;
    const bool is_negative = (age >> 127) != 0;
    const Uint128 wait = units_of(period) - (is_negative ? age : age % units_of(period));
    const Uint128 most = units_of(nanoseconds::max());
    return nanoseconds{static_cast<nanoseconds::rep>(std::min(wait, most))};
  }
  if (options.phase_key.empty()) return period;
  const nanoseconds into = now % period;  // negative before 1970
  const nanoseconds since =
      (into < 0ns ? into + period : into) - phase_of(options.phase_key, period);
  return since < 0ns ? -since : period - since;
}

}  // namespace

const char* problem_of(const PeriodicOptions& options) noexcept {
  if (options.period <= nanoseconds::zero()) return "options.period > 0";
  if (!(options.jitter >= 0 && options.jitter <= 1)) return "0 <= options.jitter <= 1";
  if (options.catch_up < nanoseconds::zero()) return "options.catch_up >= 0";
  if (options.created && !options.phase_key.empty()) {
    return "options.created or options.phase_key, not both";
  }
  return nullptr;
}

nanoseconds phase_of(std::string_view key, nanoseconds period) noexcept {
  DETENT_CHECK(period > nanoseconds::zero());
  const std::uint64_t hash = Rng(fnv1a(key)).next();
  // The hash as a fraction of 2^64, multiplied by the period. The shift by one keeps the product in
  // the signed range.
  return nanoseconds{static_cast<nanoseconds::rep>((Uint128{hash >> 1} * units_of(period)) >> 63)};
}

PeriodicTicks::PeriodicTicks(PeriodicOptions options, MonotonicTime now, WallInstant wall,
                             std::uint64_t seed)
    : options_(std::move(options)), seed_(seed), began_(now) {
  if (const char* const problem = problem_of(options_)) check_failed(problem, __FILE__, __LINE__);
  tick_ = saturating_add(now, first_wait(options_, wall));
  due_ = due_of(tick_);
}

void PeriodicTicks::begin(MonotonicTime now) noexcept {
  DETENT_CHECK(now >= due_);
  began_ = now;
  if (options_.pace == Pace::fixed_delay) return;
  switch (options_.missed) {
    case MissedTick::coalesce:
    case MissedTick::skip:
      tick_ = last_passed(tick_, now);
      return;
    case MissedTick::delay:
      if (due_of(tick_after(tick_)) <= now) tick_ = now;
      return;
    case MissedTick::burst:
    case MissedTick::spread:
      return;
  }
}

bool PeriodicTicks::end(MonotonicTime now) noexcept {
  if (options_.count == 1) return false;
  if (options_.count > 1) --options_.count;
  if (options_.pace == Pace::fixed_delay) {
    tick_ = tick_after(now);
    due_ = due_of(tick_);
    return true;
  }
  tick_ = tick_after(tick_);
  // If ticks have already passed, `begin` handles them for coalesce and delay.
  if (options_.missed == MissedTick::skip) tick_ = next_not_passed(tick_, now);
  due_ = due_of(tick_);
  if (options_.missed == MissedTick::spread) {
    due_ = std::max(due_, saturating_add(began_, catch_up()));
  }
  return true;
}

void PeriodicTicks::move(MonotonicTime due) noexcept {
  tick_ = due;
  due_ = due;
}

/// The due time of the tick at `tick`, the same in every call. It takes two steps of the
/// generator, so that equal distances between ticks or between seeds do not show in the jitter.
MonotonicTime PeriodicTicks::due_of(MonotonicTime tick) const noexcept {
  if (options_.jitter == 0) return tick;
  const auto number = static_cast<std::uint64_t>(tick.time_since_epoch().count());
  Rng rng(seed_ ^ Rng(number).next());
  // Below 2^63, because unit() < 1. But the double of a long period may exceed the period.
  const double jitter = options_.jitter * rng.unit() * static_cast<double>(options_.period.count());
  const nanoseconds whole{static_cast<nanoseconds::rep>(jitter)};
  return saturating_add(tick, std::min(whole, options_.period));
}

MonotonicTime PeriodicTicks::tick_after(MonotonicTime tick) const noexcept {
  return saturating_add(tick, options_.period);
}

/// The last tick, not before `tick`, whose due time is at or before `now`. Jitter is at most a
/// period, so the result is the last tick before `now` or the tick before that tick.
MonotonicTime PeriodicTicks::last_passed(MonotonicTime tick, MonotonicTime now) const noexcept {
  // Unsigned, so the distance between any two instants fits.
  const auto since = static_cast<std::uint64_t>(now.time_since_epoch().count()) -
                     static_cast<std::uint64_t>(tick.time_since_epoch().count());
  const auto into =
      static_cast<nanoseconds::rep>(since % static_cast<std::uint64_t>(options_.period.count()));
  const MonotonicTime last = now - nanoseconds{into};
  return last > tick && due_of(last) > now ? last - options_.period : last;
}

/// The first tick, `tick` or later, whose due time is at or after `now`.
MonotonicTime PeriodicTicks::next_not_passed(MonotonicTime tick, MonotonicTime now) const noexcept {
  if (due_of(tick) >= now) return tick;
  const MonotonicTime last = last_passed(tick, now);
  return due_of(last) == now ? last : tick_after(last);
}

/// At most half a period: otherwise the timer could never catch up.
nanoseconds PeriodicTicks::catch_up() const noexcept {
  if (options_.catch_up == nanoseconds::zero()) return options_.period / 10;
  return std::min(options_.catch_up, options_.period / 2);
}

static_assert(sizeof(PeriodicTicks) <= 120);

}  // namespace detent::internal

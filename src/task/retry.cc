#include "task/retry.h"

#include <algorithm>

#include "detent/check.h"
#include "task/limits.h"

namespace detent {

namespace {

using Milliseconds = std::chrono::milliseconds::rep;

/// min(initial × 2^(attempts − 1), max). It cannot overflow: `max` is shifted down for the
/// comparison, and `initial` is shifted up only if the result is at most `max`.
Milliseconds exponential(Milliseconds initial, Milliseconds max, std::uint32_t attempts) {
  const std::uint32_t doublings = attempts - 1;
  if (initial == 0) return 0;
  if (doublings >= 63 || initial > (max >> doublings)) return max;
  return initial << doublings;
}

}  // namespace

std::chrono::milliseconds retry_delay(const Backoff& backoff, std::uint32_t attempts, Rng& rng) {
  DETENT_CHECK(attempts >= 1);
  constexpr Milliseconds kLongest = std::chrono::milliseconds{kMaxDelay}.count();
  const Milliseconds max = std::clamp<Milliseconds>(backoff.max.count(), 0, kLongest);
  const Milliseconds initial = std::clamp<Milliseconds>(backoff.initial.count(), 0, max);
  const Milliseconds base = exponential(initial, max, attempts);
  // The whole milliseconds in [0.8 × base, 1.2 × base), all equally likely. kMaxDelay is below 2^42
  // milliseconds, so the products and the conversions to double are exact.
  const Milliseconds from = (base * 4 + 4) / 5;
  const Milliseconds to = (base * 6 + 4) / 5;
  const auto jitter = static_cast<Milliseconds>(rng.unit() * static_cast<double>(to - from));
  return std::chrono::milliseconds{from + jitter};
}

std::uint32_t max_attempts_of(const TaskRules& rules) noexcept {
  return rules.max_attempts.value_or(kDefaultMaxAttempts);
}

}  // namespace detent

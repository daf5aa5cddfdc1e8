// The wait of a task after a failed attempt.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/rng.h"
#include "task/task.h"

namespace detent {

inline constexpr std::uint32_t kDefaultMaxAttempts = 25;
inline constexpr std::chrono::milliseconds kDefaultVisibilityTimeout{60'000};

/// Exponential backoff: min(initial × 2^(attempts − 1), max) × [0.8, 1.2). The jitter of ± 20 %
/// prevents tasks that failed together from returning together. `attempts` is the number of ended
/// attempts, at least 1.
std::chrono::milliseconds retry_delay(const Backoff& backoff, std::uint32_t attempts, Rng& rng);

/// The task's own value, or the default.
std::uint32_t max_attempts_of(const TaskRules& rules) noexcept;

}  // namespace detent

// How long a task rests after an attempt that failed.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/rng.h"
#include "task/task.h"

namespace detent {

inline constexpr std::uint32_t kDefaultMaxAttempts = 25;
inline constexpr std::chrono::milliseconds kDefaultVisibilityTimeout{60'000};

/// Exponential backoff with ± 20 % jitter, so that tasks that failed together don't return
/// together: min(initial × 2^(attempts − 1), max) × [0.8, 1.2). `attempts` ≥ 1 is how many have
/// ended.
std::chrono::milliseconds retry_delay(const Backoff& backoff, std::uint32_t attempts, Rng& rng);

/// The values that apply if the task does not set them.
std::uint32_t max_attempts_of(const TaskRules& rules) noexcept;

}  // namespace detent

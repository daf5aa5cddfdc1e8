// The forecast: the number of live tasks that become due in each of several equal spans of time.
//
// The engine computes this value (engine/records/due_histogram.h), and every protocol shows it. It
// contains the width of its bins, because the requested width is rounded up to whole minutes. A
// minute is the finest width that is counted (task/due_bin.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "task/limits.h"

namespace detent {

/// overdue + the sum of counts + later = the number of live tasks. Tasks that are counted by the
/// day are spread evenly over the minutes of their day. If `from` or the end is within such a day,
/// the parts in `overdue` and `later` are estimates, and `coarse` is an estimate too. All other
/// figures are exact.
struct Forecast {
  WallTime from{};                    // the start of a minute
  std::chrono::milliseconds bin{0};   // the width of each bin, in whole minutes
  std::vector<std::uint64_t> counts;  // due in [from + i · bin, from + (i + 1) · bin)
  std::uint64_t overdue = 0;          // due before `from`
  std::uint64_t later = 0;            // due after the last bin
  std::uint64_t coarse = 0;           // tasks in `counts` that are counted only by the day
  /// Only for one queue: tasks that are due at or after this time are in `later`, because counting
  /// them takes too long. Not set if all are counted.
  std::optional<WallTime> counted_to = {};

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

inline constexpr std::chrono::milliseconds kMinForecastSpan = std::chrono::minutes{1};
inline constexpr std::chrono::milliseconds kMaxForecastSpan = kMaxDelay;
inline constexpr std::size_t kMaxForecastBins = 10'000;

/// Errors: invalid_argument with the field "span" if the span is less than a minute or more than
/// 136 years, or with the field "bins" if there are no bins or more than kMaxForecastBins.
Result<void> validate_forecast(std::chrono::milliseconds span, std::size_t bins);

/// The width of each of `bins` bins over `span`: the span divided by the number of bins, rounded up
/// to whole minutes. Requires: validate_forecast(span, bins) succeeds.
std::chrono::minutes forecast_bin_width(std::chrono::milliseconds span, std::size_t bins) noexcept;

}  // namespace detent

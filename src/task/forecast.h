// The forecast: how many live tasks are due in each of a row of equal spans of time ahead.
//
// A value that the engine fills (engine/due_histogram.h) and every protocol shows. It states the
// width of its bins, because the width asked for is rounded up to whole minutes: the finest that
// is counted (task/due_bin.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
  std::chrono::milliseconds bin{0};   // the width of each, in whole minutes
  std::vector<std::uint64_t> counts;  // due in [from + i · bin, from + (i + 1) · bin)
  std::uint64_t overdue = 0;          // due before `from`
  std::uint64_t later = 0;            // due after the last bin
  std::uint64_t coarse = 0;           // of those in `counts`: known by the day only

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

inline constexpr std::chrono::milliseconds kMinForecastSpan = std::chrono::minutes{1};
inline constexpr std::chrono::milliseconds kMaxForecastSpan = kMaxDelay;
inline constexpr std::size_t kMaxForecastBins = 10'000;

/// Refuses a forecast over less than a minute or more than 136 years (field "span"), in no bins or
/// more than kMaxForecastBins ("bins").
Result<void> validate_forecast(std::chrono::milliseconds span, std::size_t bins);

/// The width that `bins` bins over `span` get: their share, rounded up to whole minutes.
/// Requires: validate_forecast(span, bins).
std::chrono::minutes forecast_bin_width(std::chrono::milliseconds span, std::size_t bins) noexcept;

}  // namespace detent

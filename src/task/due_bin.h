// The spans of time (bins) in which the forecast counts tasks by due time.
//
// A task is counted by the minute if it is due within 400 days of its creation, and otherwise by
// the day. The bin follows from the task alone, so the code that removes a task finds the bin to
// which the task was added. The number of bins stays bounded, however far the due times are spread.
// Pure.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "detent/clock.h"

namespace detent {

struct DueBin {
  enum class Width : std::uint8_t { minute, day };
  Width width = Width::minute;
  std::int64_t number = 0;  // minutes or days since 1970, by `width`

  friend auto operator<=>(const DueBin&, const DueBin&) = default;
};

/// A task that is due within this time after its creation is counted by the minute.
inline constexpr std::chrono::hours kMinuteBinReach{24 * 400};

DueBin due_bin_of(WallTime due_at, WallTime created_at) noexcept;
WallTime begin_of(DueBin bin) noexcept;
std::chrono::milliseconds width_of(DueBin bin) noexcept;

}  // namespace detent

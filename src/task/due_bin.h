// Spans of time in which tasks are counted by when they are due, for the forecast.
//
// A task is counted by the minute if it is due within 400 days of its creation, else by the day.
// Which of the two follows from the task alone, so that whoever takes it away finds the bin it was
// added to; and the number of bins stays bounded, however far tasks are spread. Pure.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "detent/clock.h"

namespace detent {

struct DueBin {
  enum class Width : std::uint8_t { minute, day };
  Width width = Width::minute;
  std::int64_t number = 0;  // minutes, or days, since 1970

  friend auto operator<=>(const DueBin&, const DueBin&) = default;
};

inline constexpr std::chrono::hours kMinuteBinReach{24 * 400};

DueBin due_bin_of(WallTime due_at, WallTime created_at) noexcept;
WallTime begin_of(DueBin bin) noexcept;
std::chrono::milliseconds width_of(DueBin bin) noexcept;

}  // namespace detent

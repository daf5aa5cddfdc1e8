// How many tasks of a queue were handed out in the current second, for its rate limit.
//
// A second begins at a multiple of 1000 ticks. The limit is exact in each such second. A span of
// one second that crosses a boundary may have up to twice the rate. Pure; ticks are milliseconds.
// Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>

#include "detent/tick.h"

namespace detent {

class HandOutRate {
 public:
  static constexpr Tick kSecond = 1'000;

  /// How many more tasks can be handed out in this second, if the limit is `rate` tasks per second.
  std::uint64_t left(std::uint32_t rate, Tick now) const noexcept {
    const std::uint64_t used = now / kSecond == second_ ? used_ : 0;
    return rate - std::min<std::uint64_t>(rate, used);
  }
  void note(std::uint64_t count, Tick now) noexcept {
    if (now / kSecond != second_) used_ = 0;
    second_ = now / kSecond;
    used_ += count;
  }
  /// The tick when the next second begins.
  static Tick next(Tick now) noexcept { return (now / kSecond + 1) * kSecond; }

 private:
  Tick second_ = 0;
  std::uint64_t used_ = 0;
};

}  // namespace detent

// The clock of a timer group as pure arithmetic: a line through time whose slope changes.
//
// Group time is base + (parent's time − parent's base) × rate. When the rate changes, both bases
// first move to the present. This step does not round, so rounding errors do not add up: every
// double from 2^-10 to 2^10 is a whole multiple of 2^-62. Group time is kept as whole nanoseconds
// plus a fraction in this unit. `at` rounds down. `parent_time_of` rounds up. Both saturate.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/uint128.h"
#include "detent/timer_group.h"

namespace detent::internal {

/// Thread-compatible. Successive calls must pass values of the parent's time that never go back.
class GroupTime {
 public:
  /// Starts at the parent's time, with the rate 1.
  explicit GroupTime(MonotonicTime parent) noexcept : parent_base_(parent), base_(parent) {}

  double rate() const noexcept { return rate_; }
  bool is_paused() const noexcept { return paused_; }

  /// Group time at the parent's time `parent`.
  MonotonicTime at(MonotonicTime parent) const noexcept { return read(parent).whole; }

  /// The first instant of the parent's time, not before `parent`, at which group time is `time` or
  /// later. Assumes that the rate stays the same. MonotonicTime::max() if group time never reaches
  /// `time`.
  MonotonicTime parent_time_of(MonotonicTime time, MonotonicTime parent) const noexcept {
    if (time <= at(parent)) return parent;
    if (paused_ || time == MonotonicTime::max()) return MonotonicTime::max();
    const Wide missing = (Wide{distance(base_, time)} << kFractionBits) - fraction_;
    const Wide rate = (Wide{rate_whole_} << kFractionBits) + rate_fraction_;
    return later_by(parent_base_, (missing + rate - 1) / rate);
  }

  void pause(MonotonicTime parent) noexcept {
    rebase(parent);
    paused_ = true;
  }
  void resume(MonotonicTime parent) noexcept {
    rebase(parent);
    paused_ = false;
  }
  /// Requires: TimerGroup::kMinRate <= rate <= TimerGroup::kMaxRate.
  void set_rate(MonotonicTime parent, double rate) noexcept {
    DETENT_CHECK(rate >= TimerGroup::kMinRate && rate <= TimerGroup::kMaxRate);
    rebase(parent);
    rate_ = rate;
    rate_whole_ = static_cast<std::uint64_t>(rate);
    rate_fraction_ = static_cast<std::uint64_t>(
        std::ldexp(rate - static_cast<double>(rate_whole_), kFractionBits));
  }

 private:
  // Holds 2^64 ns × (2^10 + 1). Also holds 2^64 ns × a fraction of 62 bits, plus another fraction.
  using Wide = Uint128;
  static constexpr int kFractionBits = 62;

  struct Reading {
    MonotonicTime whole;
    std::uint64_t fraction = 0;  // of a nanosecond, in units of 2^-62
  };

  /// The result is unsigned, so the distance between any two instants fits. Zero if `to` is before
  /// `from`.
  static std::uint64_t distance(MonotonicTime from, MonotonicTime to) noexcept {
    if (to <= from) return 0;
    return static_cast<std::uint64_t>(to.time_since_epoch().count()) -
           static_cast<std::uint64_t>(from.time_since_epoch().count());
  }

  static MonotonicTime later_by(MonotonicTime from, Wide wait_ns) noexcept {
    if (wait_ns > distance(from, MonotonicTime::max())) return MonotonicTime::max();
    const std::uint64_t sum = static_cast<std::uint64_t>(from.time_since_epoch().count()) +
                              static_cast<std::uint64_t>(wait_ns);
    return MonotonicTime{std::chrono::nanoseconds{static_cast<std::int64_t>(sum)}};
  }

  Reading read(MonotonicTime parent) const noexcept {
    if (paused_) return {.whole = base_, .fraction = fraction_};
    const std::uint64_t elapsed = distance(parent_base_, parent);
    const Wide parts = Wide{elapsed} * rate_fraction_ + fraction_;
    const Wide whole = Wide{elapsed} * rate_whole_ + (parts >> kFractionBits);
    return {
        .whole = later_by(base_, whole),
        .fraction = static_cast<std::uint64_t>(parts) & ((std::uint64_t{1} << kFractionBits) - 1)};
  }

  void rebase(MonotonicTime parent) noexcept {
    const Reading now = read(parent);
    parent_base_ = parent;
    base_ = now.whole;
    fraction_ = now.fraction;
  }

  MonotonicTime parent_base_;
  MonotonicTime base_;
  std::uint64_t fraction_ = 0;
  double rate_ = 1;
  std::uint64_t rate_whole_ = 1;
  std::uint64_t rate_fraction_ = 0;
  bool paused_ = false;
};

}  // namespace detent::internal

// The state of one periodic timer, and the due time of its next run: pure arithmetic on instants.
//
// Each tick is computed from the previous tick, never from the clock, so errors do not add up. Each
// tick has a due time: the tick itself, or up to a part of a period later (jitter). The jitter
// depends only on the seed and the tick. So the due time of any tick can be computed directly,
// without the ticks before it. A tick has passed when its due time has passed. The owner reports
// the start and the end of each run:
//
//     PeriodicTicks ticks({.period = 30s}, now, wall, seed);
//     ...wait until ticks.due_at()...
//     ticks.begin(now); job(); const bool more = ticks.end(now_then);
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "detent/clock.h"
#include "detent/periodic.h"

namespace detent::internal {

/// The text of the requirement that `options` breaks; null if they are valid.
const char* problem_of(const PeriodicOptions& options) noexcept;

/// The position in the period of the ticks of `key`: in [0, period), the same in every process and
/// every version of this library. Different keys are spread evenly. Requires: period > 0. Computed
/// as FNV-1a with 64 bits (Fowler, Noll, Vo) over the bytes, and one step of SplitMix64, because
/// the high bits of FNV are weak for short keys.
std::chrono::nanoseconds phase_of(std::string_view key, std::chrono::nanoseconds period) noexcept;

/// The ticks of one periodic timer. Every function is O(1), even after a jump over a million
/// periods. Times saturate at MonotonicTime::max(), and such a tick never runs. Thread-compatible.
class PeriodicTicks {
 public:
  /// The first tick is one period after `now`, or strictly after `wall` at the place that `created`
  /// or `phase_key` gives. Read `now` and `wall` together. The same seed gives the same jitter.
  /// Requires: problem_of(options) is null.
  PeriodicTicks(PeriodicOptions options, MonotonicTime now, WallInstant wall, std::uint64_t seed);

  /// The due time of the next run. During a run: the due time of this run.
  MonotonicTime due_at() const noexcept { return due_; }

  /// Begins the due run, and decides which tick the run stands for. If the run was delayed after
  /// this call, the owner may call it again with a later time. Requires: now >= due_at().
  void begin(MonotonicTime now) noexcept;

  /// Ends the run at `now`. Returns false if it was the last run. Otherwise due_at() is the due
  /// time of the next run.
  bool end(MonotonicTime now) noexcept;

  /// Makes the next run due at `due`, without jitter. Later ticks are counted from `due`. Requires:
  /// no run is between begin() and end().
  void move(MonotonicTime due) noexcept;

  /// The options, with the number of remaining runs as `count`. A run between begin() and end() is
  /// included. The phase options are as the caller gave them, even after a move. Requires: end()
  /// has not returned false.
  const PeriodicOptions& left() const noexcept { return options_; }

 private:
  MonotonicTime due_of(MonotonicTime tick) const noexcept;
  MonotonicTime tick_after(MonotonicTime tick) const noexcept;
  MonotonicTime last_passed(MonotonicTime tick, MonotonicTime now) const noexcept;
  MonotonicTime next_not_passed(MonotonicTime tick, MonotonicTime now) const noexcept;
  std::chrono::nanoseconds catch_up() const noexcept;

  PeriodicOptions options_;  // `count`: the remaining runs; 0: no limit
  std::uint64_t seed_;
  MonotonicTime tick_;   // of the next run; during a run, the tick that the run stands for
  MonotonicTime due_;    // of the same run; >= tick_ until the run begins
  MonotonicTime began_;  // when the last run began; used only by `spread`
};

}  // namespace detent::internal

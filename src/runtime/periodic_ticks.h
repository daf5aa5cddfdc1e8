// What one periodic timer remembers, and when its next run is due: pure arithmetic on instants.
//
// Ticks are instants that are counted from each other, never from the clock, so nothing adds up.
// Each tick has its due time: the tick itself, or up to a part of a period later (jitter), drawn
// from the seed and the tick alone. So the due times of any two ticks can be told without having
// gone through those between, and a tick has passed once its due time has. The owner says when a
// run begins and when it is over:
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

/// The requirement of PeriodicOptions that `options` breaks; null if they are valid.
const char* problem_of(const PeriodicOptions& options) noexcept;

/// Where in a period the ticks of `key` are: in [0, period), the same in every process and every
/// version of this library, evenly spread over different keys. Requires: period > 0.
/// FNV-1a, 64 bits (Fowler, Noll, Vo) over the bytes, finished by a step of SplitMix64 because the
/// high bits of FNV are weak for short keys.
std::chrono::nanoseconds phase_of(std::string_view key, std::chrono::nanoseconds period) noexcept;

/// The ticks of one periodic timer. Everything is O(1), also after a jump over a million periods.
/// Times saturate at MonotonicTime::max(), and such a tick never runs.
/// Thread-compatible.
class PeriodicTicks {
 public:
  /// The first tick is a period from `now`, or where `created` or `phase_key` puts it, strictly
  /// after `wall`. `now` and `wall` are read together. The same seed draws the same jitter.
  /// Requires: problem_of(options) is null.
  PeriodicTicks(PeriodicOptions options, MonotonicTime now, WallInstant wall, std::uint64_t seed);

  /// When the next run is due or was due. During a run: when this run was due.
  MonotonicTime due_at() const noexcept { return due_; }

  /// The run that is due begins: settles which tick it stands for. May be said again with a later
  /// time for a run that was put off after all. Requires: now >= due_at().
  void begin(MonotonicTime now) noexcept;

  /// The run that began is over at `now`. Returns: false when it was the last; otherwise due_at()
  /// is the next run's.
  bool end(MonotonicTime now) noexcept;

  /// Makes the run to come due at `due`, without jitter; the ticks after it are counted from there.
  /// Requires: no run is between begin() and end().
  void move(MonotonicTime due) noexcept;

  /// The options with the runs left as their count, one that has begun and is not over included.
  /// The phase in them is as it was asked for, also after it was moved. Requires: end() has not
  /// returned false.
  const PeriodicOptions& left() const noexcept { return options_; }

 private:
  MonotonicTime due_of(MonotonicTime tick) const noexcept;
  MonotonicTime tick_after(MonotonicTime tick) const noexcept;
  MonotonicTime last_passed(MonotonicTime tick, MonotonicTime now) const noexcept;
  MonotonicTime next_not_passed(MonotonicTime tick, MonotonicTime now) const noexcept;
  std::chrono::nanoseconds catch_up() const noexcept;

  PeriodicOptions options_;  // `count`: the runs left; 0: no limit
  std::uint64_t seed_;
  MonotonicTime tick_;   // of the run to come; during a run, the tick it stands for
  MonotonicTime due_;    // of the same run; >= tick_ until the run begins
  MonotonicTime began_;  // when the last run did; only `spread` asks
};

}  // namespace detent::internal

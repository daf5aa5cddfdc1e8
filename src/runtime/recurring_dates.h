// What one recurring timer remembers, and when its next run is due: arithmetic on dates, no clock.
//
// A rule's date plus the timer's offset (jitter) is when an occurrence is due; everything below is
// about these due dates. The owner says when a run could begin and when it is over, and gets the
// next date to wait for:
//
//     RecurringDates dates(rule, options, seed);
//     for (auto due = dates.first(wall); due; due = dates.end(wall_then)) {
//       ...wait until *due by the wall clock...
//       if (dates.begin(wall_now)) job(dates.occurrence());
//     }
//
// One number says what is over: `done_until_`. No occurrence at or before it runs any more, so a
// clock that is stepped back repeats nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "detent/clock.h"
#include "detent/recurring.h"

namespace detent::internal {

/// The requirement of RecurringOptions that `options` breaks; null if they are valid.
const char* problem_of(const RecurringOptions& options) noexcept;

/// The occurrences of one timer. Calls the rule, except where it says otherwise.
/// Thread-compatible.
class RecurringDates {
 public:
  /// The same seed draws the same offset. Requires: problem_of(options) is null.
  RecurringDates(RecurringRule rule, RecurringOptions options, std::uint64_t seed);

  /// Returns: when the first occurrence after `now` is due, if there is one. Call it once.
  std::optional<WallTime> first(WallTime now);

  /// Decides whether the job runs now, and for which occurrence. False if the occurrence is too
  /// late to run, or if was_clock_wrong().
  bool begin(WallTime now);

  /// Call this after `begin`, and after the run if there was one. Returns when the next occurrence
  /// is due, perhaps before `now`; empty if there is no further occurrence.
  std::optional<WallTime> end(WallTime now);

  /// These do not call the rule. The occurrence of the run to come, or that runs; without offset.
  WallTime occurrence() const noexcept { return due_ - offset_; }
  /// The next run was moved to another time: `begin` then always returns true.
  void move() noexcept { moved_ = true; }
  /// Whether at `now` the wall clock shows so much less than it did that it must have been wrong:
  /// then the timer needs to be looked at, to go on from `now`.
  bool was_clock_wrong(WallTime now) const noexcept;
  /// The options with the runs left as their count, one that has begun and is not over included.
  const RecurringOptions& left() const noexcept { return options_; }

 private:
  std::optional<WallTime> due_after(WallTime time);
  WallTime last_due(WallTime first, WallTime until);
  bool choose_missed(WallTime now);
  WallTime first_of_last(std::uint32_t count, WallTime now);

  RecurringRule rule_;
  RecurringOptions options_;  // `count`: the runs left; 0: no limit
  std::chrono::milliseconds offset_{};
  WallTime due_{};           // of the run to come, or that runs
  WallTime done_until_{};    // what is due until then has had its run, or has none
  WallTime chosen_until_{};  // which of the missed ones run is settled until then
  bool runs_ = false;        // between begin() and end(): whether begin() said so
  bool moved_ = false;
};

}  // namespace detent::internal

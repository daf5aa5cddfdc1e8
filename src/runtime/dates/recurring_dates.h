// The state of one recurring timer, and the due date of its next run: arithmetic on dates, without
// a clock.
//
// An occurrence is due at the date of the rule plus the offset of the timer (jitter). All dates
// below are such due dates. The owner reports when a run could begin and when it has ended, and
// gets the next date to wait for:
//
//     RecurringDates dates(rule, options, seed);
//     for (auto due = dates.first(wall); due; due = dates.end(wall_then)) {
//       ...wait until *due by the wall clock...
//       if (dates.begin(wall_now)) job(dates.occurrence());
//     }
//
// `done_until_` separates handled from future occurrences. No occurrence at or before it runs any
// more, so a clock that is stepped back repeats nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "detent/clock.h"
#include "detent/recurring.h"

namespace detent::internal {

/// The text of the requirement that `options` breaks; null if they are valid.
const char* problem_of(const RecurringOptions& options) noexcept;

/// The occurrences of one timer. All functions may call the rule, except where a comment says that
/// they do not. Thread-compatible.
class RecurringDates {
 public:
  /// The same seed gives the same offset. Requires: problem_of(options) is null.
  RecurringDates(RecurringRule rule, RecurringOptions options, std::uint64_t seed);

  /// Returns the due date of the first occurrence after `now`; empty if there is none. Call it
  /// once.
  std::optional<WallTime> first(WallTime now);

  /// Decides whether the job runs at `now`, and for which occurrence. False if the occurrence is
  /// too late to run, or if was_clock_wrong().
  bool begin(WallTime now);

  /// Call this after `begin`, and after the run if there was one. Returns the due date of the next
  /// occurrence, which may be before `now`; empty if there is no further occurrence.
  std::optional<WallTime> end(WallTime now);

  /// This function and the following ones do not call the rule. The occurrence of the next or the
  /// current run, without the offset.
  WallTime occurrence() const noexcept { return due_ - offset_; }
  /// Call this when the next run was moved to another time: `begin` then always returns true.
  void move() noexcept { moved_ = true; }
  /// Whether the wall clock at `now` is so far back that its earlier time must have been wrong. The
  /// owner must then call `begin` and `end`, so that the timer continues from `now`.
  bool was_clock_wrong(WallTime now) const noexcept;
  /// The options, with the number of remaining runs as `count`. A run between begin() and end() is
  /// included.
  const RecurringOptions& left() const noexcept { return options_; }

 private:
  std::optional<WallTime> due_after(WallTime time);
  WallTime last_due(WallTime first, WallTime until);
  bool choose_missed(WallTime now);
  WallTime first_of_last(std::uint32_t count, WallTime now);

  RecurringRule rule_;
  RecurringOptions options_;  // `count`: the remaining runs; 0: no limit
  std::chrono::milliseconds offset_{};
  WallTime due_{};           // of the next or the current run
  WallTime done_until_{};    // all occurrences until then have run, or will not run
  WallTime chosen_until_{};  // until then, it is decided which missed occurrences run
  bool runs_ = false;        // between begin() and end(): the result of begin()
  bool moved_ = false;
};

}  // namespace detent::internal

#include "runtime/dates/recurring_dates.h"

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "runtime/dates/periodic_ticks.h"

namespace detent::internal {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInstant{1};  // dates are multiples of this

// If the clock goes back further than this, its earlier time was wrong. The value is larger than
// the difference between any two time zones: if somebody sets the zone by moving the clock, no
// occurrence runs twice. (Vixie's cron uses three hours.)
constexpr milliseconds kWrongClock = std::chrono::hours{26};

constexpr milliseconds kGraceOfSkip = std::chrono::minutes{1};

milliseconds offset_of(const RecurringOptions& options, std::uint64_t seed) {
  if (options.jitter == milliseconds::zero()) return milliseconds::zero();
  const auto jitter = saturate_to_nanoseconds(options.jitter);
  if (!options.jitter_key.empty()) {
    return std::chrono::floor<milliseconds>(phase_of(options.jitter_key, jitter));
  }
  const double drawn = Rng(seed).unit() * static_cast<double>(jitter.count());
  return std::chrono::floor<milliseconds>(
      std::chrono::nanoseconds{static_cast<std::chrono::nanoseconds::rep>(drawn)});
}

/// `time` - `span`, or the earliest possible time.
WallTime before(WallTime time, milliseconds span) noexcept {
  const bool fits = time.time_since_epoch() >= milliseconds::min() + span;
  return fits ? time - span : WallTime::min();
}

}  // namespace

const char* problem_of(const RecurringOptions& options) noexcept {
  if (options.most_missed == 0) return "options.most_missed >= 1";
  if (options.grace && *options.grace < milliseconds::zero()) return "options.grace >= 0";
  if (options.jitter < milliseconds::zero()) return "options.jitter >= 0";
  return nullptr;
}

RecurringDates::RecurringDates(RecurringRule rule, RecurringOptions options, std::uint64_t seed)
    : rule_(std::move(rule)), options_(std::move(options)) {
  if (const char* const problem = problem_of(options_)) check_failed(problem, __FILE__, __LINE__);
  offset_ = offset_of(options_, seed);
}

std::optional<WallTime> RecurringDates::first(WallTime now) {
  done_until_ = now;
  chosen_until_ = now;
  const std::optional<WallTime> next = due_after(now);
  if (next) due_ = *next;
  return next;
}

bool RecurringDates::begin(WallTime now) {
  runs_ = false;
  if (std::exchange(moved_, false)) {
    done_until_ = std::max(due_, now);
    return runs_ = true;
  }
  if (due_ > now) return false;  // the clock was wrong
  if (due_ > chosen_until_) {
    chosen_until_ = now;
    if (!choose_missed(now)) {
      done_until_ = now;
      return false;
    }
  }
  done_until_ = options_.missed == MissedOccurrence::all ? due_ : now;
  return runs_ = true;
}

std::optional<WallTime> RecurringDates::end(WallTime now) {
  if (runs_ && options_.count == 1) return std::nullopt;
  if (runs_ && options_.count > 1) --options_.count;
  if (was_clock_wrong(now)) done_until_ = chosen_until_ = now;
  std::optional<WallTime> next = due_after(done_until_);
  // An occurrence at the exact end of the run does not overlap with the run.
  const bool overlaps = runs_ && next && *next > chosen_until_ && *next < now;
  if (overlaps && options_.overlap == Overlap::skip) {
    done_until_ = now - kInstant;
    next = due_after(done_until_);
  }
  runs_ = false;
  if (next) due_ = *next;
  return next;
}

bool RecurringDates::was_clock_wrong(WallTime now) const noexcept {
  return !moved_ && before(done_until_, kWrongClock) > now;
}

/// The first due date after `time` that the options `start` and `end` allow.
std::optional<WallTime> RecurringDates::due_after(WallTime time) {
  WallTime from = before(time, offset_);
  if (options_.start && *options_.start > from) from = *options_.start - kInstant;
  const std::optional<WallTime> next = rule_.next_after(from);
  if (!next) return std::nullopt;
  const bool rule_goes_forward = *next > from;
  DETENT_CHECK(rule_goes_forward);
  if (options_.end && *next > *options_.end) return std::nullopt;
  if (*next > WallTime::max() - offset_) return std::nullopt;
  return *next + offset_;
}

/// The last due date that is not after `until`. The rule only looks forward, so this is a binary
/// search between a known due date and `until`. Requires: `first` is a due date, and first <=
/// until.
WallTime RecurringDates::last_due(WallTime first, WallTime until) {
  while (first < until) {
    const WallTime middle = first + (until - first) / 2;
    const std::optional<WallTime> next = due_after(middle);
    if (next && *next <= until) {
      first = *next;
    } else {
      until = middle;
    }
  }
  return first;
}

/// Sets due_ to the first occurrence until `now` that must run. Returns false if none must run.
bool RecurringDates::choose_missed(WallTime now) {
  const bool skip = options_.missed == MissedOccurrence::skip;
  const WallTime oldest = options_.grace ? before(now, *options_.grace)
                          : skip         ? before(now, kGraceOfSkip)
                                         : WallTime::min();
  if (options_.missed != MissedOccurrence::all) {
    due_ = last_due(due_, now);
    return due_ >= oldest;
  }
  if (due_ < oldest) {
    const std::optional<WallTime> next = due_after(oldest - kInstant);
    if (!next || *next > now) return false;
    due_ = *next;
  }
  due_ = first_of_last(options_.most_missed, now);
  return true;
}

/// The `count`-th last due date until `now`; due_ if there are fewer due dates from due_ on.
WallTime RecurringDates::first_of_last(std::uint32_t count, WallTime now) {
  std::optional<WallTime> one = due_;
  for (std::uint32_t seen = 0; one && *one <= now; ++seen) {
    if (seen == count) {
      WallTime chosen = last_due(*one, now);
      for (std::uint32_t i = 1; i < count; ++i) chosen = last_due(due_, chosen - kInstant);
      return chosen;
    }
    one = due_after(*one);
  }
  return due_;
}

}  // namespace detent::internal

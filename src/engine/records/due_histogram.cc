#include "engine/records/due_histogram.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/wall_time.h"
#include "detent/check.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr WallTime kLastInstant = kWallTimeEnd - milliseconds{1};

WallTime within_range(WallTime at) noexcept { return std::clamp(at, WallTime{}, kLastInstant); }

bool is_possible(const DueCount& sum) noexcept {
  const std::int64_t end = (kLastInstant.time_since_epoch() / width_of(sum.bin)) + 1;
  return sum.bin.number >= 0 && sum.bin.number < end && sum.count >= 1 &&
         sum.count <= static_cast<std::int64_t>(TaskId::kEnd);
}

/// A forecast while it is filled. It divides all time into parts: overdue, the bins, and later.
/// Minutes are counted since 1970.
class Filling {
 public:
  Filling(minutes from, minutes width, std::size_t bins)
      : from_(from.count()),
        width_(width.count()),
        end_(from_ + width_ * static_cast<std::int64_t>(bins)) {
    forecast_.from = WallTime{from};
    forecast_.bin = width;
    forecast_.counts.resize(bins);
  }

  void add_minute(std::int64_t minute, std::uint64_t count) noexcept { part_of(minute) += count; }

  /// Spreads the tasks of a day evenly over its minutes. Each part gets the difference of two
  /// rounded prefix sums, so no task is lost or counted twice. If the day has a single task, the
  /// task counts in the middle of the day.
  void add_day(std::int64_t day, std::uint64_t count) noexcept {
    std::uint64_t given = 0;
    for (std::int64_t minute = 0; minute < kDayMinutes;) {
      const std::int64_t begin = day * kDayMinutes + minute;
      minute = std::min(end_of_part(begin) - day * kDayMinutes, kDayMinutes);
      // The sum is at most 2^53 · 1440 + 720, which is less than 2^64.
      const std::uint64_t given_then =
          (count * static_cast<std::uint64_t>(minute) + kDayMinutes / 2) / kDayMinutes;
      part_of(begin) += given_then - given;
      if (is_in_bins(begin)) forecast_.coarse += given_then - given;
      given = given_then;
    }
  }

  Forecast take() && { return std::move(forecast_); }

 private:
  static constexpr std::int64_t kDayMinutes = 1'440;

  bool is_in_bins(std::int64_t minute) const noexcept { return minute >= from_ && minute < end_; }

  std::uint64_t& part_of(std::int64_t minute) noexcept {
    if (minute < from_) return forecast_.overdue;
    if (minute >= end_) return forecast_.later;
    return forecast_.counts[static_cast<std::size_t>((minute - from_) / width_)];
  }

  /// The first minute of the part after the part of `minute`.
  std::int64_t end_of_part(std::int64_t minute) const noexcept {
    if (minute < from_) return from_;
    if (minute >= end_) return std::numeric_limits<std::int64_t>::max();
    return minute + width_ - (minute - from_) % width_;
  }

  std::int64_t from_;
  std::int64_t width_;
  std::int64_t end_;
  Forecast forecast_;
};

}  // namespace

std::int64_t DueHistogram::key_of(DueBin bin) noexcept {
  return bin.number / kGroupBins * 2 + (bin.width == DueBin::Width::day ? 1 : 0);
}

DueHistogram::Group& DueHistogram::group_of(DueBin bin) {
  const auto [it, is_new] = groups_.try_emplace(key_of(bin));
  if (is_new) {
    it->second.first = {.width = bin.width, .number = bin.number - bin.number % kGroupBins};
  }
  return it->second;
}

void DueHistogram::mark(Group& group) {
  if (group.is_changed) return;
  changed_.push_back({.group = &group, .before = group.counts});
  group.is_changed = true;
}

void DueHistogram::add(WallTime due_at, WallTime created_at, std::int64_t change) {
  const DueBin bin = due_bin_of(within_range(due_at), within_range(created_at));
  const bool is_in_last = last_ != nullptr && last_->first.width == bin.width &&
                          bin.number - last_->first.number >= 0 &&
                          bin.number - last_->first.number < kGroupBins;
  if (!is_in_last) {
    last_ = &group_of(bin);
    mark(*last_);
  }
  DETENT_CHECK(last_->is_changed);  // otherwise the next commit would not write this change
  last_->counts[static_cast<std::size_t>(bin.number - last_->first.number)] += change;
}

std::vector<DueCount> DueHistogram::take_changes() {
  std::vector<DueCount> changes;
  for (const Changed& changed : changed_) {
    Group& group = *changed.group;
    for (std::size_t i = 0; i < kGroupBins; ++i) {
      if (group.counts[i] == changed.before[i]) continue;
      const std::int64_t number = group.first.number + static_cast<std::int64_t>(i);
      changes.push_back({.bin = {.width = group.first.width, .number = number},
                         .count = group.counts[i] - changed.before[i]});
    }
    group.is_changed = false;
    if (group.counts == Counters{}) groups_.erase(key_of(group.first));
  }
  changed_.clear();
  last_ = nullptr;
  std::sort(changes.begin(), changes.end(),
            [](const DueCount& a, const DueCount& b) { return a.bin < b.bin; });
  return changes;
}

std::size_t DueHistogram::restore(std::span<const DueCount> sums) {
  groups_.clear();
  changed_.clear();
  last_ = nullptr;
  std::size_t left_out = 0;
  for (const DueCount& sum : sums) {
    if (!is_possible(sum)) {
      ++left_out;
      continue;
    }
    Group& group = group_of(sum.bin);
    group.counts[static_cast<std::size_t>(sum.bin.number - group.first.number)] = sum.count;
  }
  return left_out;
}

Forecast DueHistogram::forecast(WallTime from, milliseconds span, std::size_t bins) const {
  DETENT_CHECK(validate_forecast(span, bins).has_value());
  const minutes width = forecast_bin_width(span, bins);
  const auto enough = static_cast<std::size_t>((span + width - milliseconds{1}) / width);
  Filling filling{std::chrono::floor<minutes>(within_range(from).time_since_epoch()), width,
                  enough};
  for (const auto& [key, group] : groups_) {
    for (std::size_t i = 0; i < kGroupBins; ++i) {
      if (group.counts[i] <= 0) continue;  // below 0: see add()
      const std::int64_t number = group.first.number + static_cast<std::int64_t>(i);
      const auto count = static_cast<std::uint64_t>(group.counts[i]);
      if (group.first.width == DueBin::Width::minute) {
        filling.add_minute(number, count);
      } else {
        filling.add_day(number, count);
      }
    }
  }
  return std::move(filling).take();
}

void DueHistogram::check_invariants() const {
  std::size_t marked = 0;
  for (const auto& [key, group] : groups_) {
    DETENT_CHECK(group.first.number % kGroupBins == 0);
    DETENT_CHECK(key_of(group.first) == key);
    DETENT_CHECK(group.is_changed || group.counts != Counters{});
    marked += group.is_changed ? 1 : 0;
  }
  DETENT_CHECK(changed_.size() == marked);
  std::unordered_set<const Group*> named;
  for (const Changed& changed : changed_) {
    DETENT_CHECK(changed.group->is_changed);
    DETENT_CHECK(named.insert(changed.group).second);
  }
  DETENT_CHECK(last_ == nullptr || last_->is_changed);
}

}  // namespace detent

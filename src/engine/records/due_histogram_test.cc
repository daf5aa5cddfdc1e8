// Counts and forecasts of DueHistogram. Edge cases are tested by example. Random runs are compared
// with a plain list of tasks, which is scanned for each answer.
#include "engine/records/due_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/wall_time.h"

namespace detent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr hours kDay{24};
/// The start of a day, an hour and a minute: 2026-01-01.
constexpr WallTime kNow{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
/// A task that was created then and is due at kNow or later is counted by the day.
constexpr WallTime kLongAgo = kNow - kMinuteBinReach;

constexpr DueBin minute_bin(std::int64_t number) {
  return {.width = DueBin::Width::minute, .number = number};
}
constexpr DueBin day_bin(std::int64_t number) {
  return {.width = DueBin::Width::day, .number = number};
}
std::int64_t minute_of(WallTime at) {
  return std::chrono::floor<minutes>(at.time_since_epoch()).count();
}
std::int64_t day_of(WallTime at) { return minute_of(at) / 1'440; }

std::uint64_t counted(const Forecast& forecast) {
  return std::accumulate(forecast.counts.begin(), forecast.counts.end(), std::uint64_t{0});
}
std::uint64_t total(const Forecast& forecast) {
  return forecast.overdue + counted(forecast) + forecast.later;
}

using Counts = std::vector<std::uint64_t>;

TEST(DueHistogram, ChangesAreNetByBinAndTakenOnce) {
  DueHistogram histogram;
  histogram.add(kNow + kDay * 500, kNow, 2);  // a day bin: sorted after all minutes
  histogram.add(kNow + hours{2}, kNow, 3);
  histogram.add(kNow, kNow, 1);
  histogram.add(kNow + minutes{1}, kNow, 1);
  histogram.add(kNow + minutes{1}, kNow, -1);
  histogram.add(kNow + seconds{59}, kNow, 1);
  const std::vector<DueCount> expected{{minute_bin(minute_of(kNow)), 2},
                                       {minute_bin(minute_of(kNow) + 120), 3},
                                       {day_bin(day_of(kNow) + 500), 2}};
  EXPECT_EQ(histogram.take_changes(), expected);
  EXPECT_TRUE(histogram.take_changes().empty());
  histogram.add(kNow, kNow, -2);
  const std::vector<DueCount> gone{{minute_bin(minute_of(kNow)), -2}};
  EXPECT_EQ(histogram.take_changes(), gone);
}

TEST(DueHistogram, MinutesAndDaysOfTheSameNumberAreDifferentBins) {
  DueHistogram histogram;
  histogram.add(WallTime{minutes{500}}, WallTime{}, 1);
  histogram.add(WallTime{kDay * 500}, WallTime{}, 1);
  const std::vector<DueCount> expected{{minute_bin(500), 1}, {day_bin(500), 1}};
  EXPECT_EQ(histogram.take_changes(), expected);
}

TEST(DueHistogram, RestoreReplacesAllCountsAndIsNoChange) {
  DueHistogram histogram;
  histogram.add(kNow + hours{1}, kNow, 7);
  const std::vector<DueCount> sums{{minute_bin(minute_of(kNow)), 4}, {day_bin(day_of(kNow)), 5}};
  EXPECT_EQ(histogram.restore(sums), 0u);
  EXPECT_TRUE(histogram.take_changes().empty());
  const Forecast forecast = histogram.forecast(kNow, kDay, 1);
  EXPECT_EQ(forecast.counts, Counts{9});
  EXPECT_EQ(forecast.coarse, 5u);
  EXPECT_EQ(total(forecast), 9u);
  histogram.check_invariants();
}

TEST(DueHistogram, RestoreLeavesOutImpossibleSums) {
  const std::int64_t minute_end = minute_of(kWallTimeEnd);
  const std::int64_t day_end = day_of(kWallTimeEnd);
  const auto most = static_cast<std::int64_t>(TaskId::kEnd);
  const std::vector<DueCount> damaged{{minute_bin(-1), 1},
                                      {day_bin(-1), 1},
                                      {minute_bin(minute_end), 1},
                                      {day_bin(day_end), 1},
                                      {minute_bin(5), 0},
                                      {minute_bin(6), -3},
                                      {minute_bin(7), most + 1},
                                      {minute_bin(INT64_MAX), 1},
                                      {day_bin(INT64_MAX), INT64_MAX},
                                      {minute_bin(INT64_MIN), 1},
                                      {day_bin(INT64_MIN), INT64_MIN}};
  const std::vector<DueCount> sound{{minute_bin(0), 1},
                                    {day_bin(0), 1},
                                    {minute_bin(minute_end - 1), 1},
                                    {day_bin(day_end - 1), most}};
  DueHistogram histogram;
  EXPECT_EQ(histogram.restore(damaged), damaged.size());
  EXPECT_EQ(histogram.group_count(), 0u);
  EXPECT_EQ(histogram.restore(sound), 0u);
  EXPECT_EQ(total(histogram.forecast(kNow, minutes{1}, 1)), 3u + TaskId::kEnd);
}

TEST(DueHistogram, ABinBelowZeroCountsAsEmpty) {
  DueHistogram histogram;
  histogram.add(kNow, kNow, -1);
  histogram.add(kNow + minutes{1}, kNow, 2);
  const Forecast forecast = histogram.forecast(kNow, minutes{2}, 2);
  EXPECT_EQ(forecast.counts, (Counts{0, 2}));
  EXPECT_EQ(total(forecast), 2u);
}

TEST(DueHistogram, TimesAreClampedTo1970To9999) {
  DueHistogram histogram;
  histogram.add(WallTime::min(), WallTime::min(), 1);
  histogram.add(WallTime::max(), WallTime::max(), 1);
  histogram.add(WallTime::max(), WallTime::min(), 1);
  histogram.add(WallTime::min(), WallTime::max(), 1);
  const std::vector<DueCount> expected{{minute_bin(0), 2},
                                       {minute_bin(minute_of(kWallTimeEnd) - 1), 1},
                                       {day_bin(day_of(kWallTimeEnd) - 1), 1}};
  EXPECT_EQ(histogram.take_changes(), expected);
  const Forecast early = histogram.forecast(WallTime::min(), minutes{1}, 1);
  EXPECT_EQ(early.from, WallTime{});
  EXPECT_EQ(early.counts, Counts{2});
  EXPECT_EQ(early.later, 2u);
  const Forecast late = histogram.forecast(WallTime::max(), kMaxForecastSpan, 1);
  EXPECT_EQ(late.from, kWallTimeEnd - minutes{1});
  EXPECT_EQ(late.overdue, 3u);  // the day's one too: its middle is before the last minute
  EXPECT_EQ(late.counts, Counts{1});
}

TEST(DueHistogram, AnEmptyHourTakesNoMemoryOnceItsChangesAreTaken) {
  DueHistogram histogram;
  for (int hour = 0; hour < 1'000; ++hour) histogram.add(kNow + hours{hour}, kNow, 1);
  histogram.add(kNow + kDay * 1'000, kNow, 1);
  histogram.take_changes();
  EXPECT_EQ(histogram.group_count(), 1'001u);
  for (int hour = 1; hour < 1'000; ++hour) histogram.add(kNow + hours{hour}, kNow, -1);
  histogram.add(kNow + kDay * 1'000, kNow, -1);
  histogram.check_invariants();
  EXPECT_EQ(histogram.take_changes().size(), 1'000u);
  EXPECT_EQ(histogram.group_count(), 1u);
  histogram.check_invariants();
}

TEST(DueHistogram, AForecastStartsAtAWholeMinuteAndHasExactEdges) {
  DueHistogram histogram;
  histogram.add(kNow - milliseconds{1}, kNow, 1);
  histogram.add(kNow, kNow, 2);
  histogram.add(kNow + milliseconds{59'999}, kNow, 4);
  histogram.add(kNow + minutes{1}, kNow, 8);
  histogram.add(kNow + minutes{2} - milliseconds{1}, kNow, 16);
  histogram.add(kNow + minutes{2}, kNow, 32);
  const Forecast forecast = histogram.forecast(kNow + seconds{59}, minutes{2}, 2);
  const Forecast expected{
      .from = kNow, .bin = minutes{1}, .counts = {6, 24}, .overdue = 1, .later = 32, .coarse = 0};
  EXPECT_EQ(forecast, expected);
}

TEST(DueHistogram, BinsAreWidenedToWholeMinutesAndCoverTheSpan) {
  const DueHistogram histogram;
  const auto shape = [&](milliseconds span, std::size_t bins) {
    const Forecast forecast = histogram.forecast(kNow, span, bins);
    return std::pair{forecast.bin, forecast.counts.size()};
  };
  EXPECT_EQ(shape(minutes{1}, 10'000), std::pair(milliseconds{minutes{1}}, std::size_t{1}));
  EXPECT_EQ(shape(minutes{100}, 30), std::pair(milliseconds{minutes{4}}, std::size_t{25}));
  EXPECT_EQ(shape(minutes{10}, 4), std::pair(milliseconds{minutes{3}}, std::size_t{4}));
  EXPECT_EQ(shape(seconds{61}, 2), std::pair(milliseconds{minutes{1}}, std::size_t{2}));
  EXPECT_EQ(shape(seconds{61}, 1), std::pair(milliseconds{minutes{2}}, std::size_t{1}));
  EXPECT_EQ(shape(kDay * 30, 30), std::pair(milliseconds{kDay}, std::size_t{30}));
}

TEST(DueHistogram, ADayIsSpreadEvenlyOverItsMinutes) {
  DueHistogram histogram;
  histogram.add(kNow + hours{5}, kLongAgo, 2'400);  // the hour is not remembered
  const Forecast forecast = histogram.forecast(kNow, kDay, 24);
  EXPECT_EQ(forecast.counts, Counts(24, 100));
  EXPECT_EQ(forecast.coarse, 2'400u);
}

TEST(DueHistogram, ADayPartlyWithinTheSpanIsDividedWithoutALoss) {
  DueHistogram histogram;
  histogram.add(kNow, kLongAgo, 7);
  // A task lies in the middle of its seventh of the day: at 1:43, 5:09, 8:34, 12:00, 15:26, …
  const Forecast forecast = histogram.forecast(kNow + hours{6}, hours{12}, 2);
  EXPECT_EQ(forecast.overdue, 2u);
  EXPECT_EQ(forecast.counts, (Counts{2, 1}));
  EXPECT_EQ(forecast.later, 2u);
  EXPECT_EQ(forecast.coarse, 3u);
}

TEST(DueHistogram, TheOnlyTaskOfADayCountsInTheMiddleOfTheDay) {
  DueHistogram histogram;
  histogram.add(kNow + hours{23}, kLongAgo, 1);
  EXPECT_EQ(histogram.forecast(kNow, hours{12}, 1).counts, Counts{1});
  EXPECT_EQ(histogram.forecast(kNow + hours{12} - minutes{1}, minutes{1}, 1).counts, Counts{1});
  EXPECT_EQ(histogram.forecast(kNow + hours{12}, hours{12}, 1).overdue, 1u);
}

TEST(DueHistogram, ASpanBeyondAllDueTimesCountsAllTasks) {
  DueHistogram histogram;
  histogram.add(kNow, kNow, 3);
  histogram.add(kNow + kDay * 36'500, kNow, 4);
  const Forecast all = histogram.forecast(kNow, kMaxForecastSpan, kMaxForecastBins);
  EXPECT_EQ(all.overdue, 0u);
  EXPECT_EQ(all.later, 0u);
  EXPECT_EQ(counted(all), 7u);
  EXPECT_EQ(all.coarse, 4u);
  const Forecast none = histogram.forecast(kNow + kDay, hours{1}, 60);
  EXPECT_EQ(none.overdue, 3u);
  EXPECT_EQ(none.later, 4u);
  EXPECT_EQ(counted(none) + none.coarse, 0u);
}

// The model: all tasks in a list. If a day has c tasks, task number k (from 0) is at the part
// (k + 1/2) / c of the day. Even spreading puts it there.
struct ModelTask {
  WallTime due_at;
  WallTime created_at;
};
using Bins = std::map<DueBin, std::int64_t>;

Bins bins_of(const std::vector<ModelTask>& tasks) {
  Bins bins;
  for (const ModelTask& task : tasks) ++bins[due_bin_of(task.due_at, task.created_at)];
  return bins;
}

Forecast scan(const std::vector<ModelTask>& tasks, const Forecast& shape) {
  Forecast expected;
  expected.from = shape.from;
  expected.bin = shape.bin;
  expected.counts.resize(shape.counts.size());
  const auto put = [&](std::int64_t minute, bool is_coarse) {
    const WallTime at{minutes{minute}};
    const auto index = static_cast<std::size_t>((at - shape.from) / shape.bin);
    if (at < shape.from) {
      ++expected.overdue;
    } else if (index >= expected.counts.size()) {
      ++expected.later;
    } else {
      ++expected.counts[index];
      expected.coarse += is_coarse ? 1 : 0;
    }
  };
  for (const auto& [bin, count] : bins_of(tasks)) {
    for (std::int64_t k = 0; k < count; ++k) {
      const bool is_day = bin.width == DueBin::Width::day;
      const std::int64_t offset = is_day ? ((2 * k + 1) * 720 + count - 1) / count - 1 : 0;
      put(is_day ? bin.number * 1'440 + offset : bin.number, is_day);
    }
  }
  return expected;
}

class Model {
 public:
  explicit Model(std::uint64_t seed) : rng_(seed) {}

  void step() {
    const std::uint32_t dice = rng_.below(100);
    if (dice < 55 || tasks_.empty()) {
      add();
    } else if (dice < 85) {
      remove();
    } else if (dice < 91) {
      move();
    } else if (dice < 96) {
      take();
    } else if (dice < 97) {
      reopen();
    } else {
      compare_forecast();
    }
    histogram_->check_invariants();
  }

  void remove_all() {
    while (!tasks_.empty()) remove();
    take();
    EXPECT_EQ(histogram_->group_count(), 0u);
  }

 private:
  milliseconds up_to(milliseconds bound) {
    return milliseconds{static_cast<std::int64_t>(rng_.next() >> 1) % bound.count()};
  }
  WallTime random_due() {
    switch (rng_.below(4)) {
      case 0:
        return kNow + up_to(minutes{3});
      case 1:
        return kNow - kDay + up_to(kDay * 3);
      case 2:
        return kNow + up_to(kDay * 800);
      default:
        return kNow + kDay * 500 + up_to(kDay * 2);
    }
  }

  void add() {
    const WallTime created_at = rng_.below(3) == 0 ? kLongAgo : kNow - up_to(kDay);
    tasks_.push_back({.due_at = random_due(), .created_at = created_at});
    histogram_->add(tasks_.back().due_at, created_at, 1);
  }
  void remove() {
    std::swap(tasks_[rng_.below(static_cast<std::uint32_t>(tasks_.size()))], tasks_.back());
    histogram_->add(tasks_.back().due_at, tasks_.back().created_at, -1);
    tasks_.pop_back();
  }
  void move() {
    ModelTask& task = tasks_[rng_.below(static_cast<std::uint32_t>(tasks_.size()))];
    histogram_->add(task.due_at, task.created_at, -1);
    task.due_at = random_due();
    histogram_->add(task.due_at, task.created_at, 1);
  }
  /// Adds the changes to the sums, as the store does. The sums must then match the tasks.
  void take() {
    const std::vector<DueCount> changes = histogram_->take_changes();
    for (std::size_t i = 0; i < changes.size(); ++i) {
      EXPECT_NE(changes[i].count, 0);
      EXPECT_TRUE(i == 0 || changes[i - 1].bin < changes[i].bin);
      if ((sums_[changes[i].bin] += changes[i].count) == 0) sums_.erase(changes[i].bin);
    }
    EXPECT_EQ(sums_, bins_of(tasks_));
  }
  void reopen() {
    take();
    std::vector<DueCount> sums;
    for (const auto& [bin, count] : sums_) sums.push_back({bin, count});
    histogram_ = std::make_unique<DueHistogram>();
    EXPECT_EQ(histogram_->restore(sums), 0u);
  }
  void compare_forecast() {
    const WallTime from = rng_.below(2) == 0 ? random_due() : kNow;
    const milliseconds longest = rng_.below(2) == 0 ? milliseconds{kDay} : kDay * 1'500;
    const milliseconds span = kMinForecastSpan + up_to(longest);
    const Forecast forecast = histogram_->forecast(from, span, 1 + rng_.below(300));
    EXPECT_EQ(forecast, scan(tasks_, forecast));
    EXPECT_EQ(total(forecast), tasks_.size());
    EXPECT_LE(forecast.from, from);
    EXPECT_GE(forecast.from + forecast.bin * forecast.counts.size(), from + span - minutes{1});
  }

  Rng rng_;
  std::unique_ptr<DueHistogram> histogram_ = std::make_unique<DueHistogram>();
  std::vector<ModelTask> tasks_;
  Bins sums_;  // sums of the changes
};

TEST(DueHistogram, AnswersLikeAScanOfAllTasks) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Model model(seed);
  for (int i = 0; i < 10'000 && !testing::Test::HasFailure(); ++i) model.step();
  model.remove_all();
}

}  // namespace
}  // namespace detent

#include "server/operate/stats_history.h"

#include <gtest/gtest.h>

#include "base/histogram.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// An engine whose figures are sampled at intervals.
struct Watched {
  void pass(milliseconds time) { now += time; }
  void fire(std::uint64_t count, std::chrono::nanoseconds late) {
    counters.fired += count;
    for (std::uint64_t i = 0; i < count; ++i) lateness.record(late);
  }
  StatsSample sample() const {
    return {.taken_at = MonotonicTime{now},
            .at = WallTime{1'000'000'000'000ms + now},
            .stats = {.epoch = epoch,
                      .counters = counters,
                      .all = {.ready = ready},
                      .lateness = lateness.snapshot(),
                      .commit_time = commit.snapshot()}};
  }
  milliseconds now{0};
  std::uint64_t epoch = 1;
  std::uint64_t ready = 0;
  TaskCounters counters;
  Histogram lateness;
  Histogram commit;
};

TEST(StatsDifference, IsWhatHappenedBetweenTwoSamples) {
  Watched engine;
  engine.fire(5, 1h);
  engine.counters.scheduled = 3;
  const StatsSample from = engine.sample();
  engine.pass(1'500ms);
  engine.fire(98, 900us);
  engine.fire(2, 30ms);
  engine.counters.scheduled = 10;
  engine.counters.dead = 4;
  engine.ready = 6;
  const json::StatsPoint point = difference(from, engine.sample());
  EXPECT_EQ(point.span, 1'500ms);
  EXPECT_EQ(point.at, WallTime{1'000'000'001'500ms});
  EXPECT_EQ(point.counters.scheduled, 7u);
  EXPECT_EQ(point.counters.fired, 100u);
  EXPECT_EQ(point.counters.dead, 4u);
  EXPECT_EQ(point.tasks.ready, 6u);
  ASSERT_TRUE(point.lateness);
  EXPECT_EQ(point.lateness->p50, 1'024us);
  EXPECT_EQ(point.lateness->p99, 32'768us);
  EXPECT_EQ(point.lateness->max, 32'768us);
  EXPECT_FALSE(point.commit);
}

TEST(StatsDifference, AboveTheLastBoundIsTheLastBound) {
  Watched engine;
  const StatsSample from = engine.sample();
  engine.fire(1, 1000h);
  const json::StatsPoint point = difference(from, engine.sample());
  ASSERT_TRUE(point.lateness);
  EXPECT_EQ(point.lateness->p50, engine.lateness.snapshot().bounds.back());
  EXPECT_EQ(point.lateness->max, point.lateness->p50);
}

TEST(StatsDifference, CountsFromNothingWhenTheEngineIsAnother) {
  Watched engine;
  engine.fire(100, 1ms);
  engine.counters.completed = 50;
  const StatsSample from = engine.sample();
  Watched next;
  next.epoch = 2;
  next.fire(3, 1ms);
  next.pass(10s);
  const json::StatsPoint point = difference(from, next.sample());
  EXPECT_EQ(point.counters.fired, 3u);
  EXPECT_EQ(point.counters.completed, 0u);
}

/// Fires one task per second for this time, and samples the figures every second.
StatsHistory history_of(std::chrono::seconds length, milliseconds slip = 0ms) {
  StatsHistory history;
  Watched engine;
  history.add(engine.sample());
  for (auto second = 0s; second < length; second += 1s) {
    engine.pass(1s);
    engine.counters.fired += 1;
    StatsSample sample = engine.sample();
    if (second.count() % 3 == 0) sample.taken_at += slip;
    history.add(sample);
  }
  return history;
}

HistoryRange range(milliseconds span, milliseconds step) {
  return HistoryRange::read(span, step).value();
}

TEST(StatsHistory, HasAPointForEachStepThatHasPassed) {
  const StatsHistory history = history_of(65s);
  const auto points = history.points(range(1h, 10s));
  ASSERT_EQ(points.size(), 6u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].counters.fired, 10u);
    EXPECT_EQ(points[i].span, 10s);
    EXPECT_EQ(points[i].at, WallTime{1'000'000'000'000ms + 10s * (i + 1)});
  }
  EXPECT_EQ(history.points(range(30s, 10s)).size(), 3u);
  const auto long_steps = history.points(range(1h, 30s));
  ASSERT_EQ(long_steps.size(), 2u);
  EXPECT_EQ(long_steps[1].counters.fired, 30u);
  EXPECT_EQ(long_steps[1].at, points.back().at);
}

TEST(StatsHistory, ALookThatIsALittleLateDoesNotMakeTheNextSlip) {
  const auto points = history_of(600s, 400ms).points(range(1h, 10s));
  EXPECT_EQ(points.size(), 60u);
}

TEST(StatsHistory, KeepsAnHourInFineStepsAndADayInCoarseOnes) {
  const StatsHistory history = history_of(26h);
  EXPECT_EQ(history.points(range(1h, 10s)).size(), 360u);
  const auto day = history.points(range(24h, 5min));
  ASSERT_EQ(day.size(), 288u);
  for (const json::StatsPoint& point : day) EXPECT_EQ(point.counters.fired, 300u);
  EXPECT_EQ(history.points(range(24h, 1h)).size(), 24u);
}

TEST(StatsHistory, OneWithoutSamplesHasNoPoints) {
  EXPECT_TRUE(StatsHistory().points(range(1h, 10s)).empty());
  EXPECT_TRUE(history_of(9s).points(range(1h, 10s)).empty());
}

TEST(HistoryRange, IsReadStrictly) {
  const HistoryRange plain = HistoryRange::read({}, {}).value();
  EXPECT_EQ(plain.span, 1h);
  EXPECT_EQ(plain.step, 10s);
  EXPECT_EQ(HistoryRange::read(6h, {})->step, 5min);
  EXPECT_EQ(HistoryRange::read(30min, {})->step, 10s);
  for (const auto& [span, step, field] :
       {std::tuple{25h, 5min, "span"}, {2h, 1min, "step"}, {2h, 3h, "step"}, {2h, 7min, "step"}}) {
    const auto refused = HistoryRange::read(span, step);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, field);
  }
  EXPECT_EQ(HistoryRange::read(5s, {}).error().field, "span");
  EXPECT_EQ(HistoryRange::read(1h, 0ms).error().field, "step");
  EXPECT_EQ(HistoryRange::read(1h, 15s).error().field, "step");
}

}  // namespace
}  // namespace detent::server

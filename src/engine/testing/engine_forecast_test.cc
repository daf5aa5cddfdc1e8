// The forecast equals the counts of a scan of all live tasks, after any verbs.
#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineForecast : public EngineFixture {
 protected:
  /// The forecast from a scan of all tasks. It is correct for tasks that are counted by the minute.
  Forecast scan(milliseconds span, std::size_t bins) {
    Forecast forecast{.from = std::chrono::floor<std::chrono::minutes>(wall_now()),
                      .bin = forecast_bin_width(span, bins)};
    const TaskPage page = engine_->tasks_after(TaskId{}, 1'000'000).value();
    const Forecast answer = engine_->forecast(span, bins).value();
    forecast.counts.resize(answer.counts.size());
    for (const StoredTask& stored : page.tasks) {
      if (stored.task.standing != Standing::live) continue;
      const milliseconds ahead = stored.task.due_at - forecast.from;
      const auto bin = static_cast<std::size_t>(ahead / forecast.bin);
      if (ahead < 0ms) {
        ++forecast.overdue;
      } else if (bin >= forecast.counts.size()) {
        ++forecast.later;
      } else {
        ++forecast.counts[bin];
      }
    }
    return forecast;
  }
  void expect_as_scanned(milliseconds span, std::size_t bins) {
    const Forecast answer = engine_->forecast(span, bins).value();
    const Forecast expected = scan(span, bins);
    EXPECT_EQ(answer.from, expected.from);
    EXPECT_EQ(answer.bin, expected.bin);
    EXPECT_EQ(answer.counts, expected.counts);
    EXPECT_EQ(answer.overdue, expected.overdue);
    EXPECT_EQ(answer.later, expected.later);
    EXPECT_EQ(answer.coarse, 0u);
    EXPECT_GE(answer.bin * answer.counts.size(), span) << "the whole span";
    EXPECT_LE(answer.counts.size(), bins);
  }
  static std::uint64_t all(const Forecast& forecast) {
    return std::accumulate(forecast.counts.begin(), forecast.counts.end(),
                           forecast.overdue + forecast.later);
  }
  Forecast next_hour() { return engine_->forecast(1h, 60).value(); }
};

TEST_F(EngineForecast, AnEmptyEngineForecastsNothing) {
  EXPECT_EQ(all(next_hour()), 0u);
  expect_as_scanned(1h, 60);
}

TEST_F(EngineForecast, TasksAreCountedInTheMinuteInWhichTheyAreDue) {
  schedule("q", 5min);
  schedule("other", milliseconds{6min} - 1ms);
  schedule("q", 6min);
  schedule("q", 2h);
  const Forecast forecast = next_hour();
  ASSERT_EQ(forecast.counts.size(), 60u);
  EXPECT_EQ(forecast.counts[5], 2u);
  EXPECT_EQ(forecast.counts[6], 1u);
  EXPECT_EQ(forecast.later, 1u);
  EXPECT_EQ(all(forecast), 4u);
}

TEST_F(EngineForecast, ATaskIsCountedInItsTurnAndNotAfterACrash) {
  ASSERT_TRUE(engine_->schedule(request("q", 5min)));
  EXPECT_EQ(all(next_hour()), 1u);
  crash_and_open();
  EXPECT_EQ(all(next_hour()), 0u);
}

TEST_F(EngineForecast, ReadyAndLeasedTasksAreOverdueAfterTheirMinute) {
  for (int i = 0; i < 3; ++i) schedule("q", 0ms);
  lease("q");
  EXPECT_EQ(next_hour().counts[0], 3u);
  advance(1min);
  EXPECT_EQ(next_hour().overdue, 2u);
  expect_as_scanned(1h, 60);
}

TEST_F(EngineForecast, DeadAndEndedTasksAreNotCountedUntilTheyLiveAgain) {
  ASSERT_TRUE(engine_->set_queue("q", {.retention = 24h}));
  const TaskId id = schedule("q", 0ms);
  ASSERT_EQ(engine_->bury(lease("q").at(0).lease, "no"), LeaseOutcome::dead);
  settle();
  EXPECT_EQ(all(next_hour()), 0u);
  ASSERT_TRUE(engine_->move(id, 7min));
  EXPECT_EQ(next_hour().counts[7], 1u);
  settle();
  crash_and_open();
  EXPECT_EQ(next_hour().counts[7], 1u);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_EQ(state_of(id), TaskState::cancelled);
  EXPECT_EQ(all(next_hour()), 0u);
}

TEST_F(EngineForecast, ACancelledDeadTaskIsSubtractedOnce) {
  const TaskId id = schedule("q", 0ms);
  schedule("q", 30s);
  ASSERT_EQ(engine_->bury(lease("q").at(0).lease, "no"), LeaseOutcome::dead);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_EQ(next_hour().counts[0], 1u);
}

TEST_F(EngineForecast, FarTasksAreCountedByTheDayWithoutALoss) {
  const TaskId far = schedule("q", 24h * 500);
  schedule("q", 24h * 399);
  const Forecast years = engine_->forecast(24h * 1'000, 1'000).value();
  EXPECT_EQ(all(years), 2u);
  EXPECT_EQ(years.coarse, 1u);
  EXPECT_EQ(years.counts.at(399), 1u);
  EXPECT_EQ(years.counts.at(500), 1u);
  ASSERT_TRUE(engine_->move(far, 1min));
  settle();
  EXPECT_EQ(next_hour().counts[1], 1u);
  EXPECT_EQ(engine_->forecast(24h * 1'000, 1'000).value().coarse, 0u);
  engine_->check_invariants();
}

TEST_F(EngineForecast, ARestoredTaskIsCounted) {
  Task task{.id = TaskId{256},
            .queue = "q",
            .due_at = wall_now() + 3min,
            .created_at = wall_now() - 24h * 1'000};
  ASSERT_TRUE(engine_->restore(task));
  task.id = TaskId{512};
  task.standing = Standing::dead;
  ASSERT_TRUE(engine_->restore(task));
  settle();
  engine_->check_invariants();
  EXPECT_EQ(all(next_hour()), 1u);
}

TEST_F(EngineForecast, InvalidSpansAndBinsAreRefused) {
  EXPECT_EQ(engine_->forecast(1ms, 1).error().field, "span");
  EXPECT_EQ(engine_->forecast(1h, 0).error().field, "bins");
  EXPECT_EQ(engine_->forecast(1h, kMaxForecastBins + 1).error().field, "bins");
}

TEST_F(EngineForecast, EqualsAScanAfterRandomVerbsAndCrashes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  options_ = {.window = 1min, .max_loaded = 24};
  open_on_a_new_disk();
  ASSERT_TRUE(engine_->set_queue("kept", {.max_attempts = 2, .retention = 10min}));
  std::vector<TaskId> ids;
  const auto any = [&] { return ids[rng.below(static_cast<std::uint32_t>(ids.size()))]; };
  const auto delay = [&] {
    return milliseconds{rng.below(rng.below(3) == 0 ? 400'000'000 : 90'000)};
  };
  for (int i = 0; i < test_rounds(3'000) && !HasFailure(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    const std::string queue = rng.below(2) == 0 ? "q" : "kept";
    switch (ids.empty() ? 0 : rng.below(8)) {
      case 0:
      case 1:
        ids.push_back(engine_->schedule(request(queue, delay())).value().task.id);
        break;
      case 2:
        (void)engine_->cancel(any()).has_value();
        break;
      case 3:
        (void)engine_->move(any(), delay()).has_value();
        break;
      case 4:
        (void)engine_->run_now(any()).has_value();
        break;
      case 5:
        clock_.advance(milliseconds{rng.below(20'000)});
        break;
      case 6:
        if (rng.below(20) == 0) (void)engine_->purge(queue, 1 + rng.below(20)).has_value();
        if (rng.below(20) == 0) (void)engine_->redrive(queue, 5).has_value();
        break;
      default:
        for (const LeasedTask& leased : lease(queue, 1 + rng.below(2))) {
          const std::uint32_t what = rng.below(4);
          if (what == 0) (void)complete(leased.lease);
          if (what == 1) (void)fail(leased.lease, delay());
          if (what == 2) (void)engine_->bury(leased.lease, "no").has_value();
        }
    }
    if (rng.below(2) == 0) continue;
    settle();
    expect_as_scanned(1h, 60);
    if (rng.below(30) == 0) crash_and_open();
    expect_as_scanned(24h * 6, 1 + rng.below(500));
    engine_->check_invariants();
  }
}

}  // namespace
}  // namespace detent

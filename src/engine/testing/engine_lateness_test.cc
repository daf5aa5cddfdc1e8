// Why tasks are handed out late: each cause alone, and two causes in sequence. Random runs check
// that the parts add up. Also the counts of all queues.
#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineLateness : public EngineFixture {
 protected:
  /// Leases one task and returns why it was late.
  LatenessParts lease_late(const std::string& queue) {
    const std::vector<LeasedTask> tasks = lease(queue);
    if (tasks.size() != 1) {
      ADD_FAILURE() << "nothing to lease";
      return {};
    }
    leased_ = tasks[0];
    return engine_->get(tasks[0].task.id).value().holder->late;
  }
  /// Lets time pass without a turn, as when the engine is busy.
  void pass(milliseconds by) { clock_.advance(by); }
  LateCounts late() const { return engine_->stats(0).late; }
  static milliseconds total(const LatenessParts& parts) {
    return std::accumulate(parts.begin(), parts.end(), 0ms);
  }

  LeasedTask leased_;
};

constexpr ByCause<std::uint64_t> kWorker{0, 0, 0, 1};

TEST_F(EngineLateness, NoWorkerAskedForTheTask) {
  schedule("q", 1s);
  advance(1s);
  advance(5s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 0ms, 5s}));
  EXPECT_EQ(late().tasks, kWorker);
  EXPECT_EQ(late().time, (LatenessParts{0ms, 0ms, 0ms, 5s}));
}

TEST_F(EngineLateness, LatenessBelowASecondIsOnlySummedUp) {
  schedule("q", 0ms);
  advance(999ms);
  EXPECT_EQ(lease_late("q"), LatenessParts{});
  EXPECT_EQ(late().tasks, ByCause<std::uint64_t>{});
  EXPECT_EQ(late().time, (LatenessParts{0ms, 0ms, 0ms, 999ms}));
}

TEST_F(EngineLateness, TheEngineWasBehind) {
  schedule("q", 1s);
  pass(5s);
  settle();
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 4s, 0ms, 0ms}));
}

TEST_F(EngineLateness, TheTaskWasDueBeforeTheStart) {
  schedule("q", 1s);
  crash();
  pass(10s);
  open();
  advance(3s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{9s, 0ms, 0ms, 3s}));
  EXPECT_EQ(late().tasks, (ByCause<std::uint64_t>{1, 0, 0, 0}));
}

TEST_F(EngineLateness, APauseHeldTheTaskBackAndThenNoWorkerAsked) {
  schedule("q", 1s);
  set("q", {.paused = true});
  advance(1s);
  advance(3s);
  set("q", {});
  advance(2s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 3s, 2s}));
}

TEST_F(EngineLateness, APauseOutlivesACrash) {
  set("q", {.paused = true});
  schedule("q", 0ms);
  crash_and_open();
  advance(4s);
  set("q", {});
  advance(1s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 4s, 1s}));
}

TEST_F(EngineLateness, OnlyTheTimeOfAPauseAfterTheDueTimeCounts) {
  set("q", {.paused = true});
  advance(1h);
  set("q", {});
  schedule("q", 0ms);
  advance(2s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 0ms, 2s}));
}

TEST_F(EngineLateness, APauseForATimeEndsByItself) {
  schedule("q", 0ms);
  ASSERT_TRUE(engine_->pause_for("q", 3s));
  advance(10s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 3s, 7s}));
}

TEST_F(EngineLateness, AUsedUpRateHoldsBackUntilTheNextSecond) {
  set("q", {.rate = 2});
  schedule_many("q", 4);
  ASSERT_EQ(lease_count("q", 4), 2u);
  pass(300ms);  // the manual clock starts with a second
  ASSERT_EQ(lease_count("q", 4), 0u);
  advance(700ms);
  advance(500ms);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 1s, 500ms}));
}

TEST_F(EngineLateness, TheConcurrencyOfTheQueueHoldsTasksBack) {
  set("q", {.concurrency = 1});
  schedule_many("q", 2);
  const LeaseToken first = lease("q")[0].lease;
  advance(4s);
  EXPECT_EQ(complete(first), LeaseOutcome::done);
  advance(1s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 4s, 1s}));
}

TEST_F(EngineLateness, TheLimitOfAllLeasesHoldsEveryQueueBack) {
  options_.max_loaded = 4;  // so at most one task may be leased
  open_on_a_new_disk();
  schedule("full", 0ms);
  schedule("q", 0ms);
  const LeaseToken first = lease("full")[0].lease;
  advance(4s);
  ASSERT_EQ(lease_count("q", 1), 0u);
  EXPECT_EQ(complete(first), LeaseOutcome::done);
  advance(1s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 4s, 1s}));
}

TEST_F(EngineLateness, LatenessOfAReleasedTaskCountsFromItsRelease) {
  schedule("q", 0ms);
  const LeaseToken first = lease("q")[0].lease;
  advance(20s);
  ASSERT_EQ(engine_->release(first), LeaseOutcome::done);
  advance(2s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 0ms, 2s}));
}

TEST_F(EngineLateness, LatenessOfAPastDateCountsFromTheRequest) {
  schedule("q", WallTime{wall_now() - 24h});
  advance(2s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 0ms, 2s}));
  EXPECT_EQ(leased_.lateness, 24h + 2s);
  const TaskId moved = schedule("q", 1h);
  advance(1s);
  ASSERT_TRUE(engine_->move(moved, WallTime{wall_now() - 1h}));
  advance(3s);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 0ms, 3s}));
}

TEST_F(EngineLateness, LatenessOfAPastDateCountsFromTheRequestAfterACrashToo) {
  schedule("q", WallTime{wall_now() - 24h});
  crash();
  pass(10s);
  open();
  EXPECT_EQ(lease_late("q"), (LatenessParts{10s, 0ms, 0ms, 0ms}));
}

TEST_F(EngineLateness, EachAttemptKeepsItsOwnLateness) {
  const TaskId id = schedule("q", 0ms);
  advance(4s);
  lease_late("q");
  EXPECT_EQ(fail(leased_.lease, 1s), LeaseOutcome::done);
  pass(4s);
  settle();
  lease_late("q");
  EXPECT_EQ(fail(leased_.lease, 1h), LeaseOutcome::done);
  crash_and_open();
  const std::vector<Attempt> history = engine_->get(id).value().task.history;
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].late, (LatenessParts{0ms, 0ms, 0ms, 4s}));
  EXPECT_EQ(history[1].late, (LatenessParts{0ms, 3s, 0ms, 0ms}));
}

TEST_F(EngineLateness, APauseCountsForTasksThatWaitedOnDiskToo) {
  options_.max_loaded = 16;
  open_on_a_new_disk();
  set("q", {.paused = true});
  schedule_many("q", 50);
  advance(8s);
  set("q", {});
  for (int i = 0; i < 48; ++i) ASSERT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  EXPECT_EQ(lease_late("q"), (LatenessParts{0ms, 0ms, 8s, 0ms}));
}

TEST_F(EngineLateness, APastDateFiresInTimeEvenDuringABacklog) {
  options_.max_loaded = 16;
  open_on_a_new_disk();
  schedule_many("q", 50);
  advance(1s);
  ScheduleRequest asked = request("q", WallTime{wall_now() - 24h});
  asked.rules.priority = kDefaultPriority + 1;
  const TaskId id = engine_->schedule(asked).value().task.id;
  settle();
  ASSERT_EQ(store_->find(id).value().value().place.lane, Lane::ready) << "or this shows nothing";
  EXPECT_EQ(engine_->stats().counters.fired, 51u);
  EXPECT_LE(engine_->stats().lateness.quantile(1), 1ms);
}

// In every run, the parts of a hand-out add up to the time since the task was due, except for
// rounding.
TEST_F(EngineLateness, ThePartsAddUpInAnyRun) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int step = 0; step < 2'000; ++step) {
    switch (rng.below(6)) {
      case 0:
        schedule("q", milliseconds{rng.below(3'000)});
        break;
      case 1:
        set("q", {.paused = rng.below(3) == 0,
                  .rate = rng.below(2) == 0 ? std::optional<std::uint32_t>{1 + rng.below(3)}
                                            : std::nullopt,
                  .concurrency = 1 + rng.below(4)});
        break;
      case 2:
        pass(milliseconds{rng.below(2'000)});
        break;
      case 3:
        advance(milliseconds{rng.below(2'000)});
        break;
      case 4:
        crash_and_open();
        break;
      default:
        for (const LeasedTask& task : lease("q")) {
          const LatenessParts parts = engine_->get(task.task.id).value().holder->late;
          const milliseconds waited = wall_now() - task.task.due_at;
          if (waited < 1s + 5ms) continue;
          EXPECT_NEAR(static_cast<double>(total(parts).count()),
                      static_cast<double>(waited.count()), 5.0);
          for (const milliseconds part : parts) EXPECT_GE(part, 0ms);
          if (rng.below(2) == 0) complete(task.lease);
        }
    }
    settle();
    engine_->check_invariants();  // the counts of all queues, too
  }
}

}  // namespace
}  // namespace detent

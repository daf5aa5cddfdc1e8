// Storms: one queue has many times more tasks due in one second than memory has room for. A task of
// another queue must be handed out in the same turn that makes it due. All tasks of the storm must
// be handed out in order. Time is counted in turns on a manual clock.
//
// DETENT_STORM_TASKS sets how many tasks the storms of two tests have (for a soak: 1000000).
#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"
#include "store/testing/forwarding_store.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

int storm_tasks(int otherwise) {
  const char* text = std::getenv("DETENT_STORM_TASKS");
  return text != nullptr ? static_cast<int>(std::strtol(text, nullptr, 10)) : otherwise;
}

class EngineStorm : public EngineFixture {
 protected:
  EngineStorm() { reopen_with({.max_loaded = 400}); }

  void reopen_with(EngineOptions options) {
    options_ = options;
    crash_and_open();
  }
  std::uint64_t loaded() { return engine_->stats().loaded; }
  QueueStats stats_of(const std::string& queue) { return engine_->queue(queue).value().stats; }
  Place place_of(TaskId id) { return store_->find(id).value().value().place; }

  /// Schedules tasks of one queue whose due times are spread over `over`, many in each turn.
  std::vector<TaskId> schedule_over(const std::string& queue, int count, milliseconds from,
                                    milliseconds over) {
    std::vector<TaskId> ids;
    const WallTime start = wall_now() + from;
    for (int i = 0; i < count; ++i) {
      const WallTime at = start + over * i / count;
      ids.push_back(engine_->schedule(request(queue, at)).value().task.id);
      if (i % 300 == 0) turn();
    }
    settle();
    engine_->check_invariants();
    return ids;
  }
  /// Schedules tasks that are all due in 30 s, with rising or falling priorities from 1 on. Returns
  /// the most urgent task.
  TaskId schedule_together(const std::string& queue, std::uint32_t count, bool is_rising) {
    const WallTime at = wall_now() + 30s;
    TaskId urgent;
    for (std::uint32_t i = 0; i < count; ++i) {
      ScheduleRequest asked = request(queue, at);
      asked.rules.priority = is_rising ? i + 1 : count - i;
      const TaskId id = engine_->schedule(asked).value().task.id;
      if (asked.rules.priority == 1) urgent = id;
    }
    return urgent;
  }
  void turn() { ASSERT_TRUE(engine_->turn()); }
  /// Moves from one due time of the queue "calm" to the next, with only one turn for each. Each
  /// turn must hand its task out.
  void expect_calm(const std::vector<TaskId>& ids, milliseconds between) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      turn();
      const auto due = engine_->lease({.queue = "calm", .max = 10}).value();
      ASSERT_EQ(due.size(), 1u) << "task " << i << ", " << loaded() << " loaded";
      ASSERT_EQ(due[0].task.id, ids[i]);
      ASSERT_EQ(due[0].lateness, 0ms);
      ASSERT_EQ(engine_->complete(due[0].lease), LeaseOutcome::done);
      ASSERT_LE(loaded(), options_.max_loaded + 10);
      clock_.advance(between);
    }
  }
  /// Leases and completes until none is left.
  std::vector<TaskId> drain(const std::string& queue) {
    std::vector<TaskId> ids;
    for (std::vector<LeasedTask> tasks; !(tasks = lease(queue, 50)).empty();) {
      for (const LeasedTask& task : tasks) {
        ids.push_back(task.task.id);
        EXPECT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
      }
    }
    settle();
    engine_->check_invariants();
    return ids;
  }
};

// ---- the other queues ----

TEST_F(EngineStorm, AnotherQueuesTasksComeInTheTurnInWhichTheyAreDue) {
  const int count = storm_tasks(40'000);
  // The order of the two arrivals must not matter.
  for (const bool is_storm_first : {true, false}) {
    SCOPED_TRACE(is_storm_first);
    open_on_a_new_disk();
    std::vector<TaskId> storm;
    std::vector<TaskId> calm;
    if (is_storm_first) storm = schedule_over("storm", count, 5min + 200ms, 1s);
    calm = schedule_over("calm", 150, 5min, 1'500ms);
    if (!is_storm_first) storm = schedule_over("storm", count, 5min + 200ms, 1s);
    EXPECT_LE(loaded(), 400u);
    clock_.advance(5min);
    expect_calm(calm, 10ms);
    settle();
    EXPECT_LE(loaded(), 400u);
    EXPECT_EQ(stats_of("storm").ready, static_cast<std::uint64_t>(count));
    EXPECT_EQ(engine_->stats().counters.fired, static_cast<std::uint64_t>(count) + 150);
    EXPECT_EQ(drain("storm"), storm);
    EXPECT_EQ(disk_->record_count(), 0u);
  }
}

TEST_F(EngineStorm, AnotherQueuesTasksComeInTimeAlsoWhenBothWereFarAndArePagedIn) {
  const std::vector<TaskId> storm = schedule_over("storm", 40'000, 24h, 1s);
  const std::vector<TaskId> calm = schedule_over("calm", 100, 24h, 1s);
  EXPECT_EQ(loaded(), 0u);
  const WallTime start = place_of(calm[0]).at;
  while (wall_now() < start - 1min) advance_to_wakeup();
  clock_.advance(start - wall_now());
  expect_calm(calm, 10ms);
  EXPECT_EQ(drain("storm"), storm);
}

TEST_F(EngineStorm, AMillionTasksOfASecondLeaveTheOthersInTime) {
  const int count = storm_tasks(30'000);
  reopen_with({.window = 1min, .max_loaded = static_cast<std::size_t>(count) / 10});
  schedule_over("storm", count, 30s, 1s);
  const std::vector<TaskId> calm = schedule_over("calm", 100, 30s, 1s);
  clock_.advance(30s);
  expect_calm(calm, 10ms);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(stats_of("storm").ready, static_cast<std::uint64_t>(count));
}

TEST_F(EngineStorm, AfterARestartInAStormTheOtherQueuesTasksAreThereWhenTheWindowHasComeToThem) {
  schedule_over("storm", 10'000, 1min, 1s);
  const std::vector<TaskId> calm = schedule_over("calm", 50, 1min + 600ms, 500ms);
  crash();
  clock_.advance(1min + 500ms);
  open();
  // open() and 100 turns read the pages with the storm.
  for (int i = 0; i < 100; ++i) turn();
  clock_.advance(100ms);
  expect_calm(calm, 10ms);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(stats_of("storm").ready, 10'000u);
}

TEST_F(EngineStorm, TheOthersAreInTimeWhateverTheStormsAndTheMemory) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int run = 0; run < 8 && !HasFailure(); ++run) {
    options_ = {.window = 1min, .max_loaded = 200 + rng.below(1'000)};
    SCOPED_TRACE("memory " + std::to_string(options_.max_loaded));
    open_on_a_new_disk();
    // Storms of two queues, due in any order, and tasks that are due much later.
    std::array<std::size_t, 2> storms{};
    for (int i = 0; i < 6'000; ++i) {
      const std::uint32_t which = rng.below(3) / 2;
      const milliseconds at{rng.below(10) == 0 ? rng.below(120'000) : 20'000 + rng.below(1'000)};
      ASSERT_TRUE(engine_->schedule(request("storm" + std::to_string(which), at)));
      ++storms[which];
      if (rng.below(100) == 0) turn();
    }
    const std::vector<TaskId> calm = schedule_over("calm", 40, 20s, 1'200ms);
    clock_.advance(20s);
    expect_calm(calm, 30ms);
    advance(2min);
    engine_->check_invariants();
    EXPECT_EQ(drain("storm0").size(), storms[0]);
    EXPECT_EQ(drain("storm1").size(), storms[1]);
    EXPECT_EQ(disk_->record_count(), 0u);
  }
}

TEST_F(EngineStorm, AWorkerOfAnotherQueueIsToldBeforeTheTasksOfTheStormFire) {
  schedule_over("storm", 100, 1min, 1ms);
  schedule("calm", 1min);
  std::uint64_t fired_before = 0;
  engine_->lease_or_wait({.queue = "calm"}, 2min, [&](Result<std::vector<LeasedTask>> tasks) {
    ASSERT_EQ(tasks.value().size(), 1u);
    fired_before = engine_->stats().counters.fired;
  });
  settle();
  clock_.advance(1min);
  turn();
  EXPECT_EQ(engine_->stats().counters.fired, 101u);
  // The first tasks of the storm are in the common wheel, because the queue was not a crowd then.
  EXPECT_GE(fired_before, 1u);
  EXPECT_LE(fired_before, 1u + 400u / 8);
}

// The first tasks came before their queue was a crowd, so they are in the common wheel. This wheel
// may have more or fewer timers than the wheel of the queue.
TEST_F(EngineStorm, ItsTasksThatAreDueTogetherComeInOrderWhicheverWheelTheyAreIn) {
  for (const int others : {0, 200}) {
    SCOPED_TRACE(others);
    for (const bool is_rising : {false, true}) {
      SCOPED_TRACE(is_rising);
      open_on_a_new_disk();
      for (int i = 0; i < others; ++i) schedule("small" + std::to_string(i / 2), 2min);
      const TaskId urgent = schedule_together("storm", 100, is_rising);
      std::vector<LeasedTask> got;
      wait_for_one("storm", got);
      settle();
      clock_.advance(30s);
      turn();
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].task.id, urgent);
      engine_->check_invariants();
    }
  }
}

TEST_F(EngineStorm, WhoWaitsForItAndAnotherQueueGetsTheMostUrgentOfWhatIsDueTogether) {
  for (const bool is_storm_urgent : {false, true}) {
    SCOPED_TRACE(is_storm_urgent);
    open_on_a_new_disk();
    const TaskId of_storm = schedule_together("storm", 100, false);
    ScheduleRequest asked = request("calm", wall_now() + 30s);
    asked.rules.priority = is_storm_urgent ? 1'000 : 0;
    const TaskId of_calm = schedule(asked);
    std::vector<LeasedTask> got;
    engine_->lease_or_wait({.queue = "storm", .other_queues = {"calm"}}, 1min,
                           [&got](Result<std::vector<LeasedTask>> tasks) {
                             for (LeasedTask& task : tasks.value()) got.push_back(std::move(task));
                           });
    settle();
    clock_.advance(30s);
    turn();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].task.id, is_storm_urgent ? of_storm : of_calm);
  }
}

TEST_F(EngineStorm, ItsWorkerIsToldInTheSameTickAsThatOfAnotherQueue) {
  const TaskId urgent = schedule_together("storm", 100, true);
  const TaskId calm = schedule("calm", 30s);
  std::vector<LeasedTask> got;
  wait_for_one("calm", got);
  wait_for_one("storm", got);
  settle();
  clock_.advance(30s);
  engine_->catch_up();
  engine_->hand_out_due();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].task.id, calm);
  EXPECT_EQ(got[1].task.id, urgent);
}

// ---- the storm itself ----

TEST_F(EngineStorm, ItsMostUrgentTaskIsFoundThoughAllWereOnDisk) {
  std::vector<TaskId> storm = schedule_over("storm", 5'000, 1min, 1s);
  ScheduleRequest asked = request("storm", 1min + 990ms);
  asked.rules.priority = 0;
  const TaskId urgent = schedule(asked);
  EXPECT_EQ(drain("storm"), std::vector<TaskId>());
  advance(1min + 1s);
  storm.insert(storm.begin(), urgent);
  EXPECT_EQ(drain("storm"), storm);
}

TEST_F(EngineStorm, AFloodThatIsDueAtOnceTakesNoMoreThanItsPartAndLeavesTheOthersTheirs) {
  const std::vector<TaskId> calm = schedule_over("calm", 100, 1min, 1s);
  std::vector<TaskId> flood;
  for (int i = 0; i < 5'000; ++i) {
    flood.push_back(engine_->schedule(request("flood", 0ms)).value().task.id);
  }
  EXPECT_EQ(loaded(), 150u + 100u) << "three eighths, and what was there";
  ScheduleRequest asked = request("flood", 0ms);
  asked.rules.priority = 1;
  const TaskId urgent = engine_->schedule(asked).value().task.id;
  const auto first = engine_->lease({.queue = "flood"}).value();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].task.id, urgent) << "in the turn in which it came";
  ASSERT_EQ(complete(first[0].lease), LeaseOutcome::done);
  clock_.advance(1min);
  expect_calm(calm, 10ms);
  EXPECT_EQ(drain("flood"), flood);
}

TEST_F(EngineStorm, AQueueThatIsCutIsWholeAgainWhenItsStormIsOver) {
  schedule_over("storm", 5'000, 1min, 1s);
  advance(2min);
  EXPECT_EQ(drain("storm").size(), 5'000u);
  const std::vector<TaskId> again = schedule_over("storm", 50, 1min, 1s);
  clock_.advance(1min);
  for (const TaskId id : again) {
    turn();
    const auto due = engine_->lease({.queue = "storm"}).value();
    ASSERT_EQ(due.size(), 1u);
    ASSERT_EQ(due[0].task.id, id);
    ASSERT_EQ(engine_->complete(due[0].lease), LeaseOutcome::done);
    clock_.advance(20ms);
  }
}

TEST_F(EngineStorm, AQueueThatIsCutIsPurgedRemovedAndMadeAnew) {
  schedule_over("storm", 3'000, 1min, 1s);
  EXPECT_EQ(purge_all("storm"), 3'000u);
  ASSERT_TRUE(engine_->remove_queue("storm"));
  settle();
  engine_->check_invariants();
  const TaskId id = schedule("storm", 1min);
  advance(1min);
  EXPECT_EQ(lease_ids("storm", 10), std::vector{id});
}

TEST_F(EngineStorm, ItsTasksOnDiskAreCancelledAndMoved) {
  std::vector<TaskId> storm = schedule_over("storm", 2'000, 1min, 1s);
  ASSERT_TRUE(engine_->cancel(storm[1'900]));
  EXPECT_EQ(engine_->move(storm[1'800], 10s).value().state, TaskState::scheduled);
  EXPECT_EQ(engine_->run_now(storm[1'700]).value().state, TaskState::ready);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(drain("storm"), std::vector{storm[1'700]});
  advance(10s);
  EXPECT_EQ(drain("storm"), std::vector{storm[1'800]});
  for (const std::ptrdiff_t gone : {1'900, 1'800, 1'700}) storm.erase(storm.begin() + gone);
  advance(1min);
  EXPECT_EQ(drain("storm"), storm);
}

TEST_F(EngineStorm, AWorkerThatWaitsIsServedThoughNoTaskOfItsQueueHasRoom) {
  reopen_with({.max_loaded = 8});
  schedule_over("other", 100, 5min, 1s);
  schedule_over("storm", 100, 20s, 1s);
  std::vector<LeasedTask> got;
  wait_for_one("storm", got);
  wait_for_one("storm", got);
  advance(19s);
  EXPECT_TRUE(got.empty());
  advance(5s);
  EXPECT_EQ(got.size(), 2u);
}

TEST_F(EngineStorm, ASmallerQueueThatIsCutNeedNotWaitForALargerOne) {
  schedule_over("storm", 20'000, 1min, 1s);
  const std::vector<TaskId> second = schedule_over("second", 400, 1min + 1s, 400ms);
  clock_.advance(1min + 1'500ms);
  // The storm needs a turn for each 64 of its tasks, so it needs more than 300 turns.
  std::size_t completed = 0;
  std::size_t turns = 0;
  for (; completed < second.size() && turns < 1'000; ++turns) {
    turn();
    const auto tasks = engine_->lease({.queue = "second", .max = 50}).value();
    for (const LeasedTask& task : tasks) {
      ASSERT_EQ(task.task.id, second[completed++]);
      ASSERT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
    }
  }
  EXPECT_LT(turns, 50u);
  settle();
  EXPECT_EQ(stats_of("storm").ready, 20'000u);
  engine_->check_invariants();
}

/// A store where only the moves to a ready lane take time.
class SlowMoves final : public ForwardingStore {
 public:
  SlowMoves(Store& store, ManualClock& clock, milliseconds step)
      : ForwardingStore(store), clock_(clock), step_(step) {}

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    if (durability == Durability::buffered) {
      ++moves;
      moved += batch.puts.size();
      clock_.advance(step_);
    }
    return store_.write(batch, durability);
  }

  int moves = 0;
  std::size_t moved = 0;

 private:
  ManualClock& clock_;
  const milliseconds step_;
};

class EngineMoves : public EngineStorm {
 protected:
  /// Starts with a backlog that must move to its lane in steps of the length `step`. The queue
  /// "calm" has one task after each time `between`, and a waiting worker for each.
  void begin(milliseconds between, milliseconds step) {
    engine_.reset();
    slow_ = std::make_unique<SlowMoves>(*store_, clock_, step);
    engine_ = Engine::open(*slow_, clock_, {.max_loaded = 400}).value();
    schedule_over("calm", 100, 1min, 100 * between);
    flood(5'000, 1min - 1ms);
    clock_.advance(1min - 1ms);
    for (int i = 0; i < 4; ++i) wait();
  }
  void flood(int count, milliseconds delay) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(engine_->schedule(request("flood", delay)));
    settle();
  }
  void wait() {
    engine_->lease_or_wait({.queue = "calm"}, 1h, [this](Result<std::vector<LeasedTask>> tasks) {
      for (const LeasedTask& task : tasks.value()) most_late_ = std::max(most_late_, task.lateness);
      ++served_;
    });
  }
  /// Makes a turn at each wake-up, as the engine's thread does, until `count` tasks were served.
  /// Returns the number of turns.
  int serve(int count) {
    int turns = 0;
    for (const int last = served_ + count; served_ < last && turns < 10'000; ++turns) {
      const MonotonicTime wakeup = *engine_->next_wakeup();
      if (wakeup > clock_.now()) clock_.advance(wakeup - clock_.now());
      const int before = served_;
      turn();
      for (int i = before; i < served_; ++i) wait();
    }
    return turns;
  }

  std::unique_ptr<SlowMoves> slow_;
  int served_ = 0;
  milliseconds most_late_{0};
};

TEST_F(EngineMoves, FitBetweenTimersAndDelayNoWorker) {
  begin(10ms, 3ms);
  serve(5);  // after this, the engine knows how long a step takes
  most_late_ = 0ms;
  slow_->moves = 0;
  serve(20);
  EXPECT_EQ(most_late_, 0ms);
  EXPECT_GE(slow_->moves, 20) << "they went on in between";
}

TEST_F(EngineMoves, ThatDoNotFitWaitButNotForEver) {
  begin(2ms, 3ms);
  serve(5);
  slow_->moves = 0;
  const int turns = serve(60);
  EXPECT_GE(slow_->moves, 1);
  EXPECT_LE(slow_->moves, turns / 8);
}

TEST_F(EngineMoves, AreSmallWhileWorkersAreBusyAndLargeOtherwise) {
  begin(10ms, 3ms);
  serve(3);
  slow_->moves = 0;
  slow_->moved = 0;
  serve(3);
  ASSERT_GT(slow_->moves, 0);
  EXPECT_LE(slow_->moved / static_cast<std::size_t>(slow_->moves), 16u);
  serve(100 - served_);
  engine_->end_waits();
  flood(500, 1s);
  clock_.advance(2s);
  slow_->moves = 0;
  slow_->moved = 0;
  settle();
  ASSERT_GT(slow_->moves, 0);
  EXPECT_GT(slow_->moved / static_cast<std::size_t>(slow_->moves), 32u);
  EXPECT_EQ(stats_of("flood").ready, 5'500u);
}

// ---- failures ----

TEST_F(EngineStorm, AFailedWriteWhileItMovesToItsLaneLosesNothing) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    for (std::uint64_t n = 1; n <= 8; ++n) {
      open_on_a_new_disk();
      const std::vector<TaskId> storm = schedule_over("storm", 1'000, 1s, 100ms);
      clock_.advance(2s);
      store_->fail_write(n, fault);
      for (int i = 0; i < 30 && engine_->turn(); ++i) {
      }
      EXPECT_TRUE(engine_->stopped_by());
      crash_and_open();
      settle();
      engine_->check_invariants();
      ASSERT_EQ(drain("storm"), storm) << "fault at write " << n;
    }
  }
}

TEST_F(EngineStorm, ADamagedRecordBehindTheCutHidesNoOtherAndIsSetAside) {
  std::vector<TaskId> storm = schedule_over("storm", 2'000, 1min, 1s);
  disk_->flip_bit(place_of(storm[1'950]), 100);
  storm.erase(storm.begin() + 1'950);
  advance(2min);
  EXPECT_EQ(store_->quarantined().value(), 1u);
  std::vector<TaskId> drained;
  for (std::vector<LeasedTask> tasks; !(tasks = lease("storm", 50)).empty();) {
    for (const LeasedTask& task : tasks) {
      drained.push_back(task.task.id);
      EXPECT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
    }
  }
  EXPECT_EQ(drained, storm);
}

}  // namespace
}  // namespace detent

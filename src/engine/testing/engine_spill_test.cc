// A backlog: more tasks are ready than memory has room for. The most urgent task must still be in
// memory, other queues must have room, and every verb must find the tasks on disk.
#include <algorithm>
#include <set>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineSpill : public EngineFixture {
 protected:
  EngineSpill() { reopen_with({.max_loaded = 16}); }

  void reopen_with(EngineOptions options) {
    options_ = options;
    crash_and_open();
  }
  std::uint64_t loaded() { return engine_->stats().loaded; }
  /// The figures of a queue without the age of the last hand-out, which these tests do not compare.
  QueueStats stats_of(const std::string& queue) {
    QueueStats stats = engine_->queue(queue).value().stats;
    stats.last_handed_out_age.reset();
    return stats;
  }
  /// Due now, all accepted in one turn.
  std::vector<TaskId> schedule_many(const std::string& queue, int count,
                                    std::uint32_t priority = kDefaultPriority) {
    std::vector<TaskId> ids;
    for (int i = 0; i < count; ++i) {
      ScheduleRequest asked = request(queue, 0ms);
      asked.rules.priority = priority;
      ids.push_back(engine_->schedule(asked).value().task.id);
    }
    settle();
    engine_->check_invariants();
    return ids;
  }
  void crash_and_open_after_turn() {
    ASSERT_TRUE(engine_->turn());
    crash_and_open();
  }
  /// Where the record lies on disk.
  Place place_of(TaskId id) { return store_->find(id).value().value().place; }
  bool is_in_ready_lane(TaskId id) { return place_of(id).lane == Lane::ready; }
  /// Leases one after another and completes each, until none is left.
  std::vector<TaskId> drain(const std::string& queue) {
    std::vector<TaskId> ids;
    for (std::vector<LeasedTask> tasks; !(tasks = lease(queue)).empty();) {
      ids.push_back(tasks[0].task.id);
      EXPECT_EQ(complete(tasks[0].lease), LeaseOutcome::done);
      EXPECT_LE(loaded(), options_.max_loaded);
    }
    return ids;
  }
  static std::vector<TaskId> joined(std::vector<TaskId> first, const std::vector<TaskId>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
};

// ---- order and memory ----

TEST_F(EngineSpill, MemoryIsBoundedWhileTenThousandReadyTasksWait) {
  reopen_with({.max_loaded = 800});
  std::vector<TaskId> ids;
  for (int i = 0; i < 10; ++i) {
    ids = joined(ids, schedule_many("q", 1'000));
    EXPECT_LE(loaded(), 800u);
  }
  EXPECT_EQ(stats_of("q").ready, 10'000u);
  crash_and_open();
  settle();
  EXPECT_LE(loaded(), 800u);
  EXPECT_EQ(stats_of("q").ready, 10'000u);
  EXPECT_EQ(drain("q"), ids);
  EXPECT_EQ(disk_->record_count(), 0u);
}

TEST_F(EngineSpill, TasksBeyondTheMemoryMoveToTheReadyLaneAndKeepTheirOrder) {
  const std::vector<TaskId> ids = schedule_many("q", 200);
  EXPECT_TRUE(is_in_ready_lane(ids.back()));
  EXPECT_LE(loaded(), 16u);
  EXPECT_EQ(drain("q"), ids);
}

TEST_F(EngineSpill, AnotherQueueHasItsPartOfTheMemoryHoweverManyAreReady) {
  reopen_with({.max_loaded = 640});
  schedule_many("many", 300);
  for (const TaskId id : schedule_many("few", 30)) EXPECT_FALSE(is_in_ready_lane(id));
}

TEST_F(EngineSpill, MoreUrgentTasksThatComeLaterGoBeforeSpilledOnes) {
  const std::vector<TaskId> usual = schedule_many("q", 100, 5);
  const std::vector<TaskId> urgent = schedule_many("q", 100, 1);
  const std::vector<TaskId> idle = schedule_many("q", 20, 9);
  const std::vector<TaskId> middle = schedule_many("q", 20, 3);
  EXPECT_EQ(drain("q"), joined(joined(urgent, middle), joined(usual, idle)));
  engine_->check_invariants();
}

TEST_F(EngineSpill, OrderHoldsWhateverComesBetweenTheLeases) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::set<std::pair<std::uint32_t, TaskId>> expected;
  for (int i = 0; i < 3'000; ++i) {
    if (rng.below(expected.size() < 300 ? 3 : 8) != 0) {
      const std::uint32_t priority = rng.below(4);
      expected.emplace(priority, schedule_many("q", 1, priority)[0]);
    }
    if (rng.below(2) == 0 || expected.empty()) continue;
    const std::vector<LeasedTask> leased = lease("q");
    ASSERT_EQ(leased.size(), 1u);
    ASSERT_EQ(leased[0].task.id, expected.begin()->second) << "step " << i;
    expected.erase(expected.begin());
    ASSERT_EQ(complete(leased[0].lease), LeaseOutcome::done);
    ASSERT_EQ(stats_of("q").ready, expected.size());
  }
}

TEST_F(EngineSpill, OrderHoldsBeforeAnythingHasMovedToTheDisk) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::set<std::pair<std::uint32_t, TaskId>> expected;
  expected.emplace(kDefaultPriority, schedule_many("q", 1)[0]);
  for (int i = 0; i < 2'000; ++i) {
    for (std::uint32_t n = rng.below(expected.size() < 300 ? 6 : 2); n > 0; --n) {
      ScheduleRequest asked = request("q", 0ms);
      asked.rules.priority = rng.below(100);
      const TaskSnapshot view = engine_->schedule(asked).value();
      ASSERT_EQ(view.state, TaskState::ready);
      expected.emplace(asked.rules.priority, view.task.id);
    }
    ASSERT_EQ(stats_of("q").ready, expected.size()) << "step " << i;
    if (rng.below(3) == 0) {
      ASSERT_TRUE(engine_->turn());
    }
    const std::size_t most = 1 + rng.below(3);
    const std::vector<LeasedTask> leased = engine_->lease({.queue = "q", .max = most}).value();
    ASSERT_EQ(leased.empty(), expected.empty()) << "step " << i;
    for (const LeasedTask& task : leased) {
      ASSERT_EQ(task.task.id, expected.begin()->second) << "step " << i;
      expected.erase(expected.begin());
      ASSERT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
    }
    if (rng.below(100) == 0) crash_and_open_after_turn();
  }
  settle();
  engine_->check_invariants();
}

TEST_F(EngineSpill, AnEarlierDueTimeGoesFirstAmongSpilledTasksAsInMemory) {
  const std::vector<TaskId> first = schedule_many("q", 50);
  advance(1s);
  const std::vector<TaskId> second = schedule_many("q", 50);
  const TaskId dated = schedule("q", wall_now() - 1h);
  EXPECT_EQ(drain("q"), joined({dated}, joined(first, second)));
}

TEST_F(EngineSpill, ManyAreHandedOutAtOnceMostUrgentFirst) {
  reopen_with({.max_loaded = 64});
  const std::vector<TaskId> ids = schedule_many("q", 300);
  std::size_t given = 0;
  while (given < ids.size()) {
    const std::vector<LeasedTask> tasks = lease("q", 10);
    ASSERT_FALSE(tasks.empty());
    for (const LeasedTask& task : tasks) {
      ASSERT_EQ(task.task.id, ids[given++]);
      ASSERT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
    }
    settle();
  }
}

TEST_F(EngineSpill, AStormOfTasksDueInOneMillisecondComesWholeAndInOrder) {
  reopen_with({.max_loaded = 2'000});
  std::vector<TaskId> ids;
  for (int i = 0; i < 20'000; ++i) {
    ids.push_back(engine_->schedule(request("storm", 1min)).value().task.id);
    if (i % 1'000 == 0) settle();
  }
  const TaskId other = schedule("other", 1min);
  advance(1min);
  EXPECT_LE(loaded(), 2'000u);
  EXPECT_EQ(stats_of("storm").ready, 20'000u);
  const std::vector<LeasedTask> beside = lease("other");
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_EQ(beside[0].task.id, other);
  EXPECT_EQ(beside[0].lateness, 0ms);
  EXPECT_EQ(drain("storm"), ids);
}

// ---- other queues ----

TEST_F(EngineSpill, TasksOfOtherQueuesFireInTheirMillisecondDuringABacklog) {
  schedule_many("backlog", 500);
  for (int i = 0; i < 100; ++i) schedule("q", std::chrono::minutes{i + 1});
  for (int i = 0; i < 100; ++i) {
    advance(1min - 1ms);
    ASSERT_TRUE(lease("q").empty());
    advance(1ms);
    const std::vector<LeasedTask> due = lease("q");
    ASSERT_EQ(due.size(), 1u) << "after " << i;
    EXPECT_EQ(due[0].lateness, 0ms);
    ASSERT_EQ(complete(due[0].lease), LeaseOutcome::done);
    ASSERT_LE(loaded(), 16u);
  }
  EXPECT_EQ(stats_of("backlog").ready, 500u);
}

TEST_F(EngineSpill, ManyQueuesWithABacklogEachAllGoOn) {
  for (int queue = 0; queue < 20; ++queue) schedule_many("q" + std::to_string(queue), 20);
  EXPECT_LE(loaded(), 16u);
  for (int i = 0; i < 20; ++i) {
    for (int queue = 0; queue < 20; ++queue) {
      const std::vector<LeasedTask> tasks = lease("q" + std::to_string(queue));
      ASSERT_EQ(tasks.size(), 1u) << "queue " << queue << " task " << i;
      ASSERT_EQ(complete(tasks[0].lease), LeaseOutcome::done);
      ASSERT_LE(loaded(), 16u);
    }
  }
  EXPECT_EQ(disk_->record_count(), 0u);
}

TEST_F(EngineSpill, AWorkerThatWaitsIsServedFromABacklogWhenItMay) {
  ASSERT_TRUE(engine_->set_queue("q", {.paused = true}));
  const std::vector<TaskId> ids = schedule_many("q", 100);
  schedule_many("other", 100);
  std::vector<TaskId> got;
  engine_->lease_or_wait({.queue = "q"}, 1min, [&got](Result<std::vector<LeasedTask>> tasks) {
    for (const LeasedTask& task : *tasks) got.push_back(task.task.id);
  });
  settle();
  EXPECT_TRUE(got.empty());
  ASSERT_TRUE(engine_->set_queue("q", {}));
  settle();
  EXPECT_EQ(got, std::vector{ids[0]});
}

// ---- verbs on spilled tasks ----

TEST_F(EngineSpill, ASpilledTaskIsReadyForWhoeverAsks) {
  const TaskId id = schedule_many("q", 100).back();
  ASSERT_TRUE(is_in_ready_lane(id));
  const TaskSnapshot view = engine_->get(id).value();
  EXPECT_EQ(view.state, TaskState::ready);
  EXPECT_EQ(view.task.due_at, wall_now());
  EXPECT_EQ(engine_->redrive(id).error().code, ErrorCode::conflict);
}

TEST_F(EngineSpill, ASpilledTaskIsCancelled) {
  std::vector<TaskId> ids = schedule_many("q", 100);
  for (const std::size_t i : {99u, 50u}) {
    ASSERT_TRUE(is_in_ready_lane(ids[i]));
    ASSERT_TRUE(engine_->cancel(ids[i]));
    EXPECT_EQ(state_of(ids[i]), std::nullopt) << "in the same turn";
    EXPECT_EQ(engine_->cancel(ids[i]).error().code, ErrorCode::not_found);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i));
  }
  EXPECT_EQ(stats_of("q").ready, 98u);
  EXPECT_EQ(drain("q"), ids);
}

TEST_F(EngineSpill, ASpilledTaskIsMovedNearFarAndIntoThePast) {
  std::vector<TaskId> ids = schedule_many("q", 100);
  const std::vector<TaskId> moved(ids.end() - 3, ids.end());
  ids.resize(97);
  EXPECT_EQ(engine_->move(moved[0], 1min).value().state, TaskState::scheduled);
  EXPECT_EQ(engine_->move(moved[1], 24h * 30).value().state, TaskState::scheduled);
  EXPECT_EQ(engine_->move(moved[2], wall_now() - 1h).value().state, TaskState::ready);
  settle();
  engine_->check_invariants();
  crash_and_open();
  EXPECT_EQ(drain("q"), joined({moved[2]}, ids));
  advance(1min);
  EXPECT_EQ(drain("q"), std::vector{moved[0]});
  advance(24h * 30);
  EXPECT_EQ(drain("q"), std::vector{moved[1]});
}

TEST_F(EngineSpill, ASpilledTaskRunNowStaysAtItsPlaceInTheOrder) {
  const std::vector<TaskId> ids = schedule_many("q", 100);
  const Place place = place_of(ids[70]);
  advance(1min);
  const TaskSnapshot view = engine_->run_now(ids[70]).value();
  EXPECT_EQ(view.state, TaskState::ready);
  EXPECT_EQ(view.task.due_at, wall_now() - 1min);
  settle();
  EXPECT_EQ(place_of(ids[70]), place);
  EXPECT_EQ(drain("q"), ids);
}

TEST_F(EngineSpill, APurgeTakesTheSpilledTasksOfItsQueueToo) {
  schedule_many("q", 200);
  const std::vector<TaskId> others = schedule_many("other", 100);
  const LeaseToken held = lease("q").at(0).lease;
  std::size_t purged = 0;
  for (std::optional<QueueCursor> from = QueueCursor{}; from;) {
    const QueueStep step = engine_->purge("q", 17, *from).value();
    purged += step.count;
    from = step.next;
    if (purged % 2 == 0) settle();
  }
  settle();
  EXPECT_EQ(purged, 199u);
  engine_->check_invariants();
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q", .leased = 1}));
  EXPECT_EQ(complete(held), LeaseOutcome::done);
  EXPECT_EQ(drain("other"), others);
}

TEST_F(EngineSpill, APurgeTakesWhatSpillsWhileItIsUnderWay) {
  schedule_many("q", 50);
  for (int i = 0; i < 100; ++i) schedule("q", 1s);
  std::size_t purged = 0;
  for (std::optional<QueueCursor> from = QueueCursor{}; from;) {
    const QueueStep step = engine_->purge("q", 40, *from).value();
    purged += step.count;
    from = step.next;
    settle();
    if (purged > 50) advance(500ms);
  }
  EXPECT_EQ(purged, 150u);
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q"}));
  engine_->check_invariants();
}

TEST_F(EngineSpill, ATaskAtTheHeadEndsWellWhileTheHeadIsSpilledAgain) {
  std::vector<TaskId> usual = schedule_many("q", 50, 5);
  const std::vector<LeasedTask> held = lease("q", 3);
  ASSERT_EQ(held.size(), 3u);
  std::vector<TaskId> urgent = schedule_many("q", 50, 1);
  EXPECT_EQ(complete(held[0].lease), LeaseOutcome::done);
  EXPECT_EQ(engine_->release(held[1].lease), LeaseOutcome::done);
  fail(held[2].lease, 0ms);
  engine_->check_invariants();
  usual.erase(usual.begin());
  std::vector<TaskId> drained = drain("q");
  EXPECT_EQ(drained, joined(urgent, usual));
}

TEST_F(EngineSpill, ALeaseOfASpilledTaskThatRunsOutBringsItBack) {
  schedule_many("q", 50, 5);
  const TaskId id = lease("q").at(0).task.id;
  ASSERT_TRUE(engine_->set_queue("q", {.paused = true}));
  schedule_many("q", 50, 1);
  advance(1min);
  advance(2s);  // its backoff
  EXPECT_EQ(engine_->get(id).value().task.attempts, 1u);
  EXPECT_EQ(state_of(id), TaskState::ready);
  engine_->check_invariants();
  ASSERT_TRUE(engine_->set_queue("q", {}));
  EXPECT_EQ(drain("q").size(), 100u);
}

TEST_F(EngineSpill, ASpilledTaskDiesAndLivesAgain) {
  const std::vector<TaskId> ids = schedule_many("q", 60);
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(engine_->bury(lease("q").at(0).lease, "no"), LeaseOutcome::dead);
    settle();
  }
  engine_->check_invariants();
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q", .dead = 60}));
  EXPECT_EQ(engine_->redrive("q", 100).value().count, 60u);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(drain("q"), ids);
}

// ---- crashes, damage, steps of the clock ----

TEST_F(EngineSpill, SpilledTasksAndTheirCountsSurviveACrash) {
  const std::vector<TaskId> ids = schedule_many("q", 100);
  const std::vector<TaskId> others = schedule_many("other", 30, 1);
  lease("q", 2);
  crash_and_open();
  settle();
  engine_->check_invariants();
  EXPECT_LE(loaded(), 16u);
  EXPECT_EQ(stats_of("q").ready, 100u);
  EXPECT_EQ(stats_of("other").ready, 30u);
  EXPECT_EQ(drain("q"), ids);
  EXPECT_EQ(drain("other"), others);
}

TEST_F(EngineSpill, AFailedWriteDuringASpillLosesNothing) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    for (std::uint64_t n = 1; n <= 6; ++n) {
      open_on_a_new_disk();
      std::vector<TaskId> ids;
      for (int i = 0; i < 60; ++i) ids.push_back(schedule("q", 1s));
      clock_.advance(1s);
      store_->fail_write(n, fault);
      for (int i = 0; i < 20 && engine_->turn(); ++i) engine_->lease({.queue = "q"}).value();
      crash_and_open();
      settle();
      ASSERT_EQ(drain("q"), ids) << "fault at write " << n;
    }
  }
}

TEST_F(EngineSpill, ADamagedRecordInTheReadyLaneHidesNoOtherAndIsSetAside) {
  for (const bool is_loaded : {false, true}) {
    SCOPED_TRACE(is_loaded);
    open_on_a_new_disk();
    std::vector<TaskId> ids = schedule_many("q", 40);
    if (is_loaded) {  // a few leases on, the lane's own tasks are at hand
      for (int i = 0; i < 12; ++i) ASSERT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
      ids.erase(ids.begin(), ids.begin() + 12);
    }
    const std::size_t at = is_loaded ? 0 : 30;
    if (!is_in_ready_lane(ids[at])) ADD_FAILURE() << "not the case this is about";
    disk_->flip_bit(place_of(ids[at]), 100);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_EQ(drain("q"), ids);
    EXPECT_EQ(store_->quarantined().value(), 1u);
    EXPECT_EQ(engine_->stats().counters.quarantined, 1u);
    EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q"}));
    crash_and_open();
    EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q"}));
  }
}

TEST_F(EngineSpill, ADamagedRecordOfALeasedTaskLeavesItsQueueOnce) {
  schedule_many("q", 40);
  for (int i = 0; i < 12; ++i) ASSERT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  const LeasedTask held = lease("q").at(0);
  schedule_many("q", 20, 0);  // the head is before it now, so that a page meets it again
  if (!is_in_ready_lane(held.task.id)) ADD_FAILURE() << "not the case this is about";
  disk_->flip_bit(place_of(held.task.id), 100);
  EXPECT_EQ(drain("q").size(), 40u - 12 - 1 + 20);
  EXPECT_EQ(store_->quarantined().value(), 1u);
  EXPECT_EQ(complete(held.lease), LeaseOutcome::conflict) << "there is nothing to complete";
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q"}));
}

TEST_F(EngineSpill, ADamagedRecordIsCountedNoMoreAlsoWhileOthersAreBehindIt) {
  const std::vector<TaskId> ids = schedule_many("q", 400);
  if (!is_in_ready_lane(ids[30])) ADD_FAILURE() << "not the case this is about";
  disk_->flip_bit(place_of(ids[30]), 100);
  std::uint64_t completed = 0;
  std::vector<LeasedTask> leased = lease("q");
  for (; engine_->stats().counters.quarantined == 0; leased = lease("q"), ++completed) {
    ASSERT_EQ(complete(leased.at(0).lease), LeaseOutcome::done);
  }
  EXPECT_EQ(stats_of("q").ready, 400 - completed - 2);
  crash_and_open();  // nothing has changed the queue since
  EXPECT_EQ(stats_of("q").ready, 400 - completed - 1);
}

TEST_F(EngineSpill, ADamagedRecordAtTheHeadIsCountedNoMoreToo) {
  for (const int completed : {0, 12}) {  // a few leases on, the lane's own tasks are at hand
    SCOPED_TRACE(completed);
    open_on_a_new_disk();
    const std::vector<TaskId> ids = schedule_many("q", 400);
    for (int i = 0; i < completed; ++i)
      ASSERT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
    const TaskId damaged = ids[static_cast<std::size_t>(completed)];
    EXPECT_EQ(is_in_ready_lane(damaged), completed != 0);
    disk_->flip_bit(place_of(damaged), 100);
    EXPECT_EQ(lease("q").size(), 1u);
    EXPECT_EQ(engine_->stats().counters.quarantined, 1u);
    EXPECT_EQ(stats_of("q").ready, static_cast<std::uint64_t>(400 - completed - 2));
    crash_and_open();
    EXPECT_EQ(stats_of("q").ready, static_cast<std::uint64_t>(400 - completed - 1));
  }
}

TEST_F(EngineSpill, ASpilledTaskStaysReadyWhenTheWallClockIsSteppedBack) {
  const std::vector<TaskId> ids = schedule_many("q", 60);
  clock_.step_wall(-1h);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(drain("q"), ids);
}

}  // namespace
}  // namespace detent

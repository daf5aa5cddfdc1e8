// Verbs on one task or one lease: move, run now, redrive, extend, release, bury.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineVerbs : public EngineFixture {
 protected:
  /// A task that its only worker has buried.
  TaskId dead_task(const std::string& queue) {
    const TaskId id = schedule(queue, 0ms);
    EXPECT_EQ(engine_->bury(lease(queue)[0].lease, "hopeless"), LeaseOutcome::dead);
    settle();
    return id;
  }
  ErrorCode move_error(TaskId id, const Due& due) { return engine_->move(id, due).error().code; }
  TaskCounters counters() { return engine_->stats().counters; }
  QueueStats stats_of_queue() { return engine_->stats().queues.at(0); }
  void crash_and_check() {
    crash_and_open();
    engine_->check_invariants();
  }
};

// ---- schedule, while the intake is closed ----

TEST_F(EngineVerbs, AClosedIntakeRefusesNewTasksAndLeavesNoQueue) {
  TaskIntake intake;
  options_.intake = &intake;
  crash_and_open();
  schedule("q", 0ms);
  intake.close({ErrorCode::unavailable, "no space", ""});
  EXPECT_EQ(engine_->schedule(request("q", 0ms)).error().message, "no space");
  EXPECT_FALSE(engine_->schedule(request("new", 0ms)));
  EXPECT_FALSE(engine_->queue("new"));
  EXPECT_TRUE(engine_->stats().refuses_tasks);
  EXPECT_EQ(complete(lease("q")[0].lease), LeaseOutcome::done);
  intake.open();
  EXPECT_FALSE(engine_->stats().refuses_tasks);
  schedule("new", 0ms);
  engine_->check_invariants();
  crash();  // the intake ends before the engine of the fixture
  options_.intake = nullptr;
  open();
}

// An occurrence that could not get its task gets it later.
TEST_F(EngineVerbs, ARecurringScheduleWaitsForTheIntake) {
  TaskIntake intake;
  options_.intake = &intake;
  crash_and_open();
  ASSERT_TRUE(engine_->put_schedule(
      {.name = "s", .rule = CronRule{"* * * * *"}, .queue = "q", .payload = {.data = "1"}}));
  settle();
  intake.close({ErrorCode::unavailable, "no space", ""});
  advance(1min);
  EXPECT_EQ(engine_->stats().all.ready, 0u);
  intake.open();
  advance(2s);
  EXPECT_EQ(engine_->stats().all.ready, 1u);
  crash();
  options_.intake = nullptr;
  open();
}

// ---- move, run now ----

TEST_F(EngineVerbs, AMovedTaskComesAtItsNewTimeAndNotAtItsOld) {
  const TaskId id = schedule("q", 10s);
  const TaskSnapshot moved = engine_->move(id, 20s).value();
  EXPECT_EQ(moved.task.due_at, wall_now() + 20s);
  EXPECT_EQ(moved.state, TaskState::scheduled);
  crash_and_check();
  EXPECT_EQ(engine_->get(id).value().task.due_at, wall_now() + 10s) << "it was not committed";
  ASSERT_TRUE(engine_->move(id, 20s));
  settle();
  crash_and_check();
  advance(20s - 1ms);
  EXPECT_TRUE(lease("q").empty());
  advance(1ms);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineVerbs, ATaskIsMovedOverTheEdgeOfTheWindowBothWays) {
  const TaskId id = schedule("q", 1min);
  ASSERT_TRUE(engine_->move(id, 24h));
  settle();
  EXPECT_EQ(engine_->stats().loaded, 0u);
  engine_->check_invariants();
  ASSERT_TRUE(engine_->move(id, 1s));
  settle();
  EXPECT_EQ(engine_->stats().loaded, 1u);
  engine_->check_invariants();
  advance(1s);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineVerbs, AReadyTaskMovedToLaterIsNoLongerHandedOut) {
  const TaskId id = schedule("q", 0ms);
  EXPECT_EQ(engine_->move(id, wall_now() + 5s).value().state, TaskState::scheduled);
  EXPECT_TRUE(lease("q").empty());
  advance(5s);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineVerbs, ATaskMovedToADateFollowsAStepOfTheWallClock) {
  const TaskId id = schedule("q", 1min);
  ASSERT_TRUE(engine_->move(id, wall_now() + 2min));
  settle();
  clock_.step_wall(1min);
  settle();
  advance(1min);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineVerbs, ALeasedTaskIsNotMovedNorRunNowNorRedriven) {
  const TaskId id = schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(move_error(id, 1s), ErrorCode::conflict);
  EXPECT_EQ(engine_->run_now(id).error().code, ErrorCode::conflict);
  EXPECT_EQ(engine_->redrive(id).error().code, ErrorCode::conflict);
  EXPECT_EQ(complete(token), LeaseOutcome::done);
}

TEST_F(EngineVerbs, ATaskThatIsNotThereIsNotFound) {
  const TaskId id = schedule("q", 1h);
  ASSERT_TRUE(engine_->cancel(id));
  EXPECT_EQ(move_error(id, 1s), ErrorCode::not_found);
  EXPECT_EQ(engine_->run_now(id).error().code, ErrorCode::not_found);
  EXPECT_EQ(engine_->redrive(id).error().code, ErrorCode::not_found);
}

TEST_F(EngineVerbs, ADueTimeNoNewTaskMayHaveIsRefused) {
  const TaskId id = schedule("q", 1h);
  EXPECT_EQ(engine_->move(id, -1ms).error().field, "delay");
  EXPECT_EQ(engine_->move(id, kMaxDelay + 1s).error().field, "delay");
  EXPECT_EQ(engine_->move(id, WallTime{-1ms}).error().field, "due_at");
  EXPECT_EQ(engine_->get(id).value().task.due_at, wall_now() + 1h);
}

TEST_F(EngineVerbs, AFarTaskRunNowIsReady) {
  const TaskId id = schedule("q", 24h * 30);
  EXPECT_EQ(engine_->run_now(id).value().state, TaskState::ready);
  settle();
  crash_and_check();
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineVerbs, RunNowLeavesAReadyTaskAtItsPlaceInTheOrder) {
  const TaskId first = schedule("q", 0ms);
  advance(1s);
  const TaskId second = schedule("q", 0ms);
  const WallTime due = engine_->get(first).value().task.due_at;
  EXPECT_EQ(engine_->run_now(first).value().task.due_at, due);
  EXPECT_EQ(lease_ids("q", 2), (std::vector{first, second}));
}

TEST_F(EngineVerbs, AnAttemptThatFailedStillCountsAfterAMove) {
  const TaskId id = schedule("q", 0ms);
  fail(lease("q")[0].lease, 1h);
  ASSERT_TRUE(engine_->move(id, 1min));
  settle();
  advance(1min);
  EXPECT_EQ(lease("q")[0].attempt, 2u);
}

TEST_F(EngineVerbs, AWaitingWorkerGetsATaskThatIsRunNow) {
  const TaskId id = schedule("q", 1h);
  std::vector<TaskId> answer;
  engine_->lease_or_wait({.queue = "q"}, 20s, [&](Result<std::vector<LeasedTask>> tasks) {
    for (const LeasedTask& task : *tasks) answer.push_back(task.task.id);
  });
  ASSERT_TRUE(engine_->run_now(id));
  settle();
  EXPECT_EQ(answer, std::vector{id});
}

// ---- dead tasks ----

TEST_F(EngineVerbs, ABuriedTaskIsDeadAtOnceAlsoAfterACrash) {
  const TaskId id = schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  ASSERT_EQ(engine_->bury(token, "hopeless", 7), LeaseOutcome::dead);
  settle();
  crash_and_check();
  const TaskSnapshot view = engine_->get(id).value();
  EXPECT_EQ(view.state, TaskState::dead);
  EXPECT_EQ(view.task.attempts, 1u);
  EXPECT_EQ(last_error(view.task), "hopeless");
  EXPECT_EQ(view.task.rules.priority, 7u);
  EXPECT_EQ(stats_of_queue().dead, 1u);
  EXPECT_EQ(stats_of_queue().leased, 0u);
}

TEST_F(EngineVerbs, ABuryCountsAsAFailureAndADeath) {
  dead_task("q");
  EXPECT_EQ(counters().failed, 1u);
  EXPECT_EQ(counters().dead, 1u);
}

TEST_F(EngineVerbs, ARedrivenTaskHasAllItsAttemptsBeforeIt) {
  ScheduleRequest twice = request("q", 0ms);
  twice.rules.max_attempts = 2;
  const TaskId id = schedule(twice);
  for (int i = 0; i < 2; ++i) fail(lease("q")[0].lease, 0ms);
  ASSERT_EQ(state_of(id), TaskState::dead);
  EXPECT_EQ(engine_->redrive(id).value().state, TaskState::ready);
  settle();
  crash_and_check();
  const LeasedTask again = lease("q").at(0);
  EXPECT_EQ(again.attempt, 1u);
  EXPECT_EQ(last_error(again.task), "it broke");
  EXPECT_EQ(fail(again.lease, 0ms), LeaseOutcome::done);
  EXPECT_EQ(fail(lease("q")[0].lease, 0ms), LeaseOutcome::dead);
}

TEST_F(EngineVerbs, OnlyADeadTaskIsRedriven) {
  const TaskId far = schedule("q", 24h);
  const TaskId ready = schedule("q", 0ms);
  EXPECT_EQ(engine_->redrive(far).error().code, ErrorCode::conflict);
  EXPECT_EQ(engine_->redrive(ready).error().code, ErrorCode::conflict);
}

TEST_F(EngineVerbs, RunNowAndMoveBringADeadTaskBackToo) {
  const TaskId now = dead_task("q");
  const TaskId later = dead_task("q");
  EXPECT_EQ(engine_->run_now(now).value().state, TaskState::ready);
  EXPECT_EQ(engine_->move(later, 1min).value().state, TaskState::scheduled);
  settle();
  crash_and_check();
  EXPECT_EQ(stats_of_queue().dead, 0u);
  EXPECT_EQ(lease_ids("q", 9), std::vector{now});
  advance(1min);
  EXPECT_EQ(lease("q").at(0).attempt, 1u);
}

// ---- extend ----

TEST_F(EngineVerbs, AnExtendedLeaseRunsOutLater) {
  const TaskId id = schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  advance(59s);
  EXPECT_EQ(engine_->extend(token, 30s), LeaseOutcome::done);
  advance(30s - 1ms);
  EXPECT_EQ(state_of(id), TaskState::leased);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  EXPECT_EQ(engine_->extend(token, 30s), LeaseOutcome::conflict);
}

TEST_F(EngineVerbs, AnExtensionNeverShortensALease) {
  const TaskId id = schedule("q", 0ms);
  EXPECT_EQ(engine_->extend(lease("q")[0].lease, 1s), LeaseOutcome::done);
  advance(60s - 1ms);
  EXPECT_EQ(state_of(id), TaskState::leased);
}

TEST_F(EngineVerbs, AnExtensionBeyondItsBoundsIsRefused) {
  schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  for (const std::chrono::milliseconds by : {-1ms, 0ms, kMaxVisibilityTimeout + 1ms}) {
    const Result<LeaseOutcome> extended = engine_->extend(token, by);
    ASSERT_FALSE(extended);
    EXPECT_EQ(extended.error().field, "by");
  }
  EXPECT_EQ(engine_->extend(token, 1ms), LeaseOutcome::done);
  EXPECT_EQ(engine_->extend(token, kMaxVisibilityTimeout), LeaseOutcome::done);
}

TEST_F(EngineVerbs, AnExtensionWritesNothing) {
  schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  const std::uint64_t writes = store_->write_count();
  ASSERT_TRUE(engine_->extend(token, 90s));
  settle();
  EXPECT_EQ(store_->write_count(), writes);
}

// ---- release ----

TEST_F(EngineVerbs, AReleasedTaskIsReadyAtItsOldPlaceAndItsAttemptDoesNotCount) {
  const TaskId first = schedule("q", 0ms);
  advance(1s);
  const TaskId second = schedule("q", 0ms);
  const LeasedTask leased = lease("q")[0];
  ASSERT_EQ(leased.task.id, first);
  const std::uint64_t writes = store_->write_count();
  EXPECT_EQ(engine_->release(leased.lease), LeaseOutcome::done);
  settle();
  EXPECT_EQ(store_->write_count(), writes) << "nothing durable has changed";
  EXPECT_EQ(complete(leased.lease), LeaseOutcome::conflict);
  const std::vector<LeasedTask> again = lease("q", 2);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].task.id, first);
  EXPECT_EQ(again[0].attempt, 1u);
  EXPECT_EQ(again[1].task.id, second);
  EXPECT_EQ(counters().failed + counters().leases_expired, 0u);
}

TEST_F(EngineVerbs, ATaskReleasedWithADelayComesBackAfterIt) {
  const TaskId id = schedule("q", 0ms);
  EXPECT_EQ(engine_->release(lease("q")[0].lease, 5s), LeaseOutcome::done);
  settle();
  crash_and_check();
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  advance(5s - 1ms);
  EXPECT_TRUE(lease("q").empty());
  advance(1ms);
  EXPECT_EQ(lease("q").at(0).attempt, 1u);
}

TEST_F(EngineVerbs, ATaskReleasedWithAPriorityKeepsItAlsoAfterACrash) {
  const TaskId first = schedule("q", 0ms);
  const TaskId second = schedule("q", 0ms);
  EXPECT_EQ(engine_->release(lease("q")[0].lease, 0ms, kDefaultPriority + 1), LeaseOutcome::done);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(lease_ids("q", 2), (std::vector{second, first}));
  crash_and_check();
  EXPECT_EQ(lease_ids("q", 2), (std::vector{second, first}));
}

TEST_F(EngineVerbs, AWaitingWorkerGetsATaskThatIsReleased) {
  schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  int tasks_got = 0;
  engine_->lease_or_wait({.queue = "q"}, 20s, [&](Result<std::vector<LeasedTask>> tasks) {
    tasks_got = static_cast<int>(tasks->size());
  });
  EXPECT_EQ(engine_->release(token), LeaseOutcome::done);
  settle();
  EXPECT_EQ(tasks_got, 1);
}

TEST_F(EngineVerbs, ADelayNoTaskMayHaveDoesNotEndTheLease) {
  schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(engine_->release(token, -1ms).error().field, "delay");
  EXPECT_EQ(complete(token), LeaseOutcome::done);
}

// ---- errors of the store ----

TEST_F(EngineVerbs, AStoreThatCannotBeReadChangesNothing) {
  const TaskId far = schedule("q", 24h);
  schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  store_->fail_reads(Error{ErrorCode::unavailable, "planned", ""});
  EXPECT_EQ(move_error(far, 1s), ErrorCode::unavailable);
  EXPECT_EQ(engine_->run_now(far).error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->bury(token, "no").error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->release(token, 1s).error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->purge("q", 10).error().code, ErrorCode::unavailable);
  store_->fail_reads({});
  engine_->check_invariants();
  EXPECT_EQ(complete(token), LeaseOutcome::done);
}

}  // namespace
}  // namespace detent

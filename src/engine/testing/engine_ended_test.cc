// The history of a task's attempts, and the tasks that are kept after their end.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineEnded : public EngineFixture {
 protected:
  LeaseToken lease_as(const std::string& worker) {
    const LeaseToken token = engine_->lease({.queue = "q", .worker = worker}).value().at(0).lease;
    settle();
    return token;
  }
  std::vector<Attempt> history(TaskId id) { return engine_->get(id).value().task.history; }
};

// ---- retention ----

TEST_F(EngineEnded, ACompletedTaskIsKeptWithItsStateAndHistoryForTheRetention) {
  set("q", {.retention = 1h});
  const TaskId id = schedule("q", 0ms);
  fail(lease("q")[0].lease, 0ms);
  EXPECT_EQ(complete(lease("q")[0].lease), LeaseOutcome::done);
  engine_->check_invariants();
  crash_and_open();
  advance(1h - 1ms);
  const TaskSnapshot kept = engine_->get(id).value();
  EXPECT_EQ(kept.state, TaskState::completed);
  EXPECT_EQ(kept.task.standing, Standing::completed);
  ASSERT_EQ(kept.task.history.size(), 2u);
  EXPECT_EQ(kept.task.history[0].error, "it broke");
  EXPECT_EQ(kept.task.history[1].error, "") << "the attempt that completed it";
  EXPECT_EQ(kept.task.payload, request("q", 0ms).payload);
  advance(1min);
  EXPECT_EQ(engine_->get(id).error().code, ErrorCode::not_found);
  EXPECT_EQ(disk_->record_count(), 0u);
  engine_->check_invariants();
}

TEST_F(EngineEnded, ACancelledTaskIsKeptAsCancelled) {
  set("q", {.retention = 1h});
  const TaskId far = schedule("q", 24h * 30);
  const TaskId near = schedule("q", 1min);
  const TaskId same_turn = engine_->schedule(request("q", 1h)).value().task.id;
  for (const TaskId id : {far, near, same_turn}) ASSERT_TRUE(engine_->cancel(id));
  for (const TaskId id : {far, near, same_turn}) EXPECT_EQ(state_of(id), TaskState::cancelled);
  settle();
  engine_->check_invariants();
  for (const TaskId id : {far, near, same_turn}) EXPECT_EQ(state_of(id), TaskState::cancelled);
  advance(1h + 1min);
  for (const TaskId id : {far, near, same_turn}) EXPECT_EQ(state_of(id), std::nullopt);
}

TEST_F(EngineEnded, ATaskThatHasEndedRefusesEveryOtherVerbWithAConflict) {
  set("q", {.retention = 1h});
  const TaskId completed = schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(complete(token), LeaseOutcome::done);
  const TaskId cancelled = schedule("q", 1h);
  ASSERT_TRUE(engine_->cancel(cancelled));
  for (const bool is_committed : {false, true}) {
    if (is_committed) settle();
    for (const TaskId id : {completed, cancelled}) {
      EXPECT_EQ(engine_->cancel(id).error().code, ErrorCode::conflict);
      EXPECT_EQ(engine_->move(id, 1s).error().code, ErrorCode::conflict);
      EXPECT_EQ(engine_->run_now(id).error().code, ErrorCode::conflict);
      EXPECT_EQ(engine_->redrive(id).error().code, ErrorCode::conflict);
    }
  }
  EXPECT_EQ(engine_->complete(token), LeaseOutcome::conflict);
  EXPECT_TRUE(lease("q", 10).empty());
  EXPECT_EQ(purge_all("q"), 0u);
  EXPECT_EQ(state_of(completed), TaskState::completed);
  EXPECT_EQ(engine_->stats().queues.at(0),
            (QueueStats{.queue = "q", .last_handed_out_age = std::chrono::milliseconds{0}}));
  engine_->check_invariants();
}

TEST_F(EngineEnded, WithoutRetentionAnEndedTaskIsRemoved) {
  schedule("q", 0ms);
  EXPECT_EQ(complete(lease("q")[0].lease), LeaseOutcome::done);
  ASSERT_TRUE(engine_->cancel(schedule("q", 1h)));
  settle();
  EXPECT_EQ(disk_->record_count(), 0u);
}

TEST_F(EngineEnded, APurgedTaskIsKeptAsCancelled) {
  set("q", {.retention = 1h});
  const TaskId id = schedule("q", 1h);
  EXPECT_EQ(purge_all("q"), 1u);
  EXPECT_EQ(state_of(id), TaskState::cancelled);
  engine_->check_invariants();
}

TEST_F(EngineEnded, TheEngineWakesUpToRemoveEndedTasks) {
  set("q", {.retention = 1h});
  for (int i = 0; i < 3'000; ++i) {
    ASSERT_TRUE(engine_->cancel(engine_->schedule(request("q", 1h)).value().task.id));
  }
  settle();
  EXPECT_EQ(disk_->record_count(), 3'000u);
  while (disk_->record_count() > 0) {
    ASSERT_LE(clock_.now().time_since_epoch(), 1h + 1min);
    advance_to_wakeup();
  }
  EXPECT_GE(clock_.now().time_since_epoch(), 1h);
}

// A store may have to walk over removed records: RocksDB over tombstones, PostgreSQL over rows that
// another transaction still sees.
TEST_F(EngineEnded, TheSearchForExpiredTasksBeginsBehindTheRemovedTasks) {
  set("q", {.retention = 1min});
  for (int i = 0; i < 3; ++i) {
    const TaskId id = schedule("q", 0ms);
    complete(lease("q").at(0).lease);
    advance(1min);
    advance(1s);  // searches again and finds nothing
    EXPECT_EQ(state_of(id), std::nullopt);
    EXPECT_EQ(store_->last_page_after().lane, Lane::ended);
    EXPECT_EQ(store_->last_page_after().id, id);
    engine_->check_invariants();
  }
}

TEST_F(EngineEnded, ATaskThatEndsAfterTheClockWasPutBackIsRemovedInTime) {
  set("q", {.retention = 1min});
  for (int i = 0; i < 2; ++i) {
    const TaskId id = schedule("q", 0ms);
    complete(lease("q").at(0).lease);
    engine_->check_invariants();
    EXPECT_EQ(state_of(id), TaskState::completed);
    advance(1min);
    EXPECT_EQ(state_of(id), std::nullopt);
    clock_.step_wall(-1h);
    advance(1s);
  }
}

TEST_F(EngineEnded, RetentionAppliesToTasksThatEndAfterItWasSet) {
  set("q", {.retention = 2h});
  const TaskId first = schedule("q", 1h);
  ASSERT_TRUE(engine_->cancel(first));
  set("q", {});
  const TaskId second = schedule("q", 1h);
  ASSERT_TRUE(engine_->cancel(second));
  settle();
  advance(1h);
  EXPECT_EQ(state_of(first), TaskState::cancelled);
  EXPECT_EQ(state_of(second), std::nullopt);
}

TEST_F(EngineEnded, AKeyAnswersWithItsEndedTaskDuringTheRetention) {
  set("q", {.retention = 1h});
  ScheduleRequest keyed = request("q", 1h);
  keyed.key = "k";
  const TaskId id = schedule(keyed);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  const TaskSnapshot view = engine_->schedule(keyed).value();
  EXPECT_TRUE(view.was_there);
  EXPECT_EQ(view.task.id, id);
  EXPECT_EQ(view.state, TaskState::cancelled);
}

// ---- history ----

TEST_F(EngineEnded, AnAttemptShowsItsWorkerItsTimesAndItsError) {
  const TaskId id = schedule("q", 0ms);
  advance(5s);
  const WallTime started = wall_now();
  const LeaseToken token = lease_as("ada");
  advance(3s);
  ASSERT_EQ(engine_->fail({.lease = token, .delay = 0ms, .error = "no disk"}), LeaseOutcome::done);
  const Attempt expected{.started_at = started,
                         .ended_at = started + 3s,
                         .worker = "ada",
                         .error = "no disk",
                         .late = {0ms, 0ms, 0ms, 5s}};
  EXPECT_EQ(history(id), std::vector{expected}) << "in the same turn";
  settle();
  EXPECT_EQ(history(id), std::vector{expected});
  crash_and_open();
  EXPECT_EQ(history(id), std::vector{expected});
  const std::vector<LeasedTask> leased = lease("q");
  EXPECT_EQ(leased.at(0).task.history, std::vector{expected}) << "the next worker reads it";
  EXPECT_EQ(leased.at(0).attempt, 2u);
}

TEST_F(EngineEnded, AnExtendedAttemptBeganWhenItsLeaseDid) {
  const TaskId id = schedule("q", 0ms);
  const WallTime started = wall_now();
  const LeaseToken token = lease_as("ada");
  advance(50s);
  ASSERT_EQ(engine_->extend(token, 1min), LeaseOutcome::done);
  advance(50s);
  fail(token);
  EXPECT_EQ(history(id).at(0).started_at, started);
  EXPECT_EQ(history(id).at(0).ended_at, started + 100s);
}

TEST_F(EngineEnded, AnExpiredLeaseIsAnAttemptWithAnError) {
  const TaskId id = schedule("q", 0ms);
  lease_as("ada");
  advance(60s);
  ASSERT_EQ(history(id).size(), 1u);
  EXPECT_EQ(history(id)[0].worker, "ada");
  EXPECT_EQ(history(id)[0].ended_at - history(id)[0].started_at, 60s);
  EXPECT_FALSE(history(id)[0].error.empty());
}

TEST_F(EngineEnded, OnlyTheLastTenAttemptsAreRememberedAndAllAreCounted) {
  ScheduleRequest asked = request("q", 0ms);
  asked.rules.max_attempts = 15;
  const TaskId id = schedule(asked);
  for (int i = 1; i <= 15; ++i) {
    const LeaseToken token = lease_as("w" + std::to_string(i));
    ASSERT_EQ(engine_->fail({.lease = token, .delay = 0ms, .error = std::to_string(i)}),
              i < 15 ? LeaseOutcome::done : LeaseOutcome::dead);
    settle();
    if (i % 4 == 0) crash_and_open();
    EXPECT_EQ(history(id).size(), std::min<std::size_t>(static_cast<std::size_t>(i), kMaxHistory));
    EXPECT_EQ(history(id).back().error, std::to_string(i));
  }
  EXPECT_EQ(history(id).front().error, "6");
  EXPECT_EQ(history(id).front().worker, "w6");
  EXPECT_EQ(engine_->get(id).value().task.attempts, 15u);
  EXPECT_EQ(state_of(id), TaskState::dead);
}

TEST_F(EngineEnded, ALongErrorIsCutAtTheEndOfACharacter) {
  const TaskId id = schedule("q", 0ms);
  std::string long_error(kMaxErrorBytes - 2, 'e');
  long_error += "\xE2\x82\xAC\xE2\x82\xAC";
  ASSERT_EQ(engine_->fail({.lease = lease_as(""), .delay = 0ms, .error = long_error}),
            LeaseOutcome::done);
  EXPECT_EQ(history(id)[0].error, std::string(kMaxErrorBytes - 2, 'e'));
  ASSERT_EQ(engine_->bury(lease_as(""), std::string(kMaxErrorBytes + 1, 'b')), LeaseOutcome::dead);
  EXPECT_EQ(history(id)[1].error, std::string(kMaxErrorBytes, 'b'));
}

TEST_F(EngineEnded, AReleasedLeaseAndALeaseLostInACrashAreNoAttempts) {
  const TaskId id = schedule("q", 0ms);
  ASSERT_EQ(engine_->release(lease_as("ada")), LeaseOutcome::done);
  ASSERT_EQ(engine_->release(lease_as("ada"), 0ms, 5), LeaseOutcome::done);
  settle();
  lease_as("ada");
  crash_and_open();
  EXPECT_TRUE(history(id).empty());
  EXPECT_EQ(lease("q").at(0).attempt, 1u);
}

TEST_F(EngineEnded, ARedrivenTaskKeepsItsHistoryAndCountsFromTheStart) {
  const TaskId id = schedule("q", 0ms);
  ASSERT_EQ(engine_->bury(lease_as("ada"), "hopeless"), LeaseOutcome::dead);
  ASSERT_TRUE(engine_->redrive(id));
  settle();
  crash_and_open();
  ASSERT_EQ(history(id).size(), 1u);
  EXPECT_EQ(history(id)[0].error, "hopeless");
  EXPECT_EQ(lease("q").at(0).attempt, 1u);
}

TEST_F(EngineEnded, ATooLongWorkerNameIsRefused) {
  EXPECT_EQ(
      engine_->lease({.queue = "q", .worker = std::string(kMaxWorkerBytes + 1, 'w')}).error().code,
      ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace detent

// The verbs: each test checks one sentence of their contract. Leases are in engine_lease_test.cc,
// the load window in engine_window_test.cc, crashes in engine_crash_test.cc.
#include "engine/engine.h"

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineTest : public EngineFixture {};

TEST_F(EngineTest, IdsRiseAndAreNotUsedAgainAfterACrash) {
  const TaskId first = schedule("q", 1h);
  const TaskId second = schedule("q", 1h);
  EXPECT_LT(first, second);
  ASSERT_TRUE(engine_->cancel(second));
  settle();
  crash_and_open();
  EXPECT_LT(second, schedule("q", 1h));
}

TEST_F(EngineTest, TheIdOfATaskMadeAndCancelledInOneTurnIsUsedUp) {
  const TaskId id = engine_->schedule(request("q", 1h)).value().task.id;
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  crash_and_open();
  EXPECT_LT(id, schedule("q", 1h));
}

TEST_F(EngineTest, ATaskWithoutADelayIsReadyAtOnce) {
  EXPECT_EQ(state_of(schedule("q", 0ms)), TaskState::ready);
}

TEST_F(EngineTest, ATaskIsHandedOutAtItsDueTimeAndNotAMillisecondBefore) {
  const TaskId id = schedule("q", 250ms);
  advance(249ms);
  EXPECT_TRUE(lease("q").empty());
  advance(1ms);
  const std::vector<LeasedTask> leased = lease("q");
  ASSERT_EQ(leased.size(), 1u);
  EXPECT_EQ(leased[0].task.id, id);
  EXPECT_EQ(leased[0].lateness, 0ms);
}

TEST_F(EngineTest, ATaskForADateIsDueThen) {
  const WallTime date = wall_now() + 24h;
  const TaskId id = schedule("q", date);
  EXPECT_EQ(engine_->get(id).value().task.due_at, date);
  advance(24h - 1ms);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::ready);
}

TEST_F(EngineTest, ADateInThePastIsDueNow) {
  const TaskId id = schedule("q", wall_now() - 1h);
  EXPECT_EQ(state_of(id), TaskState::ready);
  EXPECT_EQ(lease("q")[0].lateness, 1h);
}

TEST_F(EngineTest, ReadyTasksComeByPriorityThenDueTimeThenId) {
  ScheduleRequest urgent = request("q", 20ms);
  urgent.rules.priority = 1;
  const TaskId late_default = schedule("q", 20ms);
  const TaskId early_default = schedule("q", 10ms);
  const TaskId early_default_next = schedule("q", 10ms);
  const TaskId late_urgent = schedule(urgent);
  advance(20ms);
  EXPECT_EQ(lease_ids("q", 10),
            (std::vector{late_urgent, early_default, early_default_next, late_default}));
}

TEST_F(EngineTest, QueuesAreIndependent) {
  const TaskId in_a = schedule("a", 0ms);
  const TaskId in_b = schedule("b", 0ms);
  EXPECT_EQ(lease_ids("b", 10), std::vector{in_b});
  EXPECT_EQ(lease_ids("a", 10), std::vector{in_a});
  EXPECT_TRUE(lease("never.seen").empty());
}

TEST_F(EngineTest, AnUnknownTaskIsNotFound) {
  EXPECT_EQ(engine_->get(TaskId{12'345}).error().code, ErrorCode::not_found);
  EXPECT_EQ(engine_->cancel(TaskId{12'345}).error().code, ErrorCode::not_found);
}

TEST_F(EngineTest, ACancelledTaskIsGoneWhateverItsState) {
  const TaskId ready = schedule("q", 0ms);
  const TaskId near = schedule("q", 1s);
  const TaskId far = schedule("q", 24h * 30);
  for (const TaskId id : {ready, near, far}) {
    EXPECT_TRUE(engine_->cancel(id));
    EXPECT_EQ(engine_->cancel(id).error().code, ErrorCode::not_found) << "twice in one turn";
    settle();
    EXPECT_EQ(state_of(id), std::nullopt);
  }
  engine_->check_invariants();
  crash_and_open();
  advance(24h * 31);
  EXPECT_TRUE(lease("q", 10).empty());
}

TEST_F(EngineTest, ALeasedTaskIsNotCancelled) {
  const TaskId id = schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(engine_->cancel(id).error().code, ErrorCode::conflict);
  EXPECT_EQ(state_of(id), TaskState::leased);
  EXPECT_EQ(complete(token), LeaseOutcome::done);
}

TEST_F(EngineTest, BadRequestsAreRefusedAndChangeNothing) {
  for (const ScheduleRequest& bad :
       {request("no spaces", 0ms), request("", 0ms), request("q", -1ms),
        request("q", std::chrono::milliseconds::max()), request("q", WallTime::max())}) {
    EXPECT_EQ(engine_->schedule(bad).error().code, ErrorCode::invalid_argument);
  }
  ScheduleRequest big = request("q", 0ms);
  big.payload.data.assign(kMaxPayloadBytes + 1, 'x');
  EXPECT_EQ(engine_->schedule(big).error().code, ErrorCode::too_large);
  settle();
  EXPECT_EQ(engine_->stats().counters.scheduled, 0u);
  EXPECT_TRUE(engine_->stats().queues.empty());
}

TEST_F(EngineTest, AnswersWaitForTheCommit) {
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  bool told = false;
  engine_->after_commit([&told](const Result<void>& committed) { told = committed.has_value(); });
  EXPECT_FALSE(told);
  ASSERT_TRUE(engine_->commit());
  EXPECT_TRUE(told);
}

TEST_F(EngineTest, ManyVerbsInOneTurnAreOneWrite) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  settle();
  EXPECT_EQ(engine_->stats().commits, 1u);
  EXPECT_EQ(engine_->stats().committed_tasks, 100u);
}

TEST_F(EngineTest, AnIdleEngineWritesNothing) {
  advance(1h);
  EXPECT_EQ(engine_->stats().commits, 0u);
}

TEST_F(EngineTest, AFailedWriteIsToldAndNothingIsAcceptedAfterIt) {
  store_->fail_write(1, WriteFault::not_applied);
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  std::optional<ErrorCode> told;
  engine_->after_commit([&told](const Result<void>& r) { told = r.error().code; });
  EXPECT_FALSE(engine_->turn());
  EXPECT_EQ(told, ErrorCode::unavailable);
  EXPECT_EQ(engine_->schedule(request("q", 1h)).error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->lease({.queue = "q"}).error().code, ErrorCode::unavailable);
  ASSERT_TRUE(engine_->stopped_by());
}

TEST_F(EngineTest, StatsCountTasksByQueueAndState) {
  schedule("a", 0ms);
  schedule("a", 0ms);
  schedule("a", 1h);
  schedule("b", 24h);
  lease("a");
  advance(100ms);
  const EngineStats stats = engine_->stats();
  ASSERT_EQ(stats.queues.size(), 2u);
  EXPECT_EQ(stats.queues[0].queue, "a");
  EXPECT_EQ(stats.queues[0].scheduled, 1u);
  EXPECT_EQ(stats.queues[0].ready, 1u);
  EXPECT_EQ(stats.queues[0].leased, 1u);
  EXPECT_EQ(stats.queues[0].oldest_ready_age, 100ms);
  EXPECT_EQ(stats.queues[1].scheduled, 1u);
  EXPECT_EQ(stats.counters.scheduled, 4u);
  EXPECT_EQ(stats.counters.leased, 1u);
}

}  // namespace
}  // namespace detent

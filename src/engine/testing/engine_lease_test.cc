// Leases: complete, fail, expiry, and the wait for a task.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineLease : public EngineFixture {
 protected:
  struct Waiting {
    Engine::WaitId id = 0;
    int answers = 0;
    Result<std::vector<LeasedTask>> tasks;
  };
  /// Leases one task while the record of the first task is damaged. The second task must come.
  void expect_sound_behind_damaged() {
    const TaskId damaged = schedule("q", 1s);
    const TaskId sound = schedule("q", 1s);
    disk_->flip_bit({.lane = Lane::due, .at = wall_now() + 1s, .id = damaged}, 100);
    advance(1s);
    EXPECT_EQ(lease_ids("q", 1), std::vector{sound});
    engine_->check_invariants();
  }
  /// Waits for a task of `queue`; the answer comes to `waiting`.
  void wait_for(Waiting& waiting, const std::string& queue, std::chrono::milliseconds wait) {
    waiting.id = engine_->lease_or_wait({.queue = queue}, wait,
                                        [&waiting](Result<std::vector<LeasedTask>> tasks) {
                                          ++waiting.answers;
                                          waiting.tasks = std::move(tasks);
                                        });
    settle();
  }
};

TEST_F(EngineLease, ACompletedTaskIsGoneAlsoAfterACrash) {
  const TaskId id = schedule("q", 0ms);
  EXPECT_EQ(complete(lease("q")[0].lease), LeaseOutcome::done);
  EXPECT_EQ(state_of(id), std::nullopt);
  crash_and_open();
  EXPECT_EQ(state_of(id), std::nullopt);
  EXPECT_TRUE(lease("q").empty());
}

TEST_F(EngineLease, ALeaseCanBeEndedOnlyOnce) {
  schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(complete(token), LeaseOutcome::done);
  EXPECT_EQ(complete(token), LeaseOutcome::conflict);
  EXPECT_EQ(fail(token), LeaseOutcome::conflict);
  EXPECT_EQ(engine_->stats().counters.conflicts, 2u);
}

TEST_F(EngineLease, IdsAndLeasesCarryTheShard) {
  options_.shard = 200;
  crash_and_open();
  for (int i = 0; i < 3; ++i) {
    const TaskId id = schedule("q", 0ms);
    EXPECT_EQ(id.shard(), 200u);
    const LeasedTask leased = lease("q").at(0);
    EXPECT_EQ(TaskId{leased.lease.number}.shard(), 200u);
    EXPECT_EQ(complete(leased.lease), LeaseOutcome::done);
  }
}

TEST_F(EngineLease, ALeasedTaskIsNotHandedOutTwice) {
  schedule("q", 0ms);
  EXPECT_EQ(lease("q", 10).size(), 1u);
  EXPECT_TRUE(lease("q", 10).empty());
}

TEST_F(EngineLease, ALeaseOfAnEarlierRunIsStale) {
  const TaskId id = schedule("q", 0ms);
  const LeaseToken before = lease("q")[0].lease;
  crash_and_open();
  EXPECT_EQ(complete(before), LeaseOutcome::conflict);
  const std::vector<LeasedTask> again = lease("q");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].task.id, id);
  EXPECT_EQ(again[0].attempt, 1u) << "an attempt counts once it has ended";
  EXPECT_EQ(complete(before), LeaseOutcome::conflict);
  EXPECT_EQ(complete(again[0].lease), LeaseOutcome::done);
}

TEST_F(EngineLease, AFailedTaskComesBackAfterTheDelayAsked) {
  schedule("q", 0ms);
  EXPECT_EQ(fail(lease("q")[0].lease, 5s), LeaseOutcome::done);
  advance(5s - 1ms);
  EXPECT_TRUE(lease("q").empty());
  advance(1ms);
  const std::vector<LeasedTask> again = lease("q");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 2u);
  EXPECT_EQ(last_error(again[0].task), "it broke");
}

TEST_F(EngineLease, WithoutADelayAFailedTaskWaitsForItsBackoff) {
  ScheduleRequest quick = request("q", 0ms);
  quick.rules.backoff = Backoff{.initial = 10s, .max = 1h};
  schedule(quick);
  fail(lease("q")[0].lease);
  advance(8s - 1ms);
  EXPECT_TRUE(lease("q").empty());
  advance(4s + 1ms);
  EXPECT_EQ(lease("q").size(), 1u);
}

TEST_F(EngineLease, AfterItsLastAttemptATaskIsDeadAndStays) {
  ScheduleRequest twice = request("q", 0ms);
  twice.rules.max_attempts = 2;
  const TaskId id = schedule(twice);
  EXPECT_EQ(fail(lease("q")[0].lease, 0ms), LeaseOutcome::done);
  EXPECT_EQ(fail(lease("q")[0].lease, 0ms), LeaseOutcome::dead);
  EXPECT_EQ(state_of(id), TaskState::dead);
  crash_and_open();
  advance(24h * 365);
  EXPECT_TRUE(lease("q").empty());
  EXPECT_EQ(state_of(id), TaskState::dead);
  EXPECT_EQ(engine_->stats().queues[0].dead, 1u);
  engine_->check_invariants();
}

TEST_F(EngineLease, AnExpiredLeaseIsAFailedAttempt) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask first = lease("q")[0];
  EXPECT_EQ(first.lease_until, wall_now() + 60s);
  advance(60s - 1ms);
  EXPECT_EQ(state_of(id), TaskState::leased);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  EXPECT_EQ(complete(first.lease), LeaseOutcome::conflict);
  advance(1'200ms);
  const std::vector<LeasedTask> again = lease("q");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 2u);
  EXPECT_EQ(engine_->stats().counters.leases_expired, 1u);
}

TEST_F(EngineLease, OnlyALeasedTaskIsShownWithItsHolder) {
  const TaskId id = schedule("q", 0ms);
  EXPECT_FALSE(engine_->get(id)->holder);
  advance(5ms);
  const LeasedTask leased = engine_->lease({.queue = "q", .worker = "w-1"}).value().at(0);
  const LeaseHolder expected{.since = wall_now(), .worker = "w-1"};
  advance(1s);
  EXPECT_EQ(engine_->get(id)->holder, expected);
  ASSERT_EQ(engine_->release(leased.lease, {}, {}).value(), LeaseOutcome::done);
  EXPECT_FALSE(engine_->get(id)->holder);
}

TEST_F(EngineLease, TheTimeoutOfTheRequestOverridesTheTimeoutOfTheTask) {
  ScheduleRequest own = request("q", 0ms);
  own.rules.visibility_timeout = 30s;
  schedule(own);
  schedule(own);
  EXPECT_EQ(lease("q")[0].lease_until, wall_now() + 30s);
  const LeaseRequest asked{.queue = "q", .max = 1, .visibility_timeout = 5s, .worker = {}};
  EXPECT_EQ(engine_->lease(asked).value()[0].lease_until, wall_now() + 5s);
}

TEST_F(EngineLease, PayloadsOfOneAnswerAreBounded) {
  ScheduleRequest big = request("q", 0ms);
  big.payload.data.assign(kMaxPayloadBytes, 'x');
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(engine_->schedule(big));
  settle();
  const std::size_t first = lease("q", 1'000).size();
  EXPECT_EQ(first, 256u);  // 16 MiB of 65 535 bytes
  EXPECT_EQ(lease("q", 1'000).size(), 300u - first);
}

TEST_F(EngineLease, AWaitingWorkerGetsATaskTheMomentItIsDue) {
  schedule("q", 250ms);
  Waiting waiting;
  wait_for(waiting, "q", 20s);
  advance(249ms);
  EXPECT_EQ(waiting.answers, 0);
  advance(1ms);
  ASSERT_EQ(waiting.answers, 1);
  EXPECT_EQ(waiting.tasks.value().size(), 1u);
}

TEST_F(EngineLease, AWaitThatEndedEarlyLeavesNoTimer) {
  schedule("q", 1s);
  Waiting served;
  Waiting gone;
  wait_for(served, "q", 20s);
  wait_for(gone, "q", 20s);
  engine_->abandon_wait(gone.id);
  advance(1s);
  engine_->check_invariants();
  advance(20s);
  EXPECT_EQ(served.answers, 1);
  EXPECT_EQ(gone.answers, 1);
}

TEST_F(EngineLease, WaitingWorkersAreServedInTheOrderTheyCame) {
  Waiting first;
  Waiting second;
  wait_for(first, "q", 20s);
  wait_for(second, "q", 20s);
  schedule("q", 0ms);
  EXPECT_EQ(first.answers, 1);
  EXPECT_EQ(second.answers, 0);
  schedule("q", 0ms);
  EXPECT_EQ(second.answers, 1);
  EXPECT_EQ(second.tasks.value().size(), 1u);
}

TEST_F(EngineLease, AnExpiredWaitGetsAnEmptyAnswer) {
  Waiting waiting;
  wait_for(waiting, "q", 20s);
  advance(20s - 1ms);
  EXPECT_EQ(waiting.answers, 0);
  advance(1ms);
  ASSERT_EQ(waiting.answers, 1);
  EXPECT_TRUE(waiting.tasks.value().empty());
  EXPECT_EQ(engine_->stats().waiting_workers, 0u);
}

TEST_F(EngineLease, AWorkerThatWentAwayGetsNoTask) {
  Waiting gone;
  Waiting here;
  wait_for(gone, "q", 20s);
  wait_for(here, "q", 20s);
  engine_->abandon_wait(gone.id);
  schedule("q", 0ms);
  EXPECT_EQ(here.tasks.value().size(), 1u);
  EXPECT_EQ(gone.answers, 1);
  EXPECT_TRUE(gone.tasks.value().empty());
  engine_->abandon_wait(gone.id);  // does nothing, because the wait is over
}

TEST_F(EngineLease, WaitingWorkersGetTheErrorOfAFailedStore) {
  Waiting waiting;
  wait_for(waiting, "q", 20s);
  store_->fail_write(1, WriteFault::not_applied);
  ASSERT_TRUE(engine_->schedule(request("other", 0ms)));
  EXPECT_FALSE(engine_->turn());
  ASSERT_EQ(waiting.answers, 1);
  EXPECT_EQ(waiting.tasks.error().code, ErrorCode::unavailable);
}

TEST_F(EngineLease, AFailedQuarantineAnswersAWaitingWorkerOnce) {
  const TaskId damaged = schedule("q", 1s);
  schedule("q", 1s);
  disk_->flip_bit({.lane = Lane::due, .at = wall_now() + 1s, .id = damaged}, 100);
  Waiting waiting;
  waiting.id = engine_->lease_or_wait({.queue = "q", .max = 2}, 20s,
                                      [&waiting](Result<std::vector<LeasedTask>> tasks) {
                                        ++waiting.answers;
                                        waiting.tasks = std::move(tasks);
                                      });
  settle();
  store_->fail_write(1, WriteFault::not_applied);
  clock_.advance(1s);
  EXPECT_FALSE(engine_->turn());
  ASSERT_EQ(waiting.answers, 1);
  EXPECT_EQ(waiting.tasks.error().code, ErrorCode::unavailable);
  Waiting late;
  late.id = engine_->lease_or_wait({.queue = "q"}, 20s,
                                   [&late](Result<std::vector<LeasedTask>>) { ++late.answers; });
  EXPECT_FALSE(engine_->turn());
  EXPECT_EQ(late.answers, 1);
}

TEST_F(EngineLease, ALeaseSkipsADamagedTask) { expect_sound_behind_damaged(); }

TEST_F(EngineLease, ALeaseSkipsADamagedTaskUnderALimitOfOneLease) {
  set("q", {.concurrency = 1});
  expect_sound_behind_damaged();
}

TEST_F(EngineLease, ADamagedTaskThatCannotBeSetAsideStopsTheEngine) {
  const TaskId damaged = schedule("q", 1s);
  disk_->flip_bit({.lane = Lane::due, .at = wall_now() + 1s, .id = damaged}, 100);
  advance(1s);
  store_->fail_write(1, WriteFault::not_applied);
  (void)engine_->lease({.queue = "q"});
  EXPECT_TRUE(engine_->stopped_by());
  EXPECT_EQ(engine_->lease({.queue = "q"}).error().code, ErrorCode::unavailable);
}

TEST_F(EngineLease, ALeaseWithoutAWaitIsAnsweredInThisTurn) {
  Waiting waiting;
  wait_for(waiting, "q", 0ms);
  EXPECT_EQ(waiting.answers, 1);
  int answers = 0;
  engine_->lease_or_wait({.queue = "q"}, 0ms, [&](const auto&) { ++answers; });
  EXPECT_FALSE(engine_->has_waits());
  ASSERT_TRUE(engine_->commit());
  EXPECT_EQ(answers, 1);
  engine_->lease_or_wait({.queue = "q"}, 1ms, [](const auto&) {});
  EXPECT_TRUE(engine_->has_waits());
}

TEST_F(EngineLease, AQueueOfAWaitThatWasAbandonedBeforeItsTurnIsForgotten) {
  const Engine::WaitId id = engine_->lease_or_wait({.queue = "made-up"}, 1min, [](const auto&) {});
  engine_->abandon_wait(id);
  settle();
  EXPECT_TRUE(engine_->stats().queues.empty());
}

TEST_F(EngineLease, TheEndsOfLeasesAreCounted) {
  const auto counters = [this] { return engine_->stats().counters; };
  schedule_many("q", 3);
  complete(lease("q")[0].lease);
  EXPECT_EQ(counters().completed, 1u);
  fail(lease("q")[0].lease);
  EXPECT_EQ(counters().failed, 1u);
  EXPECT_EQ(engine_->bury(lease("q")[0].lease, "hopeless"), LeaseOutcome::dead);
  EXPECT_EQ(counters().failed, 2u);
  EXPECT_EQ(counters().leased, 3u);
}

TEST_F(EngineLease, TasksThatACommitPutsAndRemovesAreCounted) {
  const auto committed = [this] { return engine_->stats().committed_tasks; };
  schedule_many("q", 3);
  EXPECT_EQ(committed(), 3u);
  complete(lease("q")[0].lease);
  EXPECT_EQ(committed(), 4u);
}

// The error is not cut within a character. If all bytes look like the middle of a character, no
// byte is left.
TEST_F(EngineLease, AnErrorThatIsNotUtf8MayBeCutCompletely) {
  const TaskId id = schedule("q", 0ms);
  const std::string error(kMaxErrorBytes + 1, '\x80');
  ASSERT_TRUE(engine_->fail({.lease = lease("q")[0].lease, .error = error}));
  settle();
  EXPECT_EQ(engine_->get(id)->task.history.at(0).error, "");
}

TEST_F(EngineLease, AWaitingWorkerIsServedBeforeALaterRequest) {
  Waiting first;
  wait_for(first, "q", 20s);
  ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  EXPECT_TRUE(lease("q").empty());
  EXPECT_EQ(first.answers, 1);
  EXPECT_EQ(first.tasks.value().size(), 1u);
}

TEST_F(EngineLease, AQueueThatOnlyWorkersAskedForIsForgotten) {
  Waiting waiting;
  wait_for(waiting, "made-up", 1s);
  EXPECT_EQ(engine_->stats().queues.size(), 1u);
  advance(1s);
  EXPECT_EQ(waiting.answers, 1);
  EXPECT_TRUE(engine_->stats().queues.empty());
}

TEST_F(EngineLease, AfterEndWaitsNoWaitBegins) {
  Waiting before;
  Waiting after;
  wait_for(before, "q", 20s);
  engine_->end_waits();
  wait_for(after, "q", 20s);
  EXPECT_EQ(before.answers, 1);
  EXPECT_EQ(after.answers, 1);
}

TEST_F(EngineLease, AThousandTasksWhoseLeasesExpireTogetherComeBack) {
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  settle();
  EXPECT_EQ(lease("q", 1'000).size(), 1'000u);
  advance(60s);
  EXPECT_EQ(engine_->stats().counters.leases_expired, 1'000u);
  advance(2s);
  EXPECT_EQ(lease("q", 1'000).size(), 1'000u);
  engine_->check_invariants();
}

TEST_F(EngineLease, ATaskScheduledAndLeasedInOneTurnHasItsPayload) {
  ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  const std::vector<LeasedTask> leased = engine_->lease({.queue = "q"}).value();
  ASSERT_EQ(leased.size(), 1u);
  EXPECT_EQ(leased[0].task.payload.data, "{\"n\":1}");
  EXPECT_EQ(engine_->complete(leased[0].lease).value(), LeaseOutcome::done);
  settle();
  engine_->check_invariants();
}

// The worker may have sent its request in time, and the engine was busy.
TEST_F(EngineLease, ALeaseThatExpiredWhileTheEngineWasBusyIsValidUntilTheTurn) {
  schedule("q", 0ms);
  schedule("q", 0ms);
  const LeaseToken in_time = lease("q")[0].lease;
  const LeaseToken too_late = lease("q")[0].lease;
  clock_.advance(61s);
  engine_->catch_up();
  engine_->check_invariants();
  EXPECT_EQ(engine_->complete(in_time).value(), LeaseOutcome::done);
  settle();
  EXPECT_EQ(complete(too_late), LeaseOutcome::conflict);
  EXPECT_EQ(engine_->stats().counters.leases_expired, 1u);
  engine_->check_invariants();
}

}  // namespace
}  // namespace detent

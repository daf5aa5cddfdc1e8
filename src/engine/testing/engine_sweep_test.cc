// Verbs over a whole queue: redrive and purge, in steps.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineSweep : public EngineFixture {
 protected:
  void bury_one(const std::string& queue) {
    schedule(queue, 0ms);
    ASSERT_EQ(engine_->bury(lease(queue)[0].lease, "hopeless"), LeaseOutcome::dead);
    settle();
  }
  struct Swept {
    std::size_t count = 0;
    int steps = 0;
  };
  Swept purge_all(const std::string& queue, std::size_t limit) {
    Swept swept;
    for (std::optional<QueueCursor> from = QueueCursor{}; from; ++swept.steps) {
      const QueueStep step = engine_->purge(queue, limit, *from).value();
      EXPECT_LE(step.count, limit);
      swept.count += step.count;
      from = step.next;
      settle();
    }
    return swept;
  }
  QueueStats stats_of(const std::string& queue) {
    for (QueueStats& stats : engine_->stats().queues) {
      stats.last_handed_out_age.reset();  // these tests are not about it
      if (stats.queue == queue) return stats;
    }
    return {};
  }
};

TEST_F(EngineSweep, APurgeRemovesAllButLeasedTasksOfItsQueueForGood) {
  const TaskId leased = schedule("q", 0ms);
  const LeaseToken token = lease("q")[0].lease;
  schedule("q", 0ms);
  schedule("q", 1min);
  schedule("q", 24h * 365);
  bury_one("q2");
  const TaskId other = schedule("q2", 24h);
  EXPECT_EQ(purge_all("q", 100).count, 3u);
  engine_->check_invariants();
  EXPECT_EQ(engine_->stats().counters.cancelled, 3u);
  crash_and_open();
  engine_->check_invariants();
  EXPECT_EQ(disk_->record_count(), 3u);
  EXPECT_EQ(state_of(leased), TaskState::ready);
  EXPECT_EQ(state_of(other), TaskState::scheduled);
  EXPECT_EQ(stats_of("q2").dead, 1u);
  EXPECT_EQ(complete(token), LeaseOutcome::conflict);
}

TEST_F(EngineSweep, APurgeRemovesDeadTasks) {
  bury_one("q");
  bury_one("other");
  EXPECT_EQ(purge_all("q", 10).count, 1u);
  EXPECT_EQ(stats_of("q").dead, 0u);
  EXPECT_EQ(stats_of("other").dead, 1u);
  engine_->check_invariants();
}

TEST_F(EngineSweep, APurgeGoesInStepsNoLongerThanItsLimit) {
  for (int i = 0; i < 25; ++i) schedule("q", std::chrono::hours{i});
  const Swept swept = purge_all("q", 10);
  EXPECT_EQ(swept.count, 25u);
  EXPECT_EQ(swept.steps, 3);
}

TEST_F(EngineSweep, AStepReadsABoundedPartOfOtherQueues) {
  for (int i = 0; i < 2'500; ++i) {
    ASSERT_TRUE(engine_->schedule(request("big", 1h)));
  }
  schedule("small", 2h);
  const Swept swept = purge_all("small", 10);
  EXPECT_EQ(swept.count, 1u);
  EXPECT_EQ(swept.steps, 3) << "1 000 records a step";
  EXPECT_EQ(disk_->record_count(), 2'500u);
}

TEST_F(EngineSweep, APurgeEndsWhenNothingIsLeftOfItsQueue) {
  schedule("small", 1h);
  for (int i = 0; i < 2'500; ++i) ASSERT_TRUE(engine_->schedule(request("big", 2h)));
  settle();
  EXPECT_EQ(purge_all("small", 10).steps, 1);
  EXPECT_EQ(purge_all("small", 10).steps, 1) << "and finds nothing the second time";
}

TEST_F(EngineSweep, TasksOfTheSameTurnArePurgedTooAndNeverWritten) {
  ASSERT_TRUE(engine_->schedule(request("q", 1s)));
  ASSERT_TRUE(engine_->schedule(request("q", 24h)));
  const TaskId kept = engine_->schedule(request("other", 24h)).value().task.id;
  EXPECT_EQ(engine_->purge("q", 10).value().count, 2u);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(disk_->record_count(), 1u);
  EXPECT_EQ(state_of(kept), TaskState::scheduled);
}

TEST_F(EngineSweep, TasksOfTheSameTurnAreBoundedByTheLimitToo) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine_->schedule(request("q", 24h)));
  QueueStep step = engine_->purge("q", 2).value();
  EXPECT_EQ(step.count, 2u);
  ASSERT_TRUE(step.next);
  step = engine_->purge("q", 2, *step.next).value();
  ASSERT_TRUE(step.next);
  EXPECT_EQ(engine_->purge("q", 2, *step.next).value().count, 1u);
  settle();
  engine_->check_invariants();
}

TEST_F(EngineSweep, TasksAcceptedAfterAPurgeBeganStay) {
  for (int i = 0; i < 3; ++i) schedule("q", 1h);
  const QueueStep step = engine_->purge("q", 2).value();
  ASSERT_TRUE(step.next);
  const TaskId later = schedule("q", 2h);
  const QueueStep last = engine_->purge("q", 2, *step.next).value();
  EXPECT_EQ(last.count, 1u);
  EXPECT_FALSE(last.next);
  EXPECT_EQ(state_of(later), TaskState::scheduled);
}

TEST_F(EngineSweep, ATaskMovedInTheSameTurnIsPurgedOnce) {
  const TaskId id = schedule("q", 1h);
  ASSERT_TRUE(engine_->move(id, 2h));
  EXPECT_EQ(engine_->purge("q", 10).value().count, 1u);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(disk_->record_count(), 0u);
}

TEST_F(EngineSweep, ADamagedRecordDoesNotStopAPurge) {
  const TaskId damaged = schedule("q", 24h);
  const TaskId sound = schedule("q", 25h);
  disk_->flip_bit({.lane = Lane::due, .at = wall_now() + 24h, .id = damaged}, 100);
  EXPECT_EQ(purge_all("q", 10).count, 1u);
  EXPECT_EQ(state_of(sound), std::nullopt);
  EXPECT_EQ(stats_of("q").scheduled, 1u);
}

// Setting each damaged record aside separately would cost one sync each. Leaving them in place
// would make each step read them again.
TEST_F(EngineSweep, TheDamagedRecordsOfAStepAreSetAsideTogetherAndItGoesOnBehindThem) {
  constexpr std::uint64_t kDamaged = 2'500;
  for (std::uint64_t i = 0; i < kDamaged; ++i) bury_one("q");
  const TaskPage page = engine_->tasks_after(TaskId{}, kDamaged).value();
  for (const StoredTask& stored : page.tasks) disk_->flip_bit(stored.place, 100);
  bury_one("q");
  std::size_t count = 0;
  int steps = 0;
  for (std::optional<QueueCursor> from = QueueCursor{}; from; ++steps) {
    const QueueStep step = engine_->redrive("q", 10, *from).value();
    count += step.count;
    from = step.next;
    settle();
  }
  EXPECT_EQ(steps, 3) << "of a thousand records each";
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(engine_->stats().counters.quarantined, kDamaged);
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q", .ready = 1, .oldest_ready_age = 0ms}));
}

TEST_F(EngineSweep, WithItsLastTaskTheBytesOfADamagedOneLeaveItsQueueToo) {
  ASSERT_TRUE(engine_->set_queue("q", {.max_bytes = 20}));
  bury_one("q");
  bury_one("q");
  const TaskId first = engine_->first_dead("q").value().task.id;
  disk_->flip_bit(store_->find(first).value().value().place, 100);
  EXPECT_EQ(purge_all("q", 10).count, 1u);
  EXPECT_EQ(view("q").bytes, 0u);
  crash_and_open();
  EXPECT_EQ(view("q").bytes, 0u);
}

TEST_F(EngineSweep, ADamagedDeadTaskIsSetAsideSoThatItsQueueCanGo) {
  const auto damage_one = [this] {
    bury_one("q");
    bury_one("q");
    const TaskId first = engine_->first_dead("q").value().task.id;
    disk_->flip_bit(store_->find(first).value().value().place, 100);
  };
  damage_one();
  EXPECT_EQ(engine_->redrive("q", 10).value().count, 1u);
  settle();
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q", .ready = 1, .oldest_ready_age = 0ms}));
  damage_one();
  EXPECT_EQ(purge_all("q", 10).count, 2u);
  EXPECT_EQ(stats_of("q"), (QueueStats{.queue = "q"}));
  EXPECT_EQ(store_->quarantined().value(), 2u);
  EXPECT_TRUE(engine_->remove_queue("q"));
}

TEST_F(EngineSweep, ARedriveBringsBackAtMostItsLimitAndOnlyOfItsQueue) {
  bury_one("other");
  for (int i = 0; i < 3; ++i) bury_one("q");
  schedule("q", 1h);
  const QueueStep first = engine_->redrive("q", 2).value();
  EXPECT_EQ(first.count, 2u);
  ASSERT_TRUE(first.next);
  settle();
  crash_and_open();
  engine_->check_invariants();
  EXPECT_EQ(stats_of("q").dead, 1u);
  EXPECT_EQ(stats_of("q").ready, 2u);
  EXPECT_EQ(stats_of("q").scheduled, 1u);
  const QueueStep second = engine_->redrive("q", 2, *first.next).value();
  EXPECT_EQ(second.count, 1u);
  EXPECT_FALSE(second.next);
  settle();
  EXPECT_EQ(lease("q", 9).size(), 3u);
  EXPECT_EQ(stats_of("other").dead, 1u);
}

TEST_F(EngineSweep, ATaskThatDiedInTheSameTurnIsRedrivenOnce) {
  schedule("q", 0ms);
  ASSERT_EQ(engine_->bury(lease("q")[0].lease, "no"), LeaseOutcome::dead);
  EXPECT_EQ(engine_->redrive("q", 10).value().count, 1u);
  EXPECT_EQ(engine_->redrive("q", 10).value().count, 0u);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(lease("q").at(0).attempt, 1u);
}

TEST_F(EngineSweep, ARedriveReadsNoLiveTasks) {
  for (int i = 0; i < 2'500; ++i) ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  bury_one("q");
  const QueueStep step = engine_->redrive("q", 10).value();
  EXPECT_EQ(step.count, 1u);
  EXPECT_FALSE(step.next);
}

TEST_F(EngineSweep, AQueueThatNeverHadATaskIsNotFound) {
  engine_->lease_or_wait({.queue = "asked"}, 20s, [](Result<std::vector<LeasedTask>>) {});
  for (const std::string queue : {"asked", "unknown"}) {
    EXPECT_EQ(engine_->purge(queue, 1).error().code, ErrorCode::not_found);
    EXPECT_EQ(engine_->redrive(queue, 1).error().field, "queue");
  }
}

TEST_F(EngineSweep, ALimitOfNothingChangesNothing) {
  bury_one("q");
  EXPECT_EQ(engine_->purge("q", 0).value().count, 0u);
  EXPECT_EQ(engine_->redrive("q", 0).value().count, 0u);
  EXPECT_EQ(stats_of("q").dead, 1u);
}

}  // namespace
}  // namespace detent

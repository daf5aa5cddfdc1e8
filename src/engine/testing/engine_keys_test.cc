// Idempotency keys: a repeated request creates no second task while the key stands for the first.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineKeys : public EngineFixture {
 protected:
  static ScheduleRequest keyed(const std::string& queue, Due due, const std::string& key = "k") {
    ScheduleRequest asked = request(queue, due);
    asked.key = key;
    return asked;
  }
  /// Repeats the request. Returns the task that the key stands for.
  TaskSnapshot again(const ScheduleRequest& asked) {
    TaskSnapshot view = engine_->schedule(asked).value();
    settle();
    engine_->check_invariants();
    return view;
  }
  void expect_found(const ScheduleRequest& asked, TaskId id, TaskState state) {
    const TaskSnapshot view = again(asked);
    EXPECT_TRUE(view.was_there);
    EXPECT_EQ(view.task.id, id);
    EXPECT_EQ(to_string(view.state), to_string(state));
  }
  void expect_conflict(const ScheduleRequest& asked) {
    const Result<TaskSnapshot> view = engine_->schedule(asked);
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code, ErrorCode::conflict);
    EXPECT_EQ(view.error().field, "key");
    settle();
    engine_->check_invariants();
  }
  std::uint64_t live_tasks(const std::string& queue) {
    const QueueStats stats = engine_->queue(queue).value().stats;
    return stats.scheduled + stats.ready + stats.leased;
  }
  /// Completes the task that the request makes.
  TaskId complete_one(const ScheduleRequest& asked) {
    const TaskId id = schedule(asked);
    EXPECT_EQ(complete(lease(asked.queue)[0].lease), LeaseOutcome::done);
    return id;
  }
};

// ---- the same content ----

TEST_F(EngineKeys, RepeatingARequestCreatesOneTaskAndGivesTheSameAnswer) {
  const TaskSnapshot first = again(keyed("q", 1h));
  EXPECT_FALSE(first.was_there);
  expect_found(keyed("q", 1h), first.task.id, TaskState::scheduled);
  EXPECT_EQ(live_tasks("q"), 1u);
  EXPECT_EQ(disk_->record_count(), 1u);
  EXPECT_EQ(engine_->stats().counters.scheduled, 1u);
}

TEST_F(EngineKeys, ARepeatedRequestShowsThePresentStateOfTheTask) {
  const TaskId id = schedule(keyed("q", 1h));
  ASSERT_TRUE(engine_->move(id, 2h));
  settle();
  advance(1min);
  const TaskSnapshot view = again(keyed("q", 1h));
  EXPECT_EQ(view.task.due_at, wall_now() + 2h - 1min);
  EXPECT_EQ(view.task.created_at, wall_now() - 1min);
  EXPECT_EQ(view.task.key, "k");
}

TEST_F(EngineKeys, TheAnswersHaveNoPayload) {
  EXPECT_EQ(engine_->schedule(keyed("q", 1h))->task.payload, Payload{});
  EXPECT_EQ(engine_->schedule(keyed("q", 1h))->task.payload, Payload{});
}

TEST_F(EngineKeys, AReadyTaskIsFoundByItsKey) {
  const TaskId id = schedule(keyed("q", 0ms));
  expect_found(keyed("q", 0ms), id, TaskState::ready);
  EXPECT_EQ(lease_ids("q", 10), std::vector{id});
}

TEST_F(EngineKeys, ALeasedTaskIsFoundByItsKeyAndStaysLeased) {
  const TaskId id = schedule(keyed("q", 0ms));
  const LeaseToken token = lease("q")[0].lease;
  expect_found(keyed("q", 0ms), id, TaskState::leased);
  EXPECT_EQ(complete(token), LeaseOutcome::done);
}

TEST_F(EngineKeys, ADeadTaskIsFoundByItsKeyForAsLongAsItIsDead) {
  const TaskId id = schedule(keyed("q", 0ms));
  ASSERT_EQ(engine_->bury(lease("q")[0].lease, "no"), LeaseOutcome::dead);
  settle();
  advance(24h * 30);
  expect_found(keyed("q", 0ms), id, TaskState::dead);
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id);
}

TEST_F(EngineKeys, ATaskThatFailedAndWaitsIsFoundByItsKey) {
  const TaskId id = schedule(keyed("q", 0ms));
  fail(lease("q")[0].lease, 24h);
  expect_found(keyed("q", 0ms), id, TaskState::scheduled);
}

TEST_F(EngineKeys, AFarTaskIsFoundByItsKeyAlsoWhenItIsNotLoaded) {
  const TaskId id = schedule(keyed("q", 24h * 300));
  ASSERT_EQ(engine_->stats().loaded, 0u);
  advance(24h * 100);
  expect_found(keyed("q", 24h * 300), id, TaskState::scheduled);
}

TEST_F(EngineKeys, ACompletedTaskIsFoundByItsKeyUntilTheKeyExpires) {
  const TaskId id = complete_one(keyed("q", 0ms));
  advance(milliseconds{10min} - 1ms);
  expect_found(keyed("q", 0ms), id, TaskState::completed);
  advance(1ms);
  const TaskSnapshot view = again(keyed("q", 0ms));
  EXPECT_FALSE(view.was_there);
  EXPECT_NE(view.task.id, id);
  EXPECT_EQ(lease_ids("q", 10), std::vector{view.task.id});
}

TEST_F(EngineKeys, ATaskThatLivedLongKeepsItsKeyForTheWholeRetentionAfterItsEnd) {
  const TaskId id = schedule(keyed("q", 24h));
  advance(24h);
  EXPECT_EQ(complete(lease("q")[0].lease), LeaseOutcome::done);
  advance(9min);
  EXPECT_TRUE(again(keyed("q", 24h)).was_there);
  EXPECT_EQ(again(keyed("q", 24h)).task.id, id);
}

TEST_F(EngineKeys, ACancelledTaskKeepsItsKeyForTheRetentionToo) {
  const TaskId id = schedule(keyed("q", 1h));
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  const TaskSnapshot view = again(keyed("q", 1h));
  EXPECT_TRUE(view.was_there);
  EXPECT_EQ(view.task.id, id);
  EXPECT_EQ(live_tasks("q"), 0u);
  advance(10min);
  EXPECT_FALSE(again(keyed("q", 1h)).was_there);
}

TEST_F(EngineKeys, RepeatingARequestDoesNotProlongTheKey) {
  complete_one(keyed("q", 0ms));
  for (int minute = 0; minute < 9; ++minute) {
    advance(1min);
    ASSERT_TRUE(again(keyed("q", 0ms)).was_there);
  }
  advance(1min);
  EXPECT_FALSE(again(keyed("q", 0ms)).was_there);
}

TEST_F(EngineKeys, AChangedKeyRetentionAppliesToTasksThatEndAfterIt) {
  const TaskId before = complete_one(keyed("q", 0ms, "before"));
  set("q", {.key_retention = 1h});
  complete_one(keyed("q", 0ms, "after"));
  advance(10min);
  EXPECT_FALSE(again(keyed("q", 0ms, "before")).was_there);
  EXPECT_NE(again(keyed("q", 0ms, "before")).task.id, before);
  advance(50min - 1ms);
  EXPECT_TRUE(again(keyed("q", 0ms, "after")).was_there);
  advance(1ms);
  EXPECT_FALSE(again(keyed("q", 0ms, "after")).was_there);
}

TEST_F(EngineKeys, AKeyCanBeUsedAgainAndAgainOverManyRetentions) {
  std::vector<TaskId> ids;
  for (int round = 0; round < 5; ++round) {
    ids.push_back(complete_one(keyed("q", 0ms)));
    EXPECT_EQ(again(keyed("q", 0ms)).task.id, ids.back());
    advance(10min);
  }
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST_F(EngineKeys, TrimmingAnExpiredKeyLeavesItsNewTaskTheKey) {
  complete_one(keyed("q", 0ms));
  advance(10min);
  const TaskId id = schedule(keyed("q", 24h));
  advance(23h);
  expect_found(keyed("q", 24h), id, TaskState::scheduled);
  crash_and_open();
  expect_found(keyed("q", 24h), id, TaskState::scheduled);
}

// ---- other content ----

TEST_F(EngineKeys, OtherContentWithTheSameKeyIsAConflict) {
  schedule(keyed("q", 1h));
  ScheduleRequest other = keyed("q", 1h);
  other.payload.data = "{\"n\":2}";
  expect_conflict(other);
  other = keyed("q", 1h);
  other.rules.priority = 1;
  expect_conflict(other);
  expect_conflict(keyed("q", 2h));
  EXPECT_EQ(live_tasks("q"), 1u);
}

TEST_F(EngineKeys, TheContentOfAKeyIncludesTheDelayNotTheDueTime) {
  const WallTime at = wall_now() + 1h;
  const TaskId id = schedule(keyed("q", 1h));
  expect_conflict(keyed("q", at));
  advance(1s);
  expect_conflict(keyed("q", at));
  expect_conflict(keyed("q", 1h - 1s));
  expect_found(keyed("q", 1h), id, TaskState::scheduled);
}

TEST_F(EngineKeys, OtherContentIsAConflictUntilTheKeyExpires) {
  complete_one(keyed("q", 0ms));
  expect_conflict(keyed("q", 1ms));
  crash_and_open();
  expect_conflict(keyed("q", 1ms));
  advance(10min);
  EXPECT_FALSE(again(keyed("q", 1ms)).was_there);
}

TEST_F(EngineKeys, AConflictLeavesNothingBehind) {
  const TaskId id = schedule(keyed("q", 1h));
  expect_conflict(keyed("q", 2h));
  crash_and_open();
  EXPECT_EQ(disk_->record_count(), 1u);
  expect_found(keyed("q", 1h), id, TaskState::scheduled);
}

// ---- the same turn, crashes ----

TEST_F(EngineKeys, RepeatingARequestInOneTurnCreatesOneTask) {
  const TaskSnapshot first = engine_->schedule(keyed("q", 1h)).value();
  const TaskSnapshot second = engine_->schedule(keyed("q", 1h)).value();
  EXPECT_FALSE(first.was_there);
  EXPECT_TRUE(second.was_there);
  EXPECT_EQ(second.task.id, first.task.id);
  expect_conflict(keyed("q", 2h));
  settle();
  engine_->check_invariants();
  EXPECT_EQ(disk_->record_count(), 1u);
}

TEST_F(EngineKeys, AKeyOfATaskCancelledInTheSameTurnStandsForIt) {
  const TaskId id = engine_->schedule(keyed("q", 1h)).value().task.id;
  ASSERT_TRUE(engine_->cancel(id));
  const TaskSnapshot view = engine_->schedule(keyed("q", 1h)).value();
  EXPECT_TRUE(view.was_there);
  EXPECT_EQ(view.task.id, id);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(disk_->record_count(), 0u);
  EXPECT_TRUE(again(keyed("q", 1h)).was_there);
}

TEST_F(EngineKeys, AnExpiredKeyIsUsedAgainByATaskThatEndsInTheSameTurn) {
  complete_one(keyed("q", 0ms));
  clock_.advance(10min);  // no turn: the old key is not trimmed yet
  const TaskSnapshot view = engine_->schedule(keyed("q", 1h)).value();
  EXPECT_FALSE(view.was_there);
  ASSERT_TRUE(engine_->cancel(view.task.id));
  settle();
  advance(9min);
  EXPECT_EQ(again(keyed("q", 1h)).task.id, view.task.id);
  advance(1min);
  EXPECT_FALSE(again(keyed("q", 1h)).was_there);
}

TEST_F(EngineKeys, AKeySurvivesACrashWithItsTask) {
  const TaskId id = schedule(keyed("q", 1h));
  crash_and_open();
  expect_found(keyed("q", 1h), id, TaskState::scheduled);
  expect_conflict(keyed("q", 2h));
}

TEST_F(EngineKeys, AKeyThatWasNotCommittedIsFreeAfterACrash) {
  ASSERT_TRUE(engine_->schedule(keyed("q", 1h)));
  crash_and_open();
  EXPECT_FALSE(again(keyed("q", 2h)).was_there);
}

TEST_F(EngineKeys, TheKeyOfAnEndedTaskSurvivesACrashAndExpiresInTime) {
  const TaskId id = complete_one(keyed("q", 0ms));
  crash();
  clock_.advance(milliseconds{10min} - 1ms);
  open();
  EXPECT_EQ(again(keyed("q", 0ms)).task.id, id);
  crash();
  clock_.advance(1ms);
  open();
  EXPECT_NE(again(keyed("q", 0ms)).task.id, id);
}

// ---- queues, id_of_key ----

TEST_F(EngineKeys, TheSameKeyInTwoQueuesIsTwoTasks) {
  const TaskId a = schedule(keyed("a", 1h));
  const TaskId b = schedule(keyed("b", 2h));
  EXPECT_NE(a, b);
  EXPECT_EQ(engine_->id_of_key("a", "k").value(), a);
  EXPECT_EQ(engine_->id_of_key("b", "k").value(), b);
  crash_and_open();
  expect_found(keyed("a", 1h), a, TaskState::scheduled);
  expect_found(keyed("b", 2h), b, TaskState::scheduled);
}

TEST_F(EngineKeys, WithoutAKeyEveryRequestIsATask) {
  EXPECT_NE(schedule("q", 1h), schedule("q", 1h));
}

TEST_F(EngineKeys, AKeyFindsItsTaskUntilTheTaskEnds) {
  const TaskId id = engine_->schedule(keyed("q", 0ms)).value().task.id;
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id) << "in the same turn";
  settle();
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id);
  EXPECT_EQ(engine_->complete(token), LeaseOutcome::done);
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
  settle();
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
}

TEST_F(EngineKeys, AnUnusedKeyIsNotFound) {
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
  schedule(keyed("q", 1h));
  EXPECT_EQ(engine_->id_of_key("q", "other").error().code, ErrorCode::not_found);
  EXPECT_EQ(engine_->id_of_key("other", "k").error().code, ErrorCode::not_found);
}

TEST_F(EngineKeys, APurgedTaskHasEndedAndItsKeyStandsForTheRetention) {
  const TaskId id = schedule(keyed("q", 1h));
  ASSERT_TRUE(engine_->purge("q", 10));
  settle();
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
  EXPECT_EQ(again(keyed("q", 1h)).task.id, id);
  advance(10min);
  EXPECT_FALSE(again(keyed("q", 1h)).was_there);
}

TEST_F(EngineKeys, ExpiredKeysLeaveTheStore) {
  for (int i = 0; i < 50; ++i) complete_one(keyed("q", 0ms, "k" + std::to_string(i)));
  const std::uint32_t number = store_->queues().value().at(0).number;
  EXPECT_TRUE(store_->find_key(number, "k7").value());
  for (int minute = 0; minute < 30; ++minute) advance(1min);
  for (int i = 0; i < 50; ++i) {
    ASSERT_FALSE(store_->find_key(number, "k" + std::to_string(i)).value()) << i;
  }
}

TEST_F(EngineKeys, AKeyWhoseTaskWasSetAsideAsDamagedIsFreeAgain) {
  const TaskId id = schedule(keyed("q", 24h));
  disk_->flip_bit(store_->find(id).value().value().place, 100);
  advance(24h);
  ASSERT_EQ(store_->quarantined().value(), 1u);
  advance(1h);
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
  EXPECT_FALSE(engine_->schedule(keyed("q", 24h)).value().was_there);
}

TEST_F(EngineKeys, ADamagedKeyDoesNotKeepItsTaskFromEnding) {
  const TaskId id = schedule(keyed("q", 0ms));
  const std::uint32_t number = store_->queues().value().at(0).number;
  disk_->flip_key_bit(number, "k", 20);
  EXPECT_EQ(engine_->schedule(keyed("q", 0ms)).error().code, ErrorCode::data_loss);
  EXPECT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  expect_found(keyed("q", 0ms), id, TaskState::completed);
  advance(10min);
  EXPECT_FALSE(again(keyed("q", 0ms)).was_there);
  disk_->flip_key_bit(number, "k", 20);
  EXPECT_EQ(purge_all("q"), 1u);
  EXPECT_TRUE(engine_->remove_queue("q"));
}

// ---- read ahead ----

// ---- another on_key than keep ----

TEST_F(EngineKeys, AReplacementGivesTheWaitingTaskItsContentAndDueTime) {
  const TaskId id = schedule(keyed("q", 1h));
  ScheduleRequest other = keyed("q", 2h);
  other.payload = {Payload::Kind::json, "2"};
  other.rules.priority = 7;
  other.webhook = "https://hook.example";
  other.headers = {{"X-A", "1"}};
  other.on_key = OnKey::replace;
  expect_found(other, id, TaskState::scheduled);
  const Task task = engine_->get(id).value().task;
  EXPECT_EQ(task.payload.data, "2");
  EXPECT_EQ(task.rules.priority, 7u);
  EXPECT_EQ(task.webhook, "https://hook.example");
  EXPECT_EQ(task.headers, other.headers);
  EXPECT_EQ(task.due_at, wall_now() + 2h);
  EXPECT_EQ(live_tasks("q"), 1u);
  // From now on, the key stands for the new content.
  other.on_key = OnKey::keep;
  expect_found(other, id, TaskState::scheduled);
  expect_conflict(keyed("q", 1h));
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_EQ(engine_->queue("q").value().bytes, 0u);
}

TEST_F(EngineKeys, APostponementMovesOnlyTheDueTimeAndNotPastTheLongestWait) {
  const TaskId id = schedule(keyed("q", 30s));
  const std::string payload = engine_->get(id).value().task.payload.data;
  ScheduleRequest later = keyed("q", 30s);
  later.payload = {Payload::Kind::json, "\"ignored\""};
  later.on_key = OnKey::postpone;
  later.max_wait = 1min;
  const WallTime first = wall_now();
  for (int i = 0; i < 2; ++i) {
    advance(20s);
    EXPECT_EQ(again(later).task.due_at, std::min(wall_now() + 30s, first + 1min));
  }
  EXPECT_EQ(engine_->get(id).value().task.payload.data, payload);
  advance(20s);
  EXPECT_EQ(lease_ids("q", 10), std::vector{id});
}

TEST_F(EngineKeys, AReadyTaskThatWasNotHandedOutWaitsAgain) {
  const TaskId id = schedule(keyed("q", 0ms));
  ScheduleRequest later = keyed("q", 30s);
  later.on_key = OnKey::postpone;
  expect_found(later, id, TaskState::scheduled);
  EXPECT_TRUE(lease_ids("q", 10).empty());
}

TEST_F(EngineKeys, AChangeDuringTheWorkMakesANewTaskThatTakesTheKey) {
  const TaskId first = schedule(keyed("q", 0ms));
  const LeasedTask leased = lease("q").at(0);
  ScheduleRequest change = keyed("q", 30s);
  change.on_key = OnKey::postpone;
  const TaskSnapshot second = again(change);
  EXPECT_FALSE(second.was_there);
  EXPECT_NE(second.task.id, first);
  EXPECT_EQ(engine_->get(first).value().task.key, "");
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), second.task.id);
  // The end of the first task leaves the key with the second.
  EXPECT_EQ(complete(leased.lease), LeaseOutcome::done);
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), second.task.id);
  expect_found(change, second.task.id, TaskState::scheduled);
}

TEST_F(EngineKeys, ARefusedChangeLeavesTheKeyWithTheLeasedTask) {
  const TaskId first = schedule(keyed("q", 0ms));
  ASSERT_EQ(lease_ids("q", 1), std::vector{first});
  ASSERT_TRUE(engine_->set_queue("q", QueueSettings{.max_tasks = 1}));
  ScheduleRequest change = keyed("q", 30s);
  change.on_key = OnKey::replace;
  EXPECT_EQ(engine_->schedule(change).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), first);
  settle();
  engine_->check_invariants();
}

TEST_F(EngineKeys, AChangeMakesADeadTaskLiveAndAnEndedTaskNew) {
  ScheduleRequest change = keyed("q", 0ms);
  change.on_key = OnKey::replace;
  const TaskId id = schedule(change);
  EXPECT_EQ(engine_->bury(lease("q").at(0).lease, "no"), LeaseOutcome::dead);
  expect_found(change, id, TaskState::ready);
  EXPECT_EQ(engine_->get(id).value().task.attempts, 0u);
  EXPECT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  const TaskSnapshot next = again(change);  // although the key still stands for the completed task
  EXPECT_FALSE(next.was_there);
  EXPECT_NE(next.task.id, id);
}

TEST_F(EngineKeys, ManyAreCancelledByKeyAfterTwoReads) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    keys.push_back("k" + std::to_string(i));
    schedule(keyed("q", i % 2 == 0 ? 24h : 1min, keys.back()));
  }
  ASSERT_GT(engine_->stats().loaded, 0u);
  const std::uint64_t reads = store_->read_count();
  engine_->read_ahead("q", keys);
  for (const std::string& key : keys) {
    EXPECT_TRUE(engine_->cancel(engine_->id_of_key("q", key).value()));
  }
  EXPECT_EQ(store_->read_count(), reads + 2);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(live_tasks("q"), 0u);
  EXPECT_EQ(disk_->record_count(), 0u);
}

TEST_F(EngineKeys, StagedChangesCountMoreThanRecordsReadAhead) {
  const TaskId id = schedule(keyed("q", 24h));
  const TaskId other = schedule(keyed("q", 24h, "other"));
  const std::vector<std::string> keys{"k", "other"};
  engine_->read_ahead("q", keys);
  ASSERT_TRUE(engine_->move(id, 48h));
  EXPECT_EQ(engine_->get(id).value().task.due_at, wall_now() + 48h);
  ASSERT_TRUE(engine_->cancel(other));
  EXPECT_EQ(engine_->id_of_key("q", "other").error().code, ErrorCode::not_found);
  EXPECT_EQ(engine_->cancel(other).error().code, ErrorCode::not_found);
  settle();
  EXPECT_EQ(engine_->get(id).value().task.due_at, wall_now() + 48h);
  EXPECT_EQ(engine_->get(other).error().code, ErrorCode::not_found);
  engine_->check_invariants();
}

TEST_F(EngineKeys, RecordsReadAheadAreDroppedByTheCommit) {
  const TaskId id = schedule(keyed("q", 24h));
  const std::vector<std::string> keys{"k"};
  engine_->read_ahead("q", keys);
  ASSERT_TRUE(engine_->move(id, 48h));
  settle();
  ASSERT_TRUE(engine_->move(id, 72h));
  settle();
  EXPECT_EQ(engine_->get(id).value().task.due_at, wall_now() + 72h);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
  engine_->check_invariants();
}

TEST_F(EngineKeys, AnErrorOfAReadAheadIsLeftToTheVerb) {
  const TaskId id = schedule(keyed("q", 24h));
  const std::vector<std::string> keys{"k", "none"};
  const std::vector<TaskId> ids{id, TaskId{id.value + 4'096}};
  store_->fail_reads(Error{ErrorCode::unavailable, "no", ""});
  engine_->read_ahead("q", keys);
  engine_->read_ahead(ids);
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->cancel(id).error().code, ErrorCode::unavailable);
  store_->fail_reads(std::nullopt);
  engine_->read_ahead("nobody's", keys);
  engine_->read_ahead(ids);
  EXPECT_EQ(engine_->id_of_key("q", "none").error().code, ErrorCode::not_found);
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id);
  EXPECT_TRUE(engine_->cancel(id));
  settle();
  engine_->check_invariants();
}

TEST_F(EngineKeys, AKeyReadAheadCountsForItsQueueOnly) {
  const TaskId here = schedule(keyed("q", 24h));
  const TaskId there = schedule(keyed("p", 24h));
  const std::vector<std::string> keys{"k"};
  engine_->read_ahead("q", keys);
  EXPECT_EQ(engine_->id_of_key("p", "k").value(), there);
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), here);
}

TEST_F(EngineKeys, AnInvalidKeyIsRefusedNamingTheField) {
  EXPECT_EQ(engine_->schedule(keyed("q", 1h, std::string(kMaxKeyBytes + 1, 'k'))).error().field,
            "key");
  EXPECT_TRUE(engine_->schedule(keyed("q", 1h, std::string(kMaxKeyBytes, 'k'))));
}

TEST_F(EngineKeys, AFullQueueStillAnswersForAKnownKey) {
  const TaskId id = schedule(keyed("q", 1h));
  set("q", {.max_tasks = 1});
  expect_found(keyed("q", 1h), id, TaskState::scheduled);
  EXPECT_EQ(engine_->schedule(keyed("q", 1h, "other")).error().code, ErrorCode::resource_exhausted);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_FALSE(again(keyed("q", 1h, "other")).was_there) << "a refused request takes no key";
}

}  // namespace
}  // namespace detent

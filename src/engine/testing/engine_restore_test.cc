// Tasks restored from another store, and the pages that a copy of all tasks is made from.
#include <map>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr TaskId id_of(std::uint64_t number) { return {number << TaskId::kShardBits}; }

class EngineRestore : public EngineFixture {
 protected:
  Task task(TaskId id, milliseconds due_in = 1h) const {
    return {.id = id,
            .queue = "q",
            .payload = {.kind = Payload::Kind::bytes, .data = "work"},
            .rules = {.priority = 3, .max_attempts = 9},
            .due_at = wall_now() + due_in,
            .created_at = wall_now() - 48h};
  }
  bool restore(const Task& task) {
    const bool is_new = engine_->restore(task).value();
    settle();
    engine_->check_invariants();
    return is_new;
  }
  Error restore_error(const Task& task) {
    const Result<bool> restored = engine_->restore(task);
    return restored ? Error{} : restored.error();
  }
  /// Damages a task that is due in a day, and lets the engine find and set it aside. The counts are
  /// too high after that, so these tests do not check the invariants.
  void set_aside(TaskId id) {
    disk_->flip_bit(store_->find(id).value().value().place, 100);
    advance(24h);
    EXPECT_EQ(store_->quarantined().value(), 1u);
    EXPECT_FALSE(engine_->get(id));
  }
  Task stored(TaskId id) { return engine_->get(id).value().task; }
  /// All tasks, in pages of `limit`.
  std::vector<Task> all_tasks(std::size_t limit = 100) {
    std::vector<Task> tasks;
    for (TaskId after;;) {
      const TaskPage page = engine_->tasks_after(after, limit).value();
      for (const StoredTask& stored : page.tasks) tasks.push_back(stored.task);
      if (!page.read_to) return tasks;
      after = page.read_to->id;
    }
  }
};

TEST_F(EngineRestore, ATaskStandsAsItStoodUnderItsOwnId) {
  Task original = task(id_of(700));
  original.attempts = 4;
  original.key = "k";
  original.history = {{.started_at = wall_now() - 2h,
                       .ended_at = wall_now() - 1h,
                       .worker = "ada",
                       .error = "no disk"}};
  EXPECT_TRUE(restore(original));
  EXPECT_EQ(stored(original.id), original);
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), original.id);
  crash_and_open();
  EXPECT_EQ(stored(original.id), original);
  advance(1h);
  const LeasedTask leased = lease("q").at(0);
  EXPECT_EQ(leased.task, original);
  EXPECT_EQ(leased.attempt, 5u);
}

TEST_F(EngineRestore, RestoringATaskTwiceCreatesItOnce) {
  EXPECT_TRUE(engine_->restore(task(id_of(7))).value());
  EXPECT_FALSE(engine_->restore(task(id_of(7))).value()) << "in the same turn";
  EXPECT_FALSE(restore(task(id_of(7))));
  ASSERT_TRUE(engine_->move(id_of(7), 2h));
  settle();
  EXPECT_FALSE(restore(task(id_of(7), 1min)));
  EXPECT_EQ(stored(id_of(7)).due_at, wall_now() + 2h) << "what is there stays as it is";
  crash_and_open();
  EXPECT_FALSE(restore(task(id_of(7))));
  EXPECT_EQ(engine_->queue("q").value().stats.scheduled, 1u);
}

TEST_F(EngineRestore, ATaskThatIsLeasedOrDeadHereIsLeftAsItIs) {
  EXPECT_TRUE(restore(task(id_of(7), 0ms)));
  const LeaseToken token = lease("q").at(0).lease;
  EXPECT_FALSE(restore(task(id_of(7), 0ms)));
  EXPECT_EQ(state_of(id_of(7)), TaskState::leased);
  EXPECT_EQ(engine_->bury(token, "no"), LeaseOutcome::dead);
  settle();
  EXPECT_FALSE(restore(task(id_of(7), 0ms)));
  EXPECT_EQ(state_of(id_of(7)), TaskState::dead);
}

TEST_F(EngineRestore, DeadTasksComeDeadAndOverdueOnesReady) {
  Task dead = task(id_of(7));
  dead.standing = Standing::dead;
  dead.attempts = 9;
  EXPECT_TRUE(restore(dead));
  EXPECT_TRUE(restore(task(id_of(8), -1h)));
  EXPECT_TRUE(restore(task(id_of(9), 24h * 300)));
  EXPECT_EQ(state_of(dead.id), TaskState::dead);
  EXPECT_EQ(state_of(id_of(8)), TaskState::ready);
  EXPECT_EQ(state_of(id_of(9)), TaskState::scheduled);
  crash_and_open();
  engine_->check_invariants();
  EXPECT_EQ(stored(dead.id), dead);
  EXPECT_EQ(engine_->queue("q").value().stats.dead, 1u);
  EXPECT_EQ(engine_->queue("q").value().bytes, 12u);
  EXPECT_EQ(lease_ids("q", 10), std::vector{id_of(8)});
  ASSERT_TRUE(engine_->redrive(dead.id));
  EXPECT_EQ(lease("q").at(0).attempt, 1u);
}

TEST_F(EngineRestore, NewIdsAreAboveAnyThatWasRestored) {
  const TaskId first = schedule("q", 1h);
  EXPECT_TRUE(restore(task(id_of(5'000))));
  const TaskId second = schedule("q", 1h);
  EXPECT_GT(second, id_of(5'000));
  EXPECT_TRUE(restore(task(id_of(9'000))));
  ASSERT_TRUE(engine_->cancel(id_of(9'000)));
  settle();
  crash_and_open();
  EXPECT_GT(schedule("q", 1h), id_of(9'000)) << "also when it is gone and after a crash";
  EXPECT_LT(first, second);
}

TEST_F(EngineRestore, ARestoredAndCancelledIdIsNotGivenOutThoughNeitherWasWritten) {
  EXPECT_TRUE(engine_->restore(task(id_of(9'000))).value());
  ASSERT_TRUE(engine_->cancel(id_of(9'000)));
  settle();
  crash_and_open();
  EXPECT_GT(schedule("q", 1h), id_of(9'000));
}

TEST_F(EngineRestore, AnIdOfAnotherShardDoesNotChangeTheShardOfNewOnes) {
  const TaskId before = schedule("q", 1h);
  EXPECT_TRUE(restore(task(TaskId{(std::uint64_t{77} << TaskId::kShardBits) + 3})));
  constexpr std::uint64_t kShards = std::uint64_t{1} << TaskId::kShardBits;
  const TaskId after = schedule("q", 1h);
  EXPECT_EQ(after.value % kShards, before.value % kShards);
  EXPECT_GT(after.value >> TaskId::kShardBits, 77u);
  crash_and_open();
  EXPECT_EQ(schedule("q", 1h).value % kShards, before.value % kShards);
}

TEST_F(EngineRestore, AnIdBelowTheHighestIsTakenTooAndLowersNothing) {
  EXPECT_TRUE(restore(task(id_of(5'000))));
  EXPECT_TRUE(restore(task(id_of(20))));
  EXPECT_GT(schedule("q", 1h), id_of(5'000));
  EXPECT_EQ(engine_->queue("q").value().stats.scheduled, 3u);
}

TEST_F(EngineRestore, TheLastIdThatThereIsDoesNotLeadBeyondTheEnd) {
  const TaskId last{TaskId::kEnd - 1};
  if (!engine_->restore(task(last))) return;
  settle();
  const Result<TaskSnapshot> view = engine_->schedule(request("q", 1h));
  if (view) {
    EXPECT_LT(view->task.id.value, TaskId::kEnd);
  }
  settle();
}

TEST_F(EngineRestore, RestoreDoesNotTakeAKeyFromAnotherTask) {
  ScheduleRequest keyed = request("q", 1h);
  keyed.key = "k";
  const TaskId here = schedule(keyed);
  Task other = task(id_of(5'000));
  other.key = "k";
  EXPECT_TRUE(restore(other));
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), here);
  ASSERT_TRUE(engine_->cancel(other.id));
  settle();
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), here) << "the other's end is not the key's";
  EXPECT_EQ(engine_->schedule(keyed).value().task.id, here);
}

// A damaged task is restored from a dump. Its key must stand for it again.
TEST_F(EngineRestore, ATaskThatWasSetAsideComesBackWithItsKey) {
  ScheduleRequest keyed = request("q", 24h);
  keyed.key = "k";
  const TaskId id = schedule(keyed);
  const Task dumped = all_tasks().at(0);
  set_aside(id);
  EXPECT_TRUE(engine_->restore(dumped).value());
  settle();
  EXPECT_EQ(stored(id).key, "k");
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id);
  EXPECT_EQ(engine_->schedule(keyed).value().task.id, id);
  keyed.payload.data += "other";
  EXPECT_EQ(engine_->schedule(keyed).error().code, ErrorCode::conflict)
      << "it is known yet what was asked for";
  crash_and_open();
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), id);
  advance(24h);
  EXPECT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
}

TEST_F(EngineRestore, AKeyOfATaskThatWasSetAsideIsFreeForAnother) {
  ScheduleRequest keyed = request("q", 24h);
  keyed.key = "k";
  set_aside(schedule(keyed));
  Task other = task(id_of(5'000));
  other.key = "k";
  EXPECT_TRUE(engine_->restore(other).value());
  settle();
  EXPECT_EQ(engine_->id_of_key("q", "k").value(), other.id);
  EXPECT_EQ(engine_->schedule(keyed).value().task.id, other.id);
}

TEST_F(EngineRestore, RestoreDoesNotTakeAKeyFromAnEndedTask) {
  ScheduleRequest keyed = request("q", 0ms);
  keyed.key = "k";
  const TaskId ended = schedule(keyed);
  EXPECT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  Task other = task(id_of(5'000));
  other.key = "k";
  EXPECT_TRUE(restore(other));
  EXPECT_EQ(stored(other.id).key, "");
  EXPECT_EQ(engine_->schedule(keyed).value().task.id, ended);
}

TEST_F(EngineRestore, TheKeyOfARestoredTaskIsFreeAfterItsEnd) {
  Task original = task(id_of(7), 0ms);
  original.key = "k";
  EXPECT_TRUE(restore(original));
  EXPECT_EQ(complete(lease("q").at(0).lease), LeaseOutcome::done);
  EXPECT_EQ(engine_->id_of_key("q", "k").error().code, ErrorCode::not_found);
  advance(10min);
  ScheduleRequest keyed = request("q", 1h);
  keyed.key = "k";
  EXPECT_FALSE(engine_->schedule(keyed).value().was_there);
}

TEST_F(EngineRestore, RestoreRefusesAnInvalidTask) {
  EXPECT_EQ(restore_error(task(TaskId{0})).code, ErrorCode::invalid_argument);
  EXPECT_EQ(restore_error(task(TaskId{TaskId::kEnd})).code, ErrorCode::invalid_argument);
  Task wrong = task(id_of(7));
  wrong.queue = "no name";
  EXPECT_EQ(restore_error(wrong).field, "queue");
  wrong = task(id_of(7));
  wrong.payload.data = std::string(kMaxPayloadBytes + 1, 'x');
  EXPECT_EQ(restore_error(wrong).code, ErrorCode::too_large);
  wrong = task(id_of(7));
  wrong.due_at = WallTime{-1ms};
  EXPECT_EQ(restore_error(wrong).code, ErrorCode::invalid_argument);
  wrong = task(id_of(7));
  wrong.rules.max_attempts = 0;
  EXPECT_EQ(restore_error(wrong).code, ErrorCode::invalid_argument);
  wrong = task(id_of(7));
  wrong.key = std::string(kMaxKeyBytes + 1, 'k');
  EXPECT_EQ(restore_error(wrong).field, "key");
  for (const Standing standing : {Standing::completed, Standing::cancelled}) {
    wrong = task(id_of(7));
    wrong.standing = standing;
    EXPECT_EQ(restore_error(wrong).code, ErrorCode::invalid_argument);
  }
  settle();
  EXPECT_EQ(disk_->record_count(), 0u);
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
}

TEST_F(EngineRestore, AHistoryBeyondItsBoundsDoesNoHarm) {
  Task wrong = task(id_of(7));
  wrong.created_at = WallTime{-1ms};
  for (std::size_t i = 0; i < kMaxHistory + 1; ++i) {
    wrong.history.push_back({.worker = std::string(kMaxWorkerBytes + 1, 'w'),
                             .error = std::string(kMaxErrorBytes + 1, 'e')});
  }
  const Result<bool> restored = engine_->restore(wrong);
  settle();
  if (!restored) {
    EXPECT_EQ(restored.error().code, ErrorCode::invalid_argument);
    return;
  }
  crash_and_open();
  engine_->check_invariants();
  EXPECT_LE(stored(wrong.id).history.size(), kMaxHistory);
}

TEST_F(EngineRestore, ACopyOfOneStoreInAnotherIsTheSame) {
  ASSERT_TRUE(engine_->set_queue("r", {.visibility_timeout = 1s}));
  for (int i = 0; i < 60; ++i) {
    ScheduleRequest asked = request(i % 2 == 0 ? "q" : "r", std::chrono::hours{i % 7});
    if (i % 5 == 0) asked.key = "key" + std::to_string(i);
    schedule(asked);
  }
  for (int i = 0; i < 3; ++i) fail(lease("q").at(0).lease);
  ASSERT_EQ(engine_->bury(lease("r").at(0).lease, "no"), LeaseOutcome::dead);
  settle();
  const std::vector<Task> tasks = all_tasks(7);
  ASSERT_EQ(tasks.size(), 60u);
  EngineStats before = engine_->stats();
  for (QueueStats& queue : before.queues) queue.last_handed_out_age.reset();  // is not restored
  open_on_a_new_disk();
  for (const Task& task : tasks) EXPECT_TRUE(engine_->restore(task).value());
  settle();
  engine_->check_invariants();
  EXPECT_EQ(all_tasks(11), tasks);
  EXPECT_EQ(engine_->stats().queues, before.queues);
}

// ---- pages ----

TEST_F(EngineRestore, APageShowsTheLastCommitAndLeasedTasksAsBeforeTheirLease) {
  const TaskId id = schedule("q", 0ms);
  lease("q");
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  const std::vector<Task> tasks = all_tasks();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].id, id);
  EXPECT_EQ(tasks[0].attempts, 0u);
}

TEST_F(EngineRestore, PagesMeetEveryTaskThatIsThereAllTheTimeOnceWhileTasksMove) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  options_ = {.max_loaded = 16};
  open_on_a_new_disk();
  ASSERT_TRUE(engine_->set_queue("q", {.retention = 24h}));
  std::vector<TaskId> ids;
  for (int i = 0; i < 300; ++i) ids.push_back(schedule("q", milliseconds{rng.below(5'000)}));
  std::map<TaskId, int> met;
  for (TaskId after;;) {
    const TaskPage page = engine_->tasks_after(after, 1 + rng.below(10)).value();
    for (const StoredTask& stored : page.tasks) ++met[stored.task.id];
    if (!page.read_to) break;
    after = page.read_to->id;
    for (int i = 0; i < 5; ++i) {
      const TaskId id = ids[rng.below(300)];
      if (rng.below(4) == 0) (void)engine_->cancel(id).has_value();
      if (rng.below(2) == 0) (void)engine_->move(id, milliseconds{rng.below(100'000)}).has_value();
      if (rng.below(2) == 0) (void)engine_->run_now(id).has_value();
    }
    for (const LeasedTask& leased : lease("q", 2)) {
      if (rng.below(2) == 0) continue;
      ASSERT_EQ(engine_->bury(leased.lease, "no"), LeaseOutcome::dead);
    }
    advance(milliseconds{rng.below(300)});
  }
  for (const TaskId id : ids) ASSERT_EQ(met[id], 1) << to_string(id);
  EXPECT_EQ(met.size(), ids.size());
}

TEST_F(EngineRestore, RestoreRefusesTheLastIdsAndNewIdsContinue) {
  Task task;
  task.queue = "q";
  task.id = TaskId{TaskId::kEnd - 256};
  EXPECT_EQ(engine_->restore(task).error().field, "id");
  task.id = TaskId{TaskId::kEnd / 2 - 256};
  EXPECT_EQ(engine_->restore(task), true);
  settle();
  EXPECT_GT(schedule("q", 1h), task.id);
}

}  // namespace
}  // namespace detent

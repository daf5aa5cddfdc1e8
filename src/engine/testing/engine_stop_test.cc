// Which leases survive a graceful stop, and which do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineStop : public EngineFixture {
 public:
  EngineStop() {
    options_.keep_leases = true;
    crash_and_open();
  }

 protected:
  void stop_and_open() {
    ASSERT_TRUE(engine_->close());
    crash_and_open();
    settle();  // tasks that had no room in memory at the start move to their lane
    engine_->check_invariants();
  }
  LeasedTask lease_one(const std::string& queue) {
    const std::vector<LeasedTask> tasks = lease(queue);
    EXPECT_EQ(tasks.size(), 1u);
    return tasks.at(0);
  }
  LeaseOutcome complete(LeaseToken token) {
    const LeaseOutcome outcome = engine_->complete(token).value();
    settle();
    return outcome;
  }
};

TEST_F(EngineStop, AWorkerCompletesItsTaskAfterAStopAndAStart) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  stop_and_open();
  EXPECT_EQ(state_of(id), TaskState::leased);
  EXPECT_EQ(engine_->queue_of(task.lease), "q");
  EXPECT_TRUE(lease_ids("q", 9).empty()) << "it is still held";
  EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
  EXPECT_EQ(state_of(id), std::nullopt);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
  engine_->check_invariants();
  stop_and_open();
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
}

TEST_F(EngineStop, ALeaseOutlivesManyStops) {
  schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  for (int i = 0; i < 3; ++i) {
    stop_and_open();
    advance(1s);
  }
  EXPECT_EQ(engine_->extend(task.lease, 5min), LeaseOutcome::done);
  stop_and_open();
  advance(4min);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
}

TEST_F(EngineStop, FailAndReleaseWorkAfterAStartToo) {
  const TaskId failed = schedule("q", 0ms);
  const LeasedTask first = engine_->lease({.queue = "q", .max = 1, .worker = "ada"}).value().at(0);
  const WallTime since = wall_now();
  const TaskId released = schedule("p", 0ms);
  const LeasedTask second = lease_one("p");
  advance(2s);
  stop_and_open();
  EXPECT_EQ(engine_->fail({.lease = first.lease, .delay = 1h, .error = "no"}).value(),
            LeaseOutcome::done);
  EXPECT_EQ(engine_->release(second.lease), LeaseOutcome::done);
  settle();
  const Task task = engine_->get(failed).value().task;
  ASSERT_EQ(task.history.size(), 1u);
  EXPECT_EQ(task.history[0].worker, "ada");
  EXPECT_EQ(task.history[0].started_at, since);
  EXPECT_EQ(lease_ids("p", 9), std::vector{released});
  EXPECT_TRUE(lease_ids("q", 9).empty());
}

TEST_F(EngineStop, AfterACrashTheTaskIsHandedOutAgainWithTheSameAttempt) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask before = lease_one("q");
  crash_and_open();
  const LeasedTask again = lease_one("q");
  EXPECT_EQ(again.task.id, id);
  EXPECT_EQ(again.attempt, before.attempt);
  EXPECT_EQ(complete(before.lease), LeaseOutcome::conflict);
  EXPECT_EQ(complete(again.lease), LeaseOutcome::done);
}

TEST_F(EngineStop, ACrashAfterTheStartEndsTheLeasesTakenUp) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask before = lease_one("q");
  stop_and_open();
  crash_and_open();
  EXPECT_EQ(complete(before.lease), LeaseOutcome::conflict);
  const LeasedTask again = lease_one("q");
  EXPECT_EQ(again.task.id, id);
  stop_and_open();
  EXPECT_EQ(complete(before.lease), LeaseOutcome::conflict) << "only the last stop counts";
  EXPECT_EQ(complete(again.lease), LeaseOutcome::done);
}

TEST_F(EngineStop, AFailedStartLeavesTheLeasesToTheNextEngine) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  ASSERT_TRUE(engine_->close());
  crash_and_open();  // the engine has begun its epoch, but has made no turn
  crash();
  memory_store_ = MemoryStore::open(*disk_).value();
  ASSERT_TRUE(memory_store_->begin_epoch()) << "taken by a node whose store then failed";
  crash_and_open();
  settle();
  EXPECT_EQ(state_of(id), TaskState::leased);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
  engine_->check_invariants();
}

TEST_F(EngineStop, AStoreThatCannotBeReadAtAStartLeavesTheLeasesToTheNext) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  ASSERT_TRUE(engine_->close());
  crash();
  memory_store_ = MemoryStore::open(*disk_).value();
  store_ = std::make_unique<FaultStore>(*memory_store_);
  store_->fail_reads(Error{ErrorCode::unavailable, "", ""});
  EXPECT_FALSE(Engine::open(*store_, clock_, options_));
  crash_and_open();
  settle();
  EXPECT_EQ(state_of(id), TaskState::leased);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
}

TEST_F(EngineStop, ALeaseLastsNoLongerWhenTheClockWasPutBackBetweenStopAndStart) {
  const TaskId id = schedule("q", 0ms);
  advance(72h);
  lease_one("q");  // for a minute
  advance(10s);
  ASSERT_TRUE(engine_->close());
  clock_.step_wall(-48h);
  crash_and_open();
  settle();
  EXPECT_EQ(state_of(id), TaskState::leased);
  advance(49s);
  EXPECT_EQ(state_of(id), TaskState::leased);
  advance(1s);
  EXPECT_NE(state_of(id), TaskState::leased);
}

TEST_F(EngineStop, TheNoteStaysUntilTheLeasesAreTrimmed) {
  schedule("q", 0ms);
  advance(10min);
  ASSERT_EQ(engine_->lease({.queue = "q", .max = 1, .visibility_timeout = 1h}).value().size(), 1u);
  ASSERT_TRUE(engine_->close());
  clock_.step_wall(-5min);  // as if another node takes over whose clock is behind
  crash_and_open();
  advance(2min);
  const auto kept = [this] {
    return memory_store_->read_keys(kNoQueue, "lease", 9).value().records;
  };
  ASSERT_EQ(kept().size(), 2u);
  EXPECT_EQ(engine_->stats().all.leased, 1u);
  crash_and_open();
  EXPECT_EQ(engine_->stats().all.leased, 0u) << "a crash ends them";
  advance(5min);
  EXPECT_TRUE(kept().empty());
}

TEST_F(EngineStop, AKeptLeaseThatIsDamagedIsNoReasonNotToStart) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask before = lease_one("q");
  ASSERT_TRUE(engine_->close());
  disk_->flip_key_bit(kNoQueue, store_->read_keys(kNoQueue, "lease", 1).value().records.at(0).key,
                      20);
  crash_and_open();
  EXPECT_EQ(complete(before.lease), LeaseOutcome::conflict);
  EXPECT_EQ(lease_one("q").task.id, id);
  EXPECT_EQ(engine_->stats().counters.quarantined, 1u);
}

TEST_F(EngineStop, AKeptLeaseThatIsDamagedHidesNoOther) {
  schedule_many("q", 1'500);
  std::vector<LeasedTask> tasks = lease("q", 1'000);
  for (LeasedTask& task : lease("q", 500)) tasks.push_back(std::move(task));
  ASSERT_TRUE(engine_->close());
  const std::vector<KeyRecord> kept = store_->read_keys(kNoQueue, "lease", 9'999).value().records;
  ASSERT_EQ(kept.size(), 1'500u);
  std::set<std::uint64_t> damaged;  // in the first page, at its end, and in the second
  for (const std::size_t at : {7u, 999u, 1'200u}) {
    disk_->flip_key_bit(kNoQueue, kept[at].key, 20);
    damaged.insert(kept[at].id.value);
  }
  crash_and_open();
  settle();
  for (const LeasedTask& task : tasks) {
    const bool is_void = damaged.contains(task.task.id.value);
    ASSERT_EQ(engine_->complete(task.lease), is_void ? LeaseOutcome::conflict : LeaseOutcome::done);
  }
  settle();
  EXPECT_EQ(engine_->stats().all.ready, 3u);
  EXPECT_EQ(engine_->stats().counters.quarantined, 3u);
}

TEST_F(EngineStop, ALeaseRunsOutAcrossAStopAsItDoesElsewhere) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  ASSERT_TRUE(engine_->close());
  crash();
  clock_.advance(59'999ms);
  open();
  settle();
  EXPECT_EQ(state_of(id), TaskState::leased);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::scheduled) << "the backoff of an attempt that failed";
  EXPECT_EQ(engine_->get(id).value().task.attempts, 1u);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
}

TEST_F(EngineStop, ALeaseThatRanOutWhileStoppedIsVoidAsAfterACrash) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  ASSERT_TRUE(engine_->close());
  crash();
  clock_.advance(2h);
  open();
  settle();
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
  EXPECT_EQ(engine_->get(id).value().task.attempts, 0u);
  EXPECT_EQ(engine_->stats().counters.leases_expired, 0u);
  const LeasedTask again = lease_one("q");
  EXPECT_EQ(again.attempt, task.attempt);
  engine_->check_invariants();
}

// If no note was written, the store may have leases of several epochs.
TEST_F(EngineStop, OnlyLeasesOfTheLatestEpochAreTakenOver) {
  schedule("q", 0ms);
  crash_and_open();
  const LeasedTask task = lease_one("q");
  ASSERT_TRUE(engine_->close());
  KeyRecord old = memory_store_->read_keys(kNoQueue, "lease ", 1).value().records.at(0);
  old.key = "lease " + std::to_string(task.lease.epoch - 1) + " " +
            to_string(LeaseToken{.epoch = task.lease.epoch - 1, .number = 77}) + " 0 w";
  WriteBatch batch;
  batch.keys.push_back(old);
  ASSERT_TRUE(memory_store_->write(batch, Durability::synced));
  crash_and_open();
  settle();
  EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
}

TEST_F(EngineStop, NewTokensDifferFromTheTokensTakenOver) {
  for (int i = 0; i < 6; ++i) schedule("q", 0ms);
  const std::vector<LeasedTask> before = lease("q", 3);
  stop_and_open();
  const std::vector<LeasedTask> after = lease("q", 3);
  ASSERT_EQ(after.size(), 3u);
  std::set<std::uint64_t> ids;
  for (const auto* tasks : {&before, &after}) {
    for (const LeasedTask& task : *tasks) {
      EXPECT_TRUE(ids.insert(task.task.id.value).second);
      EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
    }
  }
}

TEST_F(EngineStop, ALeaseHeldByAConnectionEndsWithTheStop) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task =
      engine_->lease({.queue = "q", .max = 1, .run_out = RunOut::is_ready_again}).value().at(0);
  stop_and_open();
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
}

TEST_F(EngineStop, WithoutKeepLeasesNoLeaseSurvives) {
  options_.keep_leases = false;
  crash_and_open();
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  stop_and_open();
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineStop, ATaskWhoseClockWasSetBackIsNotHeldBeforeItIsDue) {
  const TaskId id = schedule("q", WallTime{wall_now()});
  const LeasedTask task = lease_one("q");
  ASSERT_TRUE(engine_->close());
  crash();
  clock_.step_wall(-1h);
  open();
  settle();
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
  engine_->check_invariants();
}

TEST_F(EngineStop, AStoreThatFailsAtTheStopLosesLeasesOnly) {
  const TaskId id = schedule("q", 0ms);
  lease_one("q");
  store_->fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(engine_->close());
  crash_and_open();
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineStop, WrittenLeasesAreTrimmedAndAreNoMarks) {
  schedule("q", 0ms);
  lease_one("q");
  stop_and_open();
  EXPECT_TRUE(engine_->marked(9).value().empty());
  const auto kept = [this] {
    return memory_store_->read_keys(kNoQueue, "lease ", 9).value().records;
  };
  EXPECT_EQ(kept().size(), 2u) << "and that it was taken up";
  advance(1h);
  EXPECT_TRUE(kept().empty());
}

TEST_F(EngineStop, ALongNameOfAWorkerIsCut) {
  schedule("q", 0ms);
  const LeasedTask task =
      engine_->lease({.queue = "q", .max = 1, .worker = std::string(kMaxWorkerBytes, 'w')})
          .value()
          .at(0);
  stop_and_open();
  const std::vector<KeyRecord> kept =
      memory_store_->read_keys(kNoQueue, "lease ", 1).value().records;
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].key.size(), kMaxKeyBytes);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
}

TEST_F(EngineStop, MoreLeasesThanAPageOutliveAStop) {
  schedule_many("q", 2'001);
  std::vector<LeasedTask> tasks;
  for (const std::size_t count : {1'000U, 1'000U, 1U}) {
    std::vector<LeasedTask> some = lease("q", count);
    for (LeasedTask& task : some) tasks.push_back(std::move(task));
  }
  ASSERT_EQ(tasks.size(), 2'001u);
  stop_and_open();
  EXPECT_TRUE(lease("q").empty());
  for (const LeasedTask& task : tasks) {
    ASSERT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
  }
  settle();
}

TEST_F(EngineStop, AStartWithLessMemoryTakesUpNoMoreThanItMayLease) {
  schedule_many("q", 3);
  EXPECT_EQ(lease_count("q", 3), 3u);
  options_.max_loaded = 4;  // so at most one task may be leased
  stop_and_open();
  EXPECT_EQ(engine_->stats().all.leased, 1u);
}

TEST_F(EngineStop, ANameThatIsNoLeaseIsPassedOver) {
  const TaskId id = schedule("q", 0ms);
  ASSERT_TRUE(engine_->close());
  const std::string prefix = "lease " + std::to_string(engine_->stats().epoch) + " ";
  const auto key = [&](const std::string& text) {
    return KeyRecord{.queue = kNoQueue,
                     .key = prefix + text,
                     .id = id,
                     .content = ~std::uint64_t{0} >> 2,
                     .expires_at = wall_now()};
  };
  WriteBatch batch;
  batch.keys = {key("no-lease 17 w"), key("1-1 1x w"), key("1-1"), key("1-1 w")};
  ASSERT_TRUE(memory_store_->write(batch, Durability::synced));
  crash_and_open();
  EXPECT_EQ(engine_->stats().all.leased, 0u);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineStop, TheLeaseOfADamagedTaskDoesNotHoldUpTheStart) {
  const TaskId damaged = schedule("q", 0ms);
  const TaskId sound = schedule("q", 0ms);
  const std::vector<LeasedTask> tasks = lease("q", 2);
  ASSERT_TRUE(engine_->close());
  disk_->flip_bit({.lane = Lane::due, .at = wall_now(), .id = damaged}, 100);
  crash_and_open();
  settle();
  EXPECT_EQ(state_of(sound), TaskState::leased);
  EXPECT_EQ(complete(tasks.at(0).lease), LeaseOutcome::conflict);
  EXPECT_EQ(complete(tasks.at(1).lease), LeaseOutcome::done);
}

// Random stops, crashes, leases, ends and waits on two queues with a small memory. A lease that was
// open at a graceful stop must be valid after it until it expires. A lease that was open at a crash
// must be void. No task may be lost or leased twice.
TEST_F(EngineStop, RandomRunsMatchTheModel) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  options_.max_loaded = 40;
  open_on_a_new_disk();
  std::map<std::uint64_t, LeaseToken> held;  // by task
  std::set<std::uint64_t> live;
  const std::vector<std::string> queues{"a", "b"};
  for (int step = 0; step < 2'000; ++step) {
    const std::uint32_t what = rng.below(100);
    if (what < 30) {
      live.insert(
          schedule(queues[rng.below(2)], std::chrono::milliseconds{rng.below(2'000)}).value);
    } else if (what < 55) {
      const auto tasks = engine_
                             ->lease({.queue = queues[rng.below(2)],
                                      .max = 1 + rng.below(3),
                                      .visibility_timeout = 1h})
                             .value();
      settle();
      for (const LeasedTask& task : tasks) {
        ASSERT_TRUE(held.emplace(task.task.id.value, task.lease).second) << "held twice";
      }
    } else if (what < 75 && !held.empty()) {
      const auto one = std::next(
          held.begin(),
          static_cast<std::ptrdiff_t>(rng.below(static_cast<std::uint32_t>(held.size()))));
      ASSERT_EQ(complete(one->second), LeaseOutcome::done);
      live.erase(one->first);
      held.erase(one);
    } else if (what < 85) {
      advance(std::chrono::milliseconds{rng.below(1'000)});
    } else if (what < 95) {
      stop_and_open();
      settle();
    } else {
      const auto before = std::exchange(held, {});
      crash_and_open();
      settle();
      for (const auto& [id, token] : before) {
        ASSERT_EQ(complete(token), LeaseOutcome::conflict);
      }
    }
    engine_->check_invariants();
  }
  for (const std::uint64_t id : live) {
    const bool is_held = held.contains(id);
    ASSERT_EQ(state_of(TaskId{id}) == TaskState::leased, is_held);
  }
  EXPECT_GT(live.size(), 40u) << "more than there is memory for";
}

}  // namespace
}  // namespace detent

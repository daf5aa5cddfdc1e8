// Hand-outs that do not wait for a commit. FaultStore simulates a store that writes on another
// thread: it runs the work during a write just before the write.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineHandOut : public EngineFixture {
 protected:
  void turn() { ASSERT_TRUE(engine_->turn()); }
  /// Starts the wait of a worker. Its answer is noted as "task" or "error".
  void wait_with(const LeaseRequest& request) {
    engine_->lease_or_wait(request, 1min, [this](Result<std::vector<LeasedTask>> tasks) {
      told_.emplace_back(tasks ? "task" : "error");
      if (!tasks) return;
      for (LeasedTask& task : *tasks) got_.push_back(std::move(task));
    });
  }
  void wait(const std::string& queue) { wait_with({.queue = queue}); }
  /// Makes a change in another queue. Its commit is noted as "commit".
  void change() {
    ASSERT_TRUE(engine_->schedule(request("other", 1h)));
    engine_->after_commit([this](const Result<void>&) { told_.emplace_back("commit"); });
  }
  std::vector<TaskId> got_ids() const {
    std::vector<TaskId> ids;
    for (const LeasedTask& task : got_) ids.push_back(task.task.id);
    return ids;
  }
  static TaskEdit payload(const std::string& data) { return {.payload = Payload{.data = data}}; }

  using Told = std::vector<std::string>;
  Told told_;
  std::vector<LeasedTask> got_;
};

TEST_F(EngineHandOut, ATurnServesAWaitingWorkerBeforeItCommitsOtherChanges) {
  schedule("q", 10ms);
  wait("q");
  settle();
  clock_.advance(10ms);
  change();
  turn();
  EXPECT_EQ(told_, (Told{"task", "commit"}));
}

TEST_F(EngineHandOut, AFailedCommitLeavesTheServedLeaseValid) {
  schedule("q", 10ms);
  wait("q");
  settle();
  clock_.advance(10ms);
  change();
  store_->fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(engine_->turn());
  EXPECT_EQ(told_, (Told{"task", "commit"}));
  crash_and_open();
  const std::vector<LeasedTask> again = lease("q");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].task.id, got_[0].task.id);
  EXPECT_EQ(again[0].attempt, got_[0].attempt);
}

TEST_F(EngineHandOut, ANewTaskIsHandedOutAfterItsCommit) {
  wait("q");
  settle();
  change();
  ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  engine_->hand_out_due();
  turn();
  EXPECT_EQ(told_, (Told{"commit", "task"}));
}

TEST_F(EngineHandOut, ATaskOfAFailedCommitIsNotHandedOut) {
  wait("q");
  settle();
  ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  store_->fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(engine_->turn());
  EXPECT_EQ(told_, Told{"error"});
}

TEST_F(EngineHandOut, AnEditedTaskIsHandedOutWithItsChanges) {
  const TaskId id = schedule("q", 10ms);
  wait("q");
  settle();
  clock_.advance(10ms);
  ASSERT_TRUE(engine_->edit(id, payload("2")));
  engine_->hand_out_due();
  EXPECT_EQ(told_, Told{});
  settle();
  ASSERT_EQ(got_ids(), std::vector<TaskId>{id});
  EXPECT_EQ(got_[0].task.payload.data, "2");
}

TEST_F(EngineHandOut, BetweenCommandsDueTasksAreHandedOutOncePerTick) {
  const TaskId first = schedule("q", 10ms);
  const TaskId second = schedule("q", 11ms);
  wait("q");
  wait("q");
  settle();
  engine_->hand_out_due();
  EXPECT_EQ(got_ids(), std::vector<TaskId>{});
  clock_.advance(10ms);
  engine_->hand_out_due();
  EXPECT_EQ(got_ids(), std::vector<TaskId>{first});
  clock_.advance(1ms);
  engine_->hand_out_due();
  EXPECT_EQ(got_ids(), (std::vector<TaskId>{first, second}));
  engine_->check_invariants();
}

TEST_F(EngineHandOut, ManyWaitingWorkersOfAQueueAreServedInTheirOrder) {
  std::vector<TaskId> tasks;
  for (int i = 0; i < 100; ++i) {
    tasks.push_back(schedule("q", 1s));
    wait("q");
  }
  clock_.advance(1s);
  engine_->hand_out_due();
  EXPECT_EQ(got_ids(), tasks);
}

// ---- while it writes ----

TEST_F(EngineHandOut, TasksThatBecomeDueDuringAWriteAreHandedOutDuringIt) {
  schedule("q", 10ms);
  wait("q");
  settle();
  std::uint64_t writes_before = 0;
  store_->during_writes([&] {
    writes_before = store_->write_count();
    clock_.advance(10ms);
  });
  change();
  turn();
  EXPECT_EQ(told_, (Told{"task", "commit"}));
  EXPECT_EQ(store_->write_count(), writes_before + 1);
  engine_->check_invariants();
}

TEST_F(EngineHandOut, ATaskWhoseChangeIsBeingWrittenWaitsForTheEndOfTheWrite) {
  const TaskId id = schedule("q", 10ms);
  wait("q");
  settle();
  store_->during_writes([&] { clock_.advance(10ms); });
  ASSERT_TRUE(engine_->edit(id, payload("2")));
  change();
  settle();
  EXPECT_EQ(told_, (Told{"commit", "task"}));
  ASSERT_EQ(got_ids(), std::vector<TaskId>{id});
  EXPECT_EQ(got_[0].task.payload.data, "2");
}

TEST_F(EngineHandOut, ATaskThatCannotBeReadDuringAWriteIsLeftToTheTurn) {
  const TaskId id = schedule("q", 10ms);
  wait("q");
  settle();
  store_->during_writes([&] {
    clock_.advance(10ms);
    store_->fail_reads(Error{ErrorCode::unavailable, "planted", ""});
  });
  change();
  engine_->after_commit([&](const Result<void>&) { store_->fail_reads(std::nullopt); });
  settle();
  EXPECT_EQ(told_, (Told{"commit", "task"}));
  EXPECT_EQ(got_ids(), std::vector<TaskId>{id});
}

TEST_F(EngineHandOut, ADamagedRecordIsNotSetAsideWhileTheStoreWrites) {
  const TaskId damaged = schedule("q", 10ms);
  wait("q");
  settle();
  disk_->flip_bit({.lane = Lane::due, .at = wall_now() + 10ms, .id = damaged}, 100);
  std::uint64_t writes_before = 0;
  store_->during_writes([&] {
    writes_before = store_->write_count();
    clock_.advance(10ms);
  });
  change();
  engine_->after_commit(
      [&](const Result<void>&) { EXPECT_EQ(store_->write_count(), writes_before + 1); });
  settle();
  EXPECT_EQ(told_, Told{"commit"});
  EXPECT_EQ(engine_->stats().counters.quarantined, 1u);
}

TEST_F(EngineHandOut, WithoutAWaitingWorkerOrASoonDueTaskNothingHappensDuringAWrite) {
  int writes = 0;
  store_->during_writes([&] { ++writes; });
  schedule("q", 1h);
  schedule("q", 10ms);
  EXPECT_EQ(writes, 0) << "nobody waits";
  wait("other");
  clock_.advance(10ms);
  settle();
  schedule("q", 1h);
  EXPECT_EQ(writes, 0) << "nothing is due soon";
  schedule("q", 10ms);
  EXPECT_EQ(writes, 1);
}

// ---- limits and order ----

TEST_F(EngineHandOut, ALimitOfTheQueueHoldsItsTasksBack) {
  set("q", {.concurrency = 1});
  schedule("q", 10ms);
  schedule("q", 10ms);
  wait("q");
  wait("q");
  settle();
  clock_.advance(11ms);
  engine_->hand_out_due();
  EXPECT_EQ(got_.size(), 1u);
  ASSERT_TRUE(engine_->pause_for("p", 1min));
  schedule("p", 10ms);
  wait("p");
  settle();
  clock_.advance(11ms);
  engine_->hand_out_due();
  EXPECT_EQ(got_.size(), 1u);
  engine_->check_invariants();
}

TEST_F(EngineHandOut, AWorkerOfSeveralQueuesGetsTheirMostUrgentTask) {
  schedule("a", 10ms);
  ScheduleRequest asked = request("b", 10ms);
  asked.rules.priority = 1;
  const TaskId urgent = schedule(asked);
  wait_with({.queue = "a", .other_queues = {"b", "c"}});
  settle();
  clock_.advance(11ms);
  engine_->hand_out_due();
  EXPECT_EQ(got_ids(), std::vector<TaskId>{urgent});
}

TEST_F(EngineHandOut, AWorkerOfSeveralQueuesIsServedAlthoughALimitHoldsOneQueueBack) {
  ScheduleRequest asked = request("held", 10ms);
  asked.rules.priority = 1;
  schedule(asked);
  set("held", {.paused = true});
  const TaskId free = schedule("free", 10ms);
  wait_with({.queue = "held", .other_queues = {"free"}});
  settle();
  clock_.advance(11ms);
  engine_->hand_out_due();
  EXPECT_EQ(got_ids(), std::vector<TaskId>{free});
}

// ---- at random ----

/// Random verbs and waiting workers, a memory that is too small, and time that passes during
/// writes. Each task must be leased to only one worker at a time, with its last changes.
TEST_F(EngineHandOut, InRandomRunsEachTaskIsHandedOutOnceWithItsLastChanges) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  options_ = {.window = 1s, .max_loaded = 64};
  open_on_a_new_disk();
  store_->during_writes([&] { clock_.advance(milliseconds{rng.below(4)}); });
  const auto queue = [&] { return "q" + std::to_string(rng.below(3)); };
  std::map<TaskId, std::string> there;  // and not handed out
  std::size_t completed = 0;
  const auto check_got = [&] {
    for (const LeasedTask& task : std::exchange(got_, {})) {
      const auto it = there.find(task.task.id);
      ASSERT_NE(it, there.end()) << "task " << task.task.id.value;
      ASSERT_EQ(task.task.payload.data, it->second);
      there.erase(it);
      ASSERT_EQ(engine_->complete(task.lease).value(), LeaseOutcome::done);
      ++completed;
    }
  };
  std::size_t made = 0;
  std::size_t cancelled = 0;
  for (int step = 0; step < 4'000 && !HasFailure(); ++step) {
    const std::uint32_t verb = rng.below(10);
    if (verb < 4) {
      ScheduleRequest asked =
          request("q" + std::to_string(rng.below(4)), milliseconds{rng.below(300)});
      asked.payload.data = std::to_string(step);
      asked.rules.priority = rng.below(3);
      there[engine_->schedule(asked).value().task.id] = asked.payload.data;
      ++made;
    } else if (verb < 7) {
      wait_with({.queue = queue(), .max = 1 + rng.below(3), .other_queues = {"q3"}});
    } else if (verb < 8 && !there.empty()) {
      auto it = there.lower_bound(TaskId{rng.next() % (there.rbegin()->first.value + 1)});
      if (rng.below(2) == 0) {
        // The edit may fail, because the task may be leased already.
        if (engine_->edit(it->first, payload(std::to_string(step)))) {
          it->second = std::to_string(step);
        }
      } else if (engine_->cancel(it->first)) {
        there.erase(it);
        ++cancelled;
      }
    } else if (verb < 9) {
      engine_->hand_out_due();
      clock_.advance(milliseconds{rng.below(3)});
      check_got();
    } else {
      turn();
      if (engine_->staged() == 0) engine_->check_invariants();
      check_got();
    }
  }
  for (int i = 0; i < 10'000 && !there.empty() && !HasFailure(); ++i) {
    wait_with({.queue = "q0", .max = 10, .other_queues = {"q1", "q2", "q3"}});
    advance(10ms);
    check_got();
  }
  EXPECT_EQ(completed + cancelled, made);
  settle();
  engine_->check_invariants();
}

}  // namespace
}  // namespace detent

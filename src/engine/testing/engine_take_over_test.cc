// Which leases survive a failure of the store, and which do not.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineTakeOver : public EngineFixture {
 public:
  EngineTakeOver() {
    options_.keep_leases = true;
    crash_and_open();
  }

 protected:
  /// Lets the next commit fail. After the time `after`, opens the store with an engine that takes
  /// the leases over.
  void fail_and_reopen(WriteFault fault, std::chrono::milliseconds after = 0ms) {
    ASSERT_TRUE(engine_->schedule(request("other", 1h)));  // something to write
    store_->fail_write(1, fault);
    ASSERT_FALSE(engine_->commit());
    reopen(after);
  }
  void reopen(std::chrono::milliseconds after = 0ms) {
    clock_.advance(after);
    const std::unique_ptr<Engine> failed = std::move(engine_);
    store_.reset();
    memory_store_.reset();
    if (had_another_) (void)MemoryStore::open(*disk_).value()->begin_epoch().value();
    open();
    engine_->take_over_leases(*failed);
    settle();
    engine_->check_invariants();
  }
  LeasedTask lease_one(const std::string& queue) { return lease(queue).at(0); }

  bool had_another_ = false;  // had the store before it was opened again
};

TEST_F(EngineTakeOver, AWorkerGoesOnWithItsLeaseUntilItRunsOut) {
  const TaskId completed = schedule("q", 0ms);
  const TaskId failed = schedule("q", 0ms);
  const TaskId expired = schedule("q", 0ms);
  const std::vector<LeasedTask> tasks = lease("q", 3);
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    fail_and_reopen(fault, 10s);
    EXPECT_TRUE(lease_ids("q", 9).empty());
  }
  EXPECT_EQ(complete(tasks.at(0).lease), LeaseOutcome::done);
  EXPECT_EQ(state_of(completed), std::nullopt);
  EXPECT_EQ(engine_->fail({.lease = tasks.at(1).lease, .error = "no"}), LeaseOutcome::done);
  settle();
  EXPECT_EQ(engine_->get(failed)->task.attempts, 1u);
  advance(39s);
  EXPECT_EQ(state_of(expired), TaskState::leased) << "for 60 s";
  advance(1s);
  EXPECT_NE(state_of(expired), TaskState::leased);
  EXPECT_EQ(engine_->get(expired)->task.attempts, 1u);
}

TEST_F(EngineTakeOver, ALeaseThatRanOutMeanwhileSpendsNoAttempt) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask before = lease_one("q");
  fail_and_reopen(WriteFault::not_applied, 61s);
  EXPECT_EQ(complete(before.lease), LeaseOutcome::conflict);
  const LeasedTask again = lease_one("q");
  EXPECT_EQ(again.task.id, id);
  EXPECT_EQ(again.attempt, before.attempt);
}

TEST_F(EngineTakeOver, ACompletionThatFailedWithTheStoreCanBeRepeated) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    const TaskId id = schedule("q", 0ms);
    const LeasedTask task = lease_one("q");
    store_->fail_write(1, fault);
    ASSERT_TRUE(engine_->complete(task.lease));
    ASSERT_FALSE(engine_->commit());
    reopen();
    const bool is_done = fault == WriteFault::applied;
    EXPECT_EQ(complete(task.lease), is_done ? LeaseOutcome::conflict : LeaseOutcome::done);
    EXPECT_EQ(state_of(id), std::nullopt);
  }
}

TEST_F(EngineTakeOver, AnAttemptThatFailedWithTheStoreCountsOnce) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    const TaskId id = schedule("q", 0ms);
    const LeasedTask task = lease_one("q");
    store_->fail_write(1, fault);
    ASSERT_TRUE(engine_->fail({.lease = task.lease, .delay = 0ms, .error = "no"}));
    ASSERT_FALSE(engine_->commit());
    reopen();
    const bool is_done = fault == WriteFault::applied;
    const LeaseOutcome again =
        engine_->fail({.lease = task.lease, .delay = 0ms, .error = "no"}).value();
    EXPECT_EQ(again, is_done ? LeaseOutcome::conflict : LeaseOutcome::done);
    settle();
    EXPECT_EQ(engine_->get(id)->task.attempts, 1u);
    complete(lease_one("q").lease);
  }
}

TEST_F(EngineTakeOver, ALeaseWhoseHolderGotNoAnswerIsVoid) {
  const TaskId id = schedule("q", 0ms);
  ASSERT_EQ(engine_->lease({.queue = "q", .max = 1}).value().size(), 1u);  // and no commit
  fail_and_reopen(WriteFault::not_applied);
  EXPECT_EQ(lease_ids("q", 9), std::vector{id});
}

TEST_F(EngineTakeOver, ALeaseThatWasAnsweredWithoutACommitIsKept) {
  std::vector<LeasedTask> got;
  wait_for_one("q", got);
  settle();
  schedule("q", 1s);
  clock_.advance(1s);
  engine_->catch_up();
  engine_->hand_out_due();
  ASSERT_EQ(got.size(), 1u) << "at once";
  fail_and_reopen(WriteFault::not_applied);
  EXPECT_EQ(complete(got.at(0).lease), LeaseOutcome::done);
}

TEST_F(EngineTakeOver, OfTwoLeasesOfATaskTheAnsweredLeaseIsTakenOver) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask first = lease_one("q");
  ASSERT_TRUE(engine_->release(first.lease));
  ASSERT_EQ(engine_->lease({.queue = "q", .max = 1}).value().size(), 1u);  // and no commit
  fail_and_reopen(WriteFault::not_applied);
  EXPECT_EQ(complete(first.lease), LeaseOutcome::done) << "its release was refused";
  EXPECT_EQ(state_of(id), std::nullopt);
}

TEST_F(EngineTakeOver, NothingIsTakenOverOnceAnotherEngineHadTheStore) {
  const TaskId id = schedule("q", 0ms);
  const LeasedTask task = lease_one("q");
  had_another_ = true;
  fail_and_reopen(WriteFault::not_applied);
  EXPECT_EQ(complete(task.lease), LeaseOutcome::conflict);
  EXPECT_EQ(lease_ids("q", 9), std::vector{id});
}

TEST_F(EngineTakeOver, ATaskOfAWebhookIsTakenOverInItsLaneWhileItsDeliveryIsUnderWay) {
  ScheduleRequest with_url = request("q", 0ms);
  with_url.webhook = "https://example.org/";
  const TaskId id = schedule(with_url);
  const auto taken = engine_->lease_deliveries({.max = 1, .visibility_timeout = 60s}).value();
  ASSERT_EQ(taken.size(), 1u);
  settle();
  fail_and_reopen(WriteFault::not_applied);
  EXPECT_EQ(state_of(id), TaskState::leased);
  EXPECT_EQ(complete(taken.at(0).leased.lease), LeaseOutcome::done);
}

}  // namespace
}  // namespace detent

// The changes that a watcher gets: each event of a task, once it is durable.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/records/change_feed.h"
#include "engine/testing/engine_fixture.h"
#include "task/retry.h"

namespace detent {
namespace {

class EngineChangesTest : public EngineFixture {
 protected:
  EngineChangesTest() {
    crash();
    options_.changes = &feed_;
    open();
    feed_.watch();
  }
  /// The changes since the last call, as "ID event→state". The first task has the ID 1.
  std::vector<std::string> told() {
    std::vector<std::string> all;
    for (const TaskChange& change : feed_.take().changes) {
      EXPECT_EQ(change.queue, "q");
      EXPECT_EQ(change.at, wall_now());
      all.push_back(std::to_string(change.id.value >> TaskId::kShardBits) + " " +
                    std::string(to_string(change.event)) + "→" +
                    std::string(to_string(change.state)));
    }
    return all;
  }
  LeaseToken lease_one() { return lease("q").front().lease; }
  using Told = std::vector<std::string>;

  ChangeFeed feed_;
};

TEST_F(EngineChangesTest, FollowsATaskFromItsAcceptanceToItsEnd) {
  schedule("q", 5s);
  EXPECT_EQ(told(), Told{"1 scheduled→scheduled"});
  advance(5s);
  EXPECT_EQ(told(), Told{"1 ready→ready"});
  LeaseToken token = lease_one();
  EXPECT_EQ(told(), Told{"1 leased→leased"});
  ASSERT_TRUE(engine_->extend(token, 1h));
  ASSERT_TRUE(engine_->release(token));
  settle();
  EXPECT_EQ(told(), (Told{"1 extended→leased", "1 released→ready"}));
  fail(lease_one(), 1s);
  EXPECT_EQ(told(), (Told{"1 leased→leased", "1 failed→scheduled"}));
  advance(1s);
  complete(lease_one());
  EXPECT_EQ(told(), (Told{"1 ready→ready", "1 leased→leased", "1 completed→completed"}));
}

TEST_F(EngineChangesTest, ReportsTasksThatAreDueImmediately) {
  schedule("q", 0ms);
  EXPECT_EQ(told(), (Told{"1 scheduled→ready", "1 ready→ready"}));
}

TEST_F(EngineChangesTest, ReportsWhyATaskCameBack) {
  schedule("q", 0ms);
  LeaseToken token = lease_one();
  ASSERT_TRUE(engine_->release(token, 1min));
  settle();
  feed_.take();
  advance(1min);
  lease_one();
  feed_.take();
  advance(kDefaultVisibilityTimeout);
  EXPECT_EQ(told(), Told{"1 expired→scheduled"});
  ASSERT_TRUE(engine_->run_now(TaskId{}.next()));
  settle();
  EXPECT_EQ(told(), (Told{"1 moved→ready", "1 ready→ready"}));
}

TEST_F(EngineChangesTest, ReportsDeadTasksAndTheirRedrive) {
  schedule("q", 0ms);
  feed_.take();
  ASSERT_TRUE(engine_->bury(lease_one(), "no use"));
  settle();
  EXPECT_EQ(told(), (Told{"1 leased→leased", "1 dead→dead"}));
  ASSERT_TRUE(engine_->redrive(TaskId{}.next()));
  settle();
  EXPECT_EQ(told(), (Told{"1 redriven→ready", "1 ready→ready"}));
}

TEST_F(EngineChangesTest, ReportsVerbsOnATask) {
  const TaskId id = schedule("q", 1h);
  ASSERT_TRUE(engine_->move(id, Due{2h}));
  ASSERT_TRUE(engine_->edit(id, {.priority = 1}));
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_EQ(told(), (Told{"1 scheduled→scheduled", "1 moved→scheduled", "1 edited→scheduled",
                          "1 cancelled→cancelled"}));
}

TEST_F(EngineChangesTest, ReportsTheSameForTasksWithARetention) {
  set("q", {.retention = 1h});
  const TaskId id = schedule("q", 1h);
  ASSERT_TRUE(engine_->cancel(id));
  schedule("q", 0ms);
  complete(lease_one());
  EXPECT_EQ(told(), (Told{"1 scheduled→scheduled", "1 cancelled→cancelled", "2 scheduled→ready",
                          "2 ready→ready", "2 leased→leased", "2 completed→completed"}));
}

TEST_F(EngineChangesTest, ReportsEachTaskThatIsPurgedRestoredOrHandedOver) {
  schedule("q", 1h);
  schedule("q", 2h);
  feed_.take();
  EXPECT_EQ(purge_all("q"), 2u);
  EXPECT_EQ(told(), (Told{"1 cancelled→cancelled", "2 cancelled→cancelled"}));
  const TaskId far = schedule("q", 24h);
  feed_.take();
  const Task task = engine_->get(far)->task;
  ASSERT_EQ(engine_->hand_over(std::span(&task, 1)).value(), 1u);
  settle();
  EXPECT_EQ(told(), Told{"3 away→scheduled"});
  ASSERT_TRUE(engine_->restore(task));
  settle();
  EXPECT_EQ(told(), Told{"3 scheduled→scheduled"});
}

TEST_F(EngineChangesTest, ReportsAnExpiredLeaseThatCostsNoAttempt) {
  schedule("q", 0ms);
  ASSERT_EQ(engine_
                ->lease({.queue = "q",
                         .max = 1,
                         .visibility_timeout = 1s,
                         .worker = {},
                         .run_out = RunOut::is_ready_again})
                ->size(),
            1u);
  settle();
  feed_.take();
  advance(1s);
  EXPECT_EQ(told(), (Told{"1 expired→ready", "1 ready→ready"}));
}

TEST_F(EngineChangesTest, ReportsARestoredDeadTask) {
  const TaskId id = schedule("q", 0ms);
  EXPECT_EQ(engine_->bury(lease("q")[0].lease, "hopeless"), LeaseOutcome::dead);
  settle();
  const Task dead = engine_->get(id)->task;
  open_on_a_new_disk();
  feed_.take();
  ASSERT_TRUE(engine_->restore(dead).value());
  settle();
  EXPECT_EQ(told(), Told{"1 scheduled→dead"});
}

TEST_F(EngineChangesTest, ReportsTasksThatBecomeReadyWhenTheyAreLoaded) {
  schedule("q", 1h);
  EXPECT_EQ(told(), Told{"1 scheduled→scheduled"});
  crash();
  clock_.advance(2h);
  open();
  settle();
  EXPECT_EQ(told(), Told{"1 ready→ready"});
}

TEST_F(EngineChangesTest, ReportsNothingBeforeTheCommit) {
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  EXPECT_EQ(told(), Told{});
  ASSERT_TRUE(engine_->commit());
  EXPECT_EQ(told(), Told{"1 scheduled→scheduled"});
}

TEST_F(EngineChangesTest, ReportsNothingOfAFailedCommit) {
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  store_->fail_write(1, WriteFault::applied);
  EXPECT_FALSE(engine_->commit());
  EXPECT_EQ(told(), Told{});
}

TEST_F(EngineChangesTest, KeepsNoChangesWithoutAWatcher) {
  feed_.unwatch();
  schedule("q", 0ms);
  complete(lease_one());
  feed_.watch();
  EXPECT_EQ(told(), Told{});
  EXPECT_EQ(feed_.take().missed, 0u);
}

}  // namespace
}  // namespace detent

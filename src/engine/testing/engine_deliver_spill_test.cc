// Deliveries to webhooks while most of the ready tasks are on disk.
#include "engine/testing/engine_deliver_fixture.h"

namespace detent {
namespace {

// ---- on disk ----

/// One queue has many tasks of both kinds: with and without their own webhook. Memory has room for
/// few of them.
class EngineDeliverSpilled : public EngineDeliver {
 protected:
  static constexpr std::size_t kEach = 10'000;
  EngineDeliverSpilled() {
    options_.max_loaded = 200;
    open_on_a_new_disk();
  }
  void fill(Due due = 0ms) {
    for (std::size_t i = 0; i < kEach; ++i) {
      ASSERT_TRUE(engine_->schedule(request("q", due)));
      ASSERT_TRUE(engine_->schedule(hook("q", due)));
      if (i % 100 == 0) settle();
    }
    settle();
    engine_->check_invariants();
  }
  /// Leases and completes deliveries until there are none. Returns their number.
  std::size_t deliver_all(std::size_t most) {
    std::size_t count = 0;
    while (count < most) {
      const std::vector<Delivery> some = deliver(std::min<std::size_t>(50, most - count));
      if (some.empty()) break;
      for (const Delivery& one : some) EXPECT_TRUE(engine_->complete(one.leased.lease));
      count += some.size();
    }
    settle();
    return count;
  }
  std::size_t work_all(std::size_t most) {
    std::size_t count = 0;
    while (count < most) {
      const std::vector<LeasedTask> some = lease("q", std::min<std::size_t>(50, most - count));
      if (some.empty()) break;
      for (const LeasedTask& one : some) {
        EXPECT_EQ(one.task.webhook, "");
        EXPECT_TRUE(engine_->complete(one.lease));
      }
      count += some.size();
    }
    settle();
    return count;
  }
};

TEST_F(EngineDeliverSpilled, DeliveriesAreServedBehindManyPlainTasks) {
  fill();
  EXPECT_EQ(view("q").stats.ready, 2 * kEach);
  EXPECT_EQ(deliver_all(2 * kEach), kEach) << "no worker came";
  EXPECT_EQ(view("q").stats.ready, kEach);
  EXPECT_EQ(view("q").stats.scheduled, 0u);
  engine_->check_invariants();
  EXPECT_EQ(work_all(2 * kEach), kEach);
  EXPECT_EQ(view("q").stats.ready, 0u);
  engine_->check_invariants();
}

TEST_F(EngineDeliverSpilled, NorTheOtherWayRound) {
  fill(1min);
  advance(1min);
  EXPECT_EQ(view("q").stats.ready, 2 * kEach);
  EXPECT_EQ(work_all(2 * kEach), kEach) << "no deliverer came";
  EXPECT_EQ(view("q").stats.ready, kEach);
  engine_->check_invariants();
  crash_and_open();
  EXPECT_EQ(work_all(1), 0u);
  EXPECT_EQ(deliver_all(2 * kEach), kEach);
  engine_->check_invariants();
  EXPECT_EQ(view("q").bytes, 0u);
}

TEST_F(EngineDeliverSpilled, AWebhookOfTheQueueAppliesToTasksOnDisk) {
  fill();
  EXPECT_EQ(deliver_all(100), 100u);
  set("q", with_webhook());
  EXPECT_EQ(work_all(1), 0u);
  std::size_t plain = 0;
  for (const Delivery& one : deliver(50)) {
    if (one.leased.task.webhook.empty()) ++plain;
  }
  EXPECT_EQ(plain, 50u) << "those are due first now";
  crash_and_open();
  EXPECT_EQ(deliver_all(kEach), kEach);
  set("q", {});
  const std::uint64_t left = view("q").stats.ready;
  EXPECT_EQ(left, kEach - 100);
  EXPECT_EQ(deliver_all(2 * kEach) + work_all(2 * kEach), left);
  engine_->check_invariants();
  EXPECT_EQ(view("q").stats.ready, 0u);
}

TEST_F(EngineDeliverSpilled, AListAPurgeAndAPauseCoverBothOrdersOfAQueue) {
  fill();
  ASSERT_EQ(lease_count("q", 3) + deliver(2).size(), 5u);
  std::size_t listed = 0;
  for (std::optional<Place> from = kListStart; from;) {
    const TaskList page = engine_->list({.queue = "q"}, *from, 1'000).value();
    listed += page.tasks.size();
    from = page.next;
  }
  EXPECT_EQ(listed, 2 * kEach);
  set("q", {.paused = true});
  EXPECT_EQ(work_all(1) + deliver_all(1), 0u);
  EXPECT_EQ(purge_all("q"), 2 * kEach - 5);
  engine_->check_invariants();
  EXPECT_EQ(view("q").stats.leased, 5u);
  EXPECT_EQ(view("q").stats.ready, 0u);
}

TEST_F(EngineDeliverSpilled, AWaitingDelivererIsServedAcrossARestart) {
  fill();
  crash_and_open();
  std::size_t count = 0;
  for (std::vector<Delivery> got; count < 200; got.clear()) {
    wait_for_deliveries(got, 20);
    ASSERT_FALSE(got.empty());
    for (const Delivery& one : got) ASSERT_TRUE(engine_->complete(one.leased.lease));
    count += got.size();
  }
}

TEST_F(EngineDeliverSpilled, TasksThatAreOnlyOnDiskAreServedAfterARestart) {
  for (std::size_t i = 0; i < 1'000; ++i) ASSERT_TRUE(engine_->schedule(hook("q")));
  settle();
  ASSERT_EQ(deliver_all(950), 950u);
  crash_and_open();
  ASSERT_EQ(engine_->stats().loaded, 0u) << "nothing of it is in memory";
  std::vector<Delivery> got;
  wait_for_deliveries(got);
  EXPECT_EQ(got.size(), 1u);
  engine_->check_invariants();
}

TEST_F(EngineDeliverSpilled, AnEditGivesOrTakesTheWebhookOnDisk) {
  fill();
  TaskId last_plain;
  TaskId last_own;
  for (std::optional<Place> from = kListStart; from;) {
    const TaskList page = engine_->list({.queue = "q"}, *from, 1'000).value();
    for (const TaskSnapshot& one : page.tasks) {
      (one.task.webhook.empty() ? last_plain : last_own) = one.task.id;
    }
    from = page.next;
  }
  ASSERT_TRUE(engine_->edit(last_plain, {.priority = 0, .webhook = kUrl}));
  ASSERT_TRUE(engine_->edit(last_own, {.priority = 0, .webhook = ""}));
  settle();
  engine_->check_invariants();
  EXPECT_EQ(lease_ids("q", 1), std::vector<TaskId>{last_own});
  EXPECT_EQ(deliver_ids(1), std::vector<TaskId>{last_plain});
}

}  // namespace
}  // namespace detent

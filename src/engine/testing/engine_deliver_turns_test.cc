// The order of deliveries among queues, and the causes that hold deliveries back: limits, and
// webhooks that do not accept messages.
#include "engine/testing/engine_deliver_fixture.h"

namespace detent {
namespace {

// ---- turns and limits ----

TEST_F(EngineDeliver, AQueueWithManyTasksDoesNotDelayTheOthers) {
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(engine_->schedule(hook("many")));
  settle();
  for (const char* queue : {"a", "b", "c"}) schedule(hook(queue));
  std::multiset<std::string> queues;
  for (const Delivery& delivery : deliver(8)) queues.insert(delivery.leased.task.queue);
  EXPECT_EQ(queues.size(), 8u);
  for (const char* queue : {"a", "b", "c"}) EXPECT_EQ(queues.count(queue), 1u) << queue;
  // The queues also take turns if each call asks for one task.
  for (const char* queue : {"a", "b", "c"}) schedule(hook(queue));
  queues.clear();
  for (int i = 0; i < 4; ++i) queues.insert(deliver().at(0).leased.task.queue);
  EXPECT_EQ(queues, (std::multiset<std::string>{"a", "b", "c", "many"}));
  EXPECT_EQ(deliver(1'000).size(), 500u - 5 - 1);
}

TEST_F(EngineDeliver, APauseHoldsDeliveriesBackAndItsEndServesTheDeliverer) {
  set("q", {.paused = true});
  schedule(hook("q"));
  std::vector<Delivery> got;
  wait_for_deliveries(got);
  EXPECT_TRUE(got.empty());
  set("q", {});
  EXPECT_EQ(got.size(), 1u);

  ASSERT_TRUE(engine_->pause_for("q", 10s));
  schedule(hook("q"));
  wait_for_deliveries(got);
  EXPECT_EQ(got.size(), 1u);
  advance(9s);
  EXPECT_EQ(got.size(), 1u);
  advance(1s);
  EXPECT_EQ(got.size(), 2u);
  engine_->check_invariants();
}

TEST_F(EngineDeliver, RateAndConcurrencyApplyToDeliveries) {
  set("q", {.rate = 2});
  for (int i = 0; i < 5; ++i) schedule(hook("q"));
  EXPECT_EQ(deliver(10).size(), 2u);
  std::vector<Delivery> got;
  wait_for_deliveries(got, 10);
  EXPECT_TRUE(got.empty());
  advance(1s);
  EXPECT_EQ(got.size(), 2u);
  set("q", {.concurrency = 4});
  EXPECT_TRUE(deliver(10).empty());
  wait_for_deliveries(got, 10);
  complete(got.front().leased.lease);
  EXPECT_EQ(got.size(), 3u);
  engine_->check_invariants();
}

TEST_F(EngineDeliver, UnderALimitWorkersAndTheDelivererTakeTurns) {
  set("q", {.concurrency = 1});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(engine_->schedule(hook("q")));
    ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  }
  // A worker and the deliverer both wait when a lease ends. A worker may be served before the turn
  // of the engine.
  const auto complete_first = [&](LeaseToken lease) {
    ASSERT_EQ(engine_->complete(lease).value(), LeaseOutcome::done);
    clock_.advance(1ms);
    engine_->hand_out_due();
    settle();
  };
  std::vector<Delivery> delivered;
  std::vector<LeasedTask> worked;
  wait_for_deliveries(delivered);
  wait_for_one("q", worked);
  settle();
  int deliveries = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(delivered.size() + worked.size(), 1u);
    if (!delivered.empty()) {
      ++deliveries;
      const LeaseToken lease = delivered.front().leased.lease;
      delivered.clear();
      wait_for_deliveries(delivered);
      complete_first(lease);
    } else {
      const LeaseToken lease = worked.front().lease;
      worked.clear();
      wait_for_one("q", worked);
      complete_first(lease);
    }
  }
  EXPECT_EQ(deliveries, 10);
}

TEST_F(EngineDeliver, WithoutASharedLimitAWorkerIsServedEvenInTheDeliverersTurn) {
  std::vector<Delivery> delivered;
  std::vector<LeasedTask> worked;
  for (const auto due : {10ms, 11ms}) {
    schedule("q", due);
    schedule(hook("q", due));
  }
  wait_for_deliveries(delivered, 1);
  wait_for_one("q", worked);
  clock_.advance(10ms);
  engine_->hand_out_due();
  ASSERT_EQ(worked.size(), 1u) << "from now on it is the deliverer's turn";
  wait_for_one("q", worked);
  clock_.advance(1ms);
  engine_->hand_out_due();
  EXPECT_EQ(worked.size(), 2u);
  EXPECT_TRUE(delivered.empty());
  settle();
  EXPECT_EQ(delivered.size(), 1u);
}

TEST_F(EngineDeliver, WithoutAWaitingDelivererAWorkerIsServedEvenUnderALimit) {
  set("q", {.concurrency = 1});
  std::vector<LeasedTask> worked;
  schedule("q", 10ms);
  schedule(hook("other", 10ms));
  wait_for_one("q", worked);
  clock_.advance(10ms);
  engine_->hand_out_due();
  EXPECT_EQ(worked.size(), 1u);
}

// ---- queues that the deliverer holds ----

TEST_F(EngineDeliver, AHeldQueueIsNotLeasedUntilACallReleasesIt) {
  ASSERT_TRUE(engine_->set_queue("held", to_sink()));
  const TaskId id = schedule("held", 0ms);
  const TaskId other = schedule(hook("q"));
  const auto taken = engine_->lease_deliveries({.max = 10}, {"sink:a", "sink:b"});
  ASSERT_EQ(taken->size(), 1u);
  EXPECT_EQ(taken->front().leased.task.id, other);
  settle();
  engine_->check_invariants();
  EXPECT_TRUE(lease_ids("held", 10).empty());
  EXPECT_EQ(deliver_ids(10), std::vector<TaskId>{id});
  engine_->check_invariants();
}

TEST_F(EngineDeliver, ATaskWithItsOwnWebhookIsNotHeldWithItsQueue) {
  ASSERT_TRUE(engine_->set_queue("held", to_sink()));
  const TaskId plain = schedule("held", 0ms);
  const TaskId own = schedule(hook("held"));
  std::vector<TaskId> got;
  const auto note = [&](const Result<std::vector<Delivery>>& all) {
    for (const Delivery& delivery : all.value()) got.push_back(delivery.leased.task.id);
  };
  const auto wait = [&] {
    engine_->lease_deliveries_or_wait({.max = 9}, {"sink:a"}, note);
    settle();
    engine_->check_invariants();
  };
  wait();
  EXPECT_EQ(got, std::vector<TaskId>{own});
  wait();
  EXPECT_EQ(got.size(), 1u) << "the other is held";
  const TaskId later = schedule(hook("held", 5s));
  advance(5s);
  EXPECT_EQ(got, (std::vector<TaskId>{own, later})) << "who waits is told";
  engine_->check_invariants();
  EXPECT_EQ(deliver_ids(9), std::vector<TaskId>{plain});
  engine_->check_invariants();
}

TEST_F(EngineDeliver, AWaitWithAHeldQueueEndsWhenAnotherQueueHasATask) {
  ASSERT_TRUE(engine_->set_queue("held", to_sink()));
  schedule("held", 0ms);
  std::vector<Delivery> got;
  engine_->lease_deliveries_or_wait({}, {"sink:a"}, [&got](Result<std::vector<Delivery>> all) {
    for (Delivery& delivery : all.value()) got.push_back(std::move(delivery));
  });
  settle();
  schedule("held", 0ms);
  EXPECT_TRUE(got.empty());
  EXPECT_NE(engine_->next_wakeup(), clock_.now());
  const TaskId id = schedule(hook("q"));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got.front().leased.task.id, id);
  engine_->check_invariants();
}

TEST_F(EngineDeliver, RemovingAQueueOrChangingItsWebhookEndsTheHold) {
  for (const char* const queue : {"removed", "moved"}) {
    ASSERT_TRUE(engine_->set_queue(queue, to_sink()));
    schedule(queue, 0ms);
  }
  EXPECT_TRUE(engine_->lease_deliveries({.max = 9}, {"sink:a"})->empty());
  ASSERT_TRUE(engine_->set_queue("moved", {}));
  engine_->check_invariants();
  EXPECT_EQ(lease_ids("moved", 9).size(), 1u);
  purge_all("removed");
  ASSERT_TRUE(engine_->remove_queue("removed"));
  settle();
  engine_->check_invariants();
  EXPECT_TRUE(deliver(9).empty());
}

}  // namespace
}  // namespace detent

// Tasks with a webhook go to the deliverer and never to workers.
#include <cstdint>
#include <map>

#include "engine/testing/engine_deliver_fixture.h"

namespace detent {
namespace {

// ---- who takes what ----

TEST_F(EngineDeliver, ATaskWithAWebhookIsNeverLeasedToWorkers) {
  const TaskId id = schedule(hook("q"));
  EXPECT_TRUE(lease_ids("q", 10).empty());
  const auto of_two = engine_->lease({.queue = "r", .max = 1, .other_queues = {"q"}});
  EXPECT_TRUE(of_two->empty());
  EXPECT_EQ(engine_->lease_task(id, {.queue = "q"}).error().code, ErrorCode::conflict);
  std::vector<LeasedTask> got;
  wait_for_one("q", got);
  settle();
  advance(30s);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(state_of(id), TaskState::ready);
  const TaskId plain = schedule("q", 0ms);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got.front().task.id, plain);
  EXPECT_EQ(deliver_ids(10), std::vector<TaskId>{id});
  engine_->check_invariants();
}

TEST_F(EngineDeliver, TheDelivererTakesNoTaskWithoutAWebhook) {
  schedule("q", 0ms);
  EXPECT_TRUE(deliver(10).empty());
  schedule(hook("q", 1min));
  EXPECT_TRUE(deliver(10).empty());
  advance(1min);
  EXPECT_EQ(deliver(10).size(), 1u);
  EXPECT_EQ(lease_count("q", 10), 1u);
}

TEST_F(EngineDeliver, AQueueWithAWebhookDeliversAtMostTheRequestedNumber) {
  set("q", with_webhook());
  schedule_many("q", 10);
  EXPECT_EQ(deliver(4).size(), 4u);
  EXPECT_EQ(deliver(10).size(), 6u);
}

TEST_F(EngineDeliver, AllTasksOfAQueueWithAWebhookAreDelivered) {
  const TaskId before = schedule("q", 0ms);
  const TaskId own = schedule(hook("q"));
  const TaskId later = schedule("q", 1min);
  std::vector<LeasedTask> got;
  ASSERT_EQ(lease_count("q", 1), 1u);  // a worker keeps the task that it has leased
  const TaskId second = schedule("q", 0ms);
  set("q", with_webhook());
  wait_for_one("q", got);
  settle();
  EXPECT_TRUE(lease_ids("q", 10).empty());
  EXPECT_EQ(engine_->lease_task(second, {.queue = "q"}).error().code, ErrorCode::conflict);
  EXPECT_EQ(deliver_ids(10), (std::vector<TaskId>{own, second}));
  advance(61s);  // all leases expire, and the later task is due
  advance(2s);   // the backoff
  EXPECT_EQ(deliver_ids(10).size(), 4u);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(state_of(later), TaskState::leased);
  EXPECT_EQ(state_of(before), TaskState::leased);
  engine_->check_invariants();
}

TEST_F(EngineDeliver, WithoutItsWebhookAQueueServesItsWorkersAgain) {
  set("q", with_webhook());
  std::vector<LeasedTask> got;
  wait_for_one("q", got);
  const TaskId id = schedule("q", 0ms);
  schedule(hook("q"));
  EXPECT_TRUE(got.empty());
  set("q", {});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got.front().task.id, id);
  EXPECT_EQ(deliver(10).size(), 1u);
}

TEST_F(EngineDeliver, UrlAndKeysComeFromTheTaskOrItsQueue) {
  ScheduleRequest asked = hook("q");
  asked.headers = {{"X-Tenant", "a"}};
  schedule(asked);
  Delivery own = deliver().at(0);
  EXPECT_EQ(own.url, kUrl);
  EXPECT_TRUE(own.keys.empty());
  EXPECT_EQ(own.leased.task.headers, asked.headers);
  EXPECT_EQ(own.leased.task.payload, asked.payload);
  EXPECT_EQ(own.leased.attempt, 1u);
  complete(own.leased.lease);
  set("q", with_webhook());
  schedule("q", 0ms);
  schedule(asked);
  const std::vector<Delivery> both = deliver(2);
  EXPECT_EQ(both.at(0).url, "https://queue.example");
  EXPECT_EQ(both.at(0).leased.task.webhook, "");
  EXPECT_EQ(both.at(1).url, kUrl);
  for (const Delivery& delivery : both) EXPECT_EQ(delivery.keys, std::vector<std::string>{a_key()});
}

TEST_F(EngineDeliver, TheMostUrgentTaskIsFirstWithEitherKindOfWebhook) {
  set("q", with_webhook());
  std::map<std::uint32_t, TaskId> by_priority;
  for (const std::uint32_t priority : {5u, 2u, 8u, 1u, 7u, 3u, 4u, 6u}) {
    ScheduleRequest asked = priority % 3 == 0 ? hook("q") : request("q", 0ms);
    asked.rules.priority = priority;
    by_priority[priority] = schedule(asked);
  }
  std::vector<TaskId> expected;
  for (const auto& [priority, id] : by_priority) expected.push_back(id);
  EXPECT_EQ(engine_->first_ready("q")->task.id, expected.front());
  EXPECT_EQ(deliver_ids(8), expected);
}

// ---- how a delivery ends ----

TEST_F(EngineDeliver, ADeliveryEndsAsALeaseOfAWorkerDoes) {
  ScheduleRequest asked = hook("q");
  asked.rules.max_attempts = 2;
  const TaskId id = schedule(asked);
  EXPECT_EQ(fail(deliver().at(0).leased.lease, 1min), LeaseOutcome::done);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  EXPECT_EQ(engine_->get(id)->task.history.at(0).worker, "webhook");
  EXPECT_TRUE(deliver().empty());
  advance(1min);
  EXPECT_EQ(fail(deliver().at(0).leased.lease), LeaseOutcome::dead);
  EXPECT_EQ(view("q").stats.dead, 1u);
  EXPECT_EQ(engine_->redrive("q", 10)->count, 1u);
  settle();
  EXPECT_EQ(complete(deliver().at(0).leased.lease), LeaseOutcome::done);
  EXPECT_EQ(state_of(id), std::nullopt);
  engine_->check_invariants();
}

TEST_F(EngineDeliver, ADeliveryThatIsNotEndedIsHandedOutAgain) {
  schedule(hook("q"));
  const Delivery first = deliver().at(0);
  advance(61s);
  advance(2s);  // the backoff
  const Delivery second = deliver().at(0);
  EXPECT_EQ(second.leased.attempt, 2u);
  EXPECT_EQ(complete(first.leased.lease), LeaseOutcome::conflict);
  crash_and_open();
  EXPECT_EQ(deliver().at(0).leased.attempt, 2u);
  engine_->check_invariants();
}

// ---- waiting ----

TEST_F(EngineDeliver, AWaitingDelivererIsServedWhenATaskIsDue) {
  std::vector<Delivery> got;
  wait_for_deliveries(got, 10);
  schedule("q", 0ms);
  schedule(hook("q", 5s));
  EXPECT_TRUE(got.empty());
  advance(5s);
  EXPECT_EQ(got.size(), 1u);
  schedule(hook("q"));
  EXPECT_EQ(got.size(), 1u) << "one answer to one wait";
  wait_for_deliveries(got);
  EXPECT_EQ(got.size(), 2u) << "what was there is handed out at once";
}

TEST_F(EngineDeliver, ASecondWaitEndsTheFirstWithAnEmptyAnswer) {
  int first_calls = 0;
  engine_->lease_deliveries_or_wait({}, {}, [&](const Result<std::vector<Delivery>>& all) {
    ++first_calls;
    EXPECT_TRUE(all->empty());
  });
  std::vector<Delivery> got;
  wait_for_deliveries(got);
  EXPECT_EQ(first_calls, 1);
  schedule(hook("q"));
  EXPECT_EQ(first_calls, 1);
  EXPECT_EQ(got.size(), 1u);
}

TEST_F(EngineDeliver, AStopEndsTheWaitAndRefusesNewWaits) {
  int calls = 0;
  const auto count = [&](const Result<std::vector<Delivery>>& all) {
    ++calls;
    EXPECT_TRUE(all->empty());
  };
  engine_->lease_deliveries_or_wait({}, {}, count);
  engine_->end_waits();
  settle();
  EXPECT_EQ(calls, 1);
  engine_->lease_deliveries_or_wait({}, {}, count);
  settle();
  EXPECT_EQ(calls, 2);
}

TEST_F(EngineDeliver, AWaitingDelivererGetsTheErrorOfAFailedStore) {
  std::optional<Error> told;
  engine_->lease_deliveries_or_wait({}, {}, [&](const Result<std::vector<Delivery>>& all) {
    ASSERT_FALSE(all);
    told = all.error();
  });
  settle();
  store_->fail_write(1, WriteFault::not_applied);
  ASSERT_TRUE(engine_->schedule(hook("q")));
  EXPECT_FALSE(engine_->turn());
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, ErrorCode::unavailable);
  EXPECT_FALSE(engine_->lease_deliveries({}));
}

TEST_F(EngineDeliver, ARequestIsChecked) {
  EXPECT_EQ(engine_->lease_deliveries({.max = 0}).error().field, "max");
  EXPECT_EQ(engine_->lease_deliveries({.max = 1'001}).error().field, "max");
  EXPECT_EQ(engine_->lease_deliveries({.visibility_timeout = 0ms}).error().field,
            "visibility_timeout");
}

// ---- a change of the task ----

TEST_F(EngineDeliver, AnEditGivesOrTakesTheWebhook) {
  const TaskId id = schedule("q", 0ms);
  ASSERT_TRUE(engine_->edit(id, {.webhook = kUrl, .headers = TaskHeaders{{"a", "b"}}}));
  settle();
  engine_->check_invariants();
  EXPECT_TRUE(lease_ids("q", 1).empty());
  EXPECT_EQ(engine_->get(id)->task.headers, (TaskHeaders{{"a", "b"}}));
  ASSERT_TRUE(engine_->edit(id, {.webhook = ""}));
  settle();
  engine_->check_invariants();
  EXPECT_TRUE(deliver().empty());
  EXPECT_EQ(lease_ids("q", 1), std::vector<TaskId>{id});
}

TEST_F(EngineDeliver, AnEmptyQueueLeavesTheRingWhenItIsForgotten) {
  const TaskId id = schedule(hook("q"));
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  ASSERT_TRUE(engine_->remove_queue("q"));
  settle();
  engine_->check_invariants();
  EXPECT_TRUE(deliver(10).empty());
  schedule(hook("q"));
  EXPECT_EQ(deliver(10).size(), 1u);
  engine_->check_invariants();
}

TEST_F(EngineDeliver, WebhookAndHeadersSurviveARestart) {
  ScheduleRequest asked = hook("q", 1min);
  asked.headers = {{"traceparent", "x"}, {"X-A", ""}};
  const TaskId id = schedule(asked);
  crash_and_open();
  const Task task = engine_->get(id)->task;
  EXPECT_EQ(task.webhook, kUrl);
  EXPECT_EQ(task.headers, asked.headers);
}

TEST_F(EngineDeliver, AKeyStandsForOneContentOnly) {
  ScheduleRequest asked = hook("q");
  asked.key = "k";
  const TaskId id = schedule(asked);
  EXPECT_EQ(engine_->schedule(asked)->task.id, id);
  asked.headers = {{"traceparent", "another"}};
  EXPECT_EQ(engine_->schedule(asked)->task.id, id);
  asked.headers = {{"a", "b"}};
  EXPECT_EQ(engine_->schedule(asked).error().code, ErrorCode::conflict);
  asked.headers = {};
  asked.webhook = "https://other";
  EXPECT_EQ(engine_->schedule(asked).error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace detent

// What goes to webhooks: never to workers, always to the deliverer, in turn and in order.
#include <algorithm>
#include <map>
#include <set>

#include "engine/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr const char* kUrl = "https://example.com/hook";
const std::string kKey = "whsec_" + std::string(32, 'A');

class EngineDeliver : public EngineFixture {
 protected:
  static ScheduleRequest hook(const std::string& queue, Due due = 0ms) {
    ScheduleRequest asked = request(queue, due);
    asked.webhook = kUrl;
    return asked;
  }
  static QueueSettings with_webhook(const std::string& url = "https://queue.example") {
    return {.webhook = QueueWebhook{.url = url, .keys = {kKey}}};
  }
  static QueueSettings to_sink() { return {.webhook = QueueWebhook{.url = "sink:a"}}; }
  std::vector<Delivery> deliver(std::size_t max = 1) {
    std::vector<Delivery> deliveries = engine_->lease_deliveries({.max = max}).value();
    settle();
    return deliveries;
  }
  std::vector<TaskId> deliver_ids(std::size_t max) {
    std::vector<TaskId> ids;
    for (const Delivery& delivery : deliver(max)) ids.push_back(delivery.leased.task.id);
    return ids;
  }
  /// What the deliverer gets when something comes is put into `got`.
  void wait_for_deliveries(std::vector<Delivery>& got, std::size_t max = 1) {
    engine_->lease_deliveries_or_wait({.max = max}, {}, [&got](Result<std::vector<Delivery>> all) {
      for (Delivery& delivery : all.value()) got.push_back(std::move(delivery));
    });
    settle();
  }
};

// ---- queues that the deliverer holds ----

TEST_F(EngineDeliver, WhatIsHeldIsNotLeasedUntilACallNoLongerHoldsIt) {
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

TEST_F(EngineDeliver, ATaskOfAHeldQueueWithAWebhookOfItsOwnIsNotHeld) {
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

TEST_F(EngineDeliver, AWaitThatHoldsAQueueSleepsUntilAnotherHasSomething) {
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

TEST_F(EngineDeliver, AHeldQueueThatIsRemovedOrGoesElsewhereIsNotHeldAnyMore) {
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

TEST_F(EngineDeliver, InAQueueWithAWebhookEverythingIsDelivered) {
  const TaskId before = schedule("q", 0ms);
  const TaskId own = schedule(hook("q"));
  const TaskId later = schedule("q", 1min);
  std::vector<LeasedTask> got;
  ASSERT_EQ(lease_count("q", 1), 1u);  // what a worker has, it keeps
  const TaskId second = schedule("q", 0ms);
  set("q", with_webhook());
  wait_for_one("q", got);
  settle();
  EXPECT_TRUE(lease_ids("q", 10).empty());
  EXPECT_EQ(engine_->lease_task(second, {.queue = "q"}).error().code, ErrorCode::conflict);
  EXPECT_EQ(deliver_ids(10), (std::vector<TaskId>{own, second}));
  advance(61s);  // all leases run out, and the later one is due
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

TEST_F(EngineDeliver, UrlAndKeysAreThoseOfTheTaskAndItsQueue) {
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
  for (const Delivery& delivery : both) EXPECT_EQ(delivery.keys, std::vector<std::string>{kKey});
}

TEST_F(EngineDeliver, TheMostUrgentIsFirstWhoeverNamesTheWebhook) {
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

TEST_F(EngineDeliver, WhatIsNotEndedIsHandedOutAgain) {
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

TEST_F(EngineDeliver, TheDelivererIsToldAsSoonAsSomethingIsDue) {
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

TEST_F(EngineDeliver, ASecondWaitEndsTheFirstWithNothing) {
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

TEST_F(EngineDeliver, AStopEndsTheWaitAndLetsNoneBegin) {
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

TEST_F(EngineDeliver, AFailedStoreIsToldToWhoWaits) {
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

// ---- turns and limits ----

TEST_F(EngineDeliver, AQueueOfManyDoesNotDelayTheOthers) {
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(engine_->schedule(hook("many")));
  settle();
  for (const char* queue : {"a", "b", "c"}) schedule(hook(queue));
  std::multiset<std::string> queues;
  for (const Delivery& delivery : deliver(8)) queues.insert(delivery.leased.task.queue);
  EXPECT_EQ(queues.size(), 8u);
  for (const char* queue : {"a", "b", "c"}) EXPECT_EQ(queues.count(queue), 1u) << queue;
  // One at a time they take turns, too.
  for (const char* queue : {"a", "b", "c"}) schedule(hook(queue));
  queues.clear();
  for (int i = 0; i < 4; ++i) queues.insert(deliver().at(0).leased.task.queue);
  EXPECT_EQ(queues, (std::multiset<std::string>{"a", "b", "c", "many"}));
  EXPECT_EQ(deliver(1'000).size(), 500u - 5 - 1);
}

TEST_F(EngineDeliver, APauseHoldsDeliveriesBackAndItsEndIsToldToWhoWaits) {
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

TEST_F(EngineDeliver, RateAndConcurrencyOfAQueueHold) {
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
  // Both wait whenever a lease ends.
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
      complete(lease);
    } else {
      const LeaseToken lease = worked.front().lease;
      worked.clear();
      wait_for_one("q", worked);
      complete(lease);
    }
  }
  EXPECT_EQ(deliveries, 10);
}

// ---- on disk ----

/// Of each kind so many, in one queue, and few fit in memory.
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
  /// Takes until nothing comes, and completes; how many came.
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

TEST_F(EngineDeliverSpilled, NeitherKindHidesTheOther) {
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

TEST_F(EngineDeliverSpilled, ASettingOfTheQueueHoldsForWhatIsOnDisk) {
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

TEST_F(EngineDeliverSpilled, OneQueueIsListedPurgedAndPausedAsAWhole) {
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

TEST_F(EngineDeliverSpilled, WhatIsOnDiskAloneIsServedAfterARestart) {
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

TEST_F(EngineDeliver, AnEmptyQueueIsForgottenWithItsTurn) {
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

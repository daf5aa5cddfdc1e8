// The rings and the held queues of HandOutTurns. The ready tasks of the queues are on disk.
#include "engine/queues/hand_out_turns.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

const std::array<std::string, 1> kHoldA{"a"};
const std::array<std::string, 2> kHoldBoth{"a", "b"};

/// A queue with a ready task that goes to this webhook.
std::unique_ptr<Queue> queue_to(const std::string& webhook) {
  auto queue = std::make_unique<Queue>("to " + webhook);
  queue->set_number(1);
  queue->record.settings.webhook = QueueWebhook{.url = webhook};
  queue->record.in_ready_lane = 1;
  return queue;
}
/// A queue with a ready task and a waiting worker.
std::unique_ptr<Queue> queue_with_worker() {
  auto queue = std::make_unique<Queue>("q");
  queue->set_number(1);
  queue->record.in_ready_lane = 1;
  queue->waits.emplace(1, nullptr);
  return queue;
}

TEST(HandOutTurns, QueuesTakeTurnsInTheOrderInWhichTheyCameAndStandInItOnce) {
  HandOutTurns turns;
  const auto first = queue_with_worker();
  const auto second = queue_with_worker();
  for (int i = 0; i < 2; ++i) {
    turns.want_serving(*first);
    turns.want_serving(*second);
  }
  turns.check(*first);
  EXPECT_EQ(&turns.take_to_serve(), first.get());
  turns.want_serving(*first);  // behind the other
  EXPECT_EQ(&turns.take_to_serve(), second.get());
  turns.take_to_serve(*first);
  EXPECT_FALSE(turns.has_to_serve());
  EXPECT_EQ(turns.to_deliver(), 0u) << "nothing of theirs is for the deliverer";
}

TEST(HandOutTurns, AQueueWithoutWaitingWorkersIsNotInTheRing) {
  HandOutTurns turns;
  const auto queue = queue_with_worker();
  queue->waits.clear();
  turns.want_serving(*queue);
  EXPECT_FALSE(turns.has_to_serve());
}

TEST(HandOutTurns, WhatIsHeldComesAgainWhenItsWebhookIsNotHeldAnyMore) {
  HandOutTurns turns;
  const auto a = queue_to("a");
  const auto b = queue_to("b");
  for (Queue* const queue : {a.get(), b.get()}) {
    turns.want_delivery(*queue);
    turns.hold(turns.take_to_deliver());
    turns.want_delivery(*queue);  // it stays held
    turns.check(*queue);
  }
  turns.release_held(kHoldBoth);
  EXPECT_EQ(turns.to_deliver(), 0u);
  turns.release_held(kHoldA);
  ASSERT_EQ(turns.to_deliver(), 1u);
  EXPECT_EQ(&turns.take_to_deliver(), b.get());
  EXPECT_TRUE(a->is_held());
  EXPECT_FALSE(b->is_held());
  turns.release_held({});
  EXPECT_EQ(&turns.take_to_deliver(), a.get());
}

TEST(HandOutTurns, WhatWasHeldTogetherComesAgainInItsOrder) {
  HandOutTurns turns;
  std::vector<std::unique_ptr<Queue>> queues;
  for (int i = 0; i < 5; ++i) {
    queues.push_back(queue_to("a"));
    turns.want_delivery(*queues.back());
    turns.hold(turns.take_to_deliver());
  }
  turns.release(*queues[2]);  // its webhook is about to change
  turns.release_held({});
  for (const std::size_t i : {2u, 0u, 1u, 3u, 4u})
    EXPECT_EQ(&turns.take_to_deliver(), queues[i].get());
}

TEST(HandOutTurns, ATaskWithAWebhookOfItsOwnEndsAHold) {
  HandOutTurns turns;
  const auto queue = queue_to("a");
  turns.want_delivery(*queue);
  turns.hold(turns.take_to_deliver());
  queue->record.in_webhook_lane = 1;
  turns.want_serving(*queue);
  EXPECT_FALSE(queue->is_held());
  EXPECT_EQ(&turns.take_to_deliver(), queue.get());
  turns.release_held({});
  EXPECT_EQ(turns.to_deliver(), 0u) << "it was in one place only";
}

TEST(HandOutTurns, WhatALimitHoldsBackComesAtTheFirstInstantItWasGiven) {
  HandOutTurns turns;
  const auto queue = queue_with_worker();
  EXPECT_FALSE(turns.next_time());
  turns.serve_later(*queue, 10);
  turns.serve_later(*queue, 20);
  EXPECT_EQ(turns.next_time(), 10u);
  turns.want_serving_due(9);
  EXPECT_FALSE(turns.has_to_serve());
  turns.check(*queue);
  turns.want_serving_due(10);
  EXPECT_TRUE(turns.has_to_serve());
  EXPECT_FALSE(turns.next_time());
  turns.serve_later(*queue, 30);
  turns.forget_time(*queue);
  turns.forget_time(*queue);
  EXPECT_FALSE(turns.next_time());
}

TEST(HandOutTurns, ForgetDeliveriesRemovesAQueueFromEveryList) {
  HandOutTurns turns;
  const auto in_ring = queue_to("a");
  const auto held = queue_to("a");
  const auto nowhere = queue_to("a");
  turns.want_delivery(*held);
  turns.hold(turns.take_to_deliver());
  turns.want_delivery(*in_ring);
  for (Queue* const queue : {in_ring.get(), held.get(), nowhere.get()}) {
    turns.forget_deliveries(*queue);
    queue->record.in_ready_lane = 0;
    turns.check(*queue);
  }
  turns.release_held({});
  EXPECT_EQ(turns.to_deliver(), 0u);
}

TEST(HandOutTurns, InRandomRunsEachQueueIsInItsListOnce) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  HandOutTurns turns;
  std::vector<std::unique_ptr<Queue>> queues;
  for (int i = 0; i < 8; ++i) queues.push_back(queue_to(i % 2 == 0 ? "a" : "b"));
  for (const auto& queue : queues) turns.want_delivery(*queue);
  for (int step = 0; step < 3'000; ++step) {
    Queue& queue = *queues[rng.below(8)];
    switch (rng.below(7)) {
      case 0:
        turns.release_held({});
        break;
      case 1:
        turns.release_held(kHoldA);
        break;
      case 2:
        turns.release(queue);
        queue.record.settings.webhook->url = rng.below(2) == 0 ? "a" : "b";
        break;
      case 3:
        queue.record.in_webhook_lane = rng.below(2);
        if (queue.is_held()) turns.want_delivery(queue);
        break;
      default:
        if (turns.to_deliver() == 0) break;
        Queue& next = turns.take_to_deliver();
        if (next.webhooks.empty()) {
          turns.hold(next);
        } else {
          turns.want_delivery(next);
        }
        break;
    }
    for (const auto& one : queues) turns.check(*one);
  }
}

}  // namespace
}  // namespace detent

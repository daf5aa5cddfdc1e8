// Threads that wait on a DelayQueue: which thread wakes, when, and that all other threads sleep on.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "detent/delay_queue.h"
#include "runtime/testing/delay_queue_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

// ---- waiting consumers --------------------------------------------------------------------------

TEST(DelayQueueWait, AnEarlierElementWakesAConsumerThatWaitsForALaterOne) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  Consumers<int> consumers(queue, 3);
  queue.push(2, 1h);
  clock.await_waiters(3);
  queue.push(1, 1ms);
  clock.await_waiters(3);
  EXPECT_TRUE(consumers.taken().empty());
  clock.advance(1ms);
  clock.await_waiters(3);
  EXPECT_EQ(consumers.taken(), (std::vector{1}));
  clock.advance(1h);
  clock.await_waiters(3);
  EXPECT_EQ(consumers.taken(), (std::vector{1, 2}));
  queue.close();
}

// Wake-ups can get lost in this window: the consumer has decided how long to sleep and has freed
// the lock, but does not sleep yet.
TEST(DelayQueueWait, AnEarlierElementIsNotMissedBetweenTheDecisionToSleepAndTheSleep) {
  DelayQueue<int>* target = nullptr;
  int waits = 0;  // of the consumer's thread
  WatchedClock clock([&] {
    if (++waits == 2) target->push(1, 1ms);  // the first wait is ended by the later element
  });
  DelayQueue<int> queue({.clock = &clock});
  target = &queue;
  Consumers<int> consumers(queue, 1);
  clock.await_waiters(1);
  queue.push(2, 1h);
  clock.await_waiters(1);
  clock.advance(1ms);
  clock.await_waiters(1);
  EXPECT_EQ(consumers.taken(), (std::vector{1}));
  queue.close();
  clock.advance(1h);
}

TEST(DelayQueueWait, AConsumerThatLeavesHandsTheHeadToTheNextInLine) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  std::optional<int> first = 0;
  std::thread impatient([&] { first = queue.pop_for(1ms); });
  clock.await_waiters(1);
  Consumers<int> patient(queue, 2);
  clock.await_waiters(3);
  queue.push(1, 2ms);
  clock.advance(1ms);
  impatient.join();
  EXPECT_EQ(first, std::nullopt);
  clock.await_waiters(2);
  queue.check_invariants();
  clock.advance(1ms);
  clock.await_waiters(2);
  EXPECT_EQ(patient.taken(), (std::vector{1}));
  queue.close();
}

TEST(DelayQueueWait, OneElementWakesOneConsumerHoweverManyWait) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  Consumers<int> consumers(queue, 8);
  clock.await_waiters(8);
  queue.push(1, 0s);
  clock.await_waiters(8);
  EXPECT_EQ(clock.wakeups(), 1);
  queue.push(2, 1s);
  clock.await_waiters(8);
  EXPECT_EQ(clock.wakeups(), 2) << "once to set its alarm";
  clock.advance(1s);
  clock.await_waiters(8);
  EXPECT_EQ(clock.wakeups(), 3) << "and once to take the element";
  EXPECT_EQ(consumers.taken(), (std::vector{1, 2}));
  queue.close();
}

TEST(DelayQueueWait, OnlyTheFirstInLineHasAnAlarmSet) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  Consumers<int> consumers(queue, 8);
  for (int i = 0; i < 20; ++i) queue.push(i, std::chrono::seconds{i + 1});
  for (int i = 0; i < 20; ++i) {
    clock.await_waiters(8);
    EXPECT_EQ(clock.alarms(), 1);
    EXPECT_EQ(consumers.taken().size(), static_cast<std::size_t>(i));
    clock.advance(1s);
  }
  clock.await_waiters(8);
  EXPECT_EQ(clock.alarms(), 0);
  queue.close();
}

TEST(DelayQueueWait, ALaterElementWakesNoThreadThatWaitsForAnEarlierElement) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  Consumers<int> consumers(queue, 2);
  queue.push(1, 1s);
  clock.await_waiters(2);
  const int before = clock.wakeups();
  for (int i = 0; i < 10; ++i) queue.push(2, 2s);
  clock.await_waiters(2);
  EXPECT_EQ(clock.wakeups(), before);
  queue.close();
  queue.take_all();
}

TEST(DelayQueueWait, ATimedPopGivesUpAtItsTimeAndNotBefore) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  queue.push(1, 1h);
  std::thread consumer([&] {
    EXPECT_EQ(queue.pop_for(2ms), std::nullopt);
    EXPECT_EQ(clock.now(), MonotonicTime{2ms});
    EXPECT_EQ(queue.pop_until(MonotonicTime{3ms}), std::nullopt);
    EXPECT_EQ(clock.now(), MonotonicTime{3ms});
  });
  for (int i = 0; i < 3; ++i) {
    clock.await_waiters(1);
    clock.advance(1ms);
  }
  consumer.join();
}

TEST(DelayQueueWait, CloseEndsEveryWaitOnAnEmptyQueue) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  Consumers<int> consumers(queue, 4);
  clock.await_waiters(4);
  queue.close();
  consumers.join();
  EXPECT_TRUE(consumers.taken().empty());
}

TEST(DelayQueueWait, TheLastElementOfAClosedQueueEndsTheWaitOfTheOthers) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  queue.push(1, 1s);
  Consumers<int> consumers(queue, 4);
  clock.await_waiters(4);
  queue.close();
  clock.await_waiters(4);
  clock.advance(1s);
  consumers.join();
  EXPECT_EQ(consumers.taken(), (std::vector{1}));
}

TEST(DelayQueueWait, TakingAllFromAClosedQueueEndsEveryWait) {
  WatchedClock clock;
  DelayQueue<int> queue({.clock = &clock});
  queue.push(1, 1h);
  Consumers<int> consumers(queue, 4);
  clock.await_waiters(4);
  queue.close();
  EXPECT_EQ(queue.take_all().size(), 1u);
  consumers.join();
}

// ---- waiting producers --------------------------------------------------------------------------

TEST(DelayQueueWait, APushOnAFullQueueWaitsForRoomAndItsDelayCountsFromTheCall) {
  WatchedClock clock;
  DelayQueue<int> queue({.capacity = 1, .clock = &clock});
  queue.push(1, 0s);
  std::thread producer([&] { EXPECT_EQ(queue.push(2, 3s), PushResult::pushed); });
  clock.await_waiters(1);
  EXPECT_EQ(queue.size(), 1u);
  clock.advance(2s);
  EXPECT_EQ(queue.try_pop(), 1);
  producer.join();
  clock.advance(1s);
  EXPECT_EQ(queue.try_pop(), 2);
}

TEST(DelayQueueWait, ATimedPushGivesUpAtItsTimeAndNotBefore) {
  WatchedClock clock;
  DelayQueue<int> queue({.capacity = 1, .clock = &clock});
  queue.push(1, 1h);
  std::thread producer([&] {
    EXPECT_EQ(queue.push_for(2ms, 2, 0s), PushResult::full);
    EXPECT_EQ(clock.now(), MonotonicTime{2ms});
  });
  for (int i = 0; i < 2; ++i) {
    clock.await_waiters(1);
    clock.advance(1ms);
  }
  producer.join();
}

TEST(DelayQueueWait, EveryPlaceThatBecomesFreeIsFilled) {
  WatchedClock clock;
  DelayQueue<int> queue({.capacity = 3, .clock = &clock});
  for (int i = 0; i < 3; ++i) queue.push(0, 0s);
  std::counting_semaphore<4> pushed(0);
  std::vector<std::thread> producers;
  for (int i = 0; i < 4; ++i) {
    producers.emplace_back([&] {
      EXPECT_EQ(queue.push(1, 0s), PushResult::pushed);
      pushed.release();
    });
  }
  clock.await_waiters(4);
  EXPECT_EQ(queue.take_all().size(), 3u);
  for (int i = 0; i < 3; ++i) pushed.acquire();
  EXPECT_EQ(queue.size(), 3u);
  clock.await_waiters(1);
  queue.check_invariants();
  EXPECT_EQ(queue.try_pop(), 1);
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(queue.size(), 3u);
}

TEST(DelayQueueWait, RoomIsNotMissedBetweenTheDecisionToSleepAndTheSleep) {
  DelayQueue<int>* target = nullptr;
  WatchedClock clock([&] { EXPECT_EQ(target->try_pop(), 1); });
  DelayQueue<int> queue({.capacity = 1, .clock = &clock});
  target = &queue;
  queue.push(1, 0s);
  EXPECT_EQ(queue.push_for(1s, 2, 0s), PushResult::pushed);
  EXPECT_EQ(queue.size(), 1u);
}

TEST(DelayQueueWait, CloseRefusesEveryProducerThatWaits) {
  WatchedClock clock;
  DelayQueue<int> queue({.capacity = 1, .clock = &clock});
  queue.push(1, 0s);
  std::vector<std::thread> producers;
  for (int i = 0; i < 4; ++i) {
    producers.emplace_back([&] { EXPECT_EQ(queue.push(2, 0s), PushResult::closed); });
  }
  clock.await_waiters(4);
  queue.close();
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(queue.size(), 1u);
}

}  // namespace
}  // namespace detent

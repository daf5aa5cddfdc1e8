// The special property of HeapQueue: its memory. The tests over all queues check the contract.
#include "detent/queues/heap_queue.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "detent/advance.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

TEST(HeapQueue, GivesMemoryBackWhenTimersAreCancelled) {
  HeapQueue queue;
  std::vector<HeapQueue::Timer> timers(100'000);
  for (std::size_t i = 0; i < timers.size(); ++i) queue.schedule(timers[i], 1 + i);
  EXPECT_GE(queue.capacity(), timers.size());
  for (std::size_t i = 100; i < timers.size(); ++i) queue.cancel(timers[i]);
  EXPECT_LE(queue.capacity(), 512u);
  queue.check_invariants();
  EXPECT_EQ(queue.advance(100, kIgnore).fired, 100u);
}

TEST(HeapQueue, GivesMemoryBackWhenTimersFire) {
  HeapQueue queue;
  std::vector<HeapQueue::Timer> timers(100'000);
  for (std::size_t i = 0; i < timers.size(); ++i) queue.schedule(timers[i], 1 + i);
  EXPECT_EQ(queue.advance(timers.size(), kIgnore).fired, timers.size());
  EXPECT_LE(queue.capacity(), 128u);
}

TEST(HeapQueue, KeepsReservedMemory) {
  HeapQueue queue;
  queue.reserve(10'000);
  const std::size_t room = queue.capacity();
  EXPECT_GE(room, 10'000u);
  std::vector<HeapQueue::Timer> timers(10'000);
  for (HeapQueue::Timer& timer : timers) queue.schedule(timer, 1);
  EXPECT_EQ(queue.capacity(), room);
  EXPECT_EQ(queue.advance(1, kIgnore).fired, timers.size());
  EXPECT_EQ(queue.capacity(), room);
}

// Timers that are scheduled at or before now() wait for the next call. With a limit, waiting timers
// join the admitted timers call by call. It must be possible to cancel each of them at any time.
TEST(HeapQueue, FindsATimerWhereverItWaits) {
  HeapQueue queue;
  std::vector<HeapQueue::Timer> timers(60);
  for (std::size_t i = 0; i < 30; ++i) queue.schedule(timers[i], 10);
  EXPECT_TRUE(queue.advance(20, kIgnore, 3).more);
  for (std::size_t i = 30; i < 60; ++i) {
    queue.schedule(timers[i], 5);
    EXPECT_TRUE(queue.advance(20, kIgnore, i % 2).more);
    queue.check_invariants();
  }
  for (std::size_t i = 30; i < 60; i += 2) EXPECT_TRUE(queue.cancel(timers[i]));
  queue.check_invariants();
  const std::size_t left = queue.size();
  EXPECT_EQ(queue.advance(20, kIgnore).fired, left);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace detent

// Random runs compare the sums of the registry with its records. Other tests check which queues it
// keeps.
#include "engine/queues/queue_registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

QueueCounts sums_of(const QueueRegistry& registry) {
  QueueCounts sums;
  for (const auto& [name, queue] : registry) {
    sums.waiting += queue->record.waiting;
    sums.dead += queue->record.dead;
    sums.in_lanes += queue->record.in_ready_lane + queue->record.in_webhook_lane;
  }
  return sums;
}

/// The sizes of the `most` largest queues, from a look at all queues.
std::vector<std::uint64_t> largest_sizes(const QueueRegistry& registry, std::size_t most) {
  std::vector<std::uint64_t> sizes;
  for (const auto& [name, queue] : registry) {
    sizes.push_back(queue->record.waiting + queue->record.dead);
  }
  std::ranges::sort(sizes, std::greater{});
  sizes.resize(std::min(most, sizes.size()));
  return sizes;
}

TEST(QueueRegistry, VisitsTheQueuesByNameAndStops) {
  QueueRegistry registry(0);
  for (const char* name : {"c", "a", "d", "b"}) registry.queue_of(name);
  std::string visited;
  registry.visit_by_name("a", [&visited](const Queue& queue) {
    visited += queue.record.queue;
    return visited.size() < 2;
  });
  EXPECT_EQ(visited, "bc") << "a page costs only its own queues";
  registry.forget_if_unused(registry.queue_of("b"));
  visited.clear();
  registry.visit_by_name("", [&visited](const Queue& queue) {
    visited += queue.record.queue;
    return true;
  });
  EXPECT_EQ(visited, "acd");
  registry.check_invariants();
}

TEST(QueueRegistry, SumsAndLargestAreThoseOfTheRecordsHoweverTheyChange) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  QueueRegistry registry(0);
  for (int step = 0; step < 3'000; ++step) {
    Queue& queue = registry.queue_of("q" + std::to_string(rng.below(20)));
    switch (rng.below(8)) {
      case 0:
        if (queue.record.number == 0) break;
        queue.record = {.queue = queue.record.queue, .number = queue.record.number};
        registry.remove(queue);
        registry.forget_if_unused(queue);
        break;
      case 1: {
        WriteBatch batch;
        registry.take_changes(batch);
        break;
      }
      default:
        registry.note_change(queue);
        queue.record.dead = rng.below(100);
        queue.record.in_ready_lane = rng.below(100);
        queue.record.in_webhook_lane = rng.below(100);
        queue.record.waiting =
            queue.record.in_ready_lane + queue.record.in_webhook_lane + rng.below(100);
        break;
    }
    const QueueCounts counts = registry.counts();
    const QueueCounts sums = sums_of(registry);
    ASSERT_EQ(counts.waiting, sums.waiting);
    ASSERT_EQ(counts.dead, sums.dead);
    ASSERT_EQ(counts.in_lanes, sums.in_lanes);
    const std::size_t most = rng.below(25);
    std::vector<std::uint64_t> told;
    for (const Queue* const one : registry.largest(most)) {
      told.push_back(one->record.waiting + one->record.dead);
    }
    std::ranges::sort(told, std::greater{});
    ASSERT_EQ(told, largest_sizes(registry, most));
    registry.check_invariants();
  }
}

TEST(QueueRegistry, AsManyQueuesAreToldAsAreAskedForEachOnce) {
  QueueRegistry registry(0);
  for (int i = 0; i < 10; ++i) registry.note_change(registry.queue_of("q" + std::to_string(i)));
  for (const std::size_t most : {0u, 1u, 9u, 10u, 11u}) {
    std::vector<const Queue*> told = registry.largest(most);
    EXPECT_EQ(told.size(), std::min<std::size_t>(most, 10));
    std::ranges::sort(told);
    EXPECT_TRUE(std::ranges::adjacent_find(told) == told.end());
  }
}

TEST(QueueRegistry, AQueueIsKnownOnceItHasSomethingToStore) {
  QueueRegistry registry(7);
  Queue& queue = registry.queue_of("q");
  EXPECT_EQ(&registry.queue_of("q"), &queue);
  EXPECT_EQ(registry.known("q").error().code, ErrorCode::not_found);
  EXPECT_EQ(registry.known("other").error().code, ErrorCode::not_found);
  EXPECT_EQ(registry.find("other"), nullptr);
  registry.note_change(queue);
  EXPECT_EQ(registry.known("q").value(), &queue);
  EXPECT_EQ(queue.record.number, 8u) << "numbers are not given twice";
  EXPECT_EQ(queue.ready.lane, 8u);
}

TEST(QueueRegistry, ABatchHasEachChangedQueueOnceAsItIs) {
  QueueRegistry registry(0);
  Queue& queue = registry.queue_of("q");
  registry.note_change(queue);
  registry.note_change(queue);
  queue.record.waiting = 3;
  registry.queue_of("unchanged");
  WriteBatch batch;
  registry.take_changes(batch);
  ASSERT_EQ(batch.queues.size(), 1u);
  EXPECT_EQ(batch.queues.front().waiting, 3u);
  WriteBatch next;
  registry.take_changes(next);
  EXPECT_TRUE(next.empty());
}

TEST(QueueRegistry, ARemovedQueueLeavesTheStoreAndCanBeCreatedAgain) {
  QueueRegistry registry(0);
  registry.restore({.queue = "q", .number = 4, .waiting = 2});
  EXPECT_EQ(registry.counts().waiting, 2u);
  Queue& queue = *registry.find("q");
  registry.note_change(queue);
  queue.record.waiting = 0;
  registry.remove(queue);
  registry.forget_if_unused(queue);
  EXPECT_EQ(registry.find("q"), nullptr);
  EXPECT_EQ(registry.counts().waiting, 0u);
  Queue& again = registry.queue_of("q");
  registry.note_change(again);
  registry.remove(again);
  WriteBatch batch;
  registry.take_changes(batch);
  EXPECT_TRUE(batch.queues.empty());
  EXPECT_EQ(batch.removed_queues, std::vector<std::string>{"q"}) << "a batch names it once";
}

TEST(QueueRegistry, AQueueWithoutATaskIsKeptWhileSomebodyWaitsForIt) {
  QueueRegistry registry(0);
  Queue& queue = registry.queue_of("q");
  queue.waits.emplace(1, nullptr);
  registry.forget_if_unused(queue);
  EXPECT_EQ(registry.size(), 1u);
  queue.waits.clear();
  queue.to_serve = true;
  registry.forget_if_unused(queue);
  EXPECT_EQ(registry.size(), 1u);
  queue.to_serve = false;
  queue.serve_at = 5;
  registry.forget_if_unused(queue);
  EXPECT_EQ(registry.size(), 1u);
  queue.serve_at = 0;
  registry.forget_if_unused(queue);
  EXPECT_EQ(registry.size(), 0u);
}

TEST(QueueRegistryDeathTest, CountsBelowZeroStopTheProcess) {
  QueueRegistry registry(0);
  Queue& queue = registry.queue_of("q");
  registry.note_change(queue);
  EXPECT_DEATH(queue.ready.take_from_lane(), "check failed");
  queue.record.in_ready_lane = 1;  // but no task waits
  WriteBatch batch;
  EXPECT_DEATH(registry.take_changes(batch), "check failed");
  queue.record.waiting = 1;
  registry.take_changes(batch);
  EXPECT_DEATH(registry.remove(queue), "check failed");
}

}  // namespace
}  // namespace detent

// Random runs compare the sums of the book with its records. Other tests check which queues it
// keeps.
#include "engine/queue_book.h"

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

QueueCounts sums_of(const QueueBook& book) {
  QueueCounts sums;
  for (const auto& [name, queue] : book) {
    sums.waiting += queue->record.waiting;
    sums.dead += queue->record.dead;
    sums.in_lanes += queue->record.in_ready_lane + queue->record.in_webhook_lane;
  }
  return sums;
}

/// The sizes of the `most` largest queues, from a look at all queues.
std::vector<std::uint64_t> largest_sizes(const QueueBook& book, std::size_t most) {
  std::vector<std::uint64_t> sizes;
  for (const auto& [name, queue] : book) {
    sizes.push_back(queue->record.waiting + queue->record.dead);
  }
  std::ranges::sort(sizes, std::greater{});
  sizes.resize(std::min(most, sizes.size()));
  return sizes;
}

TEST(QueueBook, SumsAndLargestAreThoseOfTheRecordsHoweverTheyChange) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  QueueBook book(0);
  for (int step = 0; step < 3'000; ++step) {
    Queue& queue = book.queue_of("q" + std::to_string(rng.below(20)));
    switch (rng.below(8)) {
      case 0:
        if (queue.record.number == 0) break;
        queue.record = {.queue = queue.record.queue, .number = queue.record.number};
        book.remove(queue);
        book.forget_if_unused(queue);
        break;
      case 1: {
        WriteBatch batch;
        book.take_changes(batch);
        break;
      }
      default:
        book.note_change(queue);
        queue.record.waiting = rng.below(100);
        queue.record.dead = rng.below(100);
        queue.record.in_ready_lane = rng.below(100);
        queue.record.in_webhook_lane = rng.below(100);
        break;
    }
    const QueueCounts counts = book.counts();
    const QueueCounts sums = sums_of(book);
    ASSERT_EQ(counts.waiting, sums.waiting);
    ASSERT_EQ(counts.dead, sums.dead);
    ASSERT_EQ(counts.in_lanes, sums.in_lanes);
    const std::size_t most = rng.below(25);
    std::vector<std::uint64_t> told;
    for (const Queue* const one : book.largest(most)) {
      told.push_back(one->record.waiting + one->record.dead);
    }
    std::ranges::sort(told, std::greater{});
    ASSERT_EQ(told, largest_sizes(book, most));
    book.check_invariants();
  }
}

TEST(QueueBook, AsManyQueuesAreToldAsAreAskedForEachOnce) {
  QueueBook book(0);
  for (int i = 0; i < 10; ++i) book.note_change(book.queue_of("q" + std::to_string(i)));
  for (const std::size_t most : {0u, 1u, 9u, 10u, 11u}) {
    std::vector<const Queue*> told = book.largest(most);
    EXPECT_EQ(told.size(), std::min<std::size_t>(most, 10));
    std::ranges::sort(told);
    EXPECT_TRUE(std::ranges::adjacent_find(told) == told.end());
  }
}

TEST(QueueBook, AQueueIsKnownOnceItHasSomethingToStore) {
  QueueBook book(7);
  Queue& queue = book.queue_of("q");
  EXPECT_EQ(&book.queue_of("q"), &queue);
  EXPECT_EQ(book.known("q").error().code, ErrorCode::not_found);
  EXPECT_EQ(book.known("other").error().code, ErrorCode::not_found);
  EXPECT_EQ(book.find("other"), nullptr);
  book.note_change(queue);
  EXPECT_EQ(book.known("q").value(), &queue);
  EXPECT_EQ(queue.record.number, 8u) << "numbers are not given twice";
  EXPECT_EQ(queue.ready.lane, 8u);
}

TEST(QueueBook, ABatchHasEachChangedQueueOnceAsItIs) {
  QueueBook book(0);
  Queue& queue = book.queue_of("q");
  book.note_change(queue);
  book.note_change(queue);
  queue.record.waiting = 3;
  book.queue_of("unchanged");
  WriteBatch batch;
  book.take_changes(batch);
  ASSERT_EQ(batch.queues.size(), 1u);
  EXPECT_EQ(batch.queues.front().waiting, 3u);
  WriteBatch next;
  book.take_changes(next);
  EXPECT_TRUE(next.empty());
}

TEST(QueueBook, ARemovedQueueLeavesTheStoreAndCanBeCreatedAgain) {
  QueueBook book(0);
  book.restore({.queue = "q", .number = 4, .waiting = 2});
  EXPECT_EQ(book.counts().waiting, 2u);
  Queue& queue = *book.find("q");
  book.note_change(queue);
  queue.record.waiting = 0;
  book.remove(queue);
  book.forget_if_unused(queue);
  EXPECT_EQ(book.find("q"), nullptr);
  EXPECT_EQ(book.counts().waiting, 0u);
  Queue& again = book.queue_of("q");
  book.note_change(again);
  book.remove(again);
  WriteBatch batch;
  book.take_changes(batch);
  EXPECT_TRUE(batch.queues.empty());
  EXPECT_EQ(batch.removed_queues, std::vector<std::string>{"q"}) << "a batch names it once";
}

TEST(QueueBook, AQueueWithoutATaskIsKeptWhileSomebodyWaitsForIt) {
  QueueBook book(0);
  Queue& queue = book.queue_of("q");
  queue.waits.emplace(1, nullptr);
  book.forget_if_unused(queue);
  EXPECT_EQ(book.size(), 1u);
  queue.waits.clear();
  queue.to_serve = true;
  book.forget_if_unused(queue);
  EXPECT_EQ(book.size(), 1u);
  queue.to_serve = false;
  queue.serve_at = 5;
  book.forget_if_unused(queue);
  EXPECT_EQ(book.size(), 1u);
  queue.serve_at = 0;
  book.forget_if_unused(queue);
  EXPECT_EQ(book.size(), 0u);
}

}  // namespace
}  // namespace detent

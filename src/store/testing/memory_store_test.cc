// Tests of the parts that only MemoryStore has: the disk, and the checks of batches.
// tests/contract/ tests the contract.
#include "store/testing/memory_store.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

constexpr WallTime kAt{std::chrono::milliseconds{1'000}};
constexpr Place kPlace{.lane = Lane::due, .queue = 0, .priority = 0, .at = kAt, .id = TaskId{256}};
constexpr Place kElsewhere{
    .lane = Lane::dead, .queue = 1, .priority = 0, .at = kAt, .id = kPlace.id};

WriteBatch one_put(Place place) {
  Task task;
  task.id = place.id;
  task.queue = "q";
  task.due_at = place.at;
  WriteBatch batch;
  batch.puts.push_back({.from = std::nullopt, .to = {place, task}});
  return batch;
}

QueueRecord queue_record(std::string name, std::uint32_t number) {
  QueueRecord record;
  record.queue = std::move(name);
  record.number = number;
  return record;
}

WriteBatch one_queue(std::string name, std::uint32_t number) {
  WriteBatch batch;
  batch.queues.push_back(queue_record(std::move(name), number));
  return batch;
}

struct MemoryStoreTest : testing::Test {
  void write(const WriteBatch& batch) { ASSERT_TRUE(store->write(batch, Durability::synced)); }

  MemoryDisk disk;
  std::unique_ptr<Store> store = MemoryStore::open(disk).value();
};
using MemoryStoreDeathTest = MemoryStoreTest;

TEST_F(MemoryStoreTest, DiskOutlivesTheStore) {
  write(one_put(kPlace));
  store.reset();
  store = MemoryStore::open(disk).value();
  EXPECT_TRUE(store->find(kPlace.id).value().has_value());
  EXPECT_EQ(store->last_id(), kPlace.id);
  EXPECT_EQ(disk.record_count(), 1u);
}

// Batches that break the requirements of WriteBatch.

TEST_F(MemoryStoreDeathTest, MovingATaskFromAPlaceWithoutARecordIsABug) {
  WriteBatch move = one_put(kPlace);
  move.puts[0].from = kElsewhere;
  EXPECT_DEATH(write(move), "records_.erase");
}

TEST_F(MemoryStoreDeathTest, MovingFromAnotherTasksPlaceIsABug) {
  write(one_put(kPlace));
  WriteBatch move = one_put({Lane::due, 0, 0, kAt, kPlace.id.next()});
  move.puts[0].from = kPlace;
  EXPECT_DEATH(write(move), "from->id");
}

TEST_F(MemoryStoreDeathTest, RemovingFromAPlaceWithoutARecordIsABug) {
  write(one_put(kPlace));
  WriteBatch batch;
  batch.erases.push_back(kElsewhere);
  EXPECT_DEATH(write(batch), "records_.erase");
}

TEST_F(MemoryStoreDeathTest, AddingAStoredTaskAgainIsABug) {
  write(one_put(kPlace));
  EXPECT_DEATH(write(one_put(kElsewhere)), "places_.emplace");
}

TEST_F(MemoryStoreDeathTest, ATaskTwiceInABatchIsABug) {
  WriteBatch batch = one_put(kPlace);
  batch.erases.push_back(kPlace);
  EXPECT_DEATH(write(batch), "all_differ\\(std::move\\(tasks");
}

TEST_F(MemoryStoreDeathTest, APlaceWithFieldsThatItsLaneDoesNotHaveIsABug) {
  for (const Place place :
       {Place{Lane::due, 1, 0, kAt, kPlace.id}, Place{Lane::due, 0, 1, kAt, kPlace.id},
        Place{Lane::ready, 0, 1, kAt, kPlace.id}, Place{Lane::dead, 0, 0, kAt, kPlace.id},
        Place{Lane::dead, 1, 1, kAt, kPlace.id}, Place{Lane::ended, 1, 0, kAt, kPlace.id},
        Place{Lane::due, 0, 0, kAt, TaskId{}}, Place{Lane::due, 0, 0, kNeverDue, kPlace.id},
        Place{Lane::due, 0, 0, kAt - kAt.time_since_epoch() * 2, kPlace.id}}) {
    EXPECT_DEATH(write(one_put(place)), "is_place_of_a_task");
  }
}

TEST_F(MemoryStoreDeathTest, AQueueTwiceInABatchIsABug) {
  WriteBatch batch = one_queue("a", 1);
  batch.queues.push_back(batch.queues.front());
  EXPECT_DEATH(write(batch), "all_differ\\(std::move\\(queues");
  batch.queues.clear();
  batch.removed_queues = {"a", "a"};
  EXPECT_DEATH(write(batch), "all_differ\\(batch.removed_queues");
}

TEST_F(MemoryStoreDeathTest, AKeyTwiceInABatchIsABug) {
  WriteBatch batch;
  for (const std::uint32_t queue : {1u, 2u}) {
    KeyRecord key;
    key.queue = queue;
    key.key = "k";
    batch.keys.push_back(key);
  }
  write(batch);
  batch.keys.push_back(batch.keys.front());
  EXPECT_DEATH(write(batch), "all_differ\\(std::move\\(keys");
}

TEST_F(MemoryStoreDeathTest, AQueueNumberForTwoNamesIsABug) {
  WriteBatch batch = one_queue("a", 1);
  batch.queues.push_back(queue_record("b", 1));
  EXPECT_DEATH(write(batch), "queue_names_.emplace");
}

TEST_F(MemoryStoreDeathTest, TheNumberOfARemovedQueueIsNotForAnotherName) {
  write(one_queue("a", 1));
  WriteBatch removal;
  removal.removed_queues.emplace_back("a");
  write(removal);
  EXPECT_DEATH(write(one_queue("b", 1)), "queue_names_.emplace");
  write(one_queue("a", 2));  // a new queue with the same name
}

TEST_F(MemoryStoreDeathTest, ChangingAQueuesNumberIsABug) {
  write(one_queue("a", 1));
  EXPECT_DEATH(write(one_queue("a", 2)), "stored.number");
}

TEST_F(MemoryStoreDeathTest, AQueueWithoutANumberIsABug) {
  EXPECT_DEATH(write(one_queue("a", 0)), "number > 0");
}

TEST_F(MemoryStoreDeathTest, APageOverTwoLanesIsABug) {
  EXPECT_DEATH(static_cast<void>(store->read(begin_of(Lane::due), end_of(Lane::ended), 1)),
               "after.lane");
  EXPECT_DEATH(static_cast<void>(store->read(begin_of(Lane::dead, 1), end_of(Lane::dead, 2), 1)),
               "after.queue");
}

}  // namespace
}  // namespace detent

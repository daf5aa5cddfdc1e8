// What is special to memory; the contract is tested in tests/contract/.
#include "store/memory_store.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

WriteBatch one_put(DueKey place) {
  Task task;
  task.id = place.id;
  task.queue = "q";
  task.due_at = place.at;
  WriteBatch batch;
  batch.puts.push_back({.from = std::nullopt, .to = {place, task}});
  return batch;
}

constexpr DueKey kPlace{WallTime{std::chrono::milliseconds{1'000}}, TaskId{256}};

TEST(MemoryStore, DiskOutlivesTheStore) {
  MemoryDisk disk;
  ASSERT_TRUE(MemoryStore::open(disk).value()->write(one_put(kPlace), Durability::synced));
  const auto store = MemoryStore::open(disk).value();
  EXPECT_TRUE(store->find(kPlace.id).value().has_value());
  EXPECT_EQ(store->last_id(), kPlace.id);
}

TEST(MemoryStoreDeathTest, MovingWhatIsNotThereIsABug) {
  MemoryDisk disk;
  const auto store = MemoryStore::open(disk).value();
  WriteBatch move = one_put(kPlace);
  move.puts[0].from = DueKey{WallTime{}, kPlace.id};
  EXPECT_DEATH(static_cast<void>(store->write(move, Durability::synced)), "due_.erase");
}

TEST(MemoryStoreDeathTest, RemovingWhatIsNotThereIsABug) {
  MemoryDisk disk;
  const auto store = MemoryStore::open(disk).value();
  WriteBatch batch;
  batch.erases.push_back(kPlace);
  EXPECT_DEATH(static_cast<void>(store->write(batch, Durability::synced)), "due_.erase");
}

TEST(MemoryStoreDeathTest, AddingATaskTwiceIsABug) {
  MemoryDisk disk;
  const auto store = MemoryStore::open(disk).value();
  ASSERT_TRUE(store->write(one_put(kPlace), Durability::synced));
  const WriteBatch again = one_put({WallTime{std::chrono::milliseconds{2'000}}, kPlace.id});
  EXPECT_DEATH(static_cast<void>(store->write(again, Durability::synced)), "ids_.emplace");
}

}  // namespace
}  // namespace detent

#include "store/fault_store.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"

namespace detent {
namespace {

constexpr DueKey kPlace{WallTime{std::chrono::milliseconds{1'000}}, TaskId{256}};

WriteBatch one_put(TaskId id) {
  Task task;
  task.id = id;
  task.queue = "q";
  WriteBatch batch;
  batch.puts.push_back({.from = std::nullopt, .to = {{kPlace.at, id}, task}});
  return batch;
}

struct FaultStoreTest : testing::Test {
  bool is_stored(TaskId id) { return memory->find(id).value().has_value(); }

  MemoryDisk disk;
  std::unique_ptr<Store> memory = MemoryStore::open(disk).value();
  FaultStore store{*memory};
  TaskId first{256};
  TaskId second = first.next();
  TaskId third = second.next();
};

TEST_F(FaultStoreTest, PassesEverythingOnWithoutAPlan) {
  ASSERT_TRUE(store.write(one_put(first), Durability::synced));
  EXPECT_TRUE(store.find(first).value().has_value());
  EXPECT_EQ(store.read_due(kFirstDueKey, kNeverDue, 10).value().tasks.size(), 1u);
  EXPECT_EQ(store.read_at(std::span(&kPlace, 1)).value().size(), 1u);
  EXPECT_EQ(store.last_id(), first);
  EXPECT_EQ(store.begin_epoch().value(), 1u);
  EXPECT_EQ(store.queue_counts().value().size(), 0u);
  ASSERT_TRUE(store.quarantine(kPlace));
  EXPECT_EQ(store.quarantined().value(), 1u);
}

TEST_F(FaultStoreTest, TheNthWriteFailsUnappliedAndSoDoesEveryLaterOne) {
  store.fail_write(2, WriteFault::not_applied);
  EXPECT_TRUE(store.write(one_put(first), Durability::synced));
  const Result<void> failed = store.write(one_put(second), Durability::synced);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(store.write(one_put(third), Durability::synced));
  EXPECT_FALSE(store.begin_epoch());
  EXPECT_FALSE(store.quarantine(kPlace));
  EXPECT_EQ(store.write_count(), 5u);
  EXPECT_TRUE(is_stored(first));
  EXPECT_FALSE(is_stored(second));
  EXPECT_FALSE(is_stored(third));
}

TEST_F(FaultStoreTest, AWriteMayFailAfterItWasApplied) {
  store.fail_write(1, WriteFault::applied);
  EXPECT_FALSE(store.write(one_put(first), Durability::synced));
  EXPECT_FALSE(store.write(one_put(second), Durability::synced));
  EXPECT_TRUE(is_stored(first));
  EXPECT_FALSE(is_stored(second));
}

TEST_F(FaultStoreTest, BeginEpochAndQuarantineAreWrites) {
  store.fail_write(1, WriteFault::applied);
  EXPECT_FALSE(store.begin_epoch());
  EXPECT_EQ(memory->begin_epoch().value(), 2u);

  FaultStore reopened(*memory);
  ASSERT_TRUE(reopened.write(one_put(first), Durability::synced));
  reopened.fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(reopened.quarantine({kPlace.at, first}));
  EXPECT_TRUE(is_stored(first));
}

TEST_F(FaultStoreTest, ReadsFailAsToldAndWritesGoOn) {
  const Error error{ErrorCode::data_loss, "planted", ""};
  store.fail_reads(error);
  EXPECT_EQ(store.find(first).error(), error);
  EXPECT_EQ(store.read_due(kFirstDueKey, kNeverDue, 10).error(), error);
  EXPECT_EQ(store.read_at({}).error(), error);
  EXPECT_EQ(store.queue_counts().error(), error);
  EXPECT_EQ(store.quarantined().error(), error);
  EXPECT_TRUE(store.write(one_put(first), Durability::synced));
  store.fail_reads(std::nullopt);
  EXPECT_TRUE(store.find(first).value().has_value());
}

}  // namespace
}  // namespace detent

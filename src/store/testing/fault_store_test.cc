#include "store/testing/fault_store.h"

#include <gtest/gtest.h>

#include <array>

#include "store/testing/memory_store.h"

namespace detent {
namespace {

Place place_of(TaskId id) {
  return {.lane = Lane::due,
          .queue = 0,
          .priority = 0,
          .at = WallTime{std::chrono::milliseconds{1'000}},
          .id = id};
}

WriteBatch one_put(TaskId id) {
  Task task;
  task.id = id;
  task.queue = "q";
  WriteBatch batch;
  batch.puts.push_back({.from = std::nullopt, .to = {place_of(id), task}});
  return batch;
}

KeyRecord expired_key() {
  KeyRecord record;
  record.queue = 1;
  record.key = "k";
  record.expires_at = WallTime{};
  return record;
}

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

struct FaultStoreTest : testing::Test {
  Result<TaskPage> read_due() { return store.read(begin_of(Lane::due), end_of(Lane::due), 10); }
  bool is_stored(TaskId id) { return memory->find(id).value().has_value(); }

  MemoryDisk disk;
  std::unique_ptr<Store> memory = MemoryStore::open(disk).value();
  FaultStore store{*memory};
  TaskId first{256};
  TaskId second = first.next();
  TaskId third = second.next();
};

TEST_F(FaultStoreTest, ForwardsAllCallsIfNoFaultIsPlanned) {
  WriteBatch batch = one_put(first);
  batch.queues.emplace_back().queue = "q";
  batch.queues[0].number = 1;
  batch.keys.push_back(expired_key());
  batch.due_counts.push_back({.bin = {}, .count = 1});
  batch.schedules.push_back({.schedule = {.name = "s", .queue = "q"}});
  ASSERT_TRUE(store.write(batch, Durability::synced));
  EXPECT_TRUE(store.find(first).value().has_value());
  EXPECT_EQ(read_due().value().tasks.size(), 1u);
  EXPECT_EQ(store.read_by_id(TaskId{}, 10).value().tasks.size(), 1u);
  const Place place = place_of(first);
  EXPECT_EQ(store.read_at(std::span(&place, 1)).value().size(), 1u);
  EXPECT_EQ(store.last_id(), first);
  EXPECT_EQ(store.last_queue_number(), 1u);
  EXPECT_EQ(store.begin_epoch().value(), 1u);
  EXPECT_EQ(store.queues().value(), batch.queues);
  EXPECT_EQ(store.schedules().value(), batch.schedules);
  EXPECT_EQ(store.due_counts().value(), batch.due_counts);
  EXPECT_EQ(store.find_key(1, "k").value(), batch.keys[0]);
  EXPECT_EQ(store.trim_keys(WallTime{}, 10).value(), 1u);
  ASSERT_TRUE(store.quarantine(std::array{place}));
  EXPECT_EQ(store.quarantined().value(), 1u);
}

TEST_F(FaultStoreTest, ThePlannedWriteFailsUnappliedAndAllLaterWritesFail) {
  store.fail_write(2, WriteFault::not_applied);
  EXPECT_TRUE(store.write(one_put(first), Durability::synced));
  const Result<void> failed = store.write(one_put(second), Durability::synced);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(store.write(one_put(third), Durability::synced));
  EXPECT_FALSE(store.begin_epoch());
  EXPECT_FALSE(store.quarantine(std::array{place_of(first)}));
  EXPECT_FALSE(store.trim_keys(WallTime{}, 10));
  EXPECT_EQ(store.write_count(), 6u);
  EXPECT_TRUE(is_stored(first));
  EXPECT_FALSE(is_stored(second));
  EXPECT_FALSE(is_stored(third));
}

TEST_F(FaultStoreTest, APlannedWriteCanFailAfterItWasApplied) {
  store.fail_write(1, WriteFault::applied);
  EXPECT_FALSE(store.write(one_put(first), Durability::synced));
  EXPECT_FALSE(store.write(one_put(second), Durability::synced));
  EXPECT_TRUE(is_stored(first));
  EXPECT_FALSE(is_stored(second));
}

TEST_F(FaultStoreTest, BeginEpochQuarantineAndTrimKeysCountAsWrites) {
  store.fail_write(1, WriteFault::applied);
  EXPECT_FALSE(store.begin_epoch());
  EXPECT_EQ(memory->begin_epoch().value(), 2u);

  FaultStore reopened(*memory);
  ASSERT_TRUE(reopened.write(one_put(first), Durability::synced));
  reopened.fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(reopened.quarantine(std::array{place_of(first)}));
  EXPECT_TRUE(is_stored(first));

  WriteBatch key;
  key.keys.push_back(expired_key());
  ASSERT_TRUE(memory->write(key, Durability::synced));
  FaultStore again(*memory);
  again.fail_write(1, WriteFault::applied);
  EXPECT_FALSE(again.trim_keys(WallTime{}, 10));
  EXPECT_FALSE(memory->find_key(1, "k").value().has_value());
}

TEST_F(FaultStoreTest, ReadsFailOnDemandWhileWritesSucceed) {
  const Error error{ErrorCode::data_loss, "planted", ""};
  store.fail_reads(error);
  EXPECT_EQ(error_of(store.find(first)), error);
  EXPECT_EQ(error_of(read_due()), error);
  EXPECT_EQ(error_of(store.read_by_id(TaskId{}, 10)), error);
  EXPECT_EQ(error_of(store.read_at({})), error);
  EXPECT_EQ(error_of(store.find_key(1, "k")), error);
  EXPECT_EQ(error_of(store.queues()), error);
  EXPECT_EQ(error_of(store.wrong_expiries({})), error);
  EXPECT_EQ(error_of(store.schedules()), error);
  EXPECT_EQ(error_of(store.due_counts()), error);
  EXPECT_EQ(error_of(store.quarantined()), error);
  EXPECT_TRUE(store.write(one_put(first), Durability::synced));
  store.fail_reads(std::nullopt);
  EXPECT_TRUE(store.find(first).value().has_value());
}

}  // namespace
}  // namespace detent

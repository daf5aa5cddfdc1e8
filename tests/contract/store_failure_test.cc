// Point 2 of the contract of store/store.h: the behavior after a failed write.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"
#include "store/testing/fault_store.h"
#include "tests/contract/failing_media.h"
#include "tests/contract/store_fixture.h"

namespace detent {
namespace {

/// Tries each kind of write once. Returns the names of those that succeed.
std::vector<std::string> accepted_writes(Store& store) {
  std::vector<std::string> accepted;
  const auto note = [&accepted](const char* name, bool is_ok) {
    if (is_ok) accepted.emplace_back(name);
  };
  const Place nowhere = due_place(9, 999);
  note("batch", store.write(new_task(due_place(9, 900)), Durability::synced).has_value());
  note("buffered", store.write(new_task(due_place(9, 901)), Durability::buffered).has_value());
  note("sync", store.write({}, Durability::synced).has_value());
  note("quarantine", store.quarantine(std::span(&nowhere, 1)).has_value());
  note("trim", store.trim_keys(at_ms(1'000), 10).has_value());
  note("epoch", store.begin_epoch().has_value());
  return accepted;
}

/// Describes the stored data as text.
std::string contents_of(Store& store) {
  std::string text;
  const auto tell = [&](Lane lane, std::uint32_t queue) {
    const TaskPage page = store.read(begin_of(lane, queue), end_of(lane, queue), 1'000).value();
    for (const StoredTask& stored : page.tasks) {
      text += std::to_string(stored.place.id.value >> TaskId::kShardBits) + " " +
              stored.task.payload.data + ", ";
    }
    text += "damaged " + std::to_string(page.damaged.size()) + "; ";
  };
  tell(Lane::due, 0);
  tell(Lane::ready, 1);
  for (const char* key : {"old", "new"}) {
    if (store.find_key(1, key).value()) text += std::string(key) + " ";
  }
  const std::vector<QueueRecord> queues = store.queues().value();
  for (const QueueRecord& record : queues) {
    text += "waiting " + std::to_string(record.waiting) + " ";
  }
  const std::vector<DueCount> sums = store.due_counts().value();
  for (const DueCount& sum : sums) {
    text += "due " + std::to_string(sum.count) + " ";
  }
  return text + "last id " + std::to_string(store.last_id().value >> TaskId::kShardBits);
}

QueueRecord queue_with(std::uint64_t waiting) {
  return {.queue = "mail", .number = 1, .waiting = waiting};
}

/// A batch with 20 tasks, a queue and a key.
WriteBatch first_batch() {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 20; ++n) add(batch, due_place(1, n), "before");
  batch.queues.push_back(queue_with(20));
  batch.keys.push_back({.queue = 1, .key = "old", .id = id_of(1), .expires_at = at_ms(5)});
  batch.due_counts.push_back({.bin = {}, .count = 20});
  return batch;
}

/// A batch with new tasks, removed tasks and moved tasks.
WriteBatch second_batch() {
  WriteBatch batch;
  for (std::uint64_t n = 21; n <= 50; ++n) add(batch, due_place(2, n), "after");
  for (std::uint64_t n = 1; n <= 10; ++n) batch.erases.push_back(due_place(1, n));
  for (std::uint64_t n = 11; n <= 20; ++n) {
    move(batch, due_place(1, n), ready_place(1, 7, 1, n), "after");
  }
  batch.queues.push_back(queue_with(40));
  batch.keys.push_back({.queue = 1, .key = "new", .id = id_of(21), .expires_at = at_ms(5)});
  batch.due_counts.push_back({.bin = {}, .count = 20});
  return batch;
}

template <class Medium>
class StoreFailure : public StoreFixture<Medium> {
 protected:
  void SetUp() override {
    StoreFixture<Medium>::SetUp();
    this->write(first_batch());
  }
  /// Makes the write of the second batch fail, then ends the fault.
  void fail(WriteFault fault) {
    this->medium_.fail_next_write(fault);
    EXPECT_FALSE(this->store_->write(second_batch(), Durability::synced));
    this->medium_.heal();
  }
  /// The contents of a store after these batches, if no write fails.
  static std::string contents_after(const std::vector<WriteBatch>& batches) {
    Medium medium;
    const std::unique_ptr<Store> store = medium.open().value();
    for (const WriteBatch& batch : batches) {
      EXPECT_TRUE(store->write(batch, Durability::synced));
    }
    return contents_of(*store);
  }
};
TYPED_TEST_SUITE(StoreFailure, FailingMedia, MediumNames);

TYPED_TEST(StoreFailure, ABatchThatFailedBeforeItWasWrittenIsNotStored) {
  this->fail(WriteFault::not_applied);
  this->reopen();
  EXPECT_EQ(contents_of(*this->store_), this->contents_after({first_batch()}));
}

TYPED_TEST(StoreFailure, ABatchThatFailedAfterItWasWrittenIsStoredCompletely) {
  this->fail(WriteFault::applied);
  this->reopen();
  const std::string contents = contents_of(*this->store_);
  if (TypeParam::kMayFailBefore && contents == this->contents_after({first_batch()})) return;
  EXPECT_EQ(contents, this->contents_after({first_batch(), second_batch()}));
}

TYPED_TEST(StoreFailure, EveryLaterWriteFailsUntilTheStoreIsOpenedAgain) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    SCOPED_TRACE(fault == WriteFault::applied ? "applied" : "not applied");
    TypeParam medium;
    std::unique_ptr<Store> store = medium.open().value();
    ASSERT_TRUE(store->write(first_batch(), Durability::synced));
    medium.fail_next_write(fault);
    ASSERT_FALSE(store->write(second_batch(), Durability::synced));
    medium.heal();
    EXPECT_EQ(accepted_writes(*store), std::vector<std::string>{});
    EXPECT_EQ(accepted_writes(*store), std::vector<std::string>{});
    store.reset();
    store = medium.open().value();
    EXPECT_EQ(store->find(id_of(900)).value(), std::nullopt) << "the refused write has no effect";
    EXPECT_EQ(store->find_key(1, "old").value().has_value(), true)
        << "the refused trim has no effect";
    EXPECT_EQ(accepted_writes(*store).size(), 6u);
  }
}

}  // namespace
}  // namespace detent

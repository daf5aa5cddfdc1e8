// The contract of store/store.h, point by point, for each back end: batches, bytes, ids, epochs.
//
// Further files test lanes and pages (store_lanes_test.cc), keys (store_keys_test.cc), queue
// records and due counts (store_queues_test.cc), recurring schedules (store_schedules_test.cc), and
// damage (store_damage_test.cc). store_model_test.cc compares random batches with a simple model.
// Tests that only one back end can have (killed processes, torn logs, failing disks) are in the
// folder of that back end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "store/store.h"
#include "tests/contract/store_fixture.h"

namespace detent {
namespace {

template <class Medium>
class StoreContract : public StoreFixture<Medium> {};
TYPED_TEST_SUITE(StoreContract, Media, MediumNames);

// 1. Batches.

TYPED_TEST(StoreContract, NewStoreIsEmpty) {
  for (const Lane lane : kLanes) EXPECT_EQ(this->lane_places(lane, 1), std::vector<Place>{});
  EXPECT_EQ(this->store_->read_by_id(TaskId{}, 10).value().tasks.size(), 0u);
  EXPECT_FALSE(this->store_->find(id_of(1)).value().has_value());
  EXPECT_EQ(this->store_->last_id(), TaskId{0});
  EXPECT_EQ(this->store_->last_queue_number(), 0u);
  EXPECT_FALSE(this->store_->find_key(1, "k").value().has_value());
  EXPECT_EQ(this->store_->trim_keys(kNeverDue, 10).value(), 0u);
  EXPECT_EQ(this->store_->queues().value(), std::vector<QueueRecord>{});
  EXPECT_EQ(this->store_->schedules().value(), std::vector<ScheduleRecord>{});
  EXPECT_EQ(this->store_->due_counts().value(), std::vector<DueCount>{});
  EXPECT_EQ(this->store_->quarantined().value(), 0u);
}

TYPED_TEST(StoreContract, OneBatchAddsMovesReplacesRemovesAndCounts) {
  WriteBatch first;
  for (std::uint64_t n = 1; n <= 4; ++n) add(first, due_place(10, n));
  this->write(first);

  WriteBatch second;
  add(second, due_place(5, 5));
  move(second, due_place(10, 1), due_place(20, 1), "moved");
  move(second, due_place(10, 2), due_place(10, 2), "replaced");
  move(second, due_place(10, 4), dead_place(1, 10, 4), "dead");
  second.erases.push_back(due_place(10, 3));
  QueueRecord queue;
  queue.queue = "mail";
  queue.number = 1;
  queue.waiting = 3;
  queue.dead = 1;
  second.queues.push_back(queue);
  second.due_counts.push_back({.bin = {DueBin::Width::minute, 0}, .count = 3});
  this->write(second);

  EXPECT_EQ(
      this->page(Lane::due).tasks,
      (std::vector<StoredTask>{task_at(due_place(5, 5)), task_at(due_place(10, 2), "replaced"),
                               task_at(due_place(20, 1), "moved")}));
  EXPECT_EQ(this->page(Lane::dead, 1).tasks,
            (std::vector<StoredTask>{task_at(dead_place(1, 10, 4), "dead")}));
  EXPECT_EQ(this->store_->queues().value(), second.queues);
  EXPECT_EQ(this->store_->due_counts().value(), second.due_counts);
}

TYPED_TEST(StoreContract, EverythingIsThereAfterReopen) {
  this->write(new_task(due_place(10, 1), "synced"), Durability::synced);
  this->write(new_task(due_place(20, 2), "buffered"), Durability::buffered);
  this->write(new_task(due_place(30, 3)), Durability::buffered);
  this->write(removal(due_place(30, 3)), Durability::buffered);
  this->write(new_task(due_place(40, 4)), Durability::buffered);
  this->write(moved_task(due_place(40, 4), ready_place(1, 2, 40, 4)), Durability::buffered);
  this->reopen();
  EXPECT_EQ(this->page(Lane::due).tasks,
            (std::vector<StoredTask>{task_at(due_place(10, 1), "synced"),
                                     task_at(due_place(20, 2), "buffered")}));
  EXPECT_EQ(this->lane_places(Lane::ready, 1), (std::vector<Place>{ready_place(1, 2, 40, 4)}));
}

TYPED_TEST(StoreContract, EmptyBatchIsWritten) {
  this->write({}, Durability::buffered);
  this->write({}, Durability::synced);
  this->write(new_task(due_place(10, 1)), Durability::buffered);
  this->write({}, Durability::synced);
  EXPECT_EQ(this->lane_places(Lane::due).size(), 1u);
}

TYPED_TEST(StoreContract, TenThousandTasksAreOneBatch) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= kMaxBatchTasks; ++n) {
    add(batch, due_place(static_cast<std::int64_t>(n * 7'919 % 10'007), n), std::string(100, 'x'));
  }
  this->write(batch);
  this->reopen();
  const std::vector<Place> places = this->lane_places(Lane::due);
  EXPECT_EQ(places.size(), kMaxBatchTasks);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
}

// Restoring a dump gives tasks the ids that they had.
TYPED_TEST(StoreContract, NewTaskMayHaveAnIdBelowTheHighestOrOneThatEnded) {
  this->write(new_task(due_place(10, 9)));
  this->write(new_task(due_place(20, 4)));
  this->write(removal(due_place(20, 4)));
  WriteBatch batch;
  add(batch, due_place(5, 4), "again");
  add(batch, due_place(15, 3));
  this->write(batch);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(this->page(Lane::due).tasks,
              (std::vector<StoredTask>{task_at(due_place(5, 4), "again"), task_at(due_place(10, 9)),
                                       task_at(due_place(15, 3))}));
    EXPECT_EQ(this->store_->find(id_of(4)).value(), task_at(due_place(5, 4), "again"));
    EXPECT_EQ(error_code_of(this->read_one(due_place(20, 4))), ErrorCode::not_found);
    this->reopen();
  }
}

// 4. Byte for byte.

TYPED_TEST(StoreContract, TheLargestPayloadReadsBackByteForByte) {
  std::string payload(kMaxPayloadBytes, '\0');
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 131 >> 3);
  this->write(new_task(due_place(10, 1), payload));
  this->write(new_task(due_place(10, 2), ""));
  this->reopen();
  EXPECT_EQ(
      this->page(Lane::due).tasks,
      (std::vector<StoredTask>{task_at(due_place(10, 1), payload), task_at(due_place(10, 2), "")}));
}

TYPED_TEST(StoreContract, EveryFieldOfATaskReadsBackInEveryLane) {
  std::uint64_t n = 0;
  for (const Lane lane : kLanes) {
    StoredTask stored = task_at(place_in(lane, 3, 99, ++n), "{}");
    Task& task = stored.task;
    task.payload.kind = Payload::Kind::bytes;
    task.rules = {.priority = 5,
                  .max_attempts = 3,
                  .visibility_timeout = std::chrono::milliseconds{9'000},
                  .backoff = Backoff{}};
    task.due_at = at_ms(1'700'000'000'000);
    task.attempts = 2;
    task.key = "order-17";
    task.history.push_back(
        {.started_at = at_ms(10), .ended_at = at_ms(20), .worker = "w1", .error = "no luck"});
    WriteBatch batch;
    batch.puts.push_back({.from = std::nullopt, .to = stored});
    this->write(batch);
    EXPECT_EQ(this->store_->find(stored.place.id).value(), stored);
    EXPECT_EQ(this->page(lane, stored.place.queue).tasks, (std::vector<StoredTask>{stored}));
    EXPECT_EQ(this->read_one(stored.place).value(), stored.task);
  }
}

// 5. The last id.

TYPED_TEST(StoreContract, LastIdIsTheHighestEverPut) {
  this->write(new_task(due_place(10, 7)));
  this->write(new_task(due_place(10, 3)));
  EXPECT_EQ(this->store_->last_id(), id_of(7));
  this->write(removal(due_place(10, 7)));
  EXPECT_EQ(this->store_->last_id(), id_of(7));
  this->reopen();
  EXPECT_EQ(this->store_->last_id(), id_of(7));
}

TYPED_TEST(StoreContract, LastIdCountsPutsIntoEveryLane) {
  std::uint64_t n = 0;
  for (const Lane lane : kLanes) {
    this->write(new_task(place_in(lane, 1, 10, ++n)));
    EXPECT_EQ(this->store_->last_id(), id_of(n));
    this->write(removal(place_in(lane, 1, 10, n)));
    this->reopen();
    EXPECT_EQ(this->store_->last_id(), id_of(n));
  }
}

TYPED_TEST(StoreContract, LastIdCanBeGivenWithoutATask) {
  WriteBatch batch = new_task(due_place(10, 3));
  batch.last_id = id_of(9);
  this->write(batch);
  batch = new_task(due_place(10, 4));
  batch.last_id = id_of(2);  // lower than before: it has no effect
  this->write(batch);
  this->reopen();
  EXPECT_EQ(this->store_->last_id(), id_of(9));
  batch = {};
  batch.last_id = id_of(12);  // the batch has nothing else
  this->write(batch);
  this->reopen();
  EXPECT_EQ(this->store_->last_id(), id_of(12));
}

// 6. Epochs.

TYPED_TEST(StoreContract, EveryEpochIsHigherThanAllBefore) {
  std::uint64_t highest = 0;
  for (int run = 0; run < 3; ++run) {
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t epoch = this->store_->begin_epoch().value();
      EXPECT_GT(epoch, highest);
      highest = epoch;
    }
    this->reopen();
  }
}

/// At a graceful stop, the server leaves data that only the next epoch may use.
TYPED_TEST(StoreContract, EpochsHaveNoGapWhenEachOpeningBeginsOne) {
  std::uint64_t epoch = this->store_->begin_epoch().value();
  for (int run = 0; run < 3; ++run) {
    this->reopen();
    EXPECT_EQ(this->store_->begin_epoch().value(), ++epoch);
  }
}

// 7. One open store at a time.

TYPED_TEST(StoreContract, OpenStoreCannotBeOpenedAgainUntilItIsClosed) {
  const auto second = this->medium_.open();
  ASSERT_EQ(error_code_of(second), ErrorCode::unavailable);
  EXPECT_NE(second.error().message.find(TypeParam::kInUse), std::string::npos)
      << second.error().message;
  this->write(new_task(due_place(10, 1)));  // the first store still works
  this->close();
  EXPECT_TRUE(this->medium_.open());
}

// 8. Identity.

TYPED_TEST(StoreContract, TheIdentityNeverChangesAndDiffersFromOtherStores) {
  const std::string identity = this->store_->identity().value();
  EXPECT_GE(identity.size(), 8u);
  EXPECT_EQ(identity.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-"), std::string::npos)
      << identity;
  this->write(new_task(due_place(10, 1)));
  this->reopen();
  EXPECT_EQ(this->store_->identity().value(), identity);
  TypeParam other;
  EXPECT_NE(other.open().value()->identity().value(), identity);
}

}  // namespace
}  // namespace detent

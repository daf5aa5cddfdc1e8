// The contract of store/store.h: queue records and due counts.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"
#include "tests/contract/store_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

QueueRecord queue_record(std::string name, std::uint32_t number, std::uint64_t waiting = 0) {
  QueueRecord record;
  record.queue = std::move(name);
  record.number = number;
  record.waiting = waiting;
  return record;
}

DueCount minute(std::int64_t number, std::int64_t count) {
  return {.bin = {.width = DueBin::Width::minute, .number = number}, .count = count};
}
DueCount day(std::int64_t number, std::int64_t count) {
  return {.bin = {.width = DueBin::Width::day, .number = number}, .count = count};
}

template <class Medium>
class StoreQueues : public StoreFixture<Medium> {
 protected:
  void write_queues(std::vector<QueueRecord> queues, std::vector<std::string> removed = {}) {
    WriteBatch batch;
    batch.queues = std::move(queues);
    batch.removed_queues = std::move(removed);
    this->write(batch);
  }
  void count(std::vector<DueCount> changes) {
    WriteBatch batch;
    batch.due_counts = std::move(changes);
    this->write(batch);
  }
};
TYPED_TEST_SUITE(StoreQueues, Media, MediumNames);

// Queues.

TYPED_TEST(StoreQueues, AQueueRemovedAndWrittenInOneBatchExists) {
  this->write_queues({queue_record("a", 1, 5)});
  this->write_queues({queue_record("a", 2, 1)}, {"a"});
  this->reopen();
  EXPECT_EQ(this->store_->queues().value(), (std::vector<QueueRecord>{queue_record("a", 2, 1)}));
}

TYPED_TEST(StoreQueues, TheLastRecordOfEachQueueIsReadSortedByName) {
  this->write_queues({queue_record("b", 1, 5), queue_record("a", 2, 1), queue_record("a/b", 300)});
  this->write_queues({queue_record("b", 1, 0)});
  this->reopen();
  EXPECT_EQ(this->store_->queues().value(),
            (std::vector<QueueRecord>{queue_record("a", 2, 1), queue_record("a/b", 300),
                                      queue_record("b", 1, 0)}));
}

TYPED_TEST(StoreQueues, EveryFieldOfAQueueReadsBack) {
  QueueRecord full = queue_record(std::string(kMaxQueueNameBytes, 'q'), ~0u);
  full.waiting = 1;
  full.dead = 2;
  full.bytes = ~std::uint64_t{0};
  full.in_ready_lane = 3;
  full.in_webhook_lane = 4;
  full.settings = {.paused = true,
                   .max_attempts = 4,
                   .visibility_timeout = milliseconds{5},
                   .backoff = Backoff{.initial = milliseconds{6}, .max = milliseconds{7}},
                   .retention = kMaxRetention,
                   .key_retention = milliseconds{8},
                   .max_tasks = 9,
                   .max_bytes = std::uint64_t{1} << 40,
                   .rate = 10,
                   .concurrency = 11,
                   .webhook = QueueWebhook{.url = "https://a", .keys = {"whsec_b", "whsec_c"}}};
  std::vector<QueueRecord> queues{full};
  for (std::uint32_t i = 0; i < 7; ++i) {  // each optional setting alone; 0 is a value
    QueueRecord one = queue_record("r" + std::to_string(i), i + 1);
    if (i == 0) one.settings.max_attempts = 0;
    if (i == 1) one.settings.visibility_timeout = milliseconds{0};
    if (i == 2) one.settings.backoff = Backoff{};
    if (i == 3) one.settings.max_tasks = 0;
    if (i == 4) one.settings.max_bytes = 0;
    if (i == 5) one.settings.rate = 0;
    if (i == 6) one.settings.concurrency = 0;
    queues.push_back(one);
  }
  this->write_queues(queues);
  EXPECT_EQ(this->store_->queues().value(), queues);
  this->reopen();
  EXPECT_EQ(this->store_->queues().value(), queues);
}

TYPED_TEST(StoreQueues, TheNameOfARemovedQueueCanComeBackWithANewNumber) {
  this->write_queues({queue_record("a", 1), queue_record("b", 2, 7)});
  this->write_queues({queue_record("c", 3)}, {"a"});
  this->reopen();
  EXPECT_EQ(this->store_->queues().value(),
            (std::vector<QueueRecord>{queue_record("b", 2, 7), queue_record("c", 3)}));
  this->write_queues({queue_record("a", 4)});
  EXPECT_EQ(this->store_->queues().value(),
            (std::vector<QueueRecord>{queue_record("a", 4), queue_record("b", 2, 7),
                                      queue_record("c", 3)}));
}

TYPED_TEST(StoreQueues, LastQueueNumberIsTheHighestEverNamed) {
  this->write_queues({queue_record("a", 3), queue_record("b", 300)});
  EXPECT_EQ(this->store_->last_queue_number(), 300u);
  this->write_queues({queue_record("c", 2)}, {"b"});
  EXPECT_EQ(this->store_->last_queue_number(), 300u);
  this->reopen();
  EXPECT_EQ(this->store_->last_queue_number(), 300u);
}

TYPED_TEST(StoreQueues, RemovingAQueueKeepsItsTasksAndKeys) {
  WriteBatch batch = new_task(dead_place(1, 10, 1));
  batch.queues.push_back(queue_record("a", 1));
  batch.keys.emplace_back().queue = 1;
  batch.keys.back().key = "k";
  this->write(batch);
  this->write_queues({}, {"a"});
  EXPECT_EQ(this->lane_places(Lane::dead, 1), (std::vector<Place>{dead_place(1, 10, 1)}));
  EXPECT_TRUE(this->store_->find_key(1, "k").value().has_value());
}

// Due counts.

TYPED_TEST(StoreQueues, DueCountsAreTheSumsOfAllChangesByBin) {
  this->count({minute(5, 3), day(1, 1), minute(256, 2)});
  this->count({minute(5, -1), day(300, 4), minute(5, 7)});
  const std::vector<DueCount> sums{minute(5, 9), minute(256, 2), day(1, 1), day(300, 4)};
  EXPECT_EQ(this->store_->due_counts().value(), sums);
  this->reopen();
  EXPECT_EQ(this->store_->due_counts().value(), sums);
  this->count({day(1, 1)});
  this->reopen();
  EXPECT_EQ(this->store_->due_counts().value()[2], day(1, 2));
}

TYPED_TEST(StoreQueues, ADueCountOfZeroIsLeftOut) {
  this->count({minute(5, 3), minute(6, 1)});
  this->count({minute(5, -1)});
  this->count({minute(5, -2)});
  EXPECT_EQ(this->store_->due_counts().value(), (std::vector<DueCount>{minute(6, 1)}));
  this->reopen();
  EXPECT_EQ(this->store_->due_counts().value(), (std::vector<DueCount>{minute(6, 1)}));
  this->count({minute(5, 1)});
  EXPECT_EQ(this->store_->due_counts().value(),
            (std::vector<DueCount>{minute(5, 1), minute(6, 1)}));
}

TYPED_TEST(StoreQueues, ThousandsOfChangesAddUpAcrossReopens) {
  for (int run = 0; run < 3; ++run) {
    for (int i = 0; i < 500; ++i) {
      WriteBatch batch;
      batch.due_counts = {minute(i % 7, 2), minute((i + 1) % 7, -1)};
      this->write(batch, Durability::buffered);
    }
    this->reopen();
  }
  std::int64_t sum = 0;
  const std::vector<DueCount> counts = this->store_->due_counts().value();
  for (const DueCount& count : counts) sum += count.count;
  EXPECT_EQ(sum, 1'500);
}

}  // namespace
}  // namespace detent

// The contract of store/store.h, point by point, over every back end.
//
// A back end is a medium that outlives the stores opened on it, one after another. What only one of
// them can show (killed processes, torn logs, failing disks) is tested beside it.
#include "tests/contract/store_media.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "store/store.h"

namespace detent {

// NOLINTBEGIN(readability-identifier-naming): the names GoogleTest looks for
void PrintTo(const DueKey& place, std::ostream* out) {
  *out << place.at.time_since_epoch().count() << " ms, id " << place.id.value;
}
void PrintTo(const Task& task, std::ostream* out) { *out << "task " << task.id.value; }
// NOLINTEND(readability-identifier-naming)

namespace {

using std::chrono::milliseconds;

std::vector<DueKey> places_of(const DuePage& page) {
  std::vector<DueKey> places;
  for (const StoredTask& stored : page.tasks) places.push_back(stored.place);
  return places;
}

template <class Medium>
class StoreContract : public testing::Test {
 protected:
  void SetUp() override { reopen(); }

  void reopen() {
    store_.reset();
    auto opened = medium_.open();
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  void write(const WriteBatch& batch, Durability durability = Durability::synced) {
    const Result<void> written = store_->write(batch, durability);
    ASSERT_TRUE(written) << written.error().message;
  }
  DuePage page(DueKey after = kFirstDueKey, WallTime until = kNeverDue, std::size_t limit = 1'000) {
    return store_->read_due(after, until, limit).value();
  }
  std::vector<DueKey> all_places() { return places_of(page(kFirstDueKey, kNeverDue, 100'000)); }

  Medium medium_;
  std::unique_ptr<Store> store_;
};

using Media = testing::Types<MemoryMedium, RocksDbMedium>;
class MediumNames {
 public:
  template <class Medium>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's
    return std::is_same_v<Medium, MemoryMedium> ? "Memory" : "RocksDb";
  }
};
TYPED_TEST_SUITE(StoreContract, Media, MediumNames);

// 1. Batches.

TYPED_TEST(StoreContract, NewStoreIsEmpty) {
  EXPECT_EQ(this->all_places(), std::vector<DueKey>{});
  EXPECT_EQ(this->store_->find(TaskId{256}).value().has_value(), false);
  EXPECT_EQ(this->store_->last_id(), TaskId{0});
  EXPECT_EQ(this->store_->queue_counts().value(), std::vector<QueueCounts>{});
  EXPECT_EQ(this->store_->quarantined().value(), 0u);
}

TYPED_TEST(StoreContract, OneBatchAddsMovesReplacesRemovesAndCounts) {
  WriteBatch first;
  for (std::uint64_t n = 1; n <= 3; ++n) add(first, place_of(10, n));
  this->write(first);

  WriteBatch second;
  add(second, place_of(5, 4));
  move(second, place_of(10, 1), place_of(20, 1), "moved");
  move(second, place_of(10, 2), place_of(10, 2), "replaced");
  second.erases.push_back(place_of(10, 3));
  second.counts.push_back({.queue = "mail", .waiting = 3, .dead = 0});
  this->write(second);

  EXPECT_EQ(this->all_places(),
            (std::vector<DueKey>{place_of(5, 4), place_of(10, 2), place_of(20, 1)}));
  EXPECT_EQ(this->page().tasks[1].task.payload.data, "replaced");
  EXPECT_EQ(this->page().tasks[2].task.payload.data, "moved");
  EXPECT_EQ(this->store_->queue_counts().value(),
            (std::vector<QueueCounts>{{.queue = "mail", .waiting = 3, .dead = 0}}));
}

TYPED_TEST(StoreContract, EverythingIsThereAfterReopen) {
  this->write(new_task(place_of(10, 1), "synced"), Durability::synced);
  this->write(new_task(place_of(20, 2), "buffered"), Durability::buffered);
  this->write(new_task(place_of(30, 3)), Durability::buffered);
  this->write(removal(place_of(30, 3)), Durability::buffered);
  this->reopen();
  EXPECT_EQ(this->all_places(), (std::vector<DueKey>{place_of(10, 1), place_of(20, 2)}));
  EXPECT_EQ(this->page().tasks[0].task.payload.data, "synced");
  EXPECT_EQ(this->page().tasks[1].task.payload.data, "buffered");
}

TYPED_TEST(StoreContract, EmptyBatchIsWritten) {
  this->write({}, Durability::buffered);
  this->write({}, Durability::synced);
  this->write(new_task(place_of(10, 1)), Durability::buffered);
  this->write({}, Durability::synced);
  EXPECT_EQ(this->all_places().size(), 1u);
}

TYPED_TEST(StoreContract, TenThousandTasksAreOneBatch) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= kMaxBatchTasks; ++n) {
    add(batch, place_of(static_cast<std::int64_t>(n * 7'919 % 10'007), n), std::string(100, 'x'));
  }
  this->write(batch);
  this->reopen();
  const std::vector<DueKey> places = this->all_places();
  EXPECT_EQ(places.size(), kMaxBatchTasks);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
}

// 3. Reads: the due order.

TYPED_TEST(StoreContract, PagesAreInOrderOfInstantThenId) {
  WriteBatch batch;
  add(batch, place_of(20, 1));
  add(batch, place_of(10, 3));
  add(batch, place_of(10, 2));
  add(batch, place_of(1'700'000'000'000, 4));
  add(batch, place_of(255, 5));
  add(batch, place_of(256, 6));
  this->write(batch);
  EXPECT_EQ(
      this->all_places(),
      (std::vector<DueKey>{place_of(10, 2), place_of(10, 3), place_of(20, 1), place_of(255, 5),
                           place_of(256, 6), place_of(1'700'000'000'000, 4)}));
}

TYPED_TEST(StoreContract, PageBeginsAfterItsPlaceAndEndsWithItsInstant) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 6; ++n) add(batch, place_of(static_cast<std::int64_t>(n) / 2, n));
  this->write(batch);  // instants 0 1 1 2 2 3
  EXPECT_EQ(places_of(this->page(place_of(1, 2), at_ms(2))),
            (std::vector<DueKey>{place_of(1, 3), place_of(2, 4), place_of(2, 5)}));
  EXPECT_EQ(places_of(this->page(place_of(2, 5), at_ms(2))), std::vector<DueKey>{});
  EXPECT_EQ(places_of(this->page(place_of(3, 6), at_ms(1))), std::vector<DueKey>{});
  const DueKey end_of_two{at_ms(2), TaskId{~std::uint64_t{0}}};
  EXPECT_EQ(places_of(this->page(end_of_two, kNeverDue)), (std::vector<DueKey>{place_of(3, 6)}));
  EXPECT_EQ(places_of(this->page(kFirstDueKey, at_ms(0))), (std::vector<DueKey>{place_of(0, 1)}));
}

TYPED_TEST(StoreContract, PageSaysThatThereMayBeMoreOnlyWhenItIsFull) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 3; ++n) add(batch, place_of(10, n));
  this->write(batch);
  EXPECT_TRUE(this->page(kFirstDueKey, kNeverDue, 2).more);
  EXPECT_TRUE(this->page(kFirstDueKey, kNeverDue, 3).more);
  EXPECT_FALSE(this->page(kFirstDueKey, kNeverDue, 4).more);
  EXPECT_FALSE(this->page(place_of(10, 3), kNeverDue, 3).more);
}

// The classic mistake (PW_OFFSET_SKIP): 5 000 rows in pages of 1 000 by offset, deleting each page,
// skips 2 000. Here tasks are also added behind the page while it is being worked on.
TYPED_TEST(StoreContract, PagingByKeySkipsNothingWhileTasksAreRemovedAndAdded) {
  constexpr std::uint64_t kRows = 5'000;
  WriteBatch rows;
  for (std::uint64_t n = 1; n <= kRows; ++n) add(rows, place_of(static_cast<std::int64_t>(n), n));
  this->write(rows);

  std::vector<DueKey> seen;
  std::set<DueKey> expected;
  for (std::uint64_t n = 1; n <= kRows; ++n) {
    expected.insert(place_of(static_cast<std::int64_t>(n), n));
  }
  std::uint64_t next = kRows + 1;
  DueKey after = kFirstDueKey;
  for (bool more = true; more;) {
    const DuePage page = this->page(after, kNeverDue, 1'000);
    more = page.more;
    if (page.tasks.empty()) break;
    after = page.tasks.back().place;
    WriteBatch work;
    for (const DueKey place : places_of(page)) {
      seen.push_back(place);
      work.erases.push_back(place);
    }
    for (int i = 0; i < 100 && next <= kRows + 300; ++i, ++next) {
      const DueKey added = place_of(after.at.time_since_epoch().count() + 1 + i, next);
      add(work, added);
      expected.insert(added);
    }
    this->write(work);
  }
  EXPECT_EQ(seen, std::vector<DueKey>(expected.begin(), expected.end()));
  EXPECT_EQ(this->all_places(), std::vector<DueKey>{});
}

TYPED_TEST(StoreContract, MovedTaskIsAtItsNewPlaceOnly) {
  this->write(new_task(place_of(10, 1)));
  WriteBatch later;
  this->write(move(later, place_of(10, 1), place_of(99, 1), "later"));
  EXPECT_EQ(this->all_places(), (std::vector<DueKey>{place_of(99, 1)}));
  EXPECT_EQ(this->store_->find(place_of(0, 1).id).value()->place, place_of(99, 1));
  const DueKey old = place_of(10, 1);
  EXPECT_EQ(this->store_->read_at(std::span(&old, 1)).value()[0].error().code,
            ErrorCode::not_found);
  WriteBatch earlier;
  this->write(move(earlier, place_of(99, 1), place_of(3, 1), "earlier"));
  this->reopen();
  EXPECT_EQ(this->all_places(), (std::vector<DueKey>{place_of(3, 1)}));
}

TYPED_TEST(StoreContract, PlaceNeedNotBeTheDueTime) {
  StoredTask stored = task_at(place_of(500, 1));
  stored.task.due_at = at_ms(3);
  WriteBatch batch;
  batch.puts.push_back({.from = std::nullopt, .to = stored});
  this->write(batch);
  const StoredTask found = this->store_->find(stored.task.id).value().value();
  EXPECT_EQ(found.place, place_of(500, 1));
  EXPECT_EQ(found.task.due_at, at_ms(3));
}

TYPED_TEST(StoreContract, WhatIsNeverDueIsInNoPageUpToARealInstant) {
  const DueKey resting{kNeverDue, TaskId{256}};
  WriteBatch batch;
  add(batch, resting);
  add(batch, place_of(253'402'300'799'999, 2));  // the last instant of the year 9999
  this->write(batch);
  EXPECT_EQ(places_of(this->page(kFirstDueKey, at_ms(253'402'300'799'999))),
            (std::vector<DueKey>{place_of(253'402'300'799'999, 2)}));
  EXPECT_EQ(places_of(this->page(kFirstDueKey, kNeverDue - milliseconds{1})).size(), 1u);
  EXPECT_EQ(places_of(this->page(kFirstDueKey, kNeverDue)).back(), resting);
  EXPECT_EQ(this->store_->find(resting.id).value()->place, resting);
}

TYPED_TEST(StoreContract, ReadAtAnswersInTheOrderAsked) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 100; ++n) add(batch, place_of(10, n), std::to_string(n));
  this->write(batch);
  std::vector<DueKey> asked;
  for (const std::uint64_t n : {50u, 3u, 100u, 3u, 1u}) asked.push_back(place_of(10, n));
  asked.insert(asked.begin() + 2, place_of(11, 50));  // not there
  const std::vector<Result<Task>> tasks = this->store_->read_at(asked).value();
  ASSERT_EQ(tasks.size(), 6u);
  EXPECT_EQ(tasks[0].value().payload.data, "50");
  EXPECT_EQ(tasks[1].value().payload.data, "3");
  EXPECT_EQ(tasks[2].error().code, ErrorCode::not_found);
  EXPECT_EQ(tasks[3].value().payload.data, "100");
  EXPECT_EQ(tasks[4].value().payload.data, "3");
  EXPECT_EQ(tasks[5].value().payload.data, "1");
  EXPECT_EQ(this->store_->read_at({}).value().size(), 0u);
}

TYPED_TEST(StoreContract, CountsAreWhatWasWrittenLast) {
  WriteBatch first;
  first.counts = {{.queue = "b", .waiting = 5, .dead = 1},
                  {.queue = "a", .waiting = 1, .dead = 0},
                  {.queue = "a/b", .waiting = 2, .dead = 2}};
  this->write(first);
  WriteBatch second;
  second.counts = {{.queue = "b", .waiting = 0, .dead = 0}};
  this->write(second);
  this->reopen();
  EXPECT_EQ(this->store_->queue_counts().value(),
            (std::vector<QueueCounts>{{.queue = "a", .waiting = 1, .dead = 0},
                                      {.queue = "a/b", .waiting = 2, .dead = 2},
                                      {.queue = "b", .waiting = 0, .dead = 0}}));
}

// 4. Byte for byte, or data_loss.

TYPED_TEST(StoreContract, TheLargestPayloadReadsBackByteForByte) {
  std::string payload(kMaxPayloadBytes, '\0');
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 131 >> 3);
  this->write(new_task(place_of(10, 1), payload));
  this->write(new_task(place_of(10, 2), ""));
  this->reopen();
  EXPECT_EQ(this->page().tasks[0].task, task_at(place_of(10, 1), payload).task);
  EXPECT_EQ(this->page().tasks[1].task, task_at(place_of(10, 2), "").task);
}

TYPED_TEST(StoreContract, OneDamagedRecordHidesNoOther) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 3; ++n) add(batch, place_of(10, n));
  this->write(batch);
  const std::vector<DueKey> asked{place_of(10, 1), place_of(10, 2), place_of(10, 3)};
  this->store_.reset();
  this->medium_.flip_bit(asked[1], 77);
  this->reopen();

  const DuePage page = this->page();
  EXPECT_EQ(places_of(page), (std::vector<DueKey>{asked[0], asked[2]}));
  EXPECT_EQ(page.damaged, (std::vector<DueKey>{asked[1]}));
  const std::vector<Result<Task>> tasks = this->store_->read_at(asked).value();
  EXPECT_TRUE(tasks[0]);
  EXPECT_EQ(tasks[1].error().code, ErrorCode::data_loss);
  EXPECT_TRUE(tasks[2]);
  EXPECT_EQ(this->store_->find(asked[1].id).error().code, ErrorCode::data_loss);
}

TYPED_TEST(StoreContract, DamagedRecordsDoNotFillAPage) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 4; ++n) add(batch, place_of(10, n));
  this->write(batch);
  this->store_.reset();
  for (std::uint64_t n = 1; n <= 3; ++n) this->medium_.flip_bit(place_of(10, n), 77);
  this->reopen();
  const DuePage page = this->page(kFirstDueKey, kNeverDue, 1);
  EXPECT_EQ(places_of(page), (std::vector<DueKey>{place_of(10, 4)}));
  EXPECT_EQ(page.damaged.size(), 3u);
}

TYPED_TEST(StoreContract, QuarantinedRecordLeavesTheDueOrderForGood) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 2; ++n) add(batch, place_of(10, n));
  this->write(batch);
  this->store_.reset();
  const DueKey bad = place_of(10, 1);
  this->medium_.flip_bit(bad, 5);
  this->reopen();
  ASSERT_TRUE(this->store_->quarantine(bad));
  EXPECT_EQ(this->store_->quarantined().value(), 1u);
  ASSERT_TRUE(this->store_->quarantine(bad));  // already gone: nothing happens
  this->reopen();
  EXPECT_EQ(this->store_->quarantined().value(), 1u);
  const DuePage page = this->page();
  EXPECT_EQ(places_of(page), (std::vector<DueKey>{place_of(10, 2)}));
  EXPECT_EQ(page.damaged, std::vector<DueKey>{});
  EXPECT_FALSE(this->store_->find(bad.id).value().has_value());
  EXPECT_EQ(this->store_->read_at(std::span(&bad, 1)).value()[0].error().code,
            ErrorCode::not_found);
}

// 5. The last id.

TYPED_TEST(StoreContract, LastIdIsTheHighestEverPut) {
  this->write(new_task(place_of(10, 7)));
  this->write(new_task(place_of(10, 3)));
  EXPECT_EQ(this->store_->last_id(), place_of(0, 7).id);
  this->write(removal(place_of(10, 7)));
  EXPECT_EQ(this->store_->last_id(), place_of(0, 7).id);
  this->reopen();
  EXPECT_EQ(this->store_->last_id(), place_of(0, 7).id);
}

TYPED_TEST(StoreContract, LastIdCanBeGivenWithoutATask) {
  WriteBatch batch = new_task(place_of(10, 3));
  batch.last_id = place_of(0, 9).id;
  this->write(batch);
  batch = new_task(place_of(10, 4));
  batch.last_id = place_of(0, 2).id;  // lower than was given before: no matter
  this->write(batch);
  this->reopen();
  EXPECT_EQ(this->store_->last_id(), place_of(0, 9).id);
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

// 7. One at a time.

TYPED_TEST(StoreContract, OpenStoreCannotBeOpenedAgainUntilItIsClosed) {
  const auto second = this->medium_.open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_NE(second.error().message.find("in use by another"), std::string::npos)
      << second.error().message;
  this->write(new_task(place_of(10, 1)));  // and the first is none the worse
  this->store_.reset();
  EXPECT_TRUE(this->medium_.open());
}

// All of it at once: random batches against a map, with reopens.
TYPED_TEST(StoreContract, BehavesAsAMapUnderRandomBatches) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::map<DueKey, std::string> model;
  std::map<std::uint64_t, DueKey> live;  // by number of the id
  std::uint64_t next = 1;
  const auto random_instant = [&rng]() -> std::int64_t { return rng.below(50); };
  for (int step = 0; step < 300; ++step) {
    WriteBatch batch;
    std::set<std::uint64_t> touched;
    for (std::uint32_t i = rng.below(30); i > 0; --i) {
      const std::string payload = std::to_string(rng.next());
      const auto chosen = live.lower_bound(1 + rng.below(static_cast<std::uint32_t>(next)));
      if (rng.below(3) == 0 || chosen == live.end()) {
        const DueKey place = place_of(random_instant(), next);
        add(batch, place, payload);
        model[place] = payload;
        touched.insert(next);
        live[next++] = place;
      } else if (touched.insert(chosen->first).second) {
        const DueKey from = chosen->second;
        model.erase(from);
        if (rng.below(2) == 0) {
          batch.erases.push_back(from);
          live.erase(chosen);
        } else {
          const DueKey to = place_of(random_instant(), chosen->first);
          move(batch, from, to, payload);
          model[to] = payload;
          chosen->second = to;
        }
      }
    }
    this->write(batch, rng.below(2) == 0 ? Durability::synced : Durability::buffered);
    if (rng.below(60) == 0) this->reopen();

    const DueKey after = place_of(random_instant(), rng.below(static_cast<std::uint32_t>(next)));
    const WallTime until = at_ms(random_instant());
    std::vector<DueKey> expected;
    for (auto at = model.upper_bound(after);
         at != model.end() && at->first.at <= until && expected.size() < 20; ++at) {
      expected.push_back(at->first);
    }
    const DuePage page = this->page(after, until, 20);
    ASSERT_EQ(places_of(page), expected) << "step " << step;
    for (const StoredTask& stored : page.tasks) {
      ASSERT_EQ(stored.task.payload.data, model.at(stored.place));
    }
  }
  std::vector<DueKey> expected;
  for (const auto& [place, payload] : model) expected.push_back(place);
  EXPECT_EQ(this->all_places(), expected);
  for (std::uint64_t n = 1; n < next; ++n) {
    const auto found = this->store_->find(place_of(0, n).id).value();
    const auto place = live.find(n);
    ASSERT_EQ(found.has_value(), place != live.end()) << "id " << n;
    if (found) {
      ASSERT_EQ(found->place, place->second);
    }
  }
}

}  // namespace
}  // namespace detent

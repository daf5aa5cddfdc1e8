// The contract of store/store.h: a damaged record is reported, in any lane. It hides no other
// record, and it can be moved to the quarantine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"
#include "tests/contract/store_fixture.h"

namespace detent {
namespace {

template <class Medium>
class StoreDamage : public StoreFixture<Medium> {
 protected:
  /// Writes three tasks into a lane and damages the second one. In two of the four lanes, the tasks
  /// were moved there.
  std::vector<Place> damaged_lane(Lane lane) {
    WriteBatch batch;
    WriteBatch moves;
    std::vector<Place> places;
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t n = ++tasks_;
      places.push_back(place_in(lane, 1, 10, n));
      const bool moved = lane == Lane::ready || lane == Lane::ended;
      add(batch, moved ? due_place(3, n) : places.back());
      if (moved) move(moves, due_place(3, n), places.back());
    }
    this->write(batch);
    this->write(moves);
    this->damage(places[1]);
    return places;
  }
  /// Writes and removes enough tasks that a back end settles them, or reorganizes its data in
  /// another way.
  void settle() {
    for (int i = 0; i < 100; ++i) {
      const Place place = due_place(1'000 + i, ++tasks_);
      this->write(new_task(place), Durability::buffered);
      this->write(removal(place), Durability::buffered);
    }
  }

 private:
  std::uint64_t tasks_ = 0;
};
TYPED_TEST_SUITE(StoreDamage, Media, MediumNames);

TYPED_TEST(StoreDamage, ADamagedRecordHidesNoOtherRecord) {
  for (const Lane lane : kLanes) {
    const std::vector<Place> places = this->damaged_lane(lane);
    const std::vector<Place> whole{places[0], places[2]};
    const std::vector<Place> bad{places[1]};
    for (int run = 0; run < 2; ++run) {
      const TaskPage page = this->page(lane, places[0].queue);
      EXPECT_EQ(places_of(page), whole);
      EXPECT_EQ(page.damaged, bad);
      const TaskPage by_id =
          this->store_->read_by_id({places[0].id.value - 1}, StoreDamage<TypeParam>::kAll).value();
      EXPECT_EQ(places_of(by_id), whole);
      EXPECT_EQ(by_id.damaged, bad);
      const std::vector<Result<Task>> tasks = this->store_->read_at(places).value();
      EXPECT_TRUE(tasks[0]);
      EXPECT_EQ(error_code_of(tasks[1]), ErrorCode::data_loss);
      EXPECT_TRUE(tasks[2]);
      EXPECT_EQ(error_code_of(this->store_->find(bad[0].id)), ErrorCode::data_loss);
      EXPECT_TRUE(this->store_->find(whole[1].id).value().has_value());
      const std::vector<TaskId> ids{places[2].id, places[1].id, places[0].id, places[2].id};
      std::vector<StoredTask> found = this->store_->find_all(ids).value();
      std::ranges::sort(found, {}, &StoredTask::place);
      EXPECT_EQ(found, page.tasks);
      this->settle();
      this->reopen();
    }
  }
}

// A page reads at most `limit` records, even if many are damaged.
TYPED_TEST(StoreDamage, DamagedRecordsCountTowardsTheLimitOfAPage) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 5; ++n) add(batch, due_place(10, n));
  this->write(batch);
  for (const std::uint64_t n : {1u, 2u, 3u, 5u}) this->damage(due_place(10, n));
  for (const TaskPage& page :
       {this->page(Lane::due, 0, 2), this->store_->read_by_id(TaskId{}, 2).value()}) {
    EXPECT_EQ(places_of(page), std::vector<Place>{});
    EXPECT_EQ(page.damaged, (std::vector<Place>{due_place(10, 1), due_place(10, 2)}));
    EXPECT_EQ(page.read_to, due_place(10, 2));
  }
  for (const TaskPage& page : {this->due_page(due_place(10, 2), kNeverDue, 4),
                               this->store_->read_by_id(id_of(2), 4).value()}) {
    EXPECT_EQ(places_of(page), (std::vector<Place>{due_place(10, 4)}));
    EXPECT_EQ(page.damaged, (std::vector<Place>{due_place(10, 3), due_place(10, 5)}));
    EXPECT_EQ(page.read_to, std::nullopt);
  }
}

TYPED_TEST(StoreDamage, RecordsAreMovedToTheQuarantineTogether) {
  std::vector<Place> bad;
  std::vector<Place> sound;
  for (const Lane lane : kLanes) {
    const std::vector<Place> places = this->damaged_lane(lane);
    bad.push_back(places[1]);
    sound.insert(sound.end(), {places[0], places[2]});
  }
  std::vector<Place> named = bad;
  named.push_back(due_place(77, 7'777));  // a place without a record
  ASSERT_TRUE(this->store_->quarantine(named));
  ASSERT_TRUE(this->store_->quarantine({}));
  this->settle();
  this->reopen();
  EXPECT_EQ(this->store_->quarantined().value(), bad.size());
  for (const Place& place : bad) EXPECT_FALSE(this->store_->find(place.id).value().has_value());
  for (const Place& place : sound) EXPECT_TRUE(this->read_one(place));
}

TYPED_TEST(StoreDamage, QuarantinedRecordLeavesItsLaneForGood) {
  std::uint64_t expected = 0;
  for (const Lane lane : kLanes) {
    const std::vector<Place> places = this->damaged_lane(lane);
    const Place bad = places[1];
    ASSERT_TRUE(this->store_->quarantine({&bad, 1}));
    EXPECT_EQ(this->store_->quarantined().value(), ++expected);
    ASSERT_TRUE(this->store_->quarantine({&bad, 1}));  // the record is gone, so this has no effect
    this->reopen();
    this->settle();
    EXPECT_EQ(this->store_->quarantined().value(), expected);
    const TaskPage page = this->page(lane, places[0].queue);
    EXPECT_EQ(places_of(page), (std::vector<Place>{places[0], places[2]}));
    EXPECT_EQ(page.damaged, std::vector<Place>{});
    EXPECT_EQ(this->store_->read_by_id(TaskId{}, 100).value().damaged, std::vector<Place>{});
    EXPECT_FALSE(this->store_->find(bad.id).value().has_value());
    EXPECT_EQ(error_code_of(this->read_one(bad)), ErrorCode::not_found);
  }
}

// An operator can write the task again, or remove it.
TYPED_TEST(StoreDamage, DamagedRecordCanBeReplacedOrRemoved) {
  for (const Lane lane : kLanes) {
    const std::vector<Place> replaced = this->damaged_lane(lane);
    const Place to = place_in(lane, 1, 20, replaced[1].id.value >> TaskId::kShardBits);
    this->write(moved_task(replaced[1], to, "anew"));
    EXPECT_EQ(this->store_->find(to.id).value(), task_at(to, "anew"));
    const std::vector<Place> removed = this->damaged_lane(lane);
    this->write(removal(removed[1]));
    EXPECT_FALSE(this->store_->find(removed[1].id).value().has_value());
    const TaskPage page = this->page(lane, to.queue);
    EXPECT_EQ(page.damaged, std::vector<Place>{});
    EXPECT_EQ(page.tasks.size(), 5u);
  }
}

TYPED_TEST(StoreDamage, ADamagedKeyHidesNoOtherKey) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 4; ++n) {
    batch.keys.push_back({.queue = 1, .key = "k" + std::to_string(n), .id = id_of(n)});
  }
  this->write(batch);
  this->damage_key(1, "k2", 20);
  const std::vector<KeyRecord>& keys = batch.keys;
  const KeyPage page = this->store_->read_keys(1, "", 2).value();
  EXPECT_EQ(page.records, std::vector<KeyRecord>{keys[0]});
  EXPECT_EQ(page.damaged, std::vector<std::string>{"k2"});
  EXPECT_EQ(page.read_to, "k2");
  const KeyPage rest = this->store_->read_keys(1, "k2", 9).value();
  EXPECT_EQ(rest.records, (std::vector<KeyRecord>{keys[2], keys[3]}));
  EXPECT_EQ(rest.damaged, std::vector<std::string>{});
  EXPECT_EQ(rest.read_to, std::nullopt);
  EXPECT_EQ(error_code_of(this->store_->find_key(1, "k2")), ErrorCode::data_loss);
  const std::vector<std::string> asked{"k1", "k2"};
  EXPECT_EQ(this->store_->find_keys(1, asked).value(), std::vector<KeyRecord>{keys[0]});
}

}  // namespace
}  // namespace detent

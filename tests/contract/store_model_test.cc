// Tests the whole contract: applies random batches to each back end and to a simple model, and
// compares the two. In between it closes and opens the store, damages records, and trims keys.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "store/store.h"
#include "tests/contract/store_fixture.h"
#include "tests/contract/store_model.h"

namespace detent {
namespace {

using Tide = RandomBatches::Tide;

template <class Medium>
class StoreModelTest : public StoreFixture<Medium> {
 protected:
  void expect_page(const TaskPage& page, const TaskPage& expected) {
    ASSERT_EQ(page.tasks, expected.tasks);
    ASSERT_EQ(page.damaged, expected.damaged);
    ASSERT_EQ(page.read_to, expected.read_to);
  }

  void expect_task(TaskId id) {
    const Result<std::optional<StoredTask>> found = this->store_->find(id);
    const auto expected = model_.tasks.find(id);
    if (expected == model_.tasks.end()) {
      ASSERT_FALSE(found.value().has_value());
      return;
    }
    const Result<Task> read = this->read_one(expected->second.place);
    if (model_.damaged.contains(id)) {
      ASSERT_EQ(error_code_of(found), ErrorCode::data_loss);
      ASSERT_EQ(error_code_of(read), ErrorCode::data_loss);
    } else {
      ASSERT_EQ(found.value(), expected->second);
      ASSERT_EQ(read.value(), expected->second.task);
    }
  }

  /// Compares find_all() and find_keys() for random ids and keys, some of them twice.
  void expect_found_at_once(std::size_t count) {
    const std::uint32_t queue = batches_.random_queue();
    std::vector<TaskId> ids;
    std::vector<std::string> keys;
    std::map<TaskId, StoredTask> tasks;
    std::map<std::string, KeyRecord> records;
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back(batches_.random_id());
      keys.push_back(batches_.random_key());
      const auto task = model_.tasks.find(ids.back());
      if (task != model_.tasks.end() && !model_.damaged.contains(task->first)) tasks.insert(*task);
      const auto record = model_.keys.find({queue, keys.back()});
      if (record != model_.keys.end()) records.emplace(keys.back(), record->second);
    }
    const std::vector<StoredTask> found = this->store_->find_all(ids).value();
    ASSERT_EQ(found.size(), tasks.size());
    for (const StoredTask& task : found) ASSERT_EQ(task, tasks.at(task.place.id));
    const std::vector<KeyRecord> found_keys = this->store_->find_keys(queue, keys).value();
    ASSERT_EQ(found_keys.size(), records.size());
    for (const KeyRecord& record : found_keys) ASSERT_EQ(record, records.at(record.key));
  }

  /// Compares some random pages and records after a step.
  void expect_some() {
    const Place after = random_boundary();
    const std::size_t limit = 1 + rng_.below(20);
    expect_page(this->store_->read(after, end_of(after.lane, after.queue), limit).value(),
                model_.read(after, end_of(after.lane, after.queue), limit));
    Place until = random_boundary();
    until.lane = after.lane;
    until.queue = after.queue;
    if (after.lane != Lane::ready) until.priority = 0;
    expect_page(this->store_->read(after, until, limit).value(), model_.read(after, until, limit));
    const Place begin = begin_of(after.lane, after.queue);
    expect_page(this->store_->read(begin, after, limit).value(), model_.read(begin, after, limit));
    const TaskId after_id = batches_.random_id();
    expect_page(this->store_->read_by_id(after_id, limit).value(),
                model_.read_by_id(after_id, limit));
    for (int i = 0; i < 5; ++i) expect_task(batches_.random_id());
    expect_found_at_once(rng_.below(40));
    ASSERT_EQ(this->read_one(after).has_value(),
              holds(after) && !model_.damaged.contains(after.id));
    for (int i = 0; i < 3; ++i) expect_key({batches_.random_queue(), batches_.random_key()});
    ASSERT_EQ(this->store_->last_id(), model_.last_id);
  }
  /// The place of a task, or a random place.
  Place random_boundary() {
    const auto found = model_.tasks.lower_bound(batches_.random_id());
    if (found == model_.tasks.end() || batches_.one_in(3)) {
      return batches_.random_place(batches_.random_id());
    }
    return found->second.place;
  }
  bool holds(Place place) const {
    const auto found = model_.tasks.find(place.id);
    return found != model_.tasks.end() && found->second.place == place;
  }

  void expect_key(const StoreModel::KeyName& name) {
    const auto expected = model_.keys.find(name);
    ASSERT_EQ(
        this->store_->find_key(name.first, name.second).value(),
        expected == model_.keys.end() ? std::nullopt : std::optional<KeyRecord>(expected->second));
  }

  void expect_all() {
    for (const Lane lane : kLanes) {
      const bool has_queue = lane == Lane::ready || lane == Lane::dead;
      const std::vector<std::uint32_t> queues =
          has_queue ? std::vector<std::uint32_t>{1, 2, 256, 70'000} : std::vector<std::uint32_t>{0};
      for (const std::uint32_t queue : queues) expect_lane(lane, queue);
    }
    expect_pages_by_id();
    for (const auto& [id, stored] : model_.tasks) expect_task(id);
    for (const auto& [name, record] : model_.keys) expect_key(name);
    expect_queues_and_sums();
  }
  /// Reads a whole lane, page by page.
  void expect_lane(Lane lane, std::uint32_t queue) {
    const std::size_t limit = 1 + rng_.below(50);
    std::optional<Place> after = begin_of(lane, queue);
    while (after && !this->HasFatalFailure()) {
      const TaskPage page = this->store_->read(*after, end_of(lane, queue), limit).value();
      expect_page(page, model_.read(*after, end_of(lane, queue), limit));
      after = page.read_to;
    }
  }
  void expect_pages_by_id() {
    const std::size_t limit = 1 + rng_.below(50);
    std::optional<Place> after = Place{};
    while (after && !this->HasFatalFailure()) {
      const TaskPage page = this->store_->read_by_id(after->id, limit).value();
      expect_page(page, model_.read_by_id(after->id, limit));
      after = page.read_to;
    }
  }
  void expect_queues_and_sums() {
    std::vector<QueueRecord> queues;
    for (const auto& [name, record] : model_.queues) queues.push_back(record);
    ASSERT_EQ(this->store_->queues().value(), queues);
    std::vector<ScheduleRecord> schedules;
    for (const auto& [name, record] : model_.schedules) schedules.push_back(record);
    ASSERT_EQ(this->store_->schedules().value(), schedules);
    std::vector<DueCount> counts;
    for (const auto& [bin, sum] : model_.due_counts) counts.push_back({.bin = bin, .count = sum});
    ASSERT_EQ(this->store_->due_counts().value(), counts);
    ASSERT_EQ(this->store_->quarantined().value(), model_.quarantined);
    ASSERT_EQ(this->store_->last_id(), model_.last_id);
    ASSERT_EQ(this->store_->last_queue_number(), model_.last_queue_number);
  }

  void write_random(Tide tide) {
    const WriteBatch batch = batches_.next(tide);
    this->write(batch, batches_.one_in(5) ? Durability::synced : Durability::buffered);
    model_.write(batch);
    if (batches_.one_in(8)) this->write({}, Durability::synced);
  }
  void damage_random_task() {
    if (model_.tasks.empty()) return;
    auto victim = model_.tasks.begin();
    std::advance(victim, rng_.below(static_cast<std::uint32_t>(model_.tasks.size())));
    if (!model_.damaged.insert(victim->first).second)
      return;  // a second flip could repair the record
    this->damage(victim->second.place, rng_.below(10'000));
  }
  void quarantine_one() {
    if (model_.damaged.empty()) return;
    const TaskId id = *model_.damaged.begin();
    ASSERT_TRUE(this->store_->quarantine(std::array{model_.tasks.at(id).place}));
    model_.quarantine(id);
  }
  void trim_some_keys() {
    if (model_.keys.empty()) return;
    auto key = model_.keys.begin();
    std::advance(key, rng_.below(static_cast<std::uint32_t>(model_.keys.size())));
    const WallTime now = key->second.expires_at.value_or(at_ms(rng_.below(10'000'000)));
    const std::size_t limit = 1 + rng_.below(5);
    ASSERT_EQ(this->store_->trim_keys(now, limit).value(), model_.trim_keys(now, limit));
  }

  const std::uint64_t seed_ = test_seed();
  Rng rng_{seed_};
  StoreModel model_;
  RandomBatches batches_{rng_, model_};
};
TYPED_TEST_SUITE(StoreModelTest, Media, MediumNames);

TYPED_TEST(StoreModelTest, BehavesAsThePlainModelUnderRandomBatches) {
  SCOPED_TRACE(replay_hint(this->seed_));
  for (int step = 0; step < 600 && !this->HasFatalFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    this->write_random(step / 75 % 2 == 0 ? Tide::rise : Tide::drain);
    if (this->batches_.one_in(10)) this->trim_some_keys();
    if (this->batches_.one_in(40)) this->damage_random_task();
    if (this->batches_.one_in(80)) this->quarantine_one();
    if (this->batches_.one_in(30)) this->reopen();
    if (this->batches_.one_in(20)) {
      this->expect_all();
    } else {
      this->expect_some();
    }
  }
  this->reopen();
  this->expect_all();
}

}  // namespace
}  // namespace detent

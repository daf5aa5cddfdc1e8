// The contract of store/store.h: recurring schedules.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"
#include "store/testing/fault_store.h"
#include "tests/contract/store_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

using Schedules = std::vector<ScheduleRecord>;

ScheduleRecord schedule_named(std::string name, std::uint64_t made = 0) {
  ScheduleRecord record;
  record.schedule.name = std::move(name);
  record.schedule.rule = CronRule{"0 9 * * *"};
  record.schedule.queue = "mail";
  record.progress.made = made;
  return record;
}

WriteBatch batch_of(Schedules schedules, std::vector<std::string> removed = {}) {
  WriteBatch batch;
  batch.schedules = std::move(schedules);
  batch.removed_schedules = std::move(removed);
  return batch;
}

template <class Medium>
class StoreSchedules : public StoreFixture<Medium> {
 protected:
  /// Expects these schedules immediately, and after the store was opened again.
  void expect_schedules(const Schedules& expected) {
    EXPECT_EQ(this->store_->schedules().value(), expected);
    this->reopen();
    EXPECT_EQ(this->store_->schedules().value(), expected);
  }
};
TYPED_TEST_SUITE(StoreSchedules, Media, MediumNames);

TYPED_TEST(StoreSchedules, AreReadByName) {
  this->write(batch_of({schedule_named("b"), schedule_named("a/b"), schedule_named("a")}));
  this->write(batch_of({schedule_named("Z"), schedule_named("a-b"), schedule_named("0")}));
  this->expect_schedules({schedule_named("0"), schedule_named("Z"), schedule_named("a"),
                          schedule_named("a-b"), schedule_named("a/b"), schedule_named("b")});
}

TYPED_TEST(StoreSchedules, AScheduleWrittenAgainHasTheLastRecord) {
  this->write(batch_of({schedule_named("a", 1), schedule_named("b", 1)}));
  ScheduleRecord other = schedule_named("a", 2);
  other.schedule.rule = IntervalRule{milliseconds{5'000}, at_ms(7)};
  this->write(batch_of({other}), Durability::buffered);
  this->expect_schedules({other, schedule_named("b", 1)});
}

TYPED_TEST(StoreSchedules, ARemovedScheduleCanBeWrittenAgain) {
  this->write(batch_of({schedule_named("a"), schedule_named("b")}));
  this->write(batch_of({}, {"a", "never-there"}));
  this->expect_schedules({schedule_named("b")});
  this->write(batch_of({schedule_named("a", 3)}));
  this->expect_schedules({schedule_named("a", 3), schedule_named("b")});
}

TYPED_TEST(StoreSchedules, AScheduleRemovedAndWrittenInOneBatchExists) {
  this->write(batch_of({schedule_named("a", 1)}));
  this->write(batch_of({schedule_named("a", 2)}, {"a"}));
  this->expect_schedules({schedule_named("a", 2)});
}

TYPED_TEST(StoreSchedules, EveryFieldReadsBack) {
  ScheduleRecord full;
  full.schedule = {.name = std::string(kMaxScheduleNameBytes, 's'),
                   .rule = CalendarRule{.anchor = at_ms(1'700'000'000'000),
                                        .unit = CalendarRule::Unit::week,
                                        .every = 2,
                                        .month_end = CalendarRule::MonthEnd::skip},
                   .time_zone = "Europe/Berlin",
                   .gap = ScheduleGap::run_after,
                   .repeat = ScheduleRepeat::second,
                   .queue = std::string(kMaxQueueNameBytes, 'q'),
                   .payload = {Payload::Kind::bytes, std::string(kMaxPayloadBytes, '\xEE')},
                   .rules = {.priority = 5,
                             .max_attempts = 3,
                             .visibility_timeout = milliseconds{9'000},
                             .backoff = Backoff{}},
                   .count = 4,
                   .start = at_ms(10),
                   .end = at_ms(20),
                   .jitter = milliseconds{6},
                   .misfire = Misfire::skip,
                   .misfire_grace = milliseconds{7},
                   .misfire_limit = 8,
                   .overlap = ScheduleOverlap::skip};
  full.progress = {.created_at = at_ms(1),
                   .decided_to = at_ms(2),
                   .made = 3,
                   .overlapped = 4,
                   .last_at = at_ms(5),
                   .last_task = id_of(6),
                   .queued_at = at_ms(7),
                   .paused = true};
  this->write(batch_of({full}));
  this->expect_schedules({full});
}

TYPED_TEST(StoreSchedules, AreIndependentOfAQueueOrKeyWithTheSameName) {
  WriteBatch batch = batch_of({schedule_named("a", 1)});
  batch.queues.emplace_back().queue = "a";
  batch.queues.back().number = 1;
  batch.keys.push_back({.queue = 1, .key = "a", .id = id_of(1), .content = 0, .expires_at = {}});
  this->write(batch);
  WriteBatch removal;
  removal.removed_queues.emplace_back("a");
  this->write(removal);
  this->expect_schedules({schedule_named("a", 1)});
  EXPECT_EQ(this->store_->queues().value(), std::vector<QueueRecord>{});
  this->write(batch_of({}, {"a"}));
  EXPECT_TRUE(this->store_->find_key(1, "a").value().has_value());
}

// One batch has the task of an occurrence and the progress of its schedule. After a failure, either
// both are stored or neither of them is.
TYPED_TEST(StoreSchedules, AreStoredTogetherWithTheTasksOfTheirBatch) {
  this->write(batch_of({schedule_named("a", 0), schedule_named("b", 0)}));
  std::uint64_t made = 0;
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    WriteBatch batch = batch_of({schedule_named("a", made + 1)}, {"b"});
    add(batch, due_place(10, made + 1));
    FaultStore faulty(*this->store_);
    faulty.fail_write(1, fault);
    EXPECT_FALSE(faulty.write(batch, Durability::synced));
    EXPECT_FALSE(faulty.write(batch_of({}, {"a"}), Durability::synced));
    const bool is_applied = fault == WriteFault::applied;
    if (is_applied) ++made;
    EXPECT_EQ(faulty.schedules()->size(), is_applied ? 1u : 2u);
    EXPECT_EQ(faulty.schedules()->at(0), schedule_named("a", made));
    EXPECT_EQ(this->lane_places(Lane::due).size(), made);
    this->reopen();
    EXPECT_EQ(this->store_->schedules()->size(), is_applied ? 1u : 2u);
    EXPECT_EQ(this->store_->schedules()->at(0), schedule_named("a", made));
    EXPECT_EQ(this->lane_places(Lane::due).size(), made);
  }
}

TYPED_TEST(StoreSchedules, ABatchOfSchedulesOnlyIsNotEmpty) {
  EXPECT_FALSE(batch_of({schedule_named("a")}).empty());
  EXPECT_FALSE(batch_of({}, {"a"}).empty());
}

TYPED_TEST(StoreSchedules, HundredsAreReadWhileTasksComeAndGo) {
  Schedules expected;
  for (int i = 0; i < 300; ++i) {
    expected.push_back(schedule_named("s" + std::to_string(100 + i)));
    const std::uint64_t n = static_cast<std::uint64_t>(i) + 1;
    WriteBatch batch = batch_of({expected.back()});
    add(batch, due_place(i, n));
    this->write(batch, Durability::buffered);
    expected.back().progress.made = 1;
    batch = batch_of({expected.back()});
    batch.erases.push_back(due_place(i, n));
    this->write(batch, Durability::buffered);
  }
  this->expect_schedules(expected);
}

TYPED_TEST(StoreSchedules, ADamagedScheduleIsReportedUntilItIsWrittenOrRemoved) {
  this->write(batch_of({schedule_named("a"), schedule_named("b"), schedule_named("c")}));
  this->damage_schedule("b", 77);
  const Result<Schedules> all = this->store_->schedules();
  ASSERT_EQ(error_code_of(all), ErrorCode::data_loss);
  EXPECT_NE(all.error().message.find("schedule \"b\""), std::string::npos) << all.error().message;
  const auto each = this->store_->read_schedules().value();
  ASSERT_EQ(each.size(), 3U);
  EXPECT_EQ(each[0], schedule_named("a"));
  EXPECT_EQ(each[1].error(), all.error());
  EXPECT_EQ(each[2], schedule_named("c"));
  this->write(new_task(due_place(10, 1)));  // other writes still succeed
  EXPECT_EQ(error_code_of(this->store_->schedules()), ErrorCode::data_loss);
  this->write(batch_of({schedule_named("b", 9)}));
  this->expect_schedules({schedule_named("a"), schedule_named("b", 9), schedule_named("c")});
  this->damage_schedule("c", 5);
  this->write(batch_of({}, {"c"}));
  this->expect_schedules({schedule_named("a"), schedule_named("b", 9)});
}

}  // namespace
}  // namespace detent

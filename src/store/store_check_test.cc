// A sound store, and each kind of damage planted in one.
#include "store/store_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "store/forwarding_store.h"
#include "store/memory_store.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr WallTime kAt{std::chrono::hours{24 * 365 * 50}};

Task task_of(std::uint64_t id, std::string queue, Standing standing = Standing::live) {
  return {.id = TaskId{id},
          .queue = std::move(queue),
          .payload = {.kind = Payload::Kind::bytes, .data = "12345"},
          .due_at = kAt + milliseconds{60'000 * static_cast<std::int64_t>(id)},
          .created_at = kAt,
          .standing = standing};
}
Place place_of(const Task& task, Lane lane, std::uint32_t queue = 0) {
  return {.lane = lane,
          .queue = queue,
          .priority = lane == Lane::ready ? task.rules.priority : 0,
          .at = task.due_at,
          .id = task.id};
}

/// Another store that answers otherwise where a test says so: damage that a back end's own checks
/// would not let a test plant.
class LyingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<TaskPage> read(Place after, Place until, std::size_t limit) override {
    Result<TaskPage> page = store_.read(after, until, std::min(limit, page_size));
    if (page && unlisted.value != 0) {
      std::erase_if(page->tasks, [this](const auto& some) { return some.place.id == unlisted; });
    }
    return page;
  }
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override {
    Result<TaskPage> page = store_.read_by_id(after, std::min(limit, page_size));
    for (StoredTask& stored : page->tasks) {
      if (stored.place.id == changed_by_id) stored.task.attempts += 1;
      if (stored.place.id == renamed) stored.task.id = stored.task.id.next();
    }
    return page;
  }
  Result<std::optional<StoredTask>> find(TaskId id) override {
    if (id == unfound) return std::optional<StoredTask>();
    Result<std::optional<StoredTask>> found = store_.find(id);
    if (id == misplaced) (*found)->place.at += milliseconds{1};
    return found;
  }
  Result<std::vector<Result<ScheduleRecord>>> read_schedules() override {
    if (failing_schedules) return Error{ErrorCode::unavailable, "read schedules: no", ""};
    if (!told_schedules) return store_.read_schedules();
    return std::vector<Result<ScheduleRecord>>(told_schedules->begin(), told_schedules->end());
  }
  Result<std::vector<QueueRecord>> queues() override {
    Result<std::vector<QueueRecord>> all = store_.queues();
    if (same_numbers) all->at(1).number = all->at(0).number;
    return all;
  }
  Result<std::vector<DueCount>> due_counts() override {
    if (failing) return Error{ErrorCode::unavailable, "read due counts: no", ""};
    return store_.due_counts();
  }
  TaskId last_id() const noexcept override { return low_last_id ? TaskId{256} : store_.last_id(); }

  std::size_t page_size = 1'000;
  TaskId unlisted, unfound, misplaced, changed_by_id, renamed;
  bool same_numbers = false;
  bool low_last_id = false;
  bool failing = false;
  bool failing_schedules = false;
  std::optional<std::vector<ScheduleRecord>> told_schedules;
};

class StoreCheckTest : public testing::Test {
 protected:
  StoreCheckTest() {
    put(due_, Lane::due);
    put(ready_, Lane::ready, 1);
    put(dead_, Lane::dead, 2);
    put(ended_, Lane::ended);
    keyed_.key = "k";
    put(keyed_, Lane::due);
    batch_.keys.push_back({.queue = 2, .key = "k", .id = keyed_.id});
    batch_.queues.push_back(
        {.queue = "a", .number = 1, .waiting = 2, .bytes = 10, .in_ready_lane = 1});
    batch_.queues.push_back({.queue = "b", .number = 2, .waiting = 1, .dead = 1, .bytes = 10});
    batch_.schedules = {schedule_, other_schedule_};
    write();
  }
  /// With its due count; the counts of its queue are the test's.
  void put(const Task& task, Lane lane, std::uint32_t queue = 0) {
    batch_.puts.push_back({.from = std::nullopt, .to = {place_of(task, lane, queue), task}});
    if (task.standing != Standing::live) return;
    batch_.due_counts.push_back({due_bin_of(task.due_at, task.created_at), 1});
  }
  void write() { ASSERT_TRUE(store_->write(std::exchange(batch_, {}), Durability::synced)); }
  void set_queue(QueueRecord record) {
    batch_.queues.push_back(std::move(record));
    write();
  }
  StoreReport report() {
    return check_store(lying_, [this](std::uint64_t read) { read_ = read; }).value();
  }
  /// Each of the findings has these words, and there are no others.
  void expect_findings(const std::vector<std::string>& words) {
    const StoreReport found = report();
    EXPECT_EQ(found.finding_count, words.size()) << to_string(found);
    for (const std::string& some : words) {
      EXPECT_TRUE(std::any_of(
          found.findings.begin(), found.findings.end(),
          [&](const std::string& finding) { return finding.find(some) != std::string::npos; }))
          << some << " is not in\n"
          << to_string(found);
    }
  }

  const Task due_ = task_of(256, "a");
  const Task ready_ = task_of(512, "a");
  const Task dead_ = task_of(768, "b", Standing::dead);
  const Task ended_ = task_of(1'024, "gone", Standing::completed);
  Task keyed_ = task_of(1'280, "b");
  const ScheduleRecord schedule_{.schedule = {.name = "report", .queue = "a"}};
  const ScheduleRecord other_schedule_{.schedule = {.name = "sweep", .queue = "never-seen"}};
  MemoryDisk disk_;
  std::unique_ptr<Store> store_ = MemoryStore::open(disk_).value();
  LyingStore lying_{*store_};
  WriteBatch batch_;
  std::uint64_t read_ = 0;
};

TEST_F(StoreCheckTest, ASoundStoreHasNoFindings) {
  const StoreReport found = report();
  EXPECT_TRUE(found.is_sound()) << to_string(found);
  EXPECT_EQ(read_, 10U);
  EXPECT_EQ(to_string(found),
            "records     5 (due 2, ready 1, dead 1, ended 1)\n"
            "queues      2\n"
            "schedules   2\n"
            "due bins    3\n"
            "quarantine  0\n"
            "all is well\n");
  lying_.page_size = 1;
  EXPECT_EQ(report(), found);
}

TEST_F(StoreCheckTest, AnEmptyStoreIsSound) {
  MemoryDisk disk;
  const auto empty = MemoryStore::open(disk).value();
  EXPECT_TRUE(check_store(*empty, [](std::uint64_t) {}).value().is_sound());
}

TEST_F(StoreCheckTest, ADamagedRecordIsFoundInEveryLane) {
  disk_.flip_bit(place_of(ended_, Lane::ended), 80);
  expect_findings({"task 1024 in the ended lane"});
  disk_.flip_bit(place_of(dead_, Lane::dead, 2), 80);
  expect_findings({"task 1024", "task 768 in the dead lane of queue number 2", "b: dead tasks: 1",
                   "b: bytes of payload: 10 are said to be there, 5 are"});
}

TEST_F(StoreCheckTest, WrongCountsOfAQueueAreFound) {
  set_queue({.queue = "a", .number = 1, .waiting = 3, .dead = 1, .bytes = 9});
  expect_findings({"queue a: tasks that wait: 3 are said to be there, 2 are", "a: dead tasks",
                   "a: bytes of payload", "a: tasks in the ready lane: 0"});
}

TEST_F(StoreCheckTest, WrongDueCountsAreFound) {
  const DueBin bin = due_bin_of(due_.due_at, due_.created_at);
  batch_.due_counts = {{bin, +1}};
  write();
  expect_findings({"tasks due in the minute from 2019-12-20T04:16:00.000Z: 2 are said"});
  batch_.due_counts = {{bin, -2}};
  write();
  expect_findings({"0 are said to be there, 1 are"});
  batch_.due_counts = {{bin, -1}, {{DueBin::Width::day, 20'000}, 1}};
  write();
  expect_findings({"below zero", "the day from 2024-10-04"});
}

TEST_F(StoreCheckTest, ATaskOfAQueueThatIsNotThereIsFound) {
  put(task_of(1'536, "nowhere"), Lane::due);
  write();
  expect_findings({"there is no queue nowhere", "tasks due in the minute"});
}

TEST_F(StoreCheckTest, ATaskInAnotherQueuesLaneIsFound) {
  put(task_of(1'536, "a"), Lane::ready, 2);
  write();
  set_queue({.queue = "a", .number = 1, .waiting = 3, .bytes = 15, .in_ready_lane = 2});
  expect_findings({"lies with another queue than its own, a"});
}

TEST_F(StoreCheckTest, TasksWithAWebhookLieInALaneOfTheirOwn) {
  Task own = task_of(1'536, "a");
  own.webhook = "http://a";
  put(own, Lane::ready, 1 | kWebhookLane);
  write();
  set_queue({.queue = "a",
             .number = 1,
             .waiting = 3,
             .bytes = 15,
             .in_ready_lane = 1,
             .in_webhook_lane = 1});
  expect_findings({});
  Task in_other = task_of(1'792, "a");
  in_other.webhook = "http://a";
  put(in_other, Lane::ready, 1);
  put(task_of(2'048, "a"), Lane::ready, 1 | kWebhookLane);
  write();
  set_queue({.queue = "a", .number = 1, .waiting = 5, .bytes = 25, .in_ready_lane = 2});
  expect_findings({"task 1792 in the ready lane of queue number 1",
                   "task 2048 in the ready webhook lane of queue number 1",
                   "a: tasks in the webhook lane: 0 are said to be there, 2 are"});
}

TEST_F(StoreCheckTest, ATaskInALaneThatItDoesNotBelongInIsFound) {
  put(task_of(1'536, "a", Standing::completed), Lane::due);
  put(task_of(1'792, "a", Standing::cancelled), Lane::dead, 1);
  put(task_of(2'048, "a"), Lane::due);
  batch_.puts.back().to.place.at -= milliseconds{1};
  put(task_of(2'304, "a", Standing::dead), Lane::ended);
  write();
  set_queue({.queue = "a", .number = 1, .waiting = 3, .dead = 1, .bytes = 20, .in_ready_lane = 1});
  expect_findings({"task 1536 in the due", "task 1792 in the dead", "task 2048", "task 2304"});
}

TEST_F(StoreCheckTest, ATaskInTheLaneOfANumberThatNoQueueHasIsFound) {
  set_queue({.queue = "c", .number = 3});
  batch_.removed_queues.emplace_back("c");
  write();
  put(task_of(1'536, "c", Standing::dead), Lane::dead, 3);
  write();
  expect_findings({"there is no queue c"});
}

TEST_F(StoreCheckTest, AKeyThatDoesNotStandForItsTaskIsFound) {
  batch_.keys.push_back({.queue = 2, .key = "k", .id = due_.id});
  write();
  expect_findings({"task 1280 in the due lane at 2019-12-20T21:20:00.000Z: its key does not"});
  batch_.keys.push_back({.queue = 2, .key = "k", .id = keyed_.id, .expires_at = kAt});
  write();
  expect_findings({"its key expires"});
  ASSERT_EQ(store_->trim_keys(kAt, 1).value(), 1U);
  expect_findings({"its key does not stand for it"});
}

TEST_F(StoreCheckTest, IndexesThatDisagreeAreFound) {
  lying_.unlisted = ended_.id;
  expect_findings({"records of the ended lane by id: 1 are said to be there, 0 are"});
  lying_.unlisted = {};
  lying_.unfound = ready_.id;
  expect_findings({"task 512 in the ready lane of queue number 1"});
  lying_.unfound = {};
  lying_.misplaced = dead_.id;
  expect_findings({"its id leads elsewhere"});
  lying_.misplaced = {};
  lying_.changed_by_id = due_.id;
  expect_findings({"task 256 in the due lane at 2019-12-20T04:16:00.000Z: another record"});
  lying_.changed_by_id = {};
  lying_.renamed = ended_.id;
  expect_findings({"another record by its place", "the record is another task's"});
}

TEST_F(StoreCheckTest, NumbersThatWereNotGivenOutAreFound) {
  lying_.low_last_id = true;
  expect_findings({"task 512", "task 768", "task 1024", "task 1280"});
  lying_.low_last_id = false;
  lying_.same_numbers = true;
  EXPECT_FALSE(report().is_sound());
  EXPECT_NE(to_string(report()).find("queue b: has the number of queue a"), std::string::npos);
}

TEST_F(StoreCheckTest, ADamagedScheduleIsFound) {
  disk_.flip_schedule_bit("sweep", 80);
  expect_findings({"read schedule \"sweep\": its checksum does not match"});
}

TEST_F(StoreCheckTest, SchedulesThatAreNoneOrOutOfOrderAreFound) {
  ScheduleRecord none = other_schedule_;
  none.schedule.queue = "no queue";
  lying_.told_schedules = {schedule_, none};
  expect_findings({"schedule sweep: a queue name is 1 to 200 bytes"});
  lying_.told_schedules = {other_schedule_, schedule_, schedule_};
  expect_findings({"schedule report: is out of order", "schedule report: is out of order"});
}

TEST_F(StoreCheckTest, TheQuarantineIsToldAndIsNoFinding) {
  ASSERT_TRUE(store_->quarantine(std::array{place_of(ended_, Lane::ended)}));
  const StoreReport found = report();
  EXPECT_TRUE(found.is_sound());
  EXPECT_EQ(found.quarantined, 1U);
}

TEST_F(StoreCheckTest, ManyFindingsAreCountedAndTheFirstAreTold) {
  for (std::uint64_t i = 0; i < 150; ++i) {
    put(task_of(10'240 + 256 * i, "gone", Standing::completed), Lane::due);
  }
  write();
  const StoreReport found = report();
  EXPECT_EQ(found.finding_count, 150U);
  EXPECT_EQ(found.findings.size(), 100U);
  EXPECT_TRUE(to_string(found).ends_with("\nand 50 more\n"));
}

TEST_F(StoreCheckTest, AStoreThatCannotBeReadIsAnError) {
  lying_.failing = true;
  EXPECT_EQ(check_store(lying_, [](std::uint64_t) {}).error().code, ErrorCode::unavailable);
  lying_.failing = false;
  lying_.failing_schedules = true;
  EXPECT_EQ(check_store(lying_, [](std::uint64_t) {}).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace detent

// Checks a sound store, and stores with each kind of planted damage.
#include "store/store_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "store/testing/forwarding_store.h"
#include "store/testing/memory_store.h"

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

/// Changes the results of another store as a test says. It simulates damage that the checks of a
/// back end would not let a test plant.
class LyingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<TaskPage> read(Place after, Place until, std::size_t limit) override {
    Result<TaskPage> page = store_.read(after, until, std::min(limit, page_size));
    if (has(*page, lost_in_lane)) return lost();
    if (page && unlisted.value != 0) {
      std::erase_if(page->tasks, [this](const auto& some) { return some.place.id == unlisted; });
    }
    return page;
  }
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override {
    Result<TaskPage> page = store_.read_by_id(after, std::min(limit, page_size));
    if (has(*page, lost_by_id)) return lost();
    for (StoredTask& stored : page->tasks) {
      if (stored.place.id == changed_by_id) stored.task.attempts += 1;
      if (stored.place.id == renamed) stored.task.id = stored.task.id.next();
    }
    return page;
  }
  Result<std::optional<StoredTask>> find(TaskId id) override {
    if (id == unfound) return std::optional<StoredTask>();
    if (id == lost_by_id) return lost();
    Result<std::optional<StoredTask>> found = store_.find(id);
    if (id == misplaced) (*found)->place.at += milliseconds{1};
    return found;
  }
  Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                            std::size_t limit) override {
    Result<KeyPage> page = store_.read_keys(queue, after, std::min(limit, page_size));
    for (const KeyRecord& record : page->records) {
      if (record.key == lost_key) return lost();
    }
    return page;
  }
  Result<std::vector<Result<ScheduleRecord>>> read_schedules() override {
    if (failing_schedules) return *failing_schedules;
    if (!told_schedules) return store_.read_schedules();
    return std::vector<Result<ScheduleRecord>>(told_schedules->begin(), told_schedules->end());
  }
  Result<std::vector<QueueRecord>> queues() override {
    if (lost_queues) return lost();
    Result<std::vector<QueueRecord>> all = store_.queues();
    if (same_numbers) all->at(1).number = all->at(0).number;
    return all;
  }
  Result<std::vector<DueCount>> due_counts() override {
    if (failing_due_counts) return *failing_due_counts;
    return store_.due_counts();
  }
  Result<std::uint64_t> quarantined() override {
    if (lost_quarantine) return lost();
    return store_.quarantined();
  }
  TaskId last_id() const noexcept override { return low_last_id ? TaskId{256} : store_.last_id(); }

  /// The error of a damaged block of a file: a page that reaches the block fails as a whole.
  static Error lost() { return {ErrorCode::data_loss, "a bad block", ""}; }

  std::size_t page_size = 1'000;
  TaskId unlisted, unfound, misplaced, changed_by_id, renamed;
  bool same_numbers = false;
  bool low_last_id = false;
  TaskId lost_in_lane, lost_by_id;
  std::string lost_key = "none";
  bool lost_queues = false;
  bool lost_quarantine = false;
  std::optional<Error> failing_due_counts, failing_schedules;
  std::optional<std::vector<ScheduleRecord>> told_schedules;

 private:
  static bool has(const TaskPage& page, TaskId id) {
    return std::any_of(page.tasks.begin(), page.tasks.end(),
                       [id](const StoredTask& stored) { return stored.place.id == id; });
  }
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
  /// Also counts the task in its due bin. The test sets the counts of the queue itself.
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
    return check_store(lying_, [this](std::uint64_t read) { read_ = read; });
  }
  /// Expects one finding with each of these texts, and no other findings.
  void expect_findings(const std::vector<std::string>& words) {
    const StoreReport found = report();
    EXPECT_EQ(found.finding_count, words.size()) << to_string(found);
    for (const std::string& some : words) {
      EXPECT_TRUE(std::any_of(
          found.findings.begin(), found.findings.end(),
          [&](const std::string& finding) { return finding.find(some) != std::string::npos; }))
          << some << " is missing in\n"
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
  StoreReport found = report();
  found.notes = {"a log was cut off"};
  EXPECT_TRUE(found.is_sound()) << to_string(found);
  EXPECT_EQ(read_, 11U);
  EXPECT_EQ(to_string(found),
            "records     5 (due 2, ready 1, dead 1, ended 1)\n"
            "queues      2\nschedules   2\n"
            "due bins    3\n"
            "quarantine  0\n"
            "note: a log was cut off\n"
            "all is well\n");
  found.notes.clear();
  lying_.page_size = 1;
  EXPECT_EQ(report(), found);
}

TEST_F(StoreCheckTest, AnEmptyStoreIsSound) {
  MemoryDisk disk;
  const auto empty = MemoryStore::open(disk).value();
  EXPECT_TRUE(check_store(*empty, [](std::uint64_t) {}).is_sound());
}

TEST_F(StoreCheckTest, ADamagedRecordIsFoundInEveryLane) {
  disk_.flip_bit(place_of(ended_, Lane::ended), 80);
  expect_findings({"task 1024 in the ended lane"});
  disk_.flip_bit(place_of(dead_, Lane::dead, 2), 80);
  expect_findings({"task 1024", "task 768 in the dead lane of queue number 2",
                   "b: dead tasks: expected 1, found 0",
                   "b: bytes of payload: expected 10, found 5"});
}

TEST_F(StoreCheckTest, WrongCountsOfAQueueAreFound) {
  set_queue({.queue = "a", .number = 1, .waiting = 3, .dead = 1, .bytes = 9});
  expect_findings({"queue a: waiting tasks: expected 3, found 2", "a: dead tasks",
                   "a: bytes of payload", "a: tasks in the ready lane: expected 0"});
}

TEST_F(StoreCheckTest, WrongDueCountsAreFound) {
  const DueBin bin = due_bin_of(due_.due_at, due_.created_at);
  batch_.due_counts = {{bin, +1}};
  write();
  expect_findings({"tasks due in the minute from 2019-12-20T04:16:00.000Z: expected 2"});
  batch_.due_counts = {{bin, -2}};
  write();
  expect_findings({"expected 0, found 1"});
  batch_.due_counts = {{bin, -1}, {{DueBin::Width::day, 20'000}, 1}};
  write();
  expect_findings({"the stored count is negative: -1", "the day from 2024-10-04"});
}

TEST_F(StoreCheckTest, ATaskOfAMissingQueueIsFound) {
  put(task_of(1'536, "nowhere"), Lane::due);
  write();
  expect_findings({"its queue nowhere does not exist"});
}

TEST_F(StoreCheckTest, ATaskInAnotherQueuesLaneIsFound) {
  put(task_of(1'536, "a"), Lane::ready, 2);
  write();
  set_queue({.queue = "a", .number = 1, .waiting = 3, .bytes = 15, .in_ready_lane = 2});
  expect_findings({"is in the lane of another queue; its own queue is a"});
}

TEST_F(StoreCheckTest, TasksWithTheirOwnWebhookAreInTheirOwnReadyLane) {
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
                   "a: tasks in the webhook lane: expected 0, found 2"});
}

TEST_F(StoreCheckTest, ATaskInAWrongLaneOrPlaceIsFound) {
  put(task_of(1'536, "a", Standing::completed), Lane::due);
  put(task_of(1'792, "a", Standing::cancelled), Lane::dead, 1);
  put(task_of(2'048, "a"), Lane::due);
  batch_.puts.back().to.place.at -= milliseconds{1};
  put(task_of(2'304, "a", Standing::dead), Lane::ended);
  put(task_of(2'560, "a"), Lane::due);
  batch_.puts.back().to.place.at += milliseconds{1};
  write();
  set_queue({.queue = "a", .number = 1, .waiting = 4, .dead = 1, .bytes = 25, .in_ready_lane = 1});
  expect_findings(
      {"task 1536 in the due", "task 1792 in the dead", "task 2048", "task 2304", "task 2560"});
}

TEST_F(StoreCheckTest, ATaskInTheLaneOfARemovedQueueIsFound) {
  set_queue({.queue = "c", .number = 3});
  batch_.removed_queues.emplace_back("c");
  write();
  put(task_of(1'536, "c", Standing::dead), Lane::dead, 3);
  write();
  expect_findings({"its queue c does not exist"});
}

TEST_F(StoreCheckTest, AKeyThatStandsForAnotherTaskIsFound) {
  batch_.keys.push_back({.queue = 2, .key = "k", .id = due_.id});
  write();
  expect_findings(
      {"task 1280 in the due lane at 2019-12-20T21:20:00.000Z: its key stands for another task",
       "key \"k\" of queue b: stands for task 256, which has another key or queue"});
  batch_.keys.push_back({.queue = 2, .key = "k", .id = keyed_.id, .expires_at = kAt});
  write();
  expect_findings({"its key expires"});
  ASSERT_EQ(store_->trim_keys(kAt, 1).value(), 1U);
  expect_findings({"its key stands for another task or does not exist"});
}

TEST_F(StoreCheckTest, AKeyWhoseTaskHasAnotherKeyOrIsGoneIsFound) {
  const auto expect_of = [this](KeyRecord record, const std::vector<std::string>& words) {
    batch_.keys = {record};
    write();
    expect_findings(words);
    record.expires_at = kAt;  // the task of a key that expires has ended and may be gone
    batch_.keys = {record};
    write();
    expect_findings({});
  };
  expect_of({.queue = 1, .key = "x", .id = due_.id},
            {"key \"x\" of queue a: stands for task 256, which has another key or queue"});
  expect_of({.queue = 1, .key = "k", .id = keyed_.id},
            {"key \"k\" of queue a: stands for task 1280, which has another key or queue"});
  expect_of(
      {.queue = 1, .key = "e", .id = ended_.id},
      {"key \"e\" of queue a: stands for task 1024, which has ended, but the key does not expire"});
  expect_of({.queue = 1, .key = "g", .id = TaskId{9'984}},
            {"key \"g\" of queue a: stands for task 9984, which does not exist, but the key does "
             "not expire"});
}

// The finding about the task itself is enough.
TEST_F(StoreCheckTest, TheKeyOfADamagedTaskIsNotAFurtherFinding) {
  disk_.flip_bit(place_of(keyed_, Lane::due), 80);
  expect_findings({"task 1280 in the due lane", "b: waiting tasks", "b: bytes of payload",
                   "tasks due in the minute"});
}

TEST_F(StoreCheckTest, AKeyOfAMissingQueueIsFoundUnlessItExpires) {
  set_queue({.queue = "c", .number = 3});
  batch_.removed_queues.emplace_back("c");
  batch_.keys.push_back({.queue = 3, .key = "x", .id = due_.id, .expires_at = kAt});
  write();
  expect_findings({});
  batch_.keys.push_back({.queue = 3, .key = "x", .id = due_.id});
  write();
  expect_findings(
      {"key \"x\" of queue number 3: its queue does not exist, but the key does not expire"});
}

TEST_F(StoreCheckTest, ADamagedKeyIsFoundOnce) {
  disk_.flip_key_bit(2, "k", 20);
  expect_findings({"task 1280 in the due lane at 2019-12-20T21:20:00.000Z: its key is damaged"});
  for (const std::uint32_t queue : {0U, 2U}) {
    batch_.keys.push_back({.queue = queue, .key = "256", .id = TaskId{256}, .expires_at = kAt});
  }
  write();
  disk_.flip_key_bit(2, "256", 20);
  disk_.flip_key_bit(0, "256", 20);
  expect_findings({"its key is damaged", "key \"256\" of queue b: its record is damaged",
                   "key \"256\" of no queue: its record is damaged"});
}

// The keys of no queue: marks of far tasks, leases that a stop has kept, and lasting keys.
TEST_F(StoreCheckTest, KeysOfNoQueueAreCheckedByTheirNames) {
  batch_.keys = {{.key = "256", .id = TaskId{256}},
                 {.key = "9984", .id = TaskId{9'984}},
                 {.key = "512", .id = TaskId{512}, .expires_at = kAt},
                 {.key = "lease 2 1-17 0 w", .id = due_.id, .content = 5, .expires_at = kAt},
                 {.key = "leases taken up", .content = 1, .expires_at = kAt},
                 {.key = "external stamp", .id = TaskId{500}, .content = 7}};
  write();
  expect_findings({});
  batch_.keys = {{.key = "256", .id = TaskId{512}}, {.key = "lease 2 1-17 0 w", .id = due_.id}};
  write();
  expect_findings({"key \"256\" of no queue: stands for task 512",
                   "key \"lease 2 1-17 0 w\" of no queue: does not expire, but should"});
}

TEST_F(StoreCheckTest, AKeyMissingFromTheOrderOfExpiryIsFound) {
  batch_.keys = {{.queue = 2, .key = "e", .id = ended_.id, .expires_at = kAt},
                 {.key = "512", .id = TaskId{512}, .expires_at = kAt}};
  write();
  expect_findings({});
  disk_.drop_expiry(2, "e");
  disk_.drop_expiry(0, "512");
  expect_findings({"key \"e\" of queue b: is missing from its place in the order of expiry",
                   "key \"512\" of no queue: is missing from its place"});
}

TEST_F(StoreCheckTest, IndexesThatDisagreeAreFound) {
  lying_.unlisted = ended_.id;
  expect_findings({"records of the ended lane, by id and by place: expected 1, found 0"});
  lying_.unlisted = {};
  lying_.unfound = ready_.id;
  expect_findings({"task 512 in the ready lane of queue number 1"});
  lying_.unfound = {};
  lying_.misplaced = dead_.id;
  expect_findings({"its id leads to another place"});
  lying_.misplaced = {};
  lying_.changed_by_id = due_.id;
  expect_findings(
      {"task 256 in the due lane at 2019-12-20T04:16:00.000Z: its record read by place differs"});
  lying_.changed_by_id = {};
  lying_.renamed = ended_.id;
  expect_findings({"its record read by place differs", "the record is of another task"});
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
  disk_.flip_schedule_bit("report", 80);
  expect_findings({"read schedule \"report\": its checksum does not match"});
  EXPECT_EQ(report().schedules, 1U);
  disk_.flip_schedule_bit("sweep", 80);
  expect_findings({"schedule \"report\"", "schedule \"sweep\""});
}

TEST_F(StoreCheckTest, InvalidAndMisplacedSchedulesAreFound) {
  ScheduleRecord none = other_schedule_;
  none.schedule.queue = "no queue";
  lying_.told_schedules = {schedule_, none};
  expect_findings({"schedule sweep: a queue name must be 1 to 200 bytes"});
  lying_.told_schedules = {other_schedule_, schedule_, schedule_};
  expect_findings({"schedule report: is out of order", "schedule report: is out of order"});
}

TEST_F(StoreCheckTest, TheQuarantineIsReportedButIsNotAFinding) {
  ASSERT_TRUE(store_->quarantine(std::array{place_of(ended_, Lane::ended)}));
  const StoreReport found = report();
  EXPECT_TRUE(found.is_sound());
  EXPECT_EQ(found.quarantined, 1U);
}

TEST_F(StoreCheckTest, AllFindingsAreCountedAndTheFirstAreReported) {
  for (std::uint64_t i = 0; i < 150; ++i) {
    put(task_of(10'240 + 256 * i, "gone", Standing::completed), Lane::due);
  }
  write();
  const StoreReport found = report();
  EXPECT_EQ(found.finding_count, 150U);
  EXPECT_EQ(found.findings.size(), 100U);
  EXPECT_TRUE(to_string(found).ends_with("\nand 50 more\n"));
}

TEST_F(StoreCheckTest, ALaneIsReadUpToItsDamagedPart) {
  for (std::uint64_t i = 1; i <= 20; ++i) put(task_of(10'240 + 256 * i, "a"), Lane::due);
  write();
  lying_.lost_in_lane = TaskId{10'240 + 256 * 17};
  disk_.flip_bit(place_of(ended_, Lane::ended), 80);
  set_queue({.queue = "a", .number = 1, .waiting = 22, .bytes = 110, .in_ready_lane = 1});
  expect_findings(
      {"the due lane cannot be read after task 14336 at 2019-12-29T22:56:00.000Z: a bad block",
       "task 1024 in the ended lane"});
  EXPECT_EQ(report().records[0], 18U);
  lying_.lost_in_lane = due_.id;
  expect_findings({"the due lane cannot be read: a bad block", "task 1024 in the ended lane"});
  lying_.lost_in_lane = ready_.id;
  expect_findings({"the ready lane of queue number 1 cannot be read: a bad block", "task 1024"});
}

// The records after the damage get their full check where they are read by place.
TEST_F(StoreCheckTest, RecordsThatCannotBeReadByIdAreCheckedByPlace) {
  Task unknown = task_of(1'536, "nowhere");
  put(unknown, Lane::due);
  write();
  disk_.flip_bit(place_of(ended_, Lane::ended), 80);
  lying_.lost_by_id = ready_.id;
  expect_findings(
      {"records cannot be read by id after task 256: a bad block",
       "task 512 in the ready lane of queue number 1 at 2019-12-20T08:32:00.000Z: cannot "
       "be found by its id: a bad block",
       "its queue nowhere does not exist", "task 1024 in the ended lane"});
}

TEST_F(StoreCheckTest, KeysAreReadUpToTheDamagedPart) {
  for (const char* key : {"a", "b", "c"}) {
    batch_.keys.push_back({.queue = 1, .key = key, .id = due_.id, .expires_at = kAt});
  }
  batch_.keys.push_back({.queue = 2, .key = "x", .id = due_.id});
  write();
  lying_.lost_key = "b";
  expect_findings({"keys of queue a cannot be read after \"a\": a bad block",
                   "key \"x\" of queue b: stands for"});
}

TEST_F(StoreCheckTest, AKindOfDataThatCannotBeReadDoesNotHideOtherKinds) {
  lying_.lost_queues = true;
  lying_.failing_schedules = LyingStore::lost();
  lying_.failing_due_counts = LyingStore::lost();
  lying_.lost_quarantine = true;
  disk_.flip_bit(place_of(dead_, Lane::dead, 2), 80);
  batch_.keys = {{.queue = 1, .key = "e", .id = ended_.id}};
  write();
  expect_findings({"queues cannot be read: a bad block", "schedules cannot be read: a bad block",
                   "the forecast's counts cannot be read: a bad block",
                   "the quarantine cannot be read: a bad block", "task 768 in the dead lane",
                   "key \"e\" of queue number 1: stands for task 1024, which has ended"});
}

// The report keeps the findings before the error.
TEST_F(StoreCheckTest, AStoreThatCannotBeReadEndsTheCheck) {
  const Error error{ErrorCode::unavailable, "read due counts: no", ""};
  lying_.failing_due_counts = error;
  EXPECT_FALSE(report().is_sound());
  disk_.flip_bit(place_of(ended_, Lane::ended), 80);
  EXPECT_EQ(report().ended_by, error);
  EXPECT_EQ(report().records[0], 2U);
  expect_findings({"task 1024 in the ended lane"});
  EXPECT_TRUE(to_string(report()).ends_with("\nnot all was read: read due counts: no\n"));
  lying_.failing_schedules = error;
  EXPECT_EQ(report().ended_by, error);
  expect_findings({});
}

}  // namespace
}  // namespace detent

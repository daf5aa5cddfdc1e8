// testdata/format1 is a folder that the last program of format 1 wrote: tasks 1 … 60 of the queues
// "mail", "a-first" and "orders" (by the remainder of their number by 3), every fifth dead, the
// rest due at instants spread over two years; 1, 2, 3, 4 and 6 are gone again.
// testdata/format2 is one that the last program of format 2 wrote: tasks 1 … 23, see Format2Test.
#include "store/rocksdb/format_upgrade.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "store/rocksdb/live_copy_rig.h"
#include "store/rocksdb/open_store.h"
#include "store/rocksdb/planted_damage.h"
#include "store/store_check.h"
#include "task/due_bin.h"

namespace detent {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::int64_t kCreatedMs = 1'600'000'000'000;
const char* const kQueues[] = {"mail", "a-first", "orders"};

TaskId id_of(std::uint64_t n) { return {n << TaskId::kShardBits}; }
WallTime due_of(std::uint64_t n) {
  const auto step = static_cast<std::int64_t>(n * 7'919 % 60);
  return WallTime{milliseconds{kCreatedMs + step * 1'000'000'000}};
}
bool is_dead(std::uint64_t n) { return n % 5 == 0; }
bool is_there(std::uint64_t n) { return n > 6 || n == 5; }

Task task_of(std::uint64_t n) {
  Task task;
  task.id = id_of(n);
  task.queue = kQueues[n % 3];
  task.payload.data = "{\"n\":" + std::to_string(n) + "}";
  task.due_at = due_of(n);
  task.created_at = WallTime{milliseconds{kCreatedMs}};
  if (n % 3 == 0) task.rules.max_attempts = 7;
  if (n % 4 == 0) task.rules.backoff = Backoff{milliseconds{5}, milliseconds{50}};
  if (is_dead(n)) {
    task.attempts = 3;
    task.standing = Standing::dead;
  }
  return task;
}

struct FormatUpgradeTest : testing::Test {
  FormatUpgradeTest() { fs::copy(DETENT_TESTDATA "/format1", path); }

  TestFolder folder;
  std::string path = folder / "data";
};

/// Of a page; the error of the last attempt was kept otherwise in format 1.
std::vector<Task> tasks_of(const Result<TaskPage>& page) {
  std::vector<Task> tasks;
  for (const StoredTask& stored : page.value().tasks) {
    tasks.push_back(stored.task);
    if (is_dead(stored.place.id.value >> TaskId::kShardBits)) {
      EXPECT_EQ(last_error(stored.task), "no route");
    }
    tasks.back().history.clear();
  }
  EXPECT_TRUE(page->damaged.empty());
  return tasks;
}

void expect_tasks(Store& store) {
  std::vector<Task> all;
  std::map<std::pair<WallTime, TaskId>, Task> live;
  std::map<std::string, std::map<std::pair<WallTime, TaskId>, Task>> dead;
  for (std::uint64_t n = 1; n <= 60; ++n) {
    if (!is_there(n)) continue;
    all.push_back(task_of(n));
    auto& lane = is_dead(n) ? dead[all.back().queue] : live;
    lane[{due_of(n), id_of(n)}] = all.back();
  }
  const auto in_order = [](const auto& lane) {
    std::vector<Task> tasks;
    for (const auto& [place, task] : lane) tasks.push_back(task);
    return tasks;
  };
  EXPECT_EQ(tasks_of(store.read_by_id({}, 1'000)), all);
  EXPECT_EQ(tasks_of(store.read(begin_of(Lane::due), end_of(Lane::due), 1'000)), in_order(live));
  const std::vector<QueueRecord> queues = store.queues().value();
  for (const QueueRecord& queue : queues) {
    EXPECT_EQ(tasks_of(store.read(begin_of(Lane::dead, queue.number),
                                  end_of(Lane::dead, queue.number), 1'000)),
              in_order(dead[queue.queue]));
  }
  EXPECT_EQ(store.last_id(), id_of(100));
}

void expect_counts(Store& store) {
  std::map<std::string, QueueRecord> queues;
  std::map<DueBin, std::int64_t> bins;
  for (const char* name : {"a-first", "mail", "orders", "unused"}) {
    queues[name].queue = name;
    queues[name].number = static_cast<std::uint32_t>(queues.size());
  }
  for (std::uint64_t n = 1; n <= 60; ++n) {
    if (!is_there(n)) continue;
    const Task task = task_of(n);
    QueueRecord& queue = queues[task.queue];
    ++(is_dead(n) ? queue.dead : queue.waiting);
    queue.bytes += task.payload.data.size();
    if (!is_dead(n)) ++bins[due_bin_of(task.due_at, task.created_at)];
  }
  std::vector<QueueRecord> expected;
  for (const auto& [name, queue] : queues) expected.push_back(queue);
  EXPECT_EQ(store.queues().value(), expected);
  EXPECT_EQ(store.last_queue_number(), 4u);
  std::vector<DueCount> counts;
  for (const auto& [bin, count] : bins) counts.push_back({bin, count});
  EXPECT_EQ(store.due_counts().value(), counts);
}

TEST_F(FormatUpgradeTest, EveryTaskIsThereAndDeadOnesLieInTheirQueue) {
  for (int start = 1; start <= 2; ++start) {
    const auto store = OpenStore::open({.path = path}).value();
    expect_tasks(*store);
    expect_counts(*store);
    EXPECT_EQ(store->quarantined().value(), 0u);
  }
  EXPECT_EQ(OpenStore::open({.path = path}).value()->begin_epoch().value(), 2u);
  EXPECT_EQ(stored_format(path), 3u);
}

TEST_F(FormatUpgradeTest, CanBeKilledAtAnyPointAndRunAgain) {
  int copies = 0;
  const auto copy = [&](StoreStep step, rocksdb::DB& db) {
    if (step != StoreStep::upgrade_batch) return;
    copy_live_folder(db, folder / std::to_string(++copies));
  };
  ASSERT_TRUE(OpenStore::open({.path = path}, {.at_step = copy}));
  ASSERT_EQ(copies, 3);
  for (int i = 1; i <= copies; ++i) {
    const auto store = OpenStore::open({.path = folder / std::to_string(i)}).value();
    expect_tasks(*store);
    expect_counts(*store);
  }
}

TEST_F(FormatUpgradeTest, TasksAreChangedAndAddedAfterwards) {
  auto store = OpenStore::open({.path = path}).value();
  const StoredTask old = store->find(id_of(7)).value().value();
  WriteBatch batch;
  StoredTask changed = old;
  changed.place.at += milliseconds{1};
  batch.puts.push_back({.from = old.place, .to = changed});
  StoredTask added = old;
  added.place.id = added.task.id = id_of(101);
  batch.puts.push_back({.from = std::nullopt, .to = added});
  batch.erases.push_back(store->find(id_of(10)).value()->place);
  ASSERT_TRUE(store->write(batch, Durability::synced));
  store.reset();
  store = OpenStore::open({.path = path}).value();
  EXPECT_EQ(store->find(id_of(7)).value(), changed);
  EXPECT_EQ(store->find(id_of(101)).value(), added);
  EXPECT_EQ(store->find(id_of(10)).value(), std::nullopt);
  EXPECT_EQ(store->read_by_id({}, 1'000)->tasks.size(), 55u);
}

TEST_F(FormatUpgradeTest, DamagedRecordsAreSetAsideOrMetWhenTheyAreRead) {
  Place dead = begin_of(Lane::due);
  dead.at = kNeverDue;
  dead.id = id_of(10);
  flip_stored_bit(path, dead, 99);
  Place live = begin_of(Lane::due);
  live.at = due_of(8);
  live.id = id_of(8);
  flip_stored_bit(path, live, 99);
  const auto store = OpenStore::open({.path = path}).value();
  EXPECT_EQ(store->quarantined().value(), 1u);
  EXPECT_EQ(store->find(id_of(10)).value(), std::nullopt);
  const TaskPage page = store->read(begin_of(Lane::due), end_of(Lane::due), 1'000).value();
  EXPECT_EQ(page.damaged, (std::vector<Place>{live}));
  EXPECT_EQ(page.tasks.size(), 42u);
}

/// Tasks that were written in batches of five and settled from eight on; the last are accepted.
struct Format2Test : testing::Test {
  Format2Test() { fs::copy(DETENT_TESTDATA "/format2", path); }

  TestFolder folder;
  std::string path = folder / "data";
};

/// Task n lies in this lane, and its queue is "orders" when n is even.
StoredTask task_of_format_2(std::uint64_t n) {
  constexpr Lane kLanes[] = {Lane::dead, Lane::ready, Lane::ended, Lane::due, Lane::due};
  const Lane lane = kLanes[n % 5];
  const bool has_queue = lane == Lane::dead || lane == Lane::ready;
  Task task;
  task.id = id_of(n);
  task.queue = n % 2 == 0 ? "orders" : "mail";
  task.payload.data = "{\"n\":" + std::to_string(n) + "}";
  task.created_at = WallTime{milliseconds{kCreatedMs}};
  task.due_at = task.created_at + milliseconds{1'000'000'000} * static_cast<std::int64_t>(n);
  if (n % 4 == 0) task.key = "k" + std::to_string(n);
  if (lane == Lane::dead) task.standing = Standing::dead;
  if (lane == Lane::ended) task.standing = Standing::completed;
  return {.place = {.lane = lane,
                    .queue = has_queue ? 1 + static_cast<std::uint32_t>(n % 2 == 0) : 0,
                    .priority = lane == Lane::ready ? kDefaultPriority : 0,
                    .at = task.due_at,
                    .id = task.id},
          .task = task};
}

TEST_F(Format2Test, IsThePresentOneWithoutSchedules) {
  ASSERT_EQ(stored_format(path), 2u);
  for (std::uint64_t start = 1; start <= 2; ++start) {
    const auto store = OpenStore::open({.path = path}).value();
    for (std::uint64_t n = 1; n <= 23; ++n) {
      EXPECT_EQ(store->find(id_of(n)).value(), task_of_format_2(n));
    }
    const StoreReport report = check_store(*store, [](std::uint64_t) {});
    EXPECT_EQ(to_string(report),
              "records     23 (due 9, ready 5, dead 4, ended 5)\n"
              "queues      2\n"
              "schedules   0\n"
              "due bins    14\n"
              "quarantine  0\n"
              "all is well\n");
    const std::vector<QueueRecord> queues = store->queues().value();
    EXPECT_EQ(queues.at(0).settings.max_attempts, 5u);
    EXPECT_TRUE(queues.at(1).settings.paused);
    EXPECT_EQ(store->find_key(2, "k8").value()->id, id_of(8));
    EXPECT_EQ(store->last_id(), id_of(100));
    EXPECT_EQ(store->begin_epoch().value(), 2 + start);
  }
  EXPECT_EQ(stored_format(path), 3u);
}

TEST_F(Format2Test, TakesSchedulesOnceItIsOpen) {
  WriteBatch batch;
  batch.schedules.push_back({.schedule = {.name = "s", .queue = "mail"}});
  ASSERT_TRUE(OpenStore::open({.path = path}).value()->write(batch, Durability::synced));
  const auto store = OpenStore::open({.path = path}).value();
  EXPECT_EQ(store->schedules().value(), batch.schedules);
  EXPECT_EQ(store->find(id_of(23)).value(), task_of_format_2(23));
}

}  // namespace
}  // namespace detent

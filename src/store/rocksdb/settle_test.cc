// Interrupts settles at every step, changes tasks during a settle, and lets settles fail. No task
// may be lost or duplicated. Reads are compared with a map. The files are checked against the rule
// of the settled mark.
#include "store/rocksdb/settle.h"

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/testing/test_folder.h"
#include "store/record_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/slices.h"
#include "store/rocksdb/open_store.h"
#include "store/rocksdb/testing/live_copy_rig.h"
#include "store/rocksdb/testing/settle_gate_rig.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kAll = 1'000'000;

TaskId id_of(std::uint64_t n) { return {n << TaskId::kShardBits}; }

/// All tasks that the store should have. Makes random batches of changes to them.
class Model {
 public:
  explicit Model(std::uint64_t seed) : rng_(seed) {}

  WriteBatch add(std::size_t count) {
    WriteBatch batch;
    for (std::size_t i = 0; i < count; ++i) put_new(++last_, batch);
    return batch;
  }
  /// Returns a batch with new tasks, and with moves, changes and removals of old ones.
  WriteBatch change() {
    std::map<TaskId, StoredTask> untouched = tasks_;
    WriteBatch batch = add(rng_.below(4));
    for (std::uint64_t n = rng_.below(5); n > 0 && !untouched.empty(); --n) {
      const auto picked =
          std::next(untouched.begin(), static_cast<std::ptrdiff_t>(rng_.next() % untouched.size()));
      const StoredTask before = picked->second;
      untouched.erase(picked);
      const std::uint64_t kind = rng_.below(10);
      if (kind < 4) {
        batch.erases.push_back(before.place);
        tasks_.erase(before.place.id);
        removed_ = before.place.id.value >> TaskId::kShardBits;
      } else {
        StoredTask after = task_at(kind < 7 ? random_place(before.place.id) : before.place);
        batch.puts.push_back({before.place, after});
        tasks_[after.place.id] = std::move(after);
      }
    }
    // Restores a removed task with its old id.
    if (removed_ != 0 && rng_.below(4) == 0 && !touches(batch, id_of(removed_))) {
      put_new(removed_, batch);
      removed_ = 0;
    }
    return batch;
  }

  const std::map<TaskId, StoredTask>& tasks() const { return tasks_; }
  /// The number of new tasks so far. The due counts have the same sum.
  std::int64_t put_count() const { return put_count_; }

 private:
  static bool touches(const WriteBatch& batch, TaskId id) {
    for (const Place& place : batch.erases) {
      if (place.id == id) return true;
    }
    return false;
  }
  Place random_place(TaskId id) {
    Place place = begin_of(Lane::due);
    place.id = id;
    place.at = WallTime{milliseconds{rng_.below(1'000)}};
    if (rng_.below(4) == 0) {
      place.lane = Lane::ready;
      place.queue = 1 + static_cast<std::uint32_t>(rng_.below(2));
      place.priority = static_cast<std::uint32_t>(rng_.below(3));
    }
    return place;
  }
  StoredTask task_at(const Place& place) {
    Task task;
    task.id = place.id;
    task.queue = "mail";
    task.payload.data = std::to_string(rng_.below(1'000'000));
    task.due_at = place.at;
    return {place, std::move(task)};
  }
  void put_new(std::uint64_t n, WriteBatch& batch) {
    StoredTask task = task_at(random_place(id_of(n)));
    batch.puts.push_back({std::nullopt, task});
    batch.due_counts.push_back({due_bin_of(task.task.due_at, task.task.created_at), 1});
    ++put_count_;
    tasks_[task.place.id] = std::move(task);
  }

  Rng rng_;
  std::map<TaskId, StoredTask> tasks_;
  std::uint64_t last_ = 0;
  std::int64_t put_count_ = 0;
  std::uint64_t removed_ = 0;
};

std::int64_t sum_of(const std::vector<DueCount>& counts) {
  std::int64_t sum = 0;
  for (const DueCount& count : counts) sum += count.count;
  return sum;
}

std::vector<StoredTask> sorted(const std::map<TaskId, StoredTask>& tasks, Lane lane,
                               std::uint32_t queue) {
  std::map<Place, StoredTask> by_place;
  for (const auto& [id, task] : tasks) {
    if (task.place.lane == lane && task.place.queue == queue) by_place[task.place] = task;
  }
  std::vector<StoredTask> all;
  for (const auto& [place, task] : by_place) all.push_back(task);
  return all;
}

/// Expects that each way to read the store returns exactly these tasks.
void expect_tasks(Store& store, const std::map<TaskId, StoredTask>& tasks) {
  const auto expect_lane = [&](Lane lane, std::uint32_t queue) {
    std::vector<StoredTask> read;
    Place after = begin_of(lane, queue);
    for (bool more = true; more;) {
      const TaskPage page = store.read(after, end_of(lane, queue), 7).value();
      ASSERT_TRUE(page.damaged.empty());
      read.insert(read.end(), page.tasks.begin(), page.tasks.end());
      if (!read.empty()) after = read.back().place;
      more = page.read_to.has_value();
    }
    ASSERT_TRUE(read == sorted(tasks, lane, queue)) << read.size() << " tasks in a lane";
  };
  expect_lane(Lane::due, 0);
  for (const std::uint32_t queue : {1u, 2u}) expect_lane(Lane::ready, queue);
  std::vector<StoredTask> by_id;
  std::vector<Place> places;
  for (const auto& [id, task] : tasks) {
    by_id.push_back(task);
    places.push_back(task.place);
    ASSERT_EQ(store.find(id).value(), task);
  }
  ASSERT_TRUE(store.read_by_id({}, kAll)->tasks == by_id);
  std::vector<TaskId> ids;
  for (const Place& place : places) ids.push_back(place.id);
  std::vector<StoredTask> found = store.find_all(ids).value();
  std::ranges::sort(found, {}, [](const StoredTask& task) { return task.place.id; });
  ASSERT_TRUE(found == by_id);
  const auto read = store.read_at(places).value();
  for (std::size_t i = 0; i < places.size(); ++i) ASSERT_EQ(read[i].value(), by_id[i].task);
}

std::size_t count_of(OpenDb& db, rocksdb::ColumnFamilyHandle* family) {
  const std::unique_ptr<rocksdb::Iterator> it(db.db().NewIterator({}, family));
  std::size_t count = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++count;
  return count;
}

/// Expects that tasks with ids above the settled mark are in the accepted family. All other tasks
/// must have one record, in the lane that the index by id names. Requires: no store has the folder
/// open. Returns the mark.
TaskId expect_layout(const std::string& path) {
  const auto db = OpenDb::open({.path = path}).value();
  const TaskId mark{db->read_number(kSettledToKey).value()};
  std::unique_ptr<rocksdb::Iterator> it(db->db().NewIterator({}, db->ids()));
  std::size_t count = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++count) {
    const TaskId id = parse_id_key(view(it->key())).value();
    EXPECT_LE(id, mark);
    const Place place = parse_id_value(id, view(it->value())).value();
    std::string record;
    EXPECT_TRUE(db->db().Get({}, db->family_of(place.lane), place_key(place), &record).ok());
  }
  EXPECT_EQ(count_of(*db, db->due()) + count_of(*db, db->lanes()), count);
  it.reset(db->db().NewIterator({}, db->accepted()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    EXPECT_GT(parse_id_key(view(it->key())).value(), mark);
  }
  EXPECT_TRUE(std::filesystem::is_empty(db->settle_folder()));
  return mark;
}

struct SettleTest : testing::Test {
  RocksDbStoreOptions options(std::size_t settle_tasks, bool is_inline = true) const {
    return {.path = path,
            .cache_bytes = std::size_t{1} << 20,
            .write_buffer_bytes = std::size_t{1} << 20,
            .settle_tasks = settle_tasks,
            .settle_inline = is_inline};
  }

  TestFolder folder;
  std::string path = folder / "data";
};

TEST_F(SettleTest, TasksAreReadTheSameBeforeDuringAndAfter) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Model model(seed);
  auto store = OpenStore::open(options(20)).value();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(store->write(model.change(), Durability::buffered));
    if (i % 20 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
    }
    if (i % 100 == 50) store.reset(), store = OpenStore::open(options(20)).value();
    ASSERT_EQ(sum_of(store->due_counts().value()), model.put_count());
  }
  ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
  store.reset();
  EXPECT_GT(expect_layout(path), TaskId{});
}

/// A copy of the folder as a crash would leave it, and the tasks before and after the write that
/// was running.
struct Crash {
  StoreStep step;
  std::string path;
  std::map<TaskId, StoredTask> before;
  std::map<TaskId, StoredTask> after;
};

TEST_F(SettleTest, CrashAtAnyStepNeitherLosesNorDuplicatesTasks) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Model model(seed);
  std::map<TaskId, StoredTask> before;
  std::vector<Crash> crashes;
  const auto crash = [&](StoreStep step, rocksdb::DB& db) {
    const std::string copy = folder / std::to_string(crashes.size());
    copy_live_folder(db, copy);
    crashes.push_back({step, copy, before, model.tasks()});
  };
  {
    const auto store = OpenStore::open(options(25), {.at_step = crash}).value();
    while (crashes.size() < 20) {
      before = model.tasks();
      ASSERT_TRUE(store->write(model.change(), Durability::buffered));
    }
  }
  std::map<StoreStep, int> steps;
  for (const Crash& each : crashes) {
    SCOPED_TRACE("step " + std::to_string(static_cast<int>(each.step)));
    ++steps[each.step];
    RocksDbStoreOptions reopened = options(kAll);
    reopened.path = each.path;
    auto store = OpenStore::open(reopened).value();
    std::map<TaskId, StoredTask> found;
    const TaskPage all = store->read_by_id({}, kAll).value();
    for (const StoredTask& task : all.tasks) found[task.place.id] = task;
    // The batch that was being written is complete or absent.
    ASSERT_TRUE(found == each.before || found == each.after);
    ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, found));
    store.reset();
    expect_layout(each.path);
    // The next settle moves the same tasks and must not conflict with the remains of the crash.
    reopened.settle_tasks = 1;
    store = OpenStore::open(reopened).value();
    ASSERT_TRUE(store->write({}, Durability::buffered));
    ASSERT_TRUE(store->write({}, Durability::buffered));
    ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, found));
  }
  EXPECT_EQ(steps.size(), 5u);
}

class ChangesDuringSettle : public SettleTest, public testing::WithParamInterface<StoreStep> {};

TEST_P(ChangesDuringSettle, AreNeitherLostNorDuplicatedNorUndone) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Model model(seed);
  Gate gate(GetParam());
  auto store = OpenStore::open(options(100, false), {.at_step = gate.hook()}).value();
  ASSERT_TRUE(store->write(model.add(100), Durability::buffered));
  gate.await();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(store->write(model.change(), Durability::buffered));
    if (i % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
    }
  }
  gate.open();
  while (gate.settles_done() == 0) ASSERT_TRUE(store->write({}, Durability::buffered));
  ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(store->write(model.change(), Durability::buffered));
  }
  store.reset();
  EXPECT_GE(expect_layout(path), id_of(100));
  store = OpenStore::open(options(kAll)).value();
  ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
}

INSTANTIATE_TEST_SUITE_P(AtStep, ChangesDuringSettle,
                         testing::Values(StoreStep::tasks_read, StoreStep::tables_written,
                                         StoreStep::tables_ingested));

TEST_F(SettleTest, QuarantineDuringASettleIsKept) {
  Model model(1);
  Gate gate(StoreStep::tables_ingested);
  auto store = OpenStore::open(options(10, false), {.at_step = gate.hook()}).value();
  ASSERT_TRUE(store->write(model.add(10), Durability::buffered));
  gate.await();
  ASSERT_TRUE(store->quarantine(std::array{model.tasks().at(id_of(3)).place}));
  gate.open();
  while (gate.settles_done() == 0) ASSERT_TRUE(store->write({}, Durability::buffered));
  EXPECT_EQ(store->find(id_of(3)).value(), std::nullopt);
  EXPECT_EQ(store->read_by_id({}, kAll)->tasks.size(), 9u);
  EXPECT_EQ(store->quarantined().value(), 1u);
  store.reset();
  expect_layout(path);
}

TEST_F(SettleTest, ClosingAbandonsItAndTheNextStartContinues) {
  for (const StoreStep step : {StoreStep::tasks_read, StoreStep::tables_ingested}) {
    Model model(1);
    Gate gate(step);
    RocksDbStoreOptions opened = options(10, false);
    opened.path = folder / std::to_string(static_cast<int>(step));
    auto store = OpenStore::open(opened, {.at_step = gate.hook()}).value();
    ASSERT_TRUE(store->write(model.add(10), Durability::buffered));
    gate.await();
    gate.open();
    store.reset();
    expect_layout(opened.path);
    store = OpenStore::open(opened).value();
    ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
  }
}

TEST_F(SettleTest, WriterWaitsForItIfFarTooManyTasksAreAccepted) {
  Model model(1);
  int done = 0;
  const auto count = [&done](StoreStep step, rocksdb::DB&) {
    if (step == StoreStep::settle_done) ++done;
  };
  const auto store = OpenStore::open(options(10, false), {.at_step = count}).value();
  ASSERT_TRUE(store->write(model.add(10), Durability::buffered));
  EXPECT_EQ(done, 0);
  ASSERT_TRUE(store->write(model.add(40), Durability::buffered));
  EXPECT_EQ(done, 1);  // even if the settle's thread was slow
  ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
}

TEST_F(SettleTest, TakesTheLowestIdsUpToItsLimits) {
  Model model(1);
  {
    const auto store = OpenStore::open(options(10)).value();
    ASSERT_TRUE(store->write(model.add(25), Durability::buffered));
    ASSERT_TRUE(store->read(begin_of(Lane::due), end_of(Lane::due), 1));  // makes the settle count
  }
  EXPECT_EQ(expect_layout(path), id_of(10));
  RocksDbStoreOptions few_bytes = options(kAll);
  few_bytes.settle_bytes = 1;
  {
    const auto store = OpenStore::open(few_bytes).value();
    ASSERT_TRUE(store->write({}, Durability::buffered));
  }
  EXPECT_EQ(expect_layout(path), id_of(11));
}

// Otherwise one old task could make every start read all later tasks.
TEST_F(SettleTest, StartsAfterManyIds) {
  Model model(1);
  {
    const auto store = OpenStore::open(options(kAll)).value();
    WriteBatch batch = model.add(1);
    batch.last_id = id_of(1'999'999);
    ASSERT_TRUE(store->write(batch, Durability::buffered));
    batch = {};
    batch.last_id = id_of(2'000'000);
    ASSERT_TRUE(store->write(batch, Durability::buffered));
  }
  EXPECT_EQ(expect_layout(path), id_of(2'000'000));
}

TEST_F(SettleTest, WithoutTasksOnlyRaisesTheMark) {
  Model model(1);
  {
    const auto store = OpenStore::open(options(kAll)).value();
    ASSERT_TRUE(store->write(model.add(5), Durability::buffered));
    WriteBatch removal;
    for (const auto& [id, task] : model.tasks()) removal.erases.push_back(task.place);
    removal.last_id = id_of(2'000'000);
    ASSERT_TRUE(store->write(removal, Durability::buffered));
    ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, {}));
  }
  EXPECT_EQ(expect_layout(path), id_of(2'000'000));
}

// The accepted family then has the bytes of old versions only. They must not start a settle.
TEST_F(SettleTest, BeginsNoneWhenAllTasksAreSettled) {
  Model model(1);
  const WriteBatch first = model.add(10);
  WriteBatch again;
  RocksDbStoreOptions few_bytes = options(10, false);
  few_bytes.settle_bytes = 0;
  for (const WriteBatch::Put& put : first.puts) {
    few_bytes.settle_bytes += encode_record(put.to.task).size();
    again.puts.push_back({put.to.place, put.to});
  }
  Gate gate(StoreStep::tables_ingested);
  const auto store = OpenStore::open(few_bytes, {.at_step = gate.hook()}).value();
  ASSERT_TRUE(store->write(first, Durability::buffered));
  gate.await();
  ASSERT_TRUE(store->write(again, Durability::buffered));
  gate.open();
  while (gate.settles_done() == 0) ASSERT_TRUE(store->write({}, Durability::buffered));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->write({}, Durability::buffered));
  EXPECT_EQ(gate.settles_done(), 1);
  ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
}

/// Refuses to create files in the settle folder while `is_full` is true.
class FullSettleFolder : public rocksdb::FileSystemWrapper {
 public:
  FullSettleFolder() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FullSettleFolder"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (is_full && name.find("/settle/") != std::string::npos) {
      ++refused;
      return rocksdb::IOStatus::NoSpace("planted");
    }
    return FileSystemWrapper::NewWritableFile(name, options, file, debug);
  }

  std::atomic<bool> is_full{true};  // changed by the test between two settles
  std::atomic<int> refused{0};
};

TEST_F(SettleTest, StoreWorksAfterAFailureAndRetriesLater) {
  const auto files = std::make_shared<FullSettleFolder>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  Model model(test_seed());
  {
    const auto store = OpenStore::open(options(20), {.env = env.get()}).value();
    while (files->refused == 0) ASSERT_TRUE(store->write(model.change(), Durability::buffered));
    // The settle is not repeated at every write, and writers do not wait for a settle that is not
    // running.
    for (int i = 0; i < 90; ++i) ASSERT_TRUE(store->write(model.change(), Durability::buffered));
    EXPECT_EQ(files->refused, 1);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(store->write(model.add(2), Durability::buffered));
    EXPECT_EQ(files->refused, 2);
    ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
    files->is_full = false;
    for (int i = 0; i < 220; ++i) ASSERT_TRUE(store->write(model.add(1), Durability::buffered));
    ASSERT_NO_FATAL_FAILURE(expect_tasks(*store, model.tasks()));
  }
  EXPECT_GT(expect_layout(path), id_of(100));
}

TEST_F(SettleTest, FilesThatACrashLeftAreRemovedAtTheNextStart) {
  OpenStore::open(options(10)).value().reset();
  std::ofstream(path + "/settle/due.sst") << "half a table";
  OpenStore::open(options(10)).value().reset();
  expect_layout(path);
}

}  // namespace
}  // namespace detent

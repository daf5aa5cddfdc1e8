// Runs many settles one after another, while the same tasks are changed, removed and read as fast
// as possible and the write buffers are always full. Combinations that are rare in normal use
// happen all the time here. RocksDB's assertions, which are on in Debian's build, check for errors.
// At the end all tasks are read back and compared.
//
// DETENT_SETTLES sets the number of settles (for a soak: 20000).
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/testing/test_folder.h"
#include "store/rocksdb/open_store.h"

namespace detent {
namespace {

constexpr std::size_t kMostTasks = 3'000;

int settles_wanted() {
  const char* text = std::getenv("DETENT_SETTLES");
  return text != nullptr ? static_cast<int>(std::strtol(text, nullptr, 10)) : 60;
}

/// The tasks that the store should have. Makes batches that change them.
class Changing {
 public:
  explicit Changing(std::uint64_t seed) : rng_(seed) {}

  WriteBatch next() {
    WriteBatch batch;
    for (int i = 0; i < 20; ++i) {
      last_ = last_.next();
      const StoredTask task = task_at(random_place(last_));
      batch.puts.push_back({std::nullopt, task});
      tasks_[last_] = task;
    }
    // Changes old tasks with neighbouring ids. Most of them are settled, at any place in the due
    // order.
    auto it = tasks_.lower_bound(TaskId{rng_.next() % last_.value});
    const std::size_t count = tasks_.size() < kMostTasks ? 10 : 40;
    for (std::size_t i = 0; i < count && it != tasks_.end() && it->first < batch.puts[0].to.task.id;
         ++i) {
      if (i % 2 == 0) {
        batch.erases.push_back(it->second.place);
        it = tasks_.erase(it);
      } else {
        StoredTask moved = task_at(random_place(it->first));
        batch.puts.push_back({it->second.place, moved});
        it->second = std::move(moved);
        ++it;
      }
    }
    return batch;
  }
  const std::map<TaskId, StoredTask>& tasks() const noexcept { return tasks_; }

 private:
  Place random_place(TaskId id) {
    Place place = begin_of(Lane::due);
    place.id = id;
    place.at = WallTime{std::chrono::milliseconds{1 + rng_.below(1'000)}};
    if (rng_.below(5) == 0) {
      place.lane = Lane::ready;
      place.queue = 1;
    }
    return place;
  }
  StoredTask task_at(const Place& place) {
    Task task;
    task.id = place.id;
    task.queue = "q";
    task.payload.data = std::string(100, static_cast<char>('a' + rng_.below(26)));
    task.due_at = place.at;
    return {place, std::move(task)};
  }

  Rng rng_;
  TaskId last_;
  std::map<TaskId, StoredTask> tasks_;
};

TEST(SettleStress, AllTasksReadBackAsWritten) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  const TestFolder folder;
  const RocksDbStoreOptions options{.path = folder / "data",
                                    .cache_bytes = std::size_t{1} << 20,
                                    .write_buffer_bytes = std::size_t{64} << 10,
                                    .settle_tasks = 50};
  std::atomic<int> settles = 0;  // changed on the store's thread only, which is this thread
  const auto count = [&](StoreStep step, rocksdb::DB&) {
    if (step == StoreStep::settle_done) settles.fetch_add(1, std::memory_order_relaxed);
  };
  Changing changing(seed);
  auto store = OpenStore::open(options, {.at_step = count}).value();
  Rng rng(seed + 1);
  const int wanted = settles_wanted();
  // A settle takes about three steps, so this limit is far higher than necessary.
  const std::int64_t most_steps = 100 * std::int64_t{wanted};
  std::int64_t steps = 0;
  while (settles.load(std::memory_order_relaxed) < wanted) {
    ASSERT_LT(steps++, most_steps) << settles << " settles of " << wanted;
    ASSERT_TRUE(store->write(changing.next(), Durability::buffered));
    const WallTime at{std::chrono::milliseconds{rng.below(1'000)}};
    ASSERT_TRUE(store->read(last_at(Lane::due, at), end_of(Lane::due), 20));
  }
  for (const bool is_reopened : {false, true}) {
    if (is_reopened) store.reset(), store = OpenStore::open(options).value();
    const TaskPage page = store->read_by_id({}, changing.tasks().size() + 1).value();
    ASSERT_TRUE(page.damaged.empty());
    ASSERT_EQ(page.tasks.size(), changing.tasks().size());
    auto expected = changing.tasks().begin();
    for (const StoredTask& task : page.tasks) ASSERT_TRUE(task == (expected++)->second);
  }
}

}  // namespace
}  // namespace detent

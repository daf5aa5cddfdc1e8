// Tests the cost of reads while a settle does not count yet, and after its tasks have ended.
#include <gtest/gtest.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/testing/test_folder.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/slices.h"
#include "store/rocksdb/open_store.h"
#include "store/rocksdb/settle_tables.h"
#include "store/rocksdb/testing/settle_gate_rig.h"

namespace detent {
namespace {

/// Returns the number of keys that RocksDB passes to read the first task in due order.
std::uint64_t keys_passed_to_the_first(Store& store) {
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
  EXPECT_EQ(store.read(begin_of(Lane::due), end_of(Lane::due), 1)->tasks.size(), 1u);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  return rocksdb::get_perf_context()->internal_key_skipped_count +
         rocksdb::get_perf_context()->internal_delete_skipped_count;
}

TEST(SettleReads, SkipEntriesThatDoNotCount) {
  constexpr std::size_t kTasks = 20'000;
  constexpr std::size_t kRemoved = 15'000;
  const TestFolder folder;
  const RocksDbStoreOptions options{.path = folder / "data", .settle_tasks = kTasks};
  Gate gate(StoreStep::tables_ingested);
  auto store = OpenStore::open(options, {.at_step = gate.hook()}).value();
  WriteBatch batch;
  for (std::size_t n = 1; n <= kTasks; ++n) {
    Place place = begin_of(Lane::due);
    place.id = TaskId{n << TaskId::kShardBits};
    place.at = WallTime{std::chrono::milliseconds{n}};
    Task task;
    task.id = place.id;
    task.due_at = place.at;
    batch.puts.push_back({std::nullopt, {place, std::move(task)}});
  }
  ASSERT_TRUE(store->write(batch, Durability::buffered));
  gate.await();
  // The first accepted task is known before the scan passes the entries of the settle.
  EXPECT_LT(keys_passed_to_the_first(*store), 10u);
  for (std::size_t n = 0; n < kRemoved; n += 1'000) {
    WriteBatch removal;
    for (std::size_t i = n; i < n + 1'000; ++i) removal.erases.push_back(batch.puts[i].to.place);
    ASSERT_TRUE(store->write(removal, Durability::buffered));
  }
  // The entries of removed tasks are still there, but the low-water mark has passed them.
  EXPECT_LT(keys_passed_to_the_first(*store), 10u);
  gate.open();
  while (gate.settles_done() == 0) ASSERT_TRUE(store->write({}, Durability::buffered));
  // The entries are tombstones by this time, and the mark is just before the first remaining task.
  EXPECT_LT(keys_passed_to_the_first(*store), 10u);
  const TaskPage all = store->read(begin_of(Lane::due), end_of(Lane::due), 2 * kTasks).value();
  ASSERT_EQ(all.tasks.size(), kTasks - kRemoved);
  EXPECT_EQ(all.tasks.front().place, batch.puts[kRemoved].to.place);
}

// Only the settle sees that the place is damaged. The store must then lower the low-water mark to
// the front.
TEST(SettleTables, ReportARecordWithADamagedPlace) {
  const TestFolder folder;
  const auto db = OpenDb::open({.path = folder / "data"}).value();
  const std::atomic<bool> is_abandoned{false};
  const auto settle = [&](std::uint64_t upto) {
    return settle_tables(*db, {.upto = TaskId{upto}, .max_tasks = 10, .max_bytes = 1'000},
                         db->db().GetSnapshot(), is_abandoned);
  };
  Place place = front_place(TaskId{1});
  place.at = WallTime{std::chrono::milliseconds{5}};
  Changes whole(*db);
  whole.put_accepted(place, "record");
  ASSERT_TRUE(whole.write(Durability::buffered).ok());
  EXPECT_FALSE(settle(1)->has_front);
  Changes damaged(*db);
  must(damaged.batch().Put(db->accepted(), id_key(TaskId{2}), "damaged"));
  ASSERT_TRUE(damaged.write(Durability::buffered).ok());
  EXPECT_TRUE(settle(2)->has_front);
}

}  // namespace
}  // namespace detent

// Tests that need a store on disk: killed processes, damaged files, a disk that refuses writes.
// tests/contract/ tests the contract of all stores.
//
// A killed process is a child that ends in _exit with the store open. RocksDB's threads do not
// survive a plain fork, so the child runs this program again ("threadsafe" death tests). An
// environment variable tells the child the folder of its parent.
#include "store/rocksdb/rocksdb_store.h"

#include <gtest/gtest.h>
#include <rocksdb/iostats_context.h>
#include <rocksdb/perf_level.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing/test_folder.h"
#include "detent/check.h"
#include "store/rocksdb/testing/planted_damage.h"

namespace detent {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

Place place_of(std::uint64_t n) {
  Place place = begin_of(Lane::due);
  place.at += milliseconds{1'000 * n};
  place.id = TaskId{n << TaskId::kShardBits};
  return place;
}

WriteBatch& add(WriteBatch& batch, std::uint64_t n, std::size_t payload_bytes = 100) {
  const Place place = place_of(n);
  Task task;
  task.id = place.id;
  task.queue = "mail";
  // Random payloads cannot be compressed, so the files have predictable sizes.
  Rng rng(n);
  task.payload.data.clear();
  while (task.payload.data.size() < payload_bytes) {
    task.payload.data.push_back(static_cast<char>(rng.next()));
  }
  batch.puts.push_back({.from = std::nullopt, .to = {place, std::move(task)}});
  return batch;
}

WriteBatch tasks(std::uint64_t first, std::uint64_t count, std::size_t payload_bytes = 100) {
  WriteBatch batch;
  for (std::uint64_t n = first; n < first + count; ++n) add(batch, n, payload_bytes);
  return batch;
}

std::unique_ptr<Store> open_store(const std::string& path, std::size_t settle_tasks = 500'000) {
  Result<std::unique_ptr<Store>> store =
      RocksDbStore::open({.path = path, .settle_tasks = settle_tasks, .settle_inline = true});
  EXPECT_TRUE(store) << store.error().message;
  return store ? *std::move(store) : nullptr;
}

Error refusal(const std::string& path) {
  const Result<std::unique_ptr<Store>> store = RocksDbStore::open({.path = path});
  EXPECT_FALSE(store) << "opened";
  return store ? Error{} : store.error();
}

void expect_damaged(const std::string& path) {
  const Error error = refusal(path);
  EXPECT_EQ(error.code, ErrorCode::data_loss);
  EXPECT_NE(error.message.find("data folder '" + path + "' is damaged"), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("restore the folder from a backup"), std::string::npos)
      << error.message;
}

TaskPage whole_due_order(Store& store) {
  return store.read(begin_of(Lane::due), end_of(Lane::due), 1'000'000).value();
}

/// Writes tasks 1 to `count`, and settles them.
void write_settled(const std::string& path, std::uint64_t count) {
  const auto store = open_store(path, count);
  ASSERT_TRUE(store->write(tasks(1, count), Durability::synced));
  ASSERT_EQ(whole_due_order(*store).tasks.size(), count);
}

std::uint64_t stored_count(const std::string& path) {
  const auto store = open_store(path);
  const TaskPage page = whole_due_order(*store);
  EXPECT_EQ(page.damaged.size(), 0u);
  return page.tasks.size();
}

/// Returns the path of the largest file with this ending.
std::string largest(const std::string& path, std::string_view ending) {
  fs::path found;
  std::uintmax_t size = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().native().ends_with(ending) && entry.file_size() >= size) {
      found = entry.path();
      size = entry.file_size();
    }
  }
  DETENT_CHECK(size > 0);
  return found;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}
void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class RocksDbStoreTest : public testing::Test {
 protected:
  TestFolder folder_;
  std::string path_ = folder_ / "data";
};

/// A child process uses the folder of its parent.
class RocksDbStoreDeathTest : public testing::Test {
 public:
  RocksDbStoreDeathTest() {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    if (const char* const inherited = std::getenv("DETENT_TEST_DATA")) {
      path_ = inherited;
      return;
    }
    path_ = folder_.emplace() / "data";
    ::setenv("DETENT_TEST_DATA", path_.c_str(), 1);
  }
  ~RocksDbStoreDeathTest() override { ::unsetenv("DETENT_TEST_DATA"); }

 protected:
  std::optional<TestFolder> folder_;
  std::string path_;
};

/// Writes `writes` batches of `each` tasks, and ends the process with the store open.
[[noreturn]] void write_and_die(const std::string& path, std::uint64_t writes, std::uint64_t each,
                                Durability durability) {
  const auto store = open_store(path);
  for (std::uint64_t n = 0; n < writes; ++n) {
    if (!store->write(tasks(1 + n * each, each), durability)) ::_exit(1);
  }
  ::_exit(0);
}

TEST_F(RocksDbStoreDeathTest, KilledProcessLosesNothingSynced) {
  EXPECT_EXIT(write_and_die(path_, 50, 20, Durability::synced), testing::ExitedWithCode(0), "");
  EXPECT_EQ(stored_count(path_), 1'000u);
}

TEST_F(RocksDbStoreDeathTest, KilledProcessLosesNothingBuffered) {
  EXPECT_EXIT(write_and_die(path_, 50, 20, Durability::buffered), testing::ExitedWithCode(0), "");
  EXPECT_EQ(stored_count(path_), 1'000u);
  EXPECT_EQ(open_store(path_)->last_id(), place_of(1'000).id);
}

// Closing an empty store raises the low-water mark to the end. A put lowers the mark in its own
// batch, so the next start finds the task even if the process is killed right after the put.
TEST_F(RocksDbStoreDeathTest, KilledProcessLeavesNoTaskBelowTheLowWaterMark) {
  const auto put_and_die = [this] {
    auto store = open_store(path_);
    WriteBatch removal;
    for (std::uint64_t n = 1; n <= 100; ++n) removal.erases.push_back(place_of(n));
    if (!store->write(tasks(1, 100), Durability::synced)) ::_exit(1);
    if (!store->write(removal, Durability::synced)) ::_exit(2);
    store.reset();
    store = open_store(path_);
    ::_exit(store->write(tasks(101, 1), Durability::synced) ? 0 : 3);
  };
  EXPECT_EXIT(put_and_die(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(stored_count(path_), 1u);
}

TEST_F(RocksDbStoreDeathTest, FolderHeldByAnotherProcessIsInUse) {
  const char* const inherited = std::getenv("DETENT_TEST_IS_CHILD");
  std::unique_ptr<Store> held;
  if (inherited == nullptr) {
    held = open_store(path_);
    ::setenv("DETENT_TEST_IS_CHILD", "1", 1);
  }
  const auto open_and_exit = [this] {
    const Error error = refusal(path_);
    std::fprintf(stderr, "%s\n", error.message.c_str());
    ::_exit(error.code == ErrorCode::unavailable ? 0 : 1);
  };
  EXPECT_EXIT(open_and_exit(), testing::ExitedWithCode(0),
              "is in use by another process, pid [0-9]+");
  ::unsetenv("DETENT_TEST_IS_CHILD");
  EXPECT_TRUE(held->write(tasks(1, 1), Durability::synced));
}

// A limit on file sizes acts as a full disk. The batch that hits the limit fails. All later writes
// fail until the store is opened again, although there is room again.
TEST_F(RocksDbStoreDeathTest, FailedWriteStopsAllLaterOnesUntilReopened) {
  const auto fail_and_exit = [this] {
    ::signal(SIGXFSZ, SIG_IGN);
    auto store = open_store(path_);
    if (!store->write(tasks(1, 10), Durability::synced)) ::_exit(1);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 100'000;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Result<void> failed = store->write(tasks(11, 10, 60'000), Durability::synced);
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    if (failed || failed.error().code == ErrorCode::internal) ::_exit(2);
    std::fprintf(stderr, "%s\n", failed.error().message.c_str());
    if (store->write(tasks(21, 1), Durability::synced)) ::_exit(3);
    if (store->write({}, Durability::synced)) ::_exit(4);
    if (store->begin_epoch()) ::_exit(5);
    if (store->quarantine(std::array{place_of(1)})) ::_exit(6);
    if (!store->find(place_of(1).id)) ::_exit(7);  // reads still work
    if (store->last_id() < place_of(10).id) ::_exit(8);
    store.reset();  // closing works after the error
    store = open_store(path_);
    if (!store->write(tasks(50, 1), Durability::synced)) ::_exit(9);
    ::_exit(0);
  };
  EXPECT_EXIT(fail_and_exit(), testing::ExitedWithCode(0), "write store: ");
  const std::uint64_t count = stored_count(path_);
  EXPECT_TRUE(count == 11 || count == 21) << count;  // the failed batch is complete or absent
  EXPECT_TRUE(open_store(path_)->write(tasks(100, 1), Durability::synced));
}

/// A killed process that wrote ten synced batches of ten tasks, and its log.
class KilledStoreDeathTest : public RocksDbStoreDeathTest {
 protected:
  void kill() {
    EXPECT_EXIT(write_and_die(path_, 10, 10, Durability::synced), testing::ExitedWithCode(0), "");
    log_ = largest(path_, ".log");
    bytes_ = read_file(log_);
    bytes_.resize(bytes_.find_last_not_of('\0') + 1);  // without reserved space
    last_begin_ = bytes_.rfind("mail");
    // Each batch is one record of the log. The last record begins before the first of the last ten
    // tasks.
    for (int i = 0; i < 9; ++i) last_begin_ = bytes_.rfind("mail", last_begin_ - 1);
  }
  std::string log_;
  std::string bytes_;
  std::size_t last_begin_ = 0;  // inside the first task of the last batch
};

TEST_F(KilledStoreDeathTest, TornTailLosesOnlyTheLastBatch) {
  kill();
  const std::vector<std::size_t> cuts{bytes_.size() - 1, bytes_.size() - 300, last_begin_};
  for (const std::size_t cut : cuts) {
    TestFolder copy;
    fs::copy(path_, copy / "data", fs::copy_options::recursive);
    const std::string log_name = fs::path(log_).filename();
    write_file(copy / ("data/" + log_name), std::string_view(bytes_).substr(0, cut));
    std::vector<CutTail> told;
    const auto tell = [&told](const CutTail& tail) { told.push_back(tail); };
    ASSERT_TRUE(RocksDbStore::open({.path = copy / "data", .on_cut_tail = tell}));
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].file, log_name);
    // Zeros at the end count as reserved space.
    const std::size_t written = bytes_.find_last_not_of('\0', cut - 1) + 1;
    EXPECT_EQ(told[0].ended_at + told[0].discarded_bytes, written);
    EXPECT_EQ(stored_count(copy / "data"), 90u) << "cut to " << cut;
    EXPECT_EQ(stored_count(copy / "data"), 90u) << "opened a second time";
  }
}

// Some pages of the last write did not reach the disk, although later pages did.
TEST_F(KilledStoreDeathTest, HoleInTheTailLosesOnlyTheLastBatch) {
  kill();
  bytes_.replace(last_begin_ + 50, 200, 200, '\0');
  write_file(log_, bytes_);
  EXPECT_EQ(stored_count(path_), 90u);
}

TEST_F(KilledStoreDeathTest, DamageInTheMiddleOfTheLogIsRefused) {
  kill();
  const std::size_t middle = bytes_.size() / 2;
  bytes_[middle] = static_cast<char>(bytes_[middle] ^ 1);
  write_file(log_, bytes_);
  expect_damaged(path_);
}

TEST_F(KilledStoreDeathTest, ZerosInTheMiddleOfTheLogAreRefused) {
  kill();
  bytes_.replace(bytes_.size() / 2, 1'000, 1'000, '\0');
  write_file(log_, bytes_);
  expect_damaged(path_);
}

TEST_F(RocksDbStoreTest, SyncedWritesWaitForTheDiskAndBufferedOnesDoNot) {
  const auto store = open_store(path_);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableTime);
  const auto fsync_time_of = [&store](const WriteBatch& batch, Durability durability) {
    rocksdb::get_iostats_context()->Reset();
    EXPECT_TRUE(store->write(batch, durability));
    return rocksdb::get_iostats_context()->fsync_nanos;
  };
  EXPECT_EQ(fsync_time_of(tasks(1, 1), Durability::buffered), 0u);
  EXPECT_GT(fsync_time_of(tasks(2, 1), Durability::synced), 0u);
  EXPECT_EQ(fsync_time_of(tasks(3, 1), Durability::buffered), 0u);
  EXPECT_GT(fsync_time_of({}, Durability::synced), 0u);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
}

TEST_F(RocksDbStoreTest, CloseLeavesNoLogToReplay) {
  ASSERT_TRUE(open_store(path_)->write(tasks(1, 1'000), Durability::buffered));
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() == ".log") {
      EXPECT_EQ(entry.file_size(), 0u) << entry.path();
    }
  }
  EXPECT_EQ(stored_count(path_), 1'000u);
}

// The low-water mark rises with the removals. Every later put at or before the mark must be read.
TEST_F(RocksDbStoreTest, TasksPutAtTheFrontAfterManyRemovalsAreRead) {
  constexpr std::uint64_t kMany = 5'000;
  auto store = open_store(path_, kMany);
  ASSERT_TRUE(store->write(tasks(1, kMany), Durability::synced));
  for (std::uint64_t n = 1; n <= kMany; n += 500) {
    WriteBatch batch;
    for (std::uint64_t i = n; i < n + 500; ++i) batch.erases.push_back(place_of(i));
    ASSERT_TRUE(store->write(batch, Durability::buffered));
  }
  EXPECT_EQ(whole_due_order(*store).tasks.size(), 0u);
  // Each is before or behind the mark that the previous one left. Every second id was settled.
  const std::vector<std::int64_t> instants{3'000'000, 7, 1'000'000'000, 0};
  std::vector<Place> expected;
  for (const std::int64_t at : instants) {
    store.reset();
    store = open_store(path_, 1);
    const bool is_restored = expected.size() % 2 == 1;
    WriteBatch batch = tasks((is_restored ? 1 : kMany + 1) + expected.size(), 1);
    batch.puts[0].to.place.at = WallTime{milliseconds{at}};
    expected.push_back(batch.puts[0].to.place);
    std::sort(expected.begin(), expected.end());
    ASSERT_TRUE(store->write(batch, Durability::buffered));
    for (int reads = 1; reads <= 2; ++reads) {
      std::vector<Place> places;
      const TaskPage page = whole_due_order(*store);
      for (const StoredTask& stored : page.tasks) {
        places.push_back(stored.place);
      }
      ASSERT_EQ(places, expected);
    }
  }
}

TEST_F(RocksDbStoreTest, DamagedTableIsReportedAndNeverReadAsOtherData) {
  write_settled(path_, 2'000);
  const std::string table = largest(path_, ".sst");
  std::string bytes = read_file(table);
  bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 4);
  write_file(table, bytes);
  const auto store = open_store(path_);
  const Result<TaskPage> page = store->read(begin_of(Lane::due), end_of(Lane::due), 10'000);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::data_loss);
  std::vector<Place> places;
  for (std::uint64_t n = 1; n <= 2'000; ++n) places.push_back(place_of(n));
  std::size_t damaged = 0;
  const auto tasks_read = store->read_at(places);
  ASSERT_TRUE(tasks_read);
  for (const Result<Task>& task : *tasks_read) {
    if (task) continue;
    EXPECT_EQ(task.error().code, ErrorCode::data_loss);
    ++damaged;
  }
  EXPECT_GT(damaged, 0u);
  EXPECT_LT(damaged, 2'000u);
}

// A checksum also covers the place of an accepted task.
TEST_F(RocksDbStoreTest, AcceptedTaskWithADamagedPlaceIsReportedAndQuarantined) {
  ASSERT_TRUE(open_store(path_)->write(tasks(1, 3), Durability::synced));
  for (std::size_t bit = 0; bit < 88; bit += 7) {
    TestFolder copy;
    fs::copy(path_, copy / "data", fs::copy_options::recursive);
    flip_accepted_place_bit(copy / "data", place_of(2).id, bit);
    const auto store = open_store(copy / "data");
    const TaskPage page = whole_due_order(*store);
    ASSERT_EQ(page.tasks.size(), 2u);
    ASSERT_EQ(page.damaged.size(), 1u);
    EXPECT_EQ(page.damaged[0].id, place_of(2).id);
    EXPECT_EQ(store->find(place_of(2).id).error().code, ErrorCode::data_loss);
    ASSERT_TRUE(store->quarantine(std::array{page.damaged[0]}));
    EXPECT_EQ(store->quarantined().value(), 1u);
    EXPECT_TRUE(whole_due_order(*store).damaged.empty());
  }
}

TEST_F(RocksDbStoreTest, MissingOrCutFilesAreRefused) {
  write_settled(path_, 2'000);
  const auto refused_after = [this](auto damage) {
    TestFolder copy;
    fs::copy(path_, copy / "data", fs::copy_options::recursive);
    damage(copy / "data");
    expect_damaged(copy / "data");
  };
  refused_after([](const std::string& data) { fs::remove(data + "/CURRENT"); });
  refused_after([](const std::string& data) { fs::remove(largest(data, ".sst")); });
  refused_after([](const std::string& data) { fs::resize_file(largest(data, ".sst"), 100); });
  refused_after([](const std::string& data) {
    for (const auto& entry : fs::directory_iterator(data)) {
      if (entry.path().filename().native().starts_with("MANIFEST")) fs::resize_file(entry, 20);
    }
  });
}

TEST_F(RocksDbStoreTest, FormatOfANewerVersionIsRefused) {
  open_store(path_).reset();
  set_stored_format(path_, stored_format(path_) + 1);
  const Error error = refusal(path_);
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.message,
            "data folder '" + path_ +
                "' has format version 2, this program supports version 1: start the newer version "
                "of Detent that wrote it, or restore a backup from before the upgrade");
}

TEST_F(RocksDbStoreTest, UnknownColumnFamilyIsRefused) {
  open_store(path_).reset();
  add_unknown_family(path_);
  const Error error = refusal(path_);
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_NE(error.message.find("histories"), std::string::npos) << error.message;
}

TEST_F(RocksDbStoreTest, DamagedOrMissingMetaIsRefused) {
  for (const char* key :
       {"format", "last_id", "epoch", "low_water", "settled_to", "last_queue_number", "due_sums"}) {
    TestFolder copy;
    ASSERT_TRUE(open_store(copy / "data")->write(tasks(1, 1), Durability::synced));
    spoil_stored_meta(copy / "data", key);
    expect_damaged(copy / "data");
  }
  ASSERT_TRUE(open_store(path_)->write(tasks(1, 1), Durability::synced));
  remove_stored_meta(path_, "format");
  expect_damaged(path_);
}

TEST_F(RocksDbStoreTest, InterruptedFirstStartIsCompleted) {
  open_store(path_).reset();
  for (const char* key : {"format", "low_water"})
    remove_stored_meta(path_, key);  // the store has no other values then
  EXPECT_TRUE(open_store(path_)->write(tasks(1, 1), Durability::synced));
}

TEST_F(RocksDbStoreTest, DamagedQueueIsReported) {
  open_store(path_).reset();
  spoil_stored_meta(path_, "q/mail");
  const auto queues = open_store(path_)->queues();
  ASSERT_FALSE(queues);
  EXPECT_EQ(queues.error().code, ErrorCode::data_loss);
  EXPECT_NE(queues.error().message.find("q/mail"), std::string::npos);
}

TEST_F(RocksDbStoreTest, DamagedScheduleIsReported) {
  open_store(path_).reset();
  spoil_stored_meta(path_, "s/report");
  const auto schedules = open_store(path_)->schedules();
  ASSERT_FALSE(schedules);
  EXPECT_EQ(schedules.error().code, ErrorCode::data_loss);
  EXPECT_NE(schedules.error().message.find("\"report\""), std::string::npos);
}

TEST_F(RocksDbStoreTest, IndexEntryWithoutItsRecordIsDataLoss) {
  write_settled(path_, 2);
  drop_stored_record(path_, place_of(1));
  const auto store = open_store(path_);
  EXPECT_EQ(store->find(place_of(1).id).error().code, ErrorCode::data_loss);
  EXPECT_TRUE(store->find(place_of(2).id).value().has_value());
  EXPECT_EQ(store->read_by_id({}, 10)->damaged, std::vector<Place>{place_of(1)});
}

TEST_F(RocksDbStoreTest, RocksDbWritesNoMessageLog) {
  open_store(path_).reset();
  for (const auto& entry : fs::directory_iterator(path_)) {
    EXPECT_FALSE(entry.path().filename().native().starts_with("LOG")) << entry.path();
  }
}

}  // namespace
}  // namespace detent

// Tests the database when its disk fails. RocksDB 7.8 with assertions must not stop the process,
// and no file on disk may depend on a write that the log does not have.
#include "store/rocksdb/database/open_db.h"
#include "store/meta_format.h"

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/test_folder.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define DETENT_LEAKS_ARE_TOLD
#endif
#endif

namespace detent {
namespace {

namespace fs = std::filesystem;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

enum class Fault : std::uint8_t { none, new_log, append, sync };

/// A disk on which creating, appending to or syncing a log fails, as `fault` tells.
class BadLogs : public rocksdb::FileSystemWrapper {
 public:
  BadLogs() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "BadLogs"; }
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    if (!name.ends_with(".log")) return target()->NewWritableFile(name, options, file, debug);
    if (IOStatus status = meet(Fault::new_log); !status.ok()) return status;
    IOStatus status = target()->NewWritableFile(name, options, file, debug);
    if (status.ok()) *file = std::make_unique<Log>(std::move(*file), *this);
    return status;
  }

  std::atomic<Fault> fault{Fault::none};  // set by the test, read on any thread
  std::atomic<int> met{0};                // the number of operations that failed

 private:
  class Log final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Log(std::unique_ptr<rocksdb::FSWritableFile> file, BadLogs& disk)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk) {}
    using FSWritableFileOwnerWrapper::Append;
    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    IODebugContext* debug) override {
      const IOStatus status = disk_.meet(Fault::append);
      return status.ok() ? target()->Append(data, options, debug) : status;
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
      const IOStatus status = disk_.meet(Fault::sync);
      return status.ok() ? target()->Sync(options, debug) : status;
    }

   private:
    BadLogs& disk_;
  };
  IOStatus meet(Fault at) {
    if (fault != at) return IOStatus::OK();
    ++met;
    return IOStatus::IOError("planted");
  }
};

/// Turns off the report of memory leaks during its life. RocksDB 7.8 leaks the buffer of a flush
/// that cannot start.
class LeaksOfRocksDb {
 public:
#ifdef DETENT_LEAKS_ARE_TOLD
  LeaksOfRocksDb() { __lsan_disable(); }
  ~LeaksOfRocksDb() { __lsan_enable(); }
#else
  LeaksOfRocksDb() = default;
#endif
  LeaksOfRocksDb(const LeaksOfRocksDb&) = delete;
  LeaksOfRocksDb& operator=(const LeaksOfRocksDb&) = delete;
};

struct OpenDbTest : testing::Test {
  std::unique_ptr<OpenDb> open() const {
    const RocksDbStoreOptions options{.path = folder / "data",
                                      .cache_bytes = std::size_t{1} << 20,
                                      .write_buffer_bytes = std::size_t{64} << 10};
    return OpenDb::open(options, {.env = env.get()}).value();
  }
  /// Writes more than the buffers of two families hold, and less than the limit of the logs.
  static rocksdb::Status write_much(OpenDb& db) {
    Changes changes(db);
    const std::string record(5'000, 'r');
    for (std::uint64_t id = 1; id <= 20; ++id) {
      changes.put_accepted(front_place(TaskId{id}), record);
      changes.put_record(front_place(TaskId{id}), record);
    }
    return changes.write(Durability::synced);
  }
  static rocksdb::Status write_epoch(OpenDb& db, std::uint64_t epoch) {
    Changes changes(db);
    changes.set_meta(kEpochKey, number_bytes(epoch));
    return changes.write(Durability::synced);
  }
  static std::uint64_t unflushed(OpenDb& db, rocksdb::ColumnFamilyHandle* family) {
    std::uint64_t entries = 0;
    db.db().GetIntProperty(family, rocksdb::DB::Properties::kNumEntriesActiveMemTable, &entries);
    return entries;
  }

  TestFolder folder;
  std::shared_ptr<BadLogs> disk = std::make_shared<BadLogs>();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
};

// The tasks may be in a folder that was moved, or on a disk that is unmounted.
TEST(OpenDb, MissingFolderIsNotRecreatedIfItMustExist) {
  const TestFolder folder;
  const RocksDbStoreOptions options{.path = folder / "data", .folder = DataFolderIs::there};
  const auto expect_gone = [&options] {
    const Result<std::unique_ptr<Store>> store = RocksDbStore::open(options);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::unavailable);
    EXPECT_NE(store.error().message.find("' has no data: "), std::string::npos);
  };
  expect_gone();
  EXPECT_FALSE(std::filesystem::exists(options.path));
  std::filesystem::create_directory(options.path);
  expect_gone();
  EXPECT_TRUE(std::filesystem::is_empty(options.path)) << "no lock file either";
  ASSERT_TRUE(RocksDbStore::open({.path = options.path}));
  EXPECT_TRUE(RocksDbStore::open(options));
}

// A copy of the folder would give out the same lease tokens again.
TEST(OpenDb, MarkedFolderCannotBeReplacedByAnother) {
  const TestFolder folder;
  const auto mark = std::make_shared<DataFolderMark>();
  RocksDbStoreOptions options{.path = folder / "data", .mark = mark};
  ASSERT_TRUE(RocksDbStore::open(options));
  options.folder = DataFolderIs::there;
  ASSERT_TRUE(RocksDbStore::open(options));
  fs::copy(folder / "data", folder / "copy", fs::copy_options::recursive);
  fs::remove(folder / "copy/detent.lock");
  fs::rename(folder / "data", folder / "moved");
  fs::rename(folder / "copy", folder / "data");
  const auto expect_refused = [&options] {
    const Result<std::unique_ptr<Store>> store = RocksDbStore::open(options);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::unavailable);
    EXPECT_NE(store.error().message.find("was moved, removed or replaced"), std::string::npos);
  };
  expect_refused();
  EXPECT_FALSE(fs::exists(folder / "data/detent.lock")) << "no file is created in it";
  EXPECT_TRUE(RocksDbStore::open({.path = options.path})) << "a start without the mark opens it";
  fs::rename(folder / "data", folder / "copy");
  fs::rename(folder / "moved", folder / "data");
  EXPECT_TRUE(RocksDbStore::open(options));
  mark->identity = "of another server, with the inode of the first folder";
  expect_refused();
}

TEST(OpenDb, CopyOfAFolderKeepsItsIdentityEvenWithoutTheFile) {
  const TestFolder folder;
  const auto identity_of = [](const std::string& path) {
    return RocksDbStore::open({.path = path}).value()->identity().value();
  };
  const std::string identity = identity_of(folder / "data");
  fs::copy(folder / "data", folder / "copy", fs::copy_options::recursive);
  EXPECT_EQ(identity_of(folder / "copy"), identity);
  ASSERT_TRUE(fs::remove(folder / "copy/IDENTITY"));
  EXPECT_EQ(identity_of(folder / "copy"), identity);
}

// A second store would take over the files of the first one.
TEST_F(OpenDbTest, FolderStaysLockedIfItsLockFilesAreRemoved) {
  const auto db = open();
  ASSERT_TRUE(fs::remove(folder / "data/LOCK"));
  ASSERT_TRUE(fs::remove(folder / "data/detent.lock"));
  const Result<std::unique_ptr<Store>> second = RocksDbStore::open({.path = folder / "data"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_NE(second.error().message.find("is already open in this process"), std::string::npos);
  EXPECT_TRUE(write_epoch(*db, 7).ok());
}

// The files of both folders have the same paths.
TEST_F(OpenDbTest, WritesNothingToAFolderThatReplacedItsOwn) {
  auto db = open();
  ASSERT_TRUE(write_epoch(*db, 1).ok());
  ASSERT_TRUE(RocksDbStore::open({.path = folder / "others"}));
  fs::rename(folder / "data", folder / "moved");
  fs::rename(folder / "others", folder / "data");
  const auto files_in = [this](const char* name) {
    return std::distance(fs::directory_iterator(folder / name), fs::directory_iterator());
  };
  const auto files_of_others = files_in("data");
  const rocksdb::Status written = write_epoch(*db, 2);
  EXPECT_NE(written.ToString().find("was moved, removed or replaced"), std::string::npos);
  db.reset();
  EXPECT_EQ(files_in("data"), files_of_others);
  fs::rename(folder / "data", folder / "others");
  fs::rename(folder / "moved", folder / "data");
  EXPECT_EQ(open()->read_number(kEpochKey).value(), 1u);
}

TEST_F(OpenDbTest, FlushesOnlyFullBuffers) {
  const auto db = open();
  ASSERT_TRUE(write_much(*db).ok());
  EXPECT_EQ(unflushed(*db, db->accepted()), 0u);
  EXPECT_EQ(unflushed(*db, db->due()), 0u);
  EXPECT_EQ(unflushed(*db, db->meta()), 1u);
}

TEST_F(OpenDbTest, ClosesAfterNoLogCouldBeCreatedForTwoFullFamilies) {
  auto db = open();
  disk->fault = Fault::new_log;
  EXPECT_TRUE(write_much(*db).ok());
  EXPECT_FALSE(write_much(*db).ok());
  EXPECT_GT(disk->met, 0);
  db.reset();
  disk->fault = Fault::none;
  db = open();
  std::string record;
  EXPECT_TRUE(db->db().Get({}, db->due(), place_key(front_place(TaskId{20})), &record).ok());
}

/// Copies the folder while it is in use. The copy is what a crash of the process would leave.
struct CrashTest : OpenDbTest {
  void crash() {
    fs::remove_all(folder / "crashed");
    fs::copy(folder / "data", folder / "crashed", fs::copy_options::recursive);
  }
  /// Returns the paths of the logs that have writes, oldest first.
  std::vector<std::string> logs() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder / "crashed")) {
      if (entry.path().extension() == ".log" && written(entry.path()) > 0) {
        paths.push_back(entry.path());
      }
    }
    std::ranges::sort(paths);
    return paths;
  }
  static std::size_t written(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return bytes.find_last_not_of('\0') + 1;
  }
  Result<std::uint64_t> epoch_after_crash() const {
    const RocksDbStoreOptions options{.path = folder / "crashed"};
    ASSIGN_OR_RETURN(const std::unique_ptr<OpenDb> db, OpenDb::open(options));
    return db->read_number(kEpochKey);
  }
};

TEST_F(CrashTest, LeavesReservedSpaceInLogsAndAllSyncedWrites) {
  const auto db = open();
  ASSERT_TRUE(write_epoch(*db, 1).ok());
  crash();
  ASSERT_EQ(logs().size(), 1u);
  EXPECT_EQ(epoch_after_crash(), 1u);
  ASSERT_TRUE(write_much(*db).ok());  // starts a second log
  ASSERT_TRUE(write_epoch(*db, 2).ok());
  // Waits for the flushes. During a flush, the copy could get a manifest that names a table which
  // was not copied yet.
  for (rocksdb::ColumnFamilyHandle* const full : {db->accepted(), db->due()}) {
    ASSERT_TRUE(db->db().Flush({}, full).ok());
  }
  crash();
  const std::vector<std::string> two = logs();
  ASSERT_EQ(two.size(), 2u);
  // Adds reserved zeros to the older log, as if it had not been closed yet.
  fs::resize_file(two[0], fs::file_size(two[0]) + (1 << 20));
  EXPECT_EQ(epoch_after_crash(), 2u);
}

// RocksDB finds this, because its manifest has the length of each closed log.
TEST_F(CrashTest, ZeroedEndOfAnOlderLogIsRefused) {
  const auto db = open();
  ASSERT_TRUE(write_epoch(*db, 1).ok());
  crash();
  const std::size_t begin_of_last = written(logs().at(0));
  ASSERT_TRUE(write_epoch(*db, 2).ok());
  ASSERT_TRUE(db->db().Flush({}, db->ids()).ok());
  Changes changes(*db);
  changes.put_accepted(front_place(TaskId{1}), "record");
  ASSERT_TRUE(changes.write(Durability::synced).ok());
  ASSERT_TRUE(db->db().Flush({}, db->accepted()).ok());
  ASSERT_TRUE(write_epoch(*db, 3).ok());
  crash();
  const std::string older = logs().at(0);
  ASSERT_GT(written(older), begin_of_last);
  const std::uintmax_t size = fs::file_size(older);
  fs::resize_file(older, begin_of_last);
  fs::resize_file(older, size);
  const Result<std::uint64_t> refused = epoch_after_crash();
  ASSERT_FALSE(refused) << *refused;
  EXPECT_EQ(refused.error().code, ErrorCode::data_loss);
}

class LogFailure : public OpenDbTest, public testing::WithParamInterface<Fault> {};

TEST_P(LogFailure, FailsThisAndAllLaterWritesAndKeepsEarlierOnes) {
  auto db = open();
  ASSERT_TRUE(write_epoch(*db, 1).ok());
  disk->fault = GetParam();
  EXPECT_FALSE(write_epoch(*db, 2).ok());
  EXPECT_EQ(disk->met, 1);
  disk->fault = Fault::none;
  // The disk works again, but a later record would follow a gap in the log.
  EXPECT_FALSE(write_epoch(*db, 3).ok());
  EXPECT_FALSE(write_epoch(*db, 4).ok());
  // A flush uses the log. It could make a write durable that the log does not have.
  {
    [[maybe_unused]] const LeaksOfRocksDb allowed;
    EXPECT_FALSE(db->db().Flush({}, db->meta()).ok());
  }
  db.reset();
  db = open();
  EXPECT_LE(db->read_number(kEpochKey).value(), GetParam() == Fault::append ? 1u : 2u);
  EXPECT_GE(db->read_number(kEpochKey).value(), 1u);
  EXPECT_TRUE(write_epoch(*db, 5).ok());
}

TEST_P(LogFailure, DuringABufferedWriteIsReportedByTheNextSync) {
  auto db = open();
  disk->fault = GetParam();
  Changes changes(*db);
  changes.set_meta(kEpochKey, number_bytes(1));
  const bool is_written = changes.write(Durability::buffered).ok();
  EXPECT_EQ(is_written, GetParam() == Fault::sync);
  Changes nothing(*db);
  EXPECT_FALSE(nothing.write(Durability::synced).ok());
}

INSTANTIATE_TEST_SUITE_P(At, LogFailure, testing::Values(Fault::append, Fault::sync));

}  // namespace
}  // namespace detent

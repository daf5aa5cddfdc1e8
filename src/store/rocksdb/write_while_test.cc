// Tests what a writer may do while its batch is written to disk.
#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "store/rocksdb/open_store.h"

namespace detent {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

/// A disk on which the sync of a log blocks between hold() and let_go().
class HeldDisk : public rocksdb::FileSystemWrapper {
 public:
  HeldDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "HeldDisk"; }
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(name, options, file, debug);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<Log>(std::move(*file), *this);
    }
    return status;
  }

  void hold() {
    const MutexLock lock(mutex_);
    is_held_ = true;
  }
  void let_go(IOStatus outcome = IOStatus::OK()) {
    const MutexLock lock(mutex_);
    is_held_ = false;
    outcome_ = std::move(outcome);
    changed_.notify_all();
  }
  void await_a_sync() {
    const MutexLock lock(mutex_);
    while (!is_syncing_) changed_.wait(mutex_);
  }

 private:
  class Log final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Log(std::unique_ptr<rocksdb::FSWritableFile> file, HeldDisk& disk)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk) {}
    IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
      const IOStatus status = disk_.meet();
      return status.ok() ? target()->Sync(options, debug) : status;
    }

   private:
    HeldDisk& disk_;
  };
  IOStatus meet() {
    const MutexLock lock(mutex_);
    is_syncing_ = true;
    changed_.notify_all();
    while (is_held_) changed_.wait(mutex_);
    is_syncing_ = false;
    return outcome_;
  }

  Mutex mutex_;
  CondVar changed_;
  bool is_held_ DETENT_GUARDED_BY(mutex_) = false;
  bool is_syncing_ DETENT_GUARDED_BY(mutex_) = false;
  IOStatus outcome_ DETENT_GUARDED_BY(mutex_);
};

struct WriteWhile : testing::Test {
  static StoredTask task(std::uint64_t id) {
    Task task;
    task.id = TaskId{id};
    task.queue = "q";
    task.payload.data = std::to_string(id);
    task.due_at = WallTime{std::chrono::milliseconds{1'000 + id}};
    const Place place{.lane = Lane::due, .at = task.due_at, .id = task.id};
    return {place, std::move(task)};
  }
  static WriteBatch put(std::uint64_t id) {
    WriteBatch batch;
    batch.puts.push_back({std::nullopt, task(id)});
    return batch;
  }
  Result<Task> read(std::uint64_t id) {
    const std::vector<Place> places{task(id).place};
    return store->read_at(places).value().front();
  }
  void await(Doorbell& written) { ASSERT_TRUE(clock.wait(written, std::nullopt)); }

  TestFolder folder;
  ManualClock clock;
  std::shared_ptr<HeldDisk> disk = std::make_shared<HeldDisk>();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  std::unique_ptr<Store> store =
      OpenStore::open({.path = folder / "data"}, {.env = env.get()}).value();
};

TEST_F(WriteWhile, OtherTasksAreReadWhileTheDiskSyncs) {
  ASSERT_TRUE(store->write(put(1), Durability::synced));
  disk->hold();
  int calls = 0;
  const Result<void> written = store->write_while(put(2), Durability::synced, [&](Doorbell& bell) {
    ++calls;
    disk->await_a_sync();
    EXPECT_EQ(read(1).value(), task(1).task);
    disk->let_go();
    await(bell);
  });
  EXPECT_TRUE(written);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(read(2).value(), task(2).task);
}

TEST_F(WriteWhile, EmptyBatchSyncsEarlierWrites) {
  ASSERT_TRUE(store->write(put(1), Durability::buffered));
  disk->hold();
  EXPECT_TRUE(store->write_while({}, Durability::synced, [&](Doorbell& bell) {
    disk->await_a_sync();
    EXPECT_EQ(read(1).value(), task(1).task);
    disk->let_go();
    await(bell);
  }));
}

TEST_F(WriteWhile, FailureIsReportedAndAllLaterWritesFail) {
  disk->hold();
  EXPECT_FALSE(store->write_while(put(1), Durability::synced, [&](Doorbell& bell) {
    disk->await_a_sync();
    disk->let_go(IOStatus::IOError("planted"));
    await(bell);
  }));
  bool is_called = false;
  EXPECT_FALSE(
      store->write_while(put(2), Durability::synced, [&](Doorbell&) { is_called = true; }));
  EXPECT_FALSE(is_called);
}

TEST_F(WriteWhile, ManyWritesInARowAreAllKept) {
  constexpr std::uint64_t kWrites = 200;
  for (std::uint64_t id = 1; id <= kWrites; ++id) {
    ASSERT_TRUE(
        store->write_while(put(id), Durability::buffered, [&](Doorbell& bell) { await(bell); }));
    ASSERT_EQ(read(id).value(), task(id).task);
  }
}

}  // namespace
}  // namespace detent

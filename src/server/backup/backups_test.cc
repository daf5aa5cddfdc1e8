#include "server/backup/backups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/test_folder.h"
#include "base/wall_time.h"
#include "server/operate/disk_watch.h"

namespace detent::server {
namespace {

namespace fs = std::filesystem;

/// Waits for an answer that another thread gives.
template <class T>
class Answer {
 public:
  void give(T value) {
    const MutexLock lock(mutex_);
    value_ = std::move(value);
    given_.notify_all();
  }
  T await() {
    const MutexLock lock(mutex_);
    while (!value_) given_.wait(mutex_);
    return *std::exchange(value_, std::nullopt);
  }

 private:
  Mutex mutex_;
  CondVar given_;
  std::optional<T> value_ DETENT_GUARDED_BY(mutex_);
};

class BackupsTest : public testing::Test {
 protected:
  BackupsTest() {
    checkpoints_->opened([](const std::string& path) -> Result<void> {
      fs::create_directory(path);
      std::ofstream(path + "/CURRENT") << "x";
      return ok();
    });
    backups_ = make();
  }

  std::unique_ptr<Backups> make(const DiskWatch* disk = nullptr) {
    return std::make_unique<Backups>(
        BackupsOptions{.data = data_.path(), .checkpoints = checkpoints_, .disk = disk}, clock_);
  }
  Result<json::BackupBegun> begin() {
    Answer<Result<json::BackupBegun>> answer;
    backups_->begin([&](Result<json::BackupBegun> begun) { answer.give(std::move(begun)); });
    return answer.await();
  }
  Result<void> end(const json::BackupEnd& end) {
    Answer<Result<void>> answer;
    backups_->end(end, [&](Result<void> ended) { answer.give(std::move(ended)); });
    return answer.await();
  }

  const TestFolder data_;
  ManualClock clock_;
  std::shared_ptr<Checkpoints> checkpoints_ = std::make_shared<Checkpoints>();
  std::unique_ptr<Backups> backups_;
};

TEST_F(BackupsTest, ACheckpointIsThereUntilTheBackupEnds) {
  const Result<json::BackupBegun> begun = begin();
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_TRUE(fs::exists(begun->folder + "/CURRENT"));
  EXPECT_EQ(begun->data, data_.path());
  EXPECT_FALSE(backups_->last());
  const WallTime at = parse_rfc3339("2026-11-28T00:00:00Z").value();
  ASSERT_TRUE(end({.bytes = 70, .copied_bytes = 7, .made_at = at}));
  EXPECT_FALSE(fs::exists(begun->folder));
  EXPECT_EQ(backups_->last()->bytes, 70u);
  backups_ = make();  // a restart
  ASSERT_TRUE(backups_->last());
  EXPECT_EQ(backups_->last()->made_at, at);
  EXPECT_EQ(backups_->last()->copied_bytes, 7u);
}

TEST_F(BackupsTest, AFailedBackupLeavesTheFiguresOfTheLast) {
  ASSERT_TRUE(begin());
  ASSERT_TRUE(end({.bytes = 70}));
  const Result<json::BackupBegun> begun = begin();
  ASSERT_TRUE(end({}));
  EXPECT_FALSE(fs::exists(begun->folder));
  EXPECT_EQ(backups_->last()->bytes, 70u);
}

TEST_F(BackupsTest, OnlyOneBackupIsCopiedAtATimeAndAKilledOneBlocksNothing) {
  const Result<json::BackupBegun> first = begin();
  std::optional<CheckpointLock> copying(CheckpointLock::of(first->folder).value());
  const Result<json::BackupBegun> second = begin();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  EXPECT_TRUE(fs::exists(first->folder));
  copying.reset();  // as after a kill
  const Result<json::BackupBegun> third = begin();
  ASSERT_TRUE(third);
  EXPECT_FALSE(fs::exists(first->folder));
}

TEST_F(BackupsTest, AnAlmostFullDiskOrAClosedStoreRefusesABackup) {
  TaskIntake intake;
  ManualClock clock;
  const DiskWatch disk({.folder = data_.path(),
                        .min_free_bytes = 0,
                        .read = [] { return std::optional<std::uint64_t>(100u << 20); }},
                       intake, clock);
  backups_ = make(&disk);
  EXPECT_NE(begin().error().message.find("100 MiB are free, a backup needs 128 MiB"),
            std::string::npos);
  backups_ = make();
  checkpoints_->closed();
  EXPECT_EQ(begin().error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace detent::server

#include "server/backup/backups.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "server/operate/disk_watch.h"

namespace detent::server {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

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
  const WallTime at = begun->made_at;
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
  clock_.advance(Backups::kTimeToLock);
  EXPECT_EQ(begin().error().code, ErrorCode::conflict);
  copying.reset();  // as after a kill
  const Result<json::BackupBegun> third = begin();
  ASSERT_TRUE(third);
  EXPECT_FALSE(fs::exists(first->folder));
}

TEST_F(BackupsTest, ACheckpointThatIsNotLockedYetIsKeptForAMinute) {
  const Result<json::BackupBegun> first = begin();
  clock_.advance(Backups::kTimeToLock - 1ms);
  EXPECT_EQ(begin().error().code, ErrorCode::conflict);
  EXPECT_TRUE(fs::exists(first->folder));
  ASSERT_TRUE(end({}));
  EXPECT_TRUE(begin()) << "the first backup has ended";
}

TEST_F(BackupsTest, ALateEndLeavesTheCheckpointOfTheNextBackup) {
  const Result<json::BackupBegun> first = begin();
  clock_.advance(Backups::kTimeToLock);
  const Result<json::BackupBegun> second = begin();
  ASSERT_TRUE(second);
  ASSERT_TRUE(end({.bytes = 70, .made_at = first->made_at}));
  EXPECT_EQ(backups_->last()->bytes, 70u);
  EXPECT_TRUE(fs::exists(second->folder));
  EXPECT_EQ(begin().error().code, ErrorCode::conflict);
  ASSERT_TRUE(end({.bytes = 80, .made_at = second->made_at}));
  EXPECT_FALSE(fs::exists(second->folder));
}

TEST_F(BackupsTest, AnEndWaitsForARunningBeginAndAStopForBoth) {
  Answer<bool> is_making;
  Answer<bool> may_end;
  checkpoints_->opened([&](const std::string& path) -> Result<void> {
    is_making.give(true);
    may_end.await();
    fs::create_directory(path);
    return ok();
  });
  std::optional<Result<json::BackupBegun>> begun;
  std::optional<Result<void>> ended;
  backups_->begin([&](Result<json::BackupBegun> result) { begun = std::move(result); });
  is_making.await();
  EXPECT_EQ(begin().error().code, ErrorCode::conflict);
  backups_->end({}, [&](Result<void> result) { ended = std::move(result); });
  may_end.give(true);
  backups_->stop();
  ASSERT_TRUE(begun && *begun && ended && *ended);
  EXPECT_FALSE(fs::exists((*begun)->folder));
  EXPECT_EQ(begin().error().code, ErrorCode::unavailable);
  EXPECT_EQ(end({}).error().code, ErrorCode::unavailable);
}

TEST_F(BackupsTest, AnEndOfTheFutureIsRefused) {
  ASSERT_TRUE(begin());
  const WallTime later = std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now()) + 1h;
  EXPECT_EQ(end({.bytes = 70, .made_at = later}).error().field, "made_at");
  EXPECT_FALSE(backups_->last());
}

TEST_F(BackupsTest, TheFiguresAreNotedAlsoIfTheCheckpointsCannotBeRemoved) {
  const Result<json::BackupBegun> begun = begin();
  std::ofstream(data_ / "checkpoint-x") << "a file";
  EXPECT_FALSE(end({.bytes = 70, .made_at = begun->made_at}));
  EXPECT_EQ(backups_->last()->bytes, 70u);
  EXPECT_EQ(make()->last()->bytes, 70u);
}

TEST_F(BackupsTest, FiguresThatCannotBeWrittenAreAnError) {
  fs::create_directory(data_ / (std::string(kLastBackupFile) + ".part"));
  const Result<void> noted = note_backup(data_.path(), {.bytes = 70});
  ASSERT_FALSE(noted);
  EXPECT_EQ(noted.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(fs::exists(data_ / kLastBackupFile));
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

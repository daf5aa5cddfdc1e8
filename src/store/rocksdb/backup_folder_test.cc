#include "store/rocksdb/backup_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing/test_folder.h"
#include "base/thread.h"
#include "store/checkpoints.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent {
namespace {

namespace fs = std::filesystem;
using std::chrono::days;
using std::chrono::milliseconds;

constexpr WallTime kStart{std::chrono::sys_days{std::chrono::year{2026} / 11 / 28}};

StoredTask task_of(std::uint64_t n) {
  Place place = begin_of(Lane::due);
  place.at += milliseconds{1'000 * n};
  place.id = TaskId{n << TaskId::kShardBits};
  Task task;
  task.id = place.id;
  task.queue = "mail";
  // Random payloads cannot be compressed, so the files have predictable sizes.
  Rng rng(n);
  task.payload.data.clear();
  while (task.payload.data.size() < 200) {
    task.payload.data.push_back(static_cast<char>(rng.next()));
  }
  return {place, std::move(task)};
}

/// A store, its data folder and a backup folder.
class BackupFolderTest : public testing::Test {
 protected:
  BackupFolderTest() { store_ = open(data_); }

  std::unique_ptr<Store> open(const std::string& path,
                              std::shared_ptr<Checkpoints> checkpoints = {}) {
    if (path == data_) checkpoints = checkpoints_;
    Result<std::unique_ptr<Store>> store =
        RocksDbStore::open({.path = path, .checkpoints = std::move(checkpoints)});
    EXPECT_TRUE(store) << store.error().message;
    return store ? *std::move(store) : nullptr;
  }

  void put(std::uint64_t first, std::uint64_t count) {
    WriteBatch batch;
    for (std::uint64_t n = first; n < first + count; ++n) batch.puts.push_back({{}, task_of(n)});
    ASSERT_TRUE(store_->write(batch, Durability::synced));
  }

  Result<NewBackup> back_up(BackupRetention retention = {}) {
    ASSIGN_OR_RETURN(const std::string checkpoint, checkpoints_->make(data_));
    Result<NewBackup> made = add_backup({.folder = backups_,
                                         .checkpoint = checkpoint,
                                         .data = data_,
                                         .program = "1.2.3",
                                         .made_at = now_,
                                         .now = now_,
                                         .retention = retention});
    EXPECT_EQ(remove_checkpoints(data_).value(), 0u);
    return made;
  }

  Result<StoredBackup> restore(const std::string& to, std::optional<std::uint32_t> number = {}) {
    return restore_backup({.folder = backups_, .number = number, .data = to, .now = now_});
  }

  std::vector<std::uint32_t> numbers() {
    std::vector<std::uint32_t> found;
    const auto listed = list_backups(backups_, BackupCheck::sizes);
    EXPECT_TRUE(listed) << listed.error().message;
    if (!listed) return found;
    for (const StoredBackup& backup : *listed) found.push_back(backup.number);
    return found;
  }

  /// Changes a byte in the middle of the largest shared file, and returns its name.
  std::string damage_a_table() {
    fs::path largest;
    for (const auto& entry : fs::directory_iterator(backups_ + "/shared_checksum")) {
      if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
    }
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(fs::file_size(largest) / 2));
    const char before = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(fs::file_size(largest) / 2));
    file.put(static_cast<char>(before ^ 1));
    return largest.filename().string();
  }

  const TestFolder folder_;
  const std::string data_ = folder_ / "data";
  const std::string backups_ = folder_ / "backups";
  const std::shared_ptr<Checkpoints> checkpoints_ = std::make_shared<Checkpoints>();
  std::unique_ptr<Store> store_;
  WallTime now_ = kStart;
};

bool says(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

TEST_F(BackupFolderTest, ARestoredStoreHasEveryTaskOfTheBackupAndNoLaterOne) {
  put(1, 500);
  std::ofstream(data_ + "/webhook.key") << "whsec_AAAA\n";
  const Result<NewBackup> made = back_up();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->backup.number, 1u);
  EXPECT_EQ(made->backup.made_at, kStart);
  EXPECT_EQ(made->backup.folder, data_);
  put(501, 10);
  const std::string to = folder_ / "restored";
  const Result<StoredBackup> restored = restore(to);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->program, "1.2.3");
  const std::unique_ptr<Store> store = open(to);
  ASSERT_NE(store, nullptr);
  const Result<TaskPage> page = store->read_by_id({}, 1'000);
  ASSERT_EQ(page->tasks.size(), 500u);
  for (std::uint64_t n = 1; n <= 500; ++n) EXPECT_EQ(page->tasks[n - 1], task_of(n));
  std::string key;
  std::getline(std::ifstream(to + "/webhook.key") >> std::ws, key);
  EXPECT_EQ(key, "whsec_AAAA");
  EXPECT_EQ(fs::status(to + "/webhook.key").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(fs::exists(to + "/" + kRestoredFile));
  EXPECT_FALSE(fs::exists(to + "/restoring"));
}

TEST_F(BackupFolderTest, ARestoredStoreNeverUsesAnIdOrAnEpochOfTheOriginalAgain) {
  put(1, 10);
  const std::uint64_t epoch = store_->begin_epoch().value();
  ASSERT_TRUE(back_up());
  put(11, 1'000);
  const TaskId last = store_->last_id();
  ASSERT_GT(store_->begin_epoch().value(), epoch);
  ASSERT_TRUE(restore(folder_ / "one"));
  now_ += milliseconds{1'000};
  ASSERT_TRUE(restore(folder_ / "two"));
  const std::unique_ptr<Store> one = open(folder_ / "one");
  const std::unique_ptr<Store> two = open(folder_ / "two");
  EXPECT_GT(one->last_id(), last);
  EXPECT_GT(two->last_id(), one->last_id()) << "the first restored store can have used ids";
  const std::uint64_t epoch_of_one = one->begin_epoch().value();
  EXPECT_GT(epoch_of_one, store_->begin_epoch().value() + 1'000);
  EXPECT_GE(two->begin_epoch().value(), epoch_of_one);
  EXPECT_NE(one->identity().value(), store_->identity().value());
  EXPECT_NE(one->identity().value(), two->identity().value());
}

TEST_F(BackupFolderTest, ASecondBackupCopiesOnlyWhatIsNew) {
  put(1, 5'000);
  const Result<NewBackup> first = back_up();
  ASSERT_TRUE(first);
  EXPECT_GT(first->copied_bytes, 5'000u * 200);
  put(5'001, 10);
  const Result<NewBackup> second = back_up();
  ASSERT_TRUE(second);
  EXPECT_LT(second->copied_bytes, first->copied_bytes / 10);
  EXPECT_GT(second->backup.bytes, first->backup.bytes);
  ASSERT_TRUE(restore(folder_ / "one", 1)) << "each backup stays complete";
  EXPECT_EQ(open(folder_ / "one")->read_by_id({}, 10'000)->tasks.size(), 5'000u);
  ASSERT_TRUE(restore(folder_ / "two", 2));
  EXPECT_EQ(open(folder_ / "two")->read_by_id({}, 10'000)->tasks.size(), 5'010u);
}

// Each write has two tasks, in two families once they are settled. A backup must have both.
TEST_F(BackupFolderTest, ABackupDuringWritesHasWholeWritesOnly) {
  put(1, 1'000);
  std::atomic<std::uint64_t> written = 1'000;
  std::atomic<bool> is_done = false;
  Thread writer([&] {
    for (std::uint64_t n = 1'001; !is_done; n += 2) {
      WriteBatch batch;
      batch.puts.push_back({{}, task_of(n)});
      batch.puts.push_back({{}, task_of(n + 1)});
      batch.due_counts.push_back({.bin = {}, .count = 2});
      EXPECT_TRUE(store_->write(batch, Durability::buffered));
      written = n + 1;
    }
  });
  for (std::uint32_t i = 1; i <= 5; ++i) {
    const std::uint64_t before = written;
    const Result<NewBackup> made = back_up();
    ASSERT_TRUE(made) << made.error().message;
    const std::string to = folder_ / ("restored" + std::to_string(i));
    ASSERT_TRUE(restore(to));
    const std::unique_ptr<Store> store = open(to);
    const std::size_t count = store->read_by_id({}, 10'000'000)->tasks.size();
    EXPECT_GE(count, before);
    EXPECT_EQ(count % 2, 0u);
    const auto sums = store->due_counts();
    std::int64_t sum = 0;
    for (const DueCount& due : *sums) sum += due.count;
    EXPECT_EQ(static_cast<std::size_t>(sum), count - 1'000);
  }
  is_done = true;
  writer.join();
}

TEST_F(BackupFolderTest, TheRetentionKeepsTheNewestAndTheYoung) {
  put(1, 10);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(back_up());
    now_ += days{1};
    put(10 + i, 1);
  }
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 2, 3, 4}));
  const Result<NewBackup> fifth = back_up({.keep = 4});
  EXPECT_EQ(fifth->removed, (std::vector<std::uint32_t>{1}));
  now_ += days{1};
  // At this time backup 5 is one day old, 4 two days, 3 three days.
  const Result<NewBackup> sixth = back_up({.keep = 2, .keep_days = days{2}});
  EXPECT_EQ(sixth->removed, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{4, 5, 6}));
  now_ += days{100};
  EXPECT_EQ(back_up({.keep_days = days{1}})->removed, (std::vector<std::uint32_t>{4, 5, 6}));
  EXPECT_TRUE(restore(folder_ / "restored"));
}

TEST_F(BackupFolderTest, ADamagedFileIsNamedAndNothingIsRestored) {
  put(1, 1'000);
  ASSERT_TRUE(back_up());
  put(1'001, 1'000);
  ASSERT_TRUE(back_up());
  const std::string table = damage_a_table();
  const Result<StoredBackup> restored = restore(folder_ / "restored");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::data_loss);
  EXPECT_TRUE(says(restored.error(), table)) << restored.error().message;
  EXPECT_TRUE(says(restored.error(), "backup 2 is damaged")) << restored.error().message;
  EXPECT_FALSE(fs::exists(folder_ / "restored"));
  EXPECT_TRUE(list_backups(backups_, BackupCheck::sizes)->back().damage.empty());
  EXPECT_NE(list_backups(backups_, BackupCheck::checksums)->back().damage.find(table),
            std::string::npos);
}

TEST_F(BackupFolderTest, AMissingFileIsNamedAndADamagedNewestBackupIsNotSkipped) {
  put(1, 100);
  ASSERT_TRUE(back_up());
  ASSERT_TRUE(back_up());
  std::string manifest;
  for (const auto& entry : fs::directory_iterator(backups_ + "/private/2")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("MANIFEST-")) manifest = name;
  }
  fs::remove(backups_ + "/private/2/" + manifest);
  const Error error = restore(folder_ / "restored").error();
  EXPECT_TRUE(says(error, "private/2/" + manifest)) << error.message;
  ASSERT_TRUE(restore(folder_ / "restored", 1));
  EXPECT_EQ(restore(folder_ / "other", 7).error().code, ErrorCode::not_found);
  EXPECT_TRUE(says(restore(folder_ / "other", 7).error(), "it has: 1"));
}

TEST_F(BackupFolderTest, AnIncompleteBackupIsNotListedAndItsFilesAreRemoved) {
  put(1, 100);
  ASSERT_TRUE(back_up());
  // A killed command leaves files without an entry in `meta`.
  fs::create_directory(backups_ + "/private/2");
  std::ofstream(backups_ + "/private/2/CURRENT") << "x";
  std::ofstream(backups_ + "/shared_checksum/000099_sX_5.sst") << "12345";
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1}));
  ASSERT_TRUE(back_up());
  EXPECT_FALSE(fs::exists(backups_ + "/shared_checksum/000099_sX_5.sst"));
  EXPECT_TRUE(restore(folder_ / "restored"));
}

TEST_F(BackupFolderTest, FoldersThatAreNotEmptyOrOfAnotherStoreAreRefused) {
  put(1, 10);
  fs::create_directory(backups_);
  std::ofstream(backups_ + "/letter.txt") << "x";
  EXPECT_TRUE(says(back_up().error(), "has other files, such as 'letter.txt'"));
  fs::remove(backups_ + "/letter.txt");
  ASSERT_TRUE(back_up());
  EXPECT_EQ(restore(data_).error().code, ErrorCode::conflict);
  EXPECT_TRUE(says(restore(data_).error(), "is not empty"));

  const auto others = std::make_shared<Checkpoints>();
  const std::unique_ptr<Store> other = open(folder_ / "other", others);
  const std::string checkpoint = others->make(folder_ / "other").value();
  const Result<NewBackup> mixed = add_backup({.folder = backups_,
                                              .checkpoint = checkpoint,
                                              .data = folder_ / "other",
                                              .program = "1",
                                              .made_at = now_,
                                              .now = now_});
  EXPECT_TRUE(says(mixed.error(), "has backups of another store")) << mixed.error().message;
  EXPECT_EQ(list_backups(folder_ / "none", BackupCheck::sizes).error().code, ErrorCode::not_found);
}

TEST_F(BackupFolderTest, ALinkInPlaceOfTheKeyOfWebhooksIsNotFollowed) {
  put(1, 10);
  std::ofstream(folder_ / "secret") << "secret";
  fs::create_symlink(folder_ / "secret", data_ + "/webhook.key");
  EXPECT_TRUE(says(back_up().error(), "must be a file, not a link"));
  fs::remove(data_ + "/webhook.key");
  EXPECT_TRUE(back_up());
}

TEST_F(BackupFolderTest, AnIncompleteRestoreIsNotOpened) {
  put(1, 10);
  ASSERT_TRUE(back_up());
  const std::string to = folder_ / "restored";
  ASSERT_TRUE(restore(to));
  fs::create_directory(to + "/restoring");  // as after a kill
  const auto opened = RocksDbStore::open({.path = to});
  ASSERT_FALSE(opened);
  EXPECT_TRUE(says(opened.error(), "has an incomplete restore of a backup"));
}

// The restored store goes on in the same backup folder, and a restore of its backup has both parts.
TEST_F(BackupFolderTest, ARestoredStoreIsBackedUpIntoTheSameFolder) {
  put(1, 100);
  ASSERT_TRUE(back_up());
  const std::string to = folder_ / "restored";
  ASSERT_TRUE(restore(to));
  const auto checkpoints = std::make_shared<Checkpoints>();
  const std::unique_ptr<Store> store = open(to, checkpoints);
  const StoredTask later = task_of((store->last_id().value >> TaskId::kShardBits) + 1);
  ASSERT_TRUE(store->write({.puts = {{{}, later}}}, Durability::synced));
  const std::string checkpoint = checkpoints->make(to).value();
  const Result<NewBackup> made = add_backup({.folder = backups_,
                                             .checkpoint = checkpoint,
                                             .data = to,
                                             .program = "1",
                                             .made_at = now_,
                                             .now = now_});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(restore(folder_ / "again"));
  const std::unique_ptr<Store> again = open(folder_ / "again");
  EXPECT_EQ(again->read_by_id({}, 1'000)->tasks.size(), 101u);
  EXPECT_EQ(again->find(later.place.id).value()->task, later.task);
}

}  // namespace
}  // namespace detent

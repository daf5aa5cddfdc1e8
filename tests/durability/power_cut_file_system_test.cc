// Tests which files and names a power cut may leave, and the disk faults that last until heal().
#include "tests/durability/power_cut_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/test_seed.h"
#include "base/testing/test_folder.h"

namespace detent {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;

class PowerCut : public ::testing::Test {
 protected:
  PowerCut() { boot(); }

  void boot(Lie lie = Lie::none) {
    disk_.reset();
    fs::create_directories(folder_);
    fs::create_directories(backing_);
    disk_ = std::make_unique<PowerCutFileSystem>(folder_, backing_, lie);
  }
  /// Boots with another, empty disk.
  void boot_anew(Lie lie = Lie::none) {
    disk_.reset();
    fs::remove_all(folder_);
    boot(lie);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::unique_ptr<rocksdb::FSWritableFile> make(const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(disk_->NewWritableFile(path(name), {}, &file, nullptr).ok());
    return file;
  }
  /// Creates a file that reserves space in blocks of `reserve` bytes. The reserved space is part of
  /// the file's size.
  std::unique_ptr<rocksdb::FSWritableFile> make_with_reserve(const std::string& name,
                                                             std::size_t reserve) {
    rocksdb::FileOptions options;
    options.fallocate_with_keep_size = false;
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(disk_->NewWritableFile(path(name), options, &file, nullptr).ok());
    file->SetPreallocationBlockSize(reserve);
    return file;
  }
  /// Creates a file whose bytes are durable, but not its name.
  void make_synced(const std::string& name, const std::string& text) {
    const auto file = make(name);
    EXPECT_TRUE(append(*file, text).ok());
    EXPECT_TRUE(file->Sync({}, nullptr).ok());
  }
  static IOStatus append(rocksdb::FSWritableFile& file, const std::string& text) {
    file.PrepareWrite(file.GetFileSize({}, nullptr), text.size(), {}, nullptr);
    return file.Append(text, {}, nullptr);
  }
  IOStatus sync_folder() {
    std::unique_ptr<rocksdb::FSDirectory> folder;
    EXPECT_TRUE(disk_->NewDirectory(folder_, {}, &folder, nullptr).ok());
    return folder->Fsync({}, nullptr);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool exists(const std::string& name) const { return fs::exists(path(name)); }

  TestFolder test_folder_;
  const std::string folder_ = test_folder_ / "data";
  const std::string backing_ = test_folder_ / "backing";
  Rng rng_{test_seed()};
  std::unique_ptr<PowerCutFileSystem> disk_;
};

TEST_F(PowerCut, WhatWasSyncedStaysAndABeginningOfTheRest) {
  std::set<std::size_t> sizes;
  for (int i = 0; i < 200; ++i) {
    boot_anew();
    {
      const auto file = make("log");
      ASSERT_TRUE(append(*file, "synced").ok());
      ASSERT_TRUE(file->Sync({}, nullptr).ok());
      ASSERT_TRUE(append(*file, "tail").ok());
    }
    ASSERT_TRUE(sync_folder().ok());
    EXPECT_EQ(read("log"), "syncedtail");
    disk_->cut(rng_, Tear::bytes);
    EXPECT_EQ(read("log"), std::string("syncedtail").substr(0, read("log").size()));
    sizes.insert(read("log").size());
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{6, 7, 8, 9, 10}));
}

TEST_F(PowerCut, WhatWasReservedIsZerosUntilItIsClosedAndMayBeAfterACut) {
  std::set<std::size_t> zeros;
  for (int i = 0; i < 200; ++i) {
    boot_anew();
    const auto file = make_with_reserve("1.log", 10);
    ASSERT_TRUE(append(*file, "synced").ok());
    ASSERT_TRUE(file->Sync({}, nullptr).ok());
    ASSERT_TRUE(sync_folder().ok());
    ASSERT_TRUE(append(*file, "tail and more").ok());
    EXPECT_EQ(read("1.log"), "syncedtail and more" + std::string(1, '\0'));
    if (i % 2 == 0) {
      ASSERT_TRUE(file->Close({}, nullptr).ok());
      EXPECT_EQ(read("1.log"), "syncedtail and more");
    }
    disk_->cut(rng_, i % 4 < 2 ? Tear::bytes : Tear::sectors);
    const std::string left = read("1.log");
    ASSERT_LE(left.size(), 20u);
    const std::string written = left.substr(0, left.find('\0'));
    ASSERT_GE(written.size(), 6u);
    EXPECT_EQ(written, std::string("syncedtail and more").substr(0, written.size()));
    EXPECT_EQ(left, written + std::string(left.size() - written.size(), '\0'));
    zeros.insert(left.size() - written.size());
  }
  EXPECT_GT(zeros.size(), 10u);
}

TEST_F(PowerCut, WhatWasReservedDoesNotShowInAFileThatKeepsItsSize) {
  const auto file = make("1.log");
  file->SetPreallocationBlockSize(10);
  ASSERT_TRUE(append(*file, "a").ok());
  EXPECT_EQ(read("1.log"), "a");
}

TEST_F(PowerCut, ADiskWithALimitReservesNothing) {
  const auto file = make_with_reserve("1.log", 10);
  disk_->limit_space(1'000);
  ASSERT_TRUE(append(*file, "a").ok());
  EXPECT_EQ(read("1.log"), "a");
}

TEST_F(PowerCut, ASectorMayBeMissingBeforeOneThatIsThere) {
  const std::string synced(700, 's');
  const std::string tail(2'000, 't');
  bool is_missing = false;
  for (int i = 0; i < 200; ++i) {
    boot_anew();
    {
      const auto file = make("1.log");
      ASSERT_TRUE(append(*file, synced).ok());
      ASSERT_TRUE(file->Sync({}, nullptr).ok());
      ASSERT_TRUE(append(*file, tail).ok());
    }
    ASSERT_TRUE(sync_folder().ok());
    disk_->cut(rng_, Tear::sectors);
    const std::string left = read("1.log");
    ASSERT_EQ(left.substr(0, 700), synced);
    ASSERT_TRUE(left.size() == 700 || left.size() == 2'700 || left.size() % 512 == 0);
    for (std::size_t at = 700; at < left.size(); ++at) {
      ASSERT_TRUE(left[at] == 't' || left[at] == '\0');
      if (at % 512 != 0 && at != 700) {
        ASSERT_EQ(left[at], left[at - 1]) << "torn inside a sector";
      }
    }
    const std::size_t hole = left.find('\0');
    if (hole != std::string::npos && left.find('t', hole) != std::string::npos) is_missing = true;
  }
  EXPECT_TRUE(is_missing);
}
TEST_F(PowerCut, SectorsAreMissingInLogsOnly) {
  for (int i = 0; i < 50; ++i) {
    boot_anew();
    {
      const auto file = make("MANIFEST");
      ASSERT_TRUE(append(*file, std::string(5'000, 'm')).ok());
    }
    ASSERT_TRUE(sync_folder().ok());
    disk_->cut(rng_, Tear::sectors);
    EXPECT_EQ(read("MANIFEST").find('\0'), std::string::npos);
  }
}

TEST_F(PowerCut, ANameThatWasNotSyncedMayGoHoweverDurableTheBytes) {
  std::set<bool> seen;
  for (int i = 0; i < 50; ++i) {
    boot_anew();
    make_synced("table", "bytes");
    disk_->cut(rng_, Tear::bytes);
    seen.insert(exists("table"));
    if (exists("table")) {
      EXPECT_EQ(read("table"), "bytes");
    }
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(PowerCut, ADeletionThatWasNotSyncedMayBeUndone) {
  std::set<bool> seen;
  for (int i = 0; i < 50; ++i) {
    boot_anew();
    make_synced("table", "bytes");
    ASSERT_TRUE(sync_folder().ok());
    ASSERT_TRUE(disk_->DeleteFile(path("table"), {}, nullptr).ok());
    EXPECT_FALSE(exists("table"));
    disk_->cut(rng_, Tear::bytes);
    seen.insert(exists("table"));
    if (exists("table")) {
      EXPECT_EQ(read("table"), "bytes");
    }
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(PowerCut, ARenameLeavesTheOldOrTheNewAndIsKeptOnceSynced) {
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    boot_anew();
    make_synced("CURRENT", "old");
    make_synced("tmp", "new");
    ASSERT_TRUE(sync_folder().ok());
    ASSERT_TRUE(disk_->RenameFile(path("tmp"), path("CURRENT"), {}, nullptr).ok());
    if (i % 2 == 0) {
      ASSERT_TRUE(sync_folder().ok());
    }
    disk_->cut(rng_, Tear::bytes);
    EXPECT_EQ(exists("tmp"), read("CURRENT") == "old");
    if (i % 2 == 0) {
      EXPECT_EQ(read("CURRENT"), "new");
    }
    seen.insert(read("CURRENT"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old", "new"}));
}

TEST_F(PowerCut, NamesReachTheDiskInTheirOrder) {
  for (int i = 0; i < 50; ++i) {
    boot_anew();
    for (const char* name : {"1", "2", "3"}) make_synced(name, name);
    disk_->cut(rng_, Tear::bytes);
    EXPECT_GE(exists("1"), exists("2"));
    EXPECT_GE(exists("2"), exists("3"));
  }
}

TEST_F(PowerCut, ALinkIsAName) {
  make_synced("a", "bytes");
  ASSERT_TRUE(disk_->LinkFile(path("a"), path("b"), {}, nullptr).ok());
  ASSERT_TRUE(disk_->DeleteFile(path("a"), {}, nullptr).ok());
  ASSERT_TRUE(sync_folder().ok());
  disk_->cut(rng_, Tear::bytes);
  EXPECT_FALSE(exists("a"));
  EXPECT_EQ(read("b"), "bytes");
}

TEST_F(PowerCut, WhatIsThereAtBootIsDurableAndMayBeGoneOnWith) {
  make_synced("log", "one");
  ASSERT_TRUE(sync_folder().ok());
  disk_->cut(rng_, Tear::bytes);
  boot();
  {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ASSERT_TRUE(disk_->ReopenWritableFile(path("log"), {}, &file, nullptr).ok());
    ASSERT_TRUE(append(*file, "two").ok());
  }
  disk_->cut(rng_, Tear::bytes);
  EXPECT_EQ(read("log").substr(0, 3), "one");
  EXPECT_TRUE(fs::is_empty(backing_));
}

TEST_F(PowerCut, AfterItNothingWorks) {
  const auto file = make("log");
  ASSERT_TRUE(sync_folder().ok());
  disk_->cut_at(2);
  EXPECT_TRUE(append(*file, "a").ok());
  EXPECT_FALSE(disk_->is_off());
  EXPECT_FALSE(append(*file, "b").ok());
  EXPECT_TRUE(disk_->is_off());
  EXPECT_FALSE(append(*file, "c").ok());
  EXPECT_FALSE(file->Sync({}, nullptr).ok());
  EXPECT_FALSE(sync_folder().ok());
  EXPECT_FALSE(disk_->DeleteFile(path("log"), {}, nullptr).ok());
  EXPECT_FALSE(disk_->RenameFile(path("log"), path("other"), {}, nullptr).ok());
  EXPECT_FALSE(disk_->LinkFile(path("log"), path("other"), {}, nullptr).ok());
  std::unique_ptr<rocksdb::FSWritableFile> other;
  EXPECT_FALSE(disk_->NewWritableFile(path("other"), {}, &other, nullptr).ok());
  std::unique_ptr<rocksdb::FSSequentialFile> reader;
  EXPECT_FALSE(disk_->NewSequentialFile(path("log"), {}, &reader, nullptr).ok());
  EXPECT_EQ(read("log"), "ab") << "the operation during which the power went was done in part";
  EXPECT_EQ(disk_->operations(), 4u);
}

TEST_F(PowerCut, AfterItTablesAreWrittenToNowhere) {
  const auto table = make("1.sst");
  ASSERT_TRUE(append(*table, "before").ok());
  disk_->turn_off();
  EXPECT_TRUE(append(*table, "after").ok());
  EXPECT_TRUE(table->Flush({}, nullptr).ok());
  EXPECT_TRUE(table->Sync({}, nullptr).ok());
  const auto other = make("2.sst");
  EXPECT_TRUE(append(*other, "after").ok());
  EXPECT_FALSE(sync_folder().ok());
  disk_->cut(rng_, Tear::bytes);
  EXPECT_EQ(read("1.sst"), std::string("before").substr(0, read("1.sst").size()));
  EXPECT_FALSE(exists("2.sst"));
}

TEST_F(PowerCut, ALyingDiskLosesWhatItSaidItHad) {
  for (const Lie lie : {Lie::file_syncs, Lie::folder_syncs}) {
    bool has_lost = false;
    for (int i = 0; i < 50; ++i) {
      boot_anew(lie);
      make_synced("log", "bytes");
      ASSERT_TRUE(sync_folder().ok());
      disk_->cut(rng_, Tear::bytes);
      if (read("log") != "bytes") has_lost = true;
      EXPECT_TRUE(lie == Lie::folder_syncs || exists("log"));
    }
    EXPECT_TRUE(has_lost);
  }
}

TEST_F(PowerCut, SyncsFailUntilItHealsAndWhatTheyLeftStaysAtRisk) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    boot_anew();
    {
      const auto file = make("log");
      ASSERT_TRUE(sync_folder().ok());
      ASSERT_TRUE(append(*file, "a").ok());
      disk_->fail_syncs_from(2);
      ASSERT_TRUE(file->Sync({}, nullptr).ok());
      ASSERT_TRUE(append(*file, "b").ok());
      ASSERT_TRUE(file->Sync({}, nullptr).IsIOError());
      ASSERT_TRUE(sync_folder().IsIOError());
      disk_->heal();
      ASSERT_TRUE(sync_folder().ok());
      ASSERT_TRUE(file->Sync({}, nullptr).ok());
    }
    disk_->cut(rng_, Tear::bytes);
    seen.insert(read("log"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"a", "ab"}));
}

TEST_F(PowerCut, AppendsFailUntilItHeals) {
  const auto file = make("log");
  disk_->fail_appends_from(2);
  EXPECT_TRUE(append(*file, "a").ok());
  EXPECT_TRUE(append(*file, "b").IsIOError());
  EXPECT_TRUE(append(*file, "c").IsIOError());
  disk_->heal();
  EXPECT_TRUE(append(*file, "d").ok());
  EXPECT_EQ(read("log"), "ad");
}

TEST_F(PowerCut, AFullDiskTakesWhatFits) {
  const auto file = make("log");
  disk_->limit_space(5);
  EXPECT_TRUE(append(*file, "abc").ok());
  EXPECT_TRUE(append(*file, "def").IsNoSpace());
  EXPECT_TRUE(append(*file, "g").IsNoSpace());
  disk_->heal();
  EXPECT_TRUE(append(*file, "h").ok());
  EXPECT_EQ(read("log"), "abcdeh");
}

TEST_F(PowerCut, RefusesWhatItDoesNotModel) {
  make_synced("log", "bytes");
  fs::create_directory(path("inner"));
  EXPECT_TRUE(disk_->RenameFile(path("log"), path("inner/log"), {}, nullptr).IsNotSupported());
  EXPECT_TRUE(disk_->Truncate(path("log"), 1, {}, nullptr).IsNotSupported());
  std::unique_ptr<rocksdb::FSRandomRWFile> in_place;
  EXPECT_TRUE(disk_->NewRandomRWFile(path("log"), {}, &in_place, nullptr).IsNotSupported());
  std::unique_ptr<rocksdb::FSWritableFile> again;
  EXPECT_TRUE(
      disk_->ReuseWritableFile(path("x"), path("log"), {}, &again, nullptr).IsNotSupported());
}

}  // namespace
}  // namespace detent

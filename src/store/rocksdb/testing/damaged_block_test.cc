// Checks a data folder after one byte of a table was changed on disk. RocksDB then refuses the
// whole block that contains the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/test_folder.h"
#include "store/rocksdb/database/table_check.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/rocksdb/testing/planted_damage.h"
#include "store/rocksdb/testing/sound_folder_rig.h"
#include "store/store_check.h"

namespace detent {
namespace {

namespace fs = std::filesystem;

std::string largest_table(const std::string& folder) {
  std::string largest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".sst") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  return largest;
}

class DamagedBlock : public testing::Test {
 protected:
  DamagedBlock() { write_sound_folder(path_); }

  void check() {
    const auto store = RocksDbStore::open({.path = path_});
    ASSERT_TRUE(store) << store.error().message;
    report_ = check_store(**store, [](std::uint64_t) {});
    ASSERT_FALSE(report_.ended_by) << report_.ended_by->message;
  }
  std::ptrdiff_t count(std::string_view words) const {
    return std::count_if(
        report_.findings.begin(), report_.findings.end(),
        [words](const std::string& finding) { return finding.find(words) != std::string::npos; });
  }
  /// Expects that some tasks are affected, but only a small part of all tasks.
  static void expect_a_block(std::ptrdiff_t count) {
    EXPECT_GT(count, 1);
    EXPECT_LT(count, 100);
  }
  /// Expects that the report has `count` findings in total.
  void expect_all(std::ptrdiff_t count) const {
    EXPECT_EQ(report_.finding_count, static_cast<std::uint64_t>(count)) << to_string(report_);
  }

  TestFolder folder_;
  const std::string path_ = folder_ / "data";
  StoreReport report_;
};

TEST_F(DamagedBlock, UndamagedFolderHasNoFindings) {
  check();
  EXPECT_TRUE(report_.is_sound()) << to_string(report_);
}

TEST_F(DamagedBlock, NamesItsTable) {
  EXPECT_EQ(damaged_tables(path_), std::vector<std::string>{});
  spoil_table(path_, "lanes");
  const std::vector<std::string> damaged = damaged_tables(path_);
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_NE(damaged[0].find(".sst: Corruption: block checksum mismatch"), std::string::npos)
      << damaged[0];
}

TEST_F(DamagedBlock, InALaneIsReportedWithTheLostTasks) {
  spoil_table(path_, "lanes");
  check();
  const std::ptrdiff_t lost = count("the record is damaged: read task ");
  expect_a_block(lost);
  EXPECT_EQ(count("checksum mismatch"), lost + 1);
  EXPECT_EQ(count("the dead lane of queue number 1 cannot be read after task "), 1);
  EXPECT_EQ(report_.records[0], kSoundTasks);
  EXPECT_EQ(report_.records[3], kSoundTasks);
}

TEST_F(DamagedBlock, InTheDueOrderHidesNoOtherDamage) {
  spoil_table(path_, "due");
  flip_stored_bit(path_, sound_place(kSoundTasks + 1), 80);
  check();
  const std::ptrdiff_t lost = count("the record is damaged: read task ");
  expect_a_block(lost);
  EXPECT_EQ(count("the due lane cannot be read after task "), 1);
  EXPECT_EQ(count("task 153856 in the dead lane of queue number 1 at "), 1);
  EXPECT_EQ(count("queue mail: waiting tasks: expected 600, found " + std::to_string(600 - lost)),
            1);
  EXPECT_EQ(count("queue mail: dead tasks: expected 600, found 599"), 1);
  EXPECT_EQ(count("tasks due in the minute from "), lost);
  expect_all(2 * lost + 5);  // one finding is about the bytes of the queue
}

TEST_F(DamagedBlock, InTheIdsIsReportedAndCountsStayRight) {
  spoil_table(path_, "ids");
  check();
  const std::ptrdiff_t lost = count(": cannot be found by its id: find task ");
  EXPECT_GT(lost, 1);
  EXPECT_EQ(count("records cannot be read by id after task "), 1);
  EXPECT_EQ(count("queue mail"), 0);
  EXPECT_EQ(count("tasks due in "), 0);
  EXPECT_EQ(report_.records,
            (std::array<std::uint64_t, 4>{kSoundTasks, 0, kSoundTasks, kSoundTasks}));
}

TEST_F(DamagedBlock, InTheKeysIsReportedWithTheirTasks) {
  spoil_table(path_, "keys");
  check();
  EXPECT_GT(count(": its key is damaged: find key: "), 1);
  EXPECT_EQ(count("keys of queue mail cannot be read after \"k"), 1);
}

TEST_F(DamagedBlock, InTheExpiryOrderIsReportedWithItsKeys) {
  spoil_table(path_, "key_expiry");
  check();
  EXPECT_GT(count("of queue mail: is missing from its place in the order of expiry"), 1);
}

// In most of these cases RocksDB reports a damaged manifest.
TEST_F(DamagedBlock, UnreadableTableIsNamed) {
  const std::string table = largest_table(path_);
  const std::string name = fs::path(table).filename();
  const std::uintmax_t size = fs::file_size(table);
  const auto refusal_after = [this](const auto& damage) {
    const TestFolder copy;
    fs::copy(path_, copy / "data", fs::copy_options::recursive);
    damage(copy / "data/");
    const auto store = RocksDbStore::open({.path = copy / "data"});
    EXPECT_EQ(store.error().code, ErrorCode::data_loss);
    return store.error().message;
  };
  const auto expect_named = [&name](const std::string& message, const std::string& problem) {
    EXPECT_NE(message.find("is damaged: its table " + name + problem), std::string::npos)
        << message;
    EXPECT_EQ(message.find("MANIFEST"), std::string::npos) << message;
    EXPECT_NE(message.find("a dump into an empty one"), std::string::npos) << message;
  };
  expect_named(refusal_after([&](const std::string& folder) { fs::remove(folder + name); }),
               " is missing");
  expect_named(refusal_after([&](const std::string& folder) {
                 std::fstream file(folder + name, std::ios::binary | std::ios::in | std::ios::out);
                 file.seekp(static_cast<std::streamoff>(size) - 12).write("damaged", 7);
               }),
               " cannot be read: ");
  expect_named(refusal_after([&](const std::string& folder) { fs::resize_file(folder + name, 9); }),
               " cannot be read: ");
  // If the manifest itself is damaged, the message does not name a table.
  const std::string of_manifest = refusal_after([](const std::string& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().native().starts_with("MANIFEST")) fs::resize_file(entry, 20);
    }
  });
  EXPECT_NE(of_manifest.find("MANIFEST"), std::string::npos) << of_manifest;
}

}  // namespace
}  // namespace detent

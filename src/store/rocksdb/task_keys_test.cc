// Tests the order of expiry when its entries are outdated. tests/contract/ tests keys in general.
#include "store/rocksdb/task_keys.h"
#include "store/meta_format.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/testing/test_folder.h"
#include "store/rocksdb/database/key_format.h"

namespace detent {
namespace {

WallTime at_ms(std::int64_t ms) { return WallTime{std::chrono::milliseconds{ms}}; }

struct TaskKeysTest : testing::Test {
  void put(const std::string& key, std::optional<WallTime> expires_at) {
    const KeyRecord record{
        .queue = 1, .key = key, .id = TaskId{256}, .content = 9, .expires_at = expires_at};
    Changes changes(*db);
    changes.set_key(record);
    ASSERT_TRUE(changes.write(Durability::buffered).ok());
    keys.put(record);
  }
  std::size_t trim(std::int64_t now_ms, std::size_t limit = 100) {
    Changes changes(*db);
    const std::size_t count = keys.stage_trim(at_ms(now_ms), limit, changes).value();
    EXPECT_TRUE(changes.write(Durability::buffered).ok());
    keys.trimmed();
    return count;
  }
  bool has(const std::string& key) { return keys.find(1, key).value().has_value(); }
  std::size_t expiry_entries() {
    const std::unique_ptr<rocksdb::Iterator> it(db->db().NewIterator({}, db->key_expiry()));
    std::size_t count = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++count;
    return count;
  }

  TestFolder folder;
  std::unique_ptr<OpenDb> db = OpenDb::open({.path = folder / "data"}).value();
  TaskKeys keys{*db};
};

TEST_F(TaskKeysTest, KeyWithANewExpiryIsNotTrimmedByItsOldOne) {
  put("later", at_ms(10));
  put("later", at_ms(50));
  put("never", at_ms(10));
  put("never", std::nullopt);
  EXPECT_EQ(trim(20), 0u);
  EXPECT_TRUE(has("later"));
  EXPECT_TRUE(has("never"));
  EXPECT_EQ(expiry_entries(), 1u);  // the outdated entries were removed
  EXPECT_EQ(trim(50), 1u);
  EXPECT_FALSE(has("later"));
}

TEST_F(TaskKeysTest, KeyThatExpiresBeforeTheTrimmedOnesIsTrimmedToo) {
  put("a", at_ms(100));
  EXPECT_EQ(trim(100), 1u);
  put("b", at_ms(5));
  EXPECT_EQ(trim(100), 1u);
  EXPECT_FALSE(has("b"));
}

TEST_F(TaskKeysTest, UnwrittenTrimIsRepeated) {
  put("a", at_ms(5));
  Changes lost(*db);
  EXPECT_EQ(keys.stage_trim(at_ms(9), 10, lost).value(), 1u);
  EXPECT_EQ(trim(9), 1u);
}

TEST_F(TaskKeysTest, DamagedKeyIsReportedAndTrimmedWhenItExpires) {
  put("a", at_ms(5));
  ASSERT_TRUE(db->db().Put({}, db->keys(), key_key(1, "a"), "spoilt").ok());
  EXPECT_EQ(keys.find(1, "a").error().code, ErrorCode::data_loss);
  EXPECT_EQ(trim(9), 1u);
  EXPECT_FALSE(has("a"));
}

using TaskKeysDeathTest = TaskKeysTest;

TEST_F(TaskKeysDeathTest, PageLimitOfZeroIsABug) {
  // A "threadsafe" child would run the fixture again and leave its folder behind.
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH(static_cast<void>(keys.read(1, "", 0)), "limit > 0");
}

}  // namespace
}  // namespace detent

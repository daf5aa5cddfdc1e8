// Hints, and what they must stay away from: removed ranges, and logs of programs without them.
#include "store/rocksdb/insert_hints.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/test_folder.h"
#include "base/test_seed.h"
#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/key_format.h"
#include "store/rocksdb/meta_keys.h"
#include "store/rocksdb/open_db.h"
#include "store/rocksdb/slices.h"

namespace detent {
namespace {

TaskId id_of(std::uint64_t n) { return {n << TaskId::kShardBits}; }

bool starts_with_a(std::string_view key) { return key.starts_with('a'); }

TEST(InsertHints, BeginWhenToldForKeysThatHaveAKind) {
  InsertHints hints(2, starts_with_a);
  EXPECT_FALSE(hints.InDomain("abc"));
  hints.begin();
  EXPECT_TRUE(hints.InDomain("abc"));
  EXPECT_TRUE(hints.InDomain("ab"));
  EXPECT_EQ(hints.Transform("abc"), "ab");
  EXPECT_FALSE(hints.InDomain("a"));
  EXPECT_FALSE(hints.InDomain("bbc"));
}

struct InsertHintsInAStore : testing::Test {
  std::unique_ptr<OpenDb> open(const std::string& name) const {
    return OpenDb::open({.path = folder / name}).value();
  }
  /// Ids that the accepted family has.
  static std::vector<std::uint64_t> accepted(OpenDb& db) {
    std::vector<std::uint64_t> ids;
    const std::unique_ptr<rocksdb::Iterator> it(db.db().NewIterator({}, db.accepted()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      ids.push_back(parse_id_key(view(it->key())).value().value >> TaskId::kShardBits);
    }
    return ids;
  }
  static void put(Changes& changes, std::uint64_t n) {
    changes.put_accepted(front_place(id_of(n)), "record");
  }

  TestFolder folder;
};

TEST_F(InsertHintsInAStore, NoRangeBeginsWithAKeyThatHasOne) {
  const auto db = open("data");
  EXPECT_FALSE(db->may_begin_range(db->accepted(), id_key(id_of(1))));
  EXPECT_TRUE(db->may_begin_range(db->accepted(), id_key(id_of(1)) + '\0'));
  EXPECT_FALSE(db->may_begin_range(db->meta(), kLastIdKey));
  EXPECT_FALSE(db->may_begin_range(db->meta(), "q/mail"));
  EXPECT_TRUE(db->may_begin_range(db->meta(), counts_key(1)));
  EXPECT_FALSE(db->may_begin_range(db->due(), place_key(front_place(id_of(1)))));
}

TEST_F(InsertHintsInAStore, EntriesAndRemovedRangesOfOneBufferAreAllThere) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const auto db = open("data");
  std::set<std::uint64_t> expected;
  for (std::uint64_t i = 1; i <= 2'000; ++i) {
    Changes changes(*db);
    const std::uint64_t n = 1 + rng.below(5'000);
    put(changes, n);
    expected.insert(n);
    changes.set_meta(counts_key(i), "c");
    changes.set_meta(kLastIdKey, number_bytes(i));
    if (i % 20 == 0) {
      const std::uint64_t after = rng.below(5'000);
      changes.erase_accepted(id_of(after), id_of(after + 50));
      expected.erase(expected.upper_bound(after), expected.upper_bound(after + 50));
      changes.remove_meta_range(counts_key(0), counts_key(i));
    }
    ASSERT_TRUE(changes.write(Durability::buffered).ok());
  }
  EXPECT_EQ(accepted(*db), std::vector(expected.begin(), expected.end()));
  EXPECT_EQ(db->read_number(kLastIdKey).value(), 2'000u);
  EXPECT_FALSE(db->read_meta(counts_key(1'999)).value().has_value());
  EXPECT_TRUE(db->read_meta(counts_key(2'000)).value().has_value());
}

/// The accepted family, opened as a program does that gives no hints and compresses with LZ4.
class OlderProgram {
 public:
  explicit OlderProgram(const std::string& path) {
    std::vector<std::string> names;
    DETENT_CHECK(rocksdb::DB::ListColumnFamilies({}, path, &names).ok());
    rocksdb::ColumnFamilyOptions options;
    options.compression = rocksdb::kLZ4Compression;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const std::string& name : names) families.emplace_back(name, options);
    rocksdb::DB* opened = nullptr;
    DETENT_CHECK(rocksdb::DB::Open({}, path, families, &handles_, &opened).ok());
    db_.reset(opened);
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      if (handle->GetName() == "accepted") accepted_ = handle;
    }
  }
  ~OlderProgram() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      static_cast<void>(db_->DestroyColumnFamilyHandle(handle));
    }
  }
  OlderProgram(const OlderProgram&) = delete;
  OlderProgram& operator=(const OlderProgram&) = delete;

  void put(std::uint64_t n) {
    DETENT_CHECK(db_->Put({}, accepted_, id_key(id_of(n)), std::string(1'000, 'r')).ok());
  }
  void remove(std::uint64_t begin, std::uint64_t end) {
    DETENT_CHECK(db_->DeleteRange({}, accepted_, id_key(id_of(begin)), id_key(id_of(end))).ok());
  }
  void flush() { DETENT_CHECK(db_->Flush({}, accepted_).ok()); }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;  // owned by db_
  rocksdb::ColumnFamilyHandle* accepted_ = nullptr;
};

TEST_F(InsertHintsInAStore, ALogWhoseRangesBeginWithATasksKeyIsReplayed) {
  open("data");
  {
    OlderProgram older(folder / "data");
    for (std::uint64_t n = 1; n <= 30; ++n) older.put(n);
    older.remove(3, 29);
    for (const std::uint64_t n : {5u, 4u, 31u}) older.put(n);
  }
  EXPECT_EQ(accepted(*open("data")), (std::vector<std::uint64_t>{1, 2, 4, 5, 29, 30, 31}));
}

TEST_F(InsertHintsInAStore, TablesWithRangesThatBeginWithATasksKeyAreRead) {
  open("data");
  {
    OlderProgram older(folder / "data");
    for (std::uint64_t n = 1; n <= 30; ++n) older.put(n);
    older.remove(3, 29);
    older.flush();
  }
  const auto db = open("data");
  Changes changes(*db);
  put(changes, 3);
  changes.erase_accepted(id_of(1), id_of(2));
  ASSERT_TRUE(changes.write(Durability::synced).ok());
  EXPECT_EQ(accepted(*db), (std::vector<std::uint64_t>{1, 3, 29, 30}));
}

}  // namespace
}  // namespace detent

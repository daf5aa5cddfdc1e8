// Insert hints, and the restriction on the first keys of removed ranges.
#include "store/rocksdb/database/insert_hints.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/testing/test_folder.h"
#include "store/meta_format.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/open_db.h"
#include "store/rocksdb/database/slices.h"
#include "store/rocksdb/testing/live_copy_rig.h"

namespace detent {
namespace {

TaskId id_of(std::uint64_t n) { return {n << TaskId::kShardBits}; }

bool starts_with_a(std::string_view key) { return key.starts_with('a'); }

TEST(InsertHints, AreOnlyForKeysThatHaveAKind) {
  const InsertHints hints(2, starts_with_a);
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
  /// Returns the ids in the accepted family.
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

TEST_F(InsertHintsInAStore, NoRemovedRangeMayBeginWithAKeyOfAKind) {
  const auto db = open("data");
  EXPECT_FALSE(db->may_begin_range(db->accepted(), id_key(id_of(1))));
  EXPECT_TRUE(db->may_begin_range(db->accepted(), id_key(id_of(1)) + '\0'));
  EXPECT_FALSE(db->may_begin_range(db->meta(), kLastIdKey));
  EXPECT_FALSE(db->may_begin_range(db->meta(), "q/mail"));
  EXPECT_TRUE(db->may_begin_range(db->meta(), counts_key(1)));
  EXPECT_FALSE(db->may_begin_range(db->due(), place_key(front_place(id_of(1)))));
}

// Reads the entries after the writes, after a replay of the log, and from tables.
TEST_F(InsertHintsInAStore, EntriesAndRemovedRangesInOneBufferAreKept) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::unique_ptr<OpenDb> db = open("data");
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
  const auto expect_all = [&expected](OpenDb& some) {
    EXPECT_EQ(accepted(some), std::vector(expected.begin(), expected.end()));
    EXPECT_EQ(some.read_number(kLastIdKey).value(), 2'000u);
    EXPECT_FALSE(some.read_meta(counts_key(1'999)).value().has_value());
    EXPECT_TRUE(some.read_meta(counts_key(2'000)).value().has_value());
  };
  expect_all(*db);
  copy_live_folder(db->db(), folder / "crashed");
  expect_all(*open("crashed"));
  db.reset();
  db = open("data");
  expect_all(*db);
  // The earlier removed ranges are in tables. New entries and a new range must work too.
  const std::uint64_t after = *expected.begin();
  Changes changes(*db);
  put(changes, after);
  changes.erase_accepted(id_of(after), id_of(5'000));
  put(changes, after + 1);
  ASSERT_TRUE(changes.write(Durability::synced).ok());
  EXPECT_EQ(accepted(*db), (std::vector<std::uint64_t>{after, after + 1}));
}

}  // namespace
}  // namespace detent

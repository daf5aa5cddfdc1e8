#include "store/rocksdb/due_sums.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/testing/test_folder.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/slices.h"

namespace detent {
namespace {

using Counts = std::vector<DueCount>;

DueBin minute(std::int64_t number) { return {.width = DueBin::Width::minute, .number = number}; }
DueBin day(std::int64_t number) { return {.width = DueBin::Width::day, .number = number}; }

TEST(DueCountBytes, ReadBackSortedSummedAndWithoutZeros) {
  const Counts counts{{day(20'000), 1}, {minute(5), 2}, {minute(29'000'000), -7}, {minute(5), 3},
                      {day(3), 1},      {day(3), -1},   {minute(29'000'001), 1}};
  EXPECT_EQ(
      parse_due_counts(due_count_bytes(counts)).value(),
      (Counts{
          {minute(5), 5}, {day(20'000), 1}, {minute(29'000'000), -7}, {minute(29'000'001), 1}}));
  EXPECT_EQ(due_count_bytes(Counts{}), "");
}

TEST(DueCountBytes, TakeFewBytesPerTask) {
  Counts counts;
  for (std::int64_t n = 0; n < 1'000; ++n) counts.push_back({minute(29'000'000 + n * 40), 1});
  EXPECT_LE(due_count_bytes(counts).size(), 3'010u);
}

TEST(DueCountBytes, TruncatedBytesAreDataLoss) {
  EXPECT_EQ(parse_due_counts("\x02").error().code, ErrorCode::data_loss);
}

struct DueSumsTest : testing::Test {
  void reopen() {
    db.reset();
    db = OpenDb::open({.path = folder / "data"}).value();
    sums = DueSums::read(*db).value();
  }
  void write(Changes& changes) { ASSERT_TRUE(changes.write(Durability::buffered).ok()); }
  void add(const Counts& counts) {
    Changes changes(*db);
    sums.stage(counts, changes);
    write(changes);
    sums.written(counts);
  }
  void write_full() {
    Changes changes(*db);
    sums.stage_full(changes);
    write(changes);
    sums.full_written();
  }
  std::size_t stored_changes() {
    const std::unique_ptr<rocksdb::Iterator> it(db->db().NewIterator({}, db->meta()));
    std::size_t count = 0;
    for (it->Seek(slice(kCountsPrefix)); it->Valid() && view(it->key()) < kCountsEnd; it->Next()) {
      ++count;
    }
    return count;
  }

  TestFolder folder;
  std::unique_ptr<OpenDb> db = OpenDb::open({.path = folder / "data"}).value();
  DueSums sums = DueSums::read(*db).value();
};

TEST_F(DueSumsTest, ChangesAreSummedAtTheNextStart) {
  add({{minute(7), 3}, {day(2), 1}});
  add({{minute(7), -1}, {day(2), -1}});
  add({});
  add({{minute(8), 1}, {minute(8), -1}});  // the sum is 0, so nothing is stored
  add({{minute(9), 4}});
  const Counts expected{{minute(7), 2}, {minute(9), 4}};
  EXPECT_EQ(sums.counts(), expected);
  EXPECT_EQ(stored_changes(), 3u);
  reopen();
  EXPECT_EQ(sums.counts(), expected);
}

TEST_F(DueSumsTest, FullSumsReplaceTheChangesBeforeThem) {
  add({{minute(7), 3}});
  write_full();
  EXPECT_EQ(stored_changes(), 0u);
  reopen();
  add({{minute(7), 1}});
  reopen();
  EXPECT_EQ(sums.counts(), (Counts{{minute(7), 4}}));
  EXPECT_EQ(stored_changes(), 1u);
}

TEST_F(DueSumsTest, StagedChangeDoesNotCountBeforeItIsWritten) {
  add({{minute(7), 3}});
  Changes lost(*db);
  sums.stage(Counts{{minute(7), 5}}, lost);
  EXPECT_EQ(sums.counts(), (Counts{{minute(7), 3}}));
  reopen();
  EXPECT_EQ(sums.counts(), (Counts{{minute(7), 3}}));
}

TEST_F(DueSumsTest, WantsFullSumsWhenTheChangesAreLonger) {
  Counts many;
  for (std::int64_t n = 0; n < 100'000; ++n) many.push_back({minute(n * 1'000'000), 1});
  add(many);
  EXPECT_FALSE(sums.wants_full());
  add(many);
  add(many);
  EXPECT_TRUE(sums.wants_full());
  write_full();
  EXPECT_FALSE(sums.wants_full());
}

TEST_F(DueSumsTest, MissingOrSpoiltChangeIsDamage) {
  for (std::int64_t n = 1; n <= 3; ++n) add({{minute(n), 1}});
  ASSERT_TRUE(db->db().Put({}, db->meta(), counts_key(2), "spoilt").ok());
  EXPECT_EQ(DueSums::read(*db).error().code, ErrorCode::data_loss);
  ASSERT_TRUE(db->db().Delete({}, db->meta(), counts_key(1)).ok());
  EXPECT_EQ(DueSums::read(*db).error().code, ErrorCode::data_loss);
}

TEST_F(DueSumsTest, MatchRandomChangesAcrossFullSumsAndStarts) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::map<DueBin, std::int64_t> model;
  for (int i = 0; i < 200; ++i) {
    Counts counts;
    for (std::uint64_t n = rng.below(5); n > 0; --n) {
      const auto number = static_cast<std::int64_t>(rng.below(6));
      const DueBin bin = rng.below(2) == 0 ? minute(number) : day(number);
      counts.push_back({bin, static_cast<std::int64_t>(rng.below(7)) - 3});
      model[bin] += counts.back().count;
    }
    add(counts);
    if (rng.below(10) == 0) write_full();
    if (rng.below(40) == 0) reopen();
    Counts expected;
    for (const auto& [bin, count] : model) {
      if (count != 0) expected.push_back({bin, count});
    }
    ASSERT_EQ(sums.counts(), expected);
  }
}

}  // namespace
}  // namespace detent

// Tests that the low-water mark rises as intended. rocksdb_store_test.cc tests that it hides no
// task.
#include "store/rocksdb/low_watermark.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/testing/test_folder.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"

namespace detent {
namespace {

constexpr TaskId kSettledTo{std::uint64_t{50'000} << 8};

Place place_of(std::uint64_t n) {
  Place place = begin_of(Lane::due);
  place.at += std::chrono::milliseconds{n};
  place.id = TaskId{n << 8};
  return place;
}
Place right_before(std::uint64_t n) {
  Place place = place_of(n);
  --place.id.value;
  return place;
}

struct LowWatermarkTest : testing::Test {
  void put(std::uint64_t n) {
    ASSERT_TRUE(db->db().Put({}, db->due(), place_key(place_of(n)), "").ok());
  }
  void remove(std::uint64_t n) {
    ASSERT_TRUE(db->db().Delete({}, db->due(), place_key(place_of(n))).ok());
  }

  TestFolder folder;
  std::unique_ptr<OpenDb> db = OpenDb::open({.path = folder / "data"}).value();
  LowWatermark mark = LowWatermark::read(*db).value();
};

TEST_F(LowWatermarkTest, RisesToTheFirstRecordAndToTheEndWithoutOne) {
  EXPECT_EQ(mark.place(), begin_of(Lane::due));
  put(5);
  put(9);
  mark.raise(*db, kSettledTo);
  EXPECT_EQ(mark.place(), right_before(5));
  remove(5);
  mark.raise(*db, kSettledTo);
  EXPECT_EQ(mark.place(), right_before(9));
  remove(9);
  mark.raise(*db, kSettledTo);
  EXPECT_EQ(mark.place().at, kNeverDue);
}

TEST_F(LowWatermarkTest, PutLowersItBelowTheRecordAndNeverRaisesIt) {
  put(9);
  mark.raise(*db, kSettledTo);
  mark.put(place_of(20));
  EXPECT_EQ(mark.place(), right_before(9));
  mark.put(place_of(9));
  EXPECT_EQ(mark.place(), right_before(9));
  mark.put(place_of(3));
  EXPECT_EQ(mark.place(), right_before(3));
}

TEST_F(LowWatermarkTest, RisesAfterAThousandRemovals) {
  put(9);
  mark.removed(999, *db, kSettledTo);
  EXPECT_EQ(mark.place(), begin_of(Lane::due));
  mark.removed(1, *db, kSettledTo);
  EXPECT_EQ(mark.place(), right_before(9));
  EXPECT_TRUE(mark.is_changed());
  mark.stored();
  EXPECT_FALSE(mark.is_changed());
}

TEST_F(LowWatermarkTest, GivesUpBehindTooManyTombstones) {
  for (std::uint64_t n = 1; n <= 30'000; ++n) put(n);
  for (std::uint64_t n = 1; n < 30'000; ++n) remove(n);
  mark.raise(*db, kSettledTo);
  EXPECT_EQ(mark.place(), begin_of(Lane::due));
  mark.removed(99'999, *db, kSettledTo);  // does not try again before 100,000 removals
  EXPECT_EQ(mark.place(), begin_of(Lane::due));
}

TEST_F(LowWatermarkTest, PassesEntriesThatDoNotCountYet) {
  const auto uncounted = [](std::uint64_t n) {
    Place place = place_of(n);
    place.id.value += kSettledTo.value;
    return place;
  };
  for (std::uint64_t n = 1; n < 9'000; ++n) {
    ASSERT_TRUE(db->db().Put({}, db->due(), place_key(uncounted(n)), "").ok());
  }
  put(9'000);
  mark.raise(*db, kSettledTo);
  EXPECT_EQ(mark.place(), uncounted(5'000));  // passes only a part, so that no write takes long
  mark.removed(1, *db, kSettledTo);           // the next removal passes the rest
  EXPECT_EQ(mark.place(), right_before(9'000));
  remove(9'000);
  mark.raise(*db, kSettledTo);
  EXPECT_EQ(mark.place().at, kNeverDue);
}

// The value has the correct checksum, but not the correct length.
TEST_F(LowWatermarkTest, AMalformedMetaValueIsReportedWithTheFolder) {
  for (const std::string_view key : {kLowWatermarkKey, kEpochKey}) {
    ASSERT_TRUE(db->db().Put({}, db->meta(), std::string(key), meta_value(key, "x")).ok());
  }
  const std::string damaged = "data folder '" + (folder / "data") + "' is damaged: ";
  for (const Error& error : {LowWatermark::read(*db).error(), db->read_number(kEpochKey).error()}) {
    EXPECT_EQ(error.code, ErrorCode::data_loss);
    EXPECT_TRUE(error.message.starts_with(damaged)) << error.message;
  }
}

}  // namespace
}  // namespace detent

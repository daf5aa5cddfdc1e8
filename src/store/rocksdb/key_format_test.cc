#include "store/rocksdb/key_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace detent {
namespace {

using std::chrono::milliseconds;

WallTime at_ms(std::int64_t ms) { return WallTime{milliseconds{ms}}; }

TEST(DueKeyFormat, BytesSortAsPlaces) {
  std::vector<DueKey> places;
  for (const WallTime at : {at_ms(0), at_ms(1), at_ms(255), at_ms(256), at_ms(1'700'000'000'000),
                            kNeverDue - milliseconds{1}, kNeverDue}) {
    for (const std::uint64_t id :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{256}, TaskId::kEnd - 1}) {
      places.push_back({at, TaskId{id}});
    }
  }
  std::vector<std::string> keys;
  for (const DueKey place : places) keys.push_back(due_key(place));
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(DueKeyFormat, IsTheseBytesAndReadsBack) {
  const DueKey place{at_ms(0x0102), TaskId{0x0304}};
  const std::string key = due_key(place);
  EXPECT_EQ(key, std::string("\x80\0\0\0\0\0\x01\x02\0\0\0\0\0\0\x03\x04", 16));
  EXPECT_EQ(parse_due_key(key).value(), place);
  EXPECT_EQ(due_key({kNeverDue, TaskId{0}}), std::string(8, '\xFF') + std::string(8, '\0'));
}

TEST(DueKeyFormat, OtherSizesAreDataLoss) {
  EXPECT_EQ(parse_due_key(std::string(15, 'x')).error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_due_key(std::string(17, 'x')).error().code, ErrorCode::data_loss);
}

TEST(IdFormat, KeysSortAsIdsAndValuesReadBack) {
  EXPECT_LT(id_key(TaskId{255}), id_key(TaskId{256}));
  EXPECT_EQ(parse_id_value(id_value(kNeverDue)).value(), kNeverDue);
  EXPECT_EQ(parse_id_value("short").error().code, ErrorCode::data_loss);
}

TEST(MetaFormat, NumbersReadBackUnderTheirOwnKeyOnly) {
  const std::string value = meta_value(kEpochKey, number_bytes(42));
  EXPECT_EQ(parse_number_bytes(parse_meta_value(kEpochKey, value).value()).value(), 42u);
  EXPECT_EQ(parse_meta_value(kLastIdKey, value).error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_meta_value(kEpochKey, "").error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_number_bytes("1234567").error().code, ErrorCode::data_loss);
}

TEST(MetaFormat, CountsReadBackAndLieBetweenTheirBounds) {
  const QueueCounts counts{.queue = "a/b", .waiting = 1'000'000, .dead = 3};
  const std::string key = counts_key(counts.queue);
  EXPECT_GE(key, kQueuePrefix);
  EXPECT_LT(key, kQueueEnd);
  EXPECT_EQ(parse_counts(key, counts_value(key, counts)).value(), counts);
  EXPECT_EQ(parse_counts(counts_key("c"), counts_value(key, counts)).error().code,
            ErrorCode::data_loss);
}

}  // namespace
}  // namespace detent

#include "store/rocksdb/database/key_format.h"
#include "store/meta_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace detent {
namespace {

using std::chrono::milliseconds;

WallTime at_ms(std::int64_t ms) { return WallTime{milliseconds{ms}}; }
Place due_place(WallTime at, std::uint64_t id) {
  return {.lane = Lane::due, .queue = 0, .priority = 0, .at = at, .id = TaskId{id}};
}
const std::vector<Place>& lane_places() {
  static const std::vector<Place> kPlaces{
      {Lane::ready, 1, 0, at_ms(9), TaskId{1}},   {Lane::ready, 1, 1, at_ms(8), TaskId{2}},
      {Lane::ready, 1, 256, at_ms(0), TaskId{1}}, {Lane::ready, 1, ~0u, at_ms(0), TaskId{1}},
      {Lane::ready, 2, 0, at_ms(0), TaskId{1}},   {Lane::ready, 256, 0, at_ms(0), TaskId{1}},
      {Lane::dead, 1, 0, at_ms(3), TaskId{5}},    {Lane::dead, 1, 0, at_ms(3), TaskId{256}},
      {Lane::dead, 1, 0, at_ms(4), TaskId{1}},    {Lane::dead, 2, 0, at_ms(1), TaskId{1}},
      {Lane::ended, 0, 0, at_ms(1), TaskId{7}},   {Lane::ended, 0, 0, kNeverDue, TaskId{7}}};
  return kPlaces;
}

TEST(DueKeyFormat, BytesSortAsPlaces) {
  std::vector<Place> places;
  for (const WallTime at : {at_ms(0), at_ms(1), at_ms(255), at_ms(256), at_ms(1'700'000'000'000),
                            kNeverDue - milliseconds{1}, kNeverDue}) {
    for (const std::uint64_t id :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{256}, TaskId::kEnd - 1}) {
      places.push_back(due_place(at, id));
    }
  }
  std::vector<std::string> keys;
  for (const Place& place : places) keys.push_back(place_key(place));
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(DueKeyFormat, HasTheDocumentedBytesAndReadsBack) {
  const Place place = due_place(at_ms(0x0102), 0x0304);
  const std::string key = place_key(place);
  EXPECT_EQ(key, std::string("\x80\0\0\0\0\0\x01\x02\0\0\0\0\0\0\x03\x04", 16));
  EXPECT_EQ(parse_due_key(key).value(), place);
  EXPECT_EQ(place_key(due_place(kNeverDue, 0)), std::string(8, '\xFF') + std::string(8, '\0'));
}

TEST(DueKeyFormat, OtherSizesAreDataLoss) {
  EXPECT_EQ(parse_due_key(std::string(15, 'x')).error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_due_key(std::string(17, 'x')).error().code, ErrorCode::data_loss);
}

TEST(LaneKeyFormat, BytesSortAsPlacesAndReadBack) {
  std::vector<std::string> keys;
  for (const Place& place : lane_places()) {
    keys.push_back(place_key(place));
    EXPECT_EQ(parse_lane_key(keys.back()).value(), place);
  }
  EXPECT_TRUE(std::is_sorted(lane_places().begin(), lane_places().end()));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST(LaneKeyFormat, HasTheDocumentedBytes) {
  const Place place{Lane::ready, 0x0102, 0x0304, at_ms(5), TaskId{6}};
  EXPECT_EQ(place_key(place), std::string("\x01\0\0\x01\x02\0\0\x03\x04"
                                          "\x80\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06",
                                          25));
}

TEST(LaneKeyFormat, OtherSizesAndLanesAreDataLoss) {
  std::string key = place_key(lane_places()[0]);
  EXPECT_EQ(parse_lane_key(key + "x").error().code, ErrorCode::data_loss);
  EXPECT_EQ(parse_lane_key(key.substr(1)).error().code, ErrorCode::data_loss);
  for (const char lane : {'\0', '\4', '\xFF'}) {
    key[0] = lane;
    EXPECT_EQ(parse_lane_key(key).error().code, ErrorCode::data_loss);
  }
}

TEST(IdFormat, KeysSortAsIdsAndValuesReadBack) {
  EXPECT_LT(id_key(TaskId{255}), id_key(TaskId{256}));
  EXPECT_EQ(parse_id_key(id_key(TaskId{255})).value(), TaskId{255});
  const Place due = due_place(kNeverDue, 9);
  EXPECT_EQ(id_value(due).size(), 8u);
  EXPECT_EQ(parse_id_value(due.id, id_value(due)).value(), due);
  for (const Place& place : lane_places()) {
    EXPECT_EQ(parse_id_value(place.id, id_value(place)).value(), place);
  }
  EXPECT_EQ(parse_id_value(TaskId{1}, "short").error().code, ErrorCode::data_loss);
}

TEST(AcceptedFormat, PlaceAndRecordReadBack) {
  std::vector<Place> places = lane_places();
  places.push_back(due_place(at_ms(1'700'000'000'000), 256));
  for (const Place& place : places) {
    std::string value;
    append_accepted(value, place, "record");
    EXPECT_EQ(split_accepted(place.id, value).place, place);
    EXPECT_EQ(split_accepted(place.id, value).record, "record");
    EXPECT_EQ(value.size(), (place.lane == Lane::due ? 11u : 19u) + 6u);
  }
}

// Flips only bits of the place and its checksum. The record has its own checksum.
TEST(AcceptedFormat, AnyFlippedBitOfThePlaceIsFound) {
  std::vector<Place> places = lane_places();
  places.push_back(due_place(at_ms(1'700'000'000'000), 256));
  for (const Place& place : places) {
    std::string value;
    append_accepted(value, place, "");
    value.append(40, 'r');
    for (std::size_t bit = 0; bit < 8 * (value.size() - 40); ++bit) {
      std::string flipped = value;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      ASSERT_EQ(split_accepted(place.id, flipped).place, front_place(place.id)) << "bit " << bit;
      ASSERT_EQ(split_accepted(place.id, flipped).record, flipped);
    }
    ASSERT_EQ(split_accepted(TaskId{place.id.value + 1}, value).record, value);
    for (std::size_t size = 0; size + 40 < value.size(); ++size) {
      ASSERT_EQ(split_accepted(place.id, value.substr(0, size)).record.size(), size);
    }
  }
}

TEST(KeyFormat, SortsByQueueAndExpiryByInstantFirst) {
  EXPECT_LT(key_key(1, "zz"), key_key(2, "a"));
  EXPECT_LT(expiry_key(at_ms(255), key_key(9, "z")), expiry_key(at_ms(256), key_key(1, "a")));
  const std::string key = expiry_key(at_ms(7), key_key(1, "order"));
  EXPECT_EQ(parse_expiry_key(key)->at, at_ms(7));
  EXPECT_EQ(parse_expiry_key(key)->key_key, key_key(1, "order"));
  EXPECT_EQ(parse_expiry_key("1234567").error().code, ErrorCode::data_loss);
}

}  // namespace
}  // namespace detent

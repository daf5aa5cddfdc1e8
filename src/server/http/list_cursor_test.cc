#include "server/http/list_cursor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace detent::server {
namespace {

Place place_of(Lane lane, std::uint32_t queue, std::int64_t at_ms, std::uint64_t id) {
  Place place;
  place.lane = lane;
  place.queue = queue;
  place.at = WallTime{std::chrono::milliseconds{at_ms}};
  place.id = TaskId{id};
  return place;
}

/// The shortest and the longest possible cursors, and some between them.
std::vector<Place> places() {
  return {place_of(Lane::due, 0, 0, 0),
          place_of(Lane::due, 0, 253'402'300'799'999, (std::uint64_t{1} << 53) - 1),
          place_of(Lane::dead, ~std::uint32_t{0}, 253'402'300'799'999, ~std::uint64_t{0}),
          place_of(Lane::dead, 7, 1'767'323'075'000, 256), place_of(Lane::ended, 0, 1, 512)};
}

TEST(ListCursor, IsReadBackInTheOpenAndSealed) {
  const CursorSeal seal;
  for (const Place& place : places()) {
    EXPECT_EQ(parse_cursor(render_cursor(place)), place) << render_cursor(place);
    EXPECT_EQ(seal.open(seal.seal(place)), place) << render_cursor(place);
  }
}

TEST(ListCursor, SealedTellsNothing) {
  const CursorSeal seal;
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) {
    for (const Place& place : places()) {
      const std::string sealed = seal.seal(place);
      EXPECT_EQ(sealed.size(), 153u);
      EXPECT_EQ(sealed.find(render_cursor(place)), std::string::npos);
      EXPECT_TRUE(all.insert(sealed).second) << "two of the same place are alike";
    }
  }
}

TEST(ListCursor, SealedCannotBeMadeUp) {
  const CursorSeal seal;
  const CursorSeal other;
  const Place place = places().back();
  const std::string sealed = seal.seal(place);
  EXPECT_EQ(other.open(sealed), std::nullopt);
  EXPECT_EQ(seal.open(render_cursor(place)), std::nullopt);
  EXPECT_EQ(parse_cursor(sealed), std::nullopt);
  EXPECT_EQ(seal.open(""), std::nullopt);
  EXPECT_EQ(seal.open("s"), std::nullopt);
  EXPECT_EQ(seal.open(sealed + "00"), std::nullopt);
  EXPECT_EQ(seal.open(sealed.substr(0, sealed.size() - 2)), std::nullopt);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string wrong = sealed;
    wrong[i] = wrong[i] == '0' ? '1' : '0';
    EXPECT_EQ(seal.open(wrong), std::nullopt) << i;
  }
}

}  // namespace
}  // namespace detent::server

#include "protocol/json/list_cursor.h"

#include <gtest/gtest.h>

#include <chrono>

namespace detent::json {
namespace {

using std::chrono::milliseconds;

TEST(ListCursor, IsReadBackAsItWasWritten) {
  const struct {
    ListCursor cursor;
    const char* text = "";
  } kCases[] = {
      {{}, "d0-0-0"},
      {{.part = ListPart::dead, .queue = 7, .at = WallTime{milliseconds{5}}, .id = {3}}, "d7-5-3"},
      {{.part = ListPart::live, .at = WallTime{milliseconds{1'767'323'075'000}}, .id = {256}},
       "l0-1767323075000-256"},
      {{.part = ListPart::ended, .at = WallTime::max(), .id = {~std::uint64_t{0}}},
       "e0-9223372036854775807-18446744073709551615"}};
  for (const auto& each : kCases) {
    EXPECT_EQ(render_cursor(each.cursor), each.text);
    EXPECT_EQ(parse_cursor(each.text), each.cursor) << each.text;
  }
}

TEST(ListCursor, OtherTextsAreRefused) {
  for (const char* text : {"", "d", "x0-0-0", "0-0-0", "d0-0", "d0-0-0-", "d0-0-0 ", "d00-0-0",
                           "d+1-0-0", "d0--1-0", "l1-0-0", "e1-0-0", "d4294967296-0-0"}) {
    EXPECT_EQ(parse_cursor(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace detent::json

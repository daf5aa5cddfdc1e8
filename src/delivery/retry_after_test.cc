#include "delivery/retry_after.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using namespace std::chrono_literals;

// 1994-11-06T08:49:37Z
constexpr WallInstant kThen{std::chrono::seconds{784'111'777}};
constexpr std::string_view kThenText = "Sun, 06 Nov 1994 08:49:37 GMT";

TEST(RetryAfter, ReadsSeconds) {
  EXPECT_EQ(parse_retry_after("120", kThen), 120s);
  EXPECT_EQ(parse_retry_after("007", kThen), 7s);
}

TEST(RetryAfter, ReadsADate) {
  EXPECT_EQ(parse_retry_after(kThenText, kThen - 90s), 90s);
  EXPECT_EQ(parse_retry_after(kThenText, kThen - 2s - 1'500'001ns), 2'002ms);  // rounded up
  EXPECT_EQ(parse_retry_after("Tue, 29 Feb 2000 00:00:00 GMT",
                              WallInstant{std::chrono::seconds{951'782'400 - 5}}),
            5s);
}

TEST(RetryAfter, IsAtLeastASecond) {
  EXPECT_EQ(parse_retry_after("0", kThen), 1s);
  EXPECT_EQ(parse_retry_after("000", kThen), 1s);
  EXPECT_EQ(parse_retry_after(kThenText, kThen), 1s);
  EXPECT_EQ(parse_retry_after(kThenText, kThen - 5ms), 1s);
  EXPECT_EQ(parse_retry_after(kThenText, kThen + 1h), 1s);
}

TEST(RetryAfter, IsAtMostADay) {
  EXPECT_EQ(parse_retry_after("86401", kThen), 24h);
  EXPECT_EQ(parse_retry_after("99999999999999999999999999", kThen), 24h);
  EXPECT_EQ(parse_retry_after(kThenText, kThen - 48h), 24h);
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", kThen), 24h);
}

TEST(RetryAfter, IsEmptyForOtherText) {
  for (const char* text :
       {"", " ", "-1", "+1", "1.5", "1 ", "soon", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMTx",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 0a:49:37 GMT"}) {
    EXPECT_FALSE(parse_retry_after(text, kThen)) << text;
  }
}

}  // namespace
}  // namespace detent

#include "net/message/http_query.h"

#include <gtest/gtest.h>

#include <array>

namespace detent::net {
namespace {

struct TwoParameters {
  QueryParameter a{"a"};
  QueryParameter b{"b"};
  std::array<QueryParameter*, 2> all() { return {&a, &b}; }
};

TEST(HttpQuery, TakesEachParameterDecodedWhateverTheOrder) {
  TwoParameters some;
  ASSERT_TRUE(take_query("/v1/x?b=1%2F2&&%61=", some.all()));
  EXPECT_EQ(some.a.value, "");
  EXPECT_EQ(some.b.value, "1/2");
  for (const char* target : {"/v1/x", "/v1/x?"}) {
    TwoParameters none;
    ASSERT_TRUE(take_query(target, none.all()));
    EXPECT_FALSE(none.a.value || none.b.value);
  }
}

TEST(HttpQuery, UnknownRepeatedAndBrokenParametersAreRefused) {
  const struct {
    const char* target;
    const char* field;
  } kCases[] = {{"/?c=1", "c"}, {"/?a=1&a=1", "a"}, {"/?A=1", "A"}, {"/?a=%4", ""}, {"/?=1", ""}};
  for (const auto& refused : kCases) {
    TwoParameters some;
    const Result<void> taken = take_query(refused.target, some.all());
    ASSERT_FALSE(taken) << refused.target;
    EXPECT_EQ(taken.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(taken.error().field, refused.field) << refused.target;
  }
}

TEST(HttpQuery, CountsAreIntegersWithinTheirBounds) {
  EXPECT_EQ(read_count({"n", "10"}, 10, 5).value(), 10U);
  EXPECT_EQ(read_count({"n"}, 10, 5).value(), 5U);
  for (const char* text : {"", "0", "11", "-1", "+1", "1.0", "1 ", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(read_count({"n", text}, 10, 5).error().field, "n") << text;
  }
}

TEST(HttpQuery, AnErrorSaysWhetherZeroIsAllowed) {
  EXPECT_EQ(read_count({"n", "x"}, 10, 5).error().message, "n must be an integer from 1 to 10");
  EXPECT_EQ(read_count({"n", "x"}, 10, 5, Zero::allowed).error().message,
            "n must be an integer from 0 to 10");
  EXPECT_EQ(read_count({"n", "0"}, 10, 5, Zero::allowed).value(), 0U);
}

}  // namespace
}  // namespace detent::net

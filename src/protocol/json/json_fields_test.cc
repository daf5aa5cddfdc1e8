#include "protocol/json/json_fields.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace detent::json {
namespace {

using std::chrono::milliseconds;

struct TwoFields {
  JsonField a{"a"};
  JsonField b{"b"};
  std::array<JsonField*, 2> all() { return {&a, &b}; }
};

/// A field with this value.
struct Given {
  Given(std::string_view name, std::string_view text)
      : value{.name = {}, .text = text}, field{name, &value} {}
  // NOLINTNEXTLINE(google-explicit-constructor): an argument of the functions under test
  operator const JsonField&() const { return field; }

  JsonValue value;
  JsonField field;
};

TEST(JsonFields, TakesEachFieldWhateverTheOrder) {
  TwoFields fields;
  JsonDocument document;
  ASSERT_TRUE(take_fields(document, R"({"b": {"x": 1} , "\u0061":2})", fields.all(),
                          UnknownFields::refuse));
  EXPECT_EQ(fields.a.value->text, "2");
  EXPECT_EQ(fields.b.value->text, "{\"x\": 1}");
}

TEST(JsonFields, AnUnknownMemberIsRefusedByNameOrSkipped) {
  TwoFields fields;
  JsonDocument document;
  const auto refused =
      take_fields(document, R"({"a":1,"\u0063olour":2})", fields.all(), UnknownFields::refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().field, "colour");
  TwoFields others;
  EXPECT_TRUE(take_fields(document, R"({"a":1,"colour":2})", others.all(), UnknownFields::skip));
}

TEST(JsonFields, ALongNameIsShortenedInTheError) {
  TwoFields fields;
  JsonDocument document;
  const std::string body = "{\"" + std::string(10'000, 'x') + "\":1}";
  const auto refused = take_fields(document, body, fields.all(), UnknownFields::refuse);
  EXPECT_EQ(refused.error().field.size(), 100U);
}

TEST(JsonFields, AFieldGivenTwiceIsRefusedByName) {
  for (const UnknownFields unknown : {UnknownFields::refuse, UnknownFields::skip}) {
    TwoFields fields;
    JsonDocument document;
    const auto refused = take_fields(document, R"({"a":1,"\u0061":1})", fields.all(), unknown);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "a");
  }
}

TEST(JsonFields, TextThatIsNotAnObjectIsRefused) {
  for (const char* body : {"[]", "1", "null", "\"a\"", "", "{", "{} {}", "{\"a\":1,}"}) {
    TwoFields fields;
    JsonDocument document;
    EXPECT_FALSE(take_fields(document, body, fields.all(), UnknownFields::skip)) << body;
  }
}

TEST(JsonFields, TooManyElementsAndOtherValuesAreRefused) {
  EXPECT_EQ(take_elements("[1,2]", 2)->size(), 2U);
  EXPECT_EQ(take_elements("[1,2,3]", 2).error().code, ErrorCode::too_large);
  EXPECT_EQ(take_elements("{}", 2).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(take_elements("[1,", 2).error().code, ErrorCode::invalid_argument);
}

TEST(JsonFields, AnIntegerIsDigitsWithinTheRange) {
  EXPECT_EQ(read_integer(Given("n", "0"), {.max = 10}), 0U);
  EXPECT_EQ(read_integer(Given("n", "10"), {.max = 10}), 10U);
  EXPECT_EQ(read_integer(Given("n", "18446744073709551615"), {.max = ~std::uint64_t{0}}),
            ~std::uint64_t{0});
  for (const char* text : {"11", "-1", "-0", "1.0", "1e1", "1E1", "1e30", "9223372036854775808",
                           "18446744073709551616", "99999999999999999999999999", "\"1\"", "null",
                           "true", "[]", "{}"}) {
    const auto read = read_integer(Given("n", text), {.max = 10});
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error(),
              (Error{ErrorCode::invalid_argument, "n must be an integer from 0 to 10", "n"}));
  }
}

TEST(JsonFields, ATimeIsRfc3339OrMilliseconds) {
  EXPECT_EQ(read_time(Given("t", "\"1970-01-01T00:00:01.5Z\"")), WallTime{milliseconds{1500}});
  EXPECT_EQ(read_time(Given("t", "1500")), WallTime{milliseconds{1500}});
  EXPECT_EQ(read_time(Given("t", "253402300799999")), WallTime{milliseconds{253'402'300'799'999}});
  for (const char* text : {"253402300800000", "-1", "1.5", "1e3", "18446744073709551616", "\"\"",
                           "\"tomorrow\"", "\"1500\"", "null", "{}", "\"1969-12-31T23:59:59Z\""}) {
    const auto read = read_time(Given("t", text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(read.error().field, "t");
  }
}

TEST(JsonFields, ADurationIsTextOrMilliseconds) {
  constexpr milliseconds kDay{86'400'000};
  EXPECT_EQ(*read_duration({{"d"}, {"d_ms"}}, kDay), std::nullopt);
  EXPECT_EQ(*read_duration({Given("d", "\"30s\""), {"d_ms"}}, kDay), milliseconds{30'000});
  EXPECT_EQ(*read_duration({Given("d", "\"PT1H\""), {"d_ms"}}, kDay), milliseconds{3'600'000});
  EXPECT_EQ(*read_duration({{"d"}, Given("d_ms", "86400000")}, kDay), kDay);
}

TEST(JsonFields, AWrongDurationNamesItsField) {
  constexpr milliseconds kDay{86'400'000};
  for (const char* text :
       {"30", "1e30", "null", "\"\"", "\"30\"", "\"-1s\"", "\"1d1ms\"", "\"P1M\"", "\"2d\"",
        "\"18446744073709551616ms\"", "\"99999999999999999999d\""}) {
    const auto read = read_duration({Given("d", text), {"d_ms"}}, kDay);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(read.error().field, "d");
  }
  for (const char* text : {"86400001", "-1", "1.5", "\"1s\"", "18446744073709551616", "1e30"}) {
    const auto read = read_duration({{"d"}, Given("d_ms", text)}, kDay);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().field, "d_ms");
  }
  EXPECT_EQ(read_duration({Given("d", "\"1s\""), Given("d_ms", "1000")}, kDay).error().field,
            "d_ms");
}

TEST(JsonFields, AMissingFieldIsNamed) {
  EXPECT_EQ(read_string({"s"}).error(), (Error{ErrorCode::invalid_argument, "s is required", "s"}));
  EXPECT_EQ(read_integer({"n"}, {}).error().field, "n");
  EXPECT_EQ(read_time({"t"}).error().field, "t");
}

}  // namespace
}  // namespace detent::json

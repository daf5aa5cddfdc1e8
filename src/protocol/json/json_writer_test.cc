#include "protocol/json/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/test_seed.h"
#include "base/utf8.h"
#include "protocol/json/json_reader.h"

namespace detent::json {
namespace {

std::string as_json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, WritesCommasOnlyBetweenValues) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  writer.name("a").begin_array().number(1).begin_array().end_array().begin_object().end_object();
  writer.null().end_array();
  writer.name("b").string("x").name("c").raw("{ \"y\": 1.0 }").name("d").base64("foo");
  writer.end_object();
  EXPECT_EQ(out, R"({"a":[1,[],{},null],"b":"x","c":{ "y": 1.0 },"d":"Zm9v"})");
}

TEST(JsonWriter, WritesTheLargestAndSmallestNumbers) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_array().number(std::numeric_limits<std::uint64_t>::max());
  writer.number(std::numeric_limits<std::int64_t>::min()).number(std::uint8_t{7}).end_array();
  EXPECT_EQ(out, "[18446744073709551615,-9223372036854775808,7]");
}

TEST(JsonWriter, EscapesOnlyWhatJsonRequires) {
  EXPECT_EQ(as_json("a\"b\\c/d\n\r\t\x01\x1F\x7F"), "\"a\\\"b\\\\c/d\\n\\r\\t\\u0001\\u001f\x7F\"");
  EXPECT_EQ(as_json(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(as_json("h\xC3\xA9 \xF0\x9F\x98\x80"), "\"h\xC3\xA9 \xF0\x9F\x98\x80\"");
}

TEST(JsonWriter, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(as_json("a\xFF\xC3"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(as_json("\xE2\x82z"), "\"\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

TEST(JsonWriter, AnyBytesMakeAStringThatReadsBack) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(rng.below(40), '\0');
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
    const bool is_json = read_json(as_json(bytes)).has_value();
    ASSERT_TRUE(is_json) << testing::PrintToString(bytes);

    std::string text;  // valid UTF-8, which must come back unchanged
    for (std::uint32_t i = rng.below(20); i > 0; --i) {
      const std::uint32_t code_point = rng.below(0x110000);
      if (code_point < 0xD800 || code_point > 0xDFFF) append_utf8(text, code_point);
    }
    ASSERT_EQ(unescape(as_json(text)), text);
  }
}

}  // namespace
}  // namespace detent::json

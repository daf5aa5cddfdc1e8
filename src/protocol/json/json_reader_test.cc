// Compares the reader with two references: a table of the rules of RFC 8259, and Boost.JSON on
// hundreds of thousands of mutated texts.
#include "protocol/json/json_reader.h"

#include <gtest/gtest.h>

#include <boost/json/parser.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "protocol/json/json_fields.h"

namespace detent::json {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(JsonReader, AValueIsItsTextWithoutTheSpaceAround) {
  for (const std::string_view value :
       {"{}", "[]", "null", "true", "false", "0", "-0", "1.0", "1e400", "-1.5E+7", "1e99999999999",
        "123456789012345678901234567890", R"("")", R"("\u00e9\ud83d\ude00\n\/")",
        "{ \"a\" :\t[ 1 , {} ,\n[ ] ] , \"a\" : \"]\\\"}\" }", "\"h\xC3\xA9\""}) {
    const std::string text = " \t\r\n" + std::string(value) + "\n ";
    const auto read = read_json(text);
    ASSERT_TRUE(read) << value << ": " << read.error().message;
    EXPECT_EQ(*read, value);
  }
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (const std::string_view text : {"",
                                      " ",
                                      "nul",
                                      "nulll",
                                      "True",
                                      "'a'",
                                      "\"a",
                                      "\"a\\",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u12g4\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800x\"",
                                      "\"\\ud800\\n\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\n\"",
                                      "\"\xFF\"",
                                      "\"\xC3\"",
                                      "\xEF\xBB\xBF{}",
                                      "01",
                                      "-",
                                      "+1",
                                      ".5",
                                      "1.",
                                      "1e",
                                      "1e+",
                                      "0x1",
                                      "1_000",
                                      "NaN",
                                      "Infinity",
                                      "[",
                                      "]",
                                      "[1",
                                      "[1,",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{",
                                      "}",
                                      "{\"a\"",
                                      "{\"a\":",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{a:1}",
                                      "{1:1}",
                                      "{\"a\" 1}",
                                      "{} {}",
                                      "{}x",
                                      "// c\n1",
                                      "[1]/**/"}) {
    const auto read = read_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(read.error().field, "");
  }
  EXPECT_FALSE(read_json(std::string_view("1\0", 2)));
  EXPECT_FALSE(read_json(std::string_view("\"\0\"", 3)));
}

TEST(JsonReader, AnErrorNamesItsPosition) {
  EXPECT_EQ(read_json("[1, x]").error().message, "not valid JSON: expected a value at byte 4");
  EXPECT_EQ(read_json("{} y").error().message,
            "not valid JSON: expected the end of the text at byte 3");
}

TEST(JsonReader, OnlyARequestHasALimitOfValues) {
  std::string array = "[0";
  for (std::size_t i = 2; i < kMaxJsonValues; ++i) array += ",0";
  JsonDocument document;
  EXPECT_TRUE(document.read(array + "]"));
  const auto refused = document.read(array + ",0]");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("not valid JSON: more than 1000000 values"));
  const std::string answer = R"({"queues":)" + array + ",0]}";
  const auto list = take_list(document, answer, "queues");
  ASSERT_TRUE(list);
  EXPECT_EQ(count_elements(**list, kAnyNumberOfJsonValues).value(), kMaxJsonValues);
}

TEST(JsonReader, NestingEndsAtTheLimit) {
  EXPECT_TRUE(read_json(nested(kMaxJsonDepth)));
  EXPECT_FALSE(read_json(nested(kMaxJsonDepth + 1)));
  EXPECT_FALSE(read_json(std::string(1'000'000, '[')));
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < kMaxJsonDepth + 1; ++i) text += "{\"a\":";
    return text;
  }();
  EXPECT_TRUE(read_json(objects).error().message.starts_with("not valid JSON: nested deeper than"));
}

/// The names and texts of the members or elements, without those further inside.
using Children = std::vector<std::pair<std::string_view, std::string_view>>;
Children children_of(const JsonValue& value) {
  Children children;
  for (const JsonValue& child : value) children.emplace_back(child.name, child.text);
  return children;
}

TEST(JsonReader, RecordsMembersAndElementsAsTheyAreInTheText) {
  JsonDocument document;
  const JsonValue& object =
      *document.read(R"( { "a" : [1, {"b":[]} , ""] ,"\u0062":1.0, "c":{} } )").value();
  EXPECT_EQ(object.text, R"({ "a" : [1, {"b":[]} , ""] ,"\u0062":1.0, "c":{} })");
  EXPECT_EQ(
      children_of(object),
      (Children{{R"("a")", R"([1, {"b":[]} , ""])"}, {R"("\u0062")", "1.0"}, {R"("c")", "{}"}}));
  const JsonValue& array = *object.begin();
  EXPECT_EQ(children_of(array), (Children{{"", "1"}, {"", R"({"b":[]})"}, {"", R"("")"}}));
  EXPECT_EQ(children_of(*array.begin()), Children{});
}

TEST(JsonReader, ADocumentCanReadAnotherText) {
  JsonDocument document;
  EXPECT_EQ(children_of(*document.read("[1,2]").value()).size(), 2U);
  EXPECT_FALSE(document.read("[1,"));
  EXPECT_EQ(children_of(*document.read("[3]").value()), (Children{{"", "3"}}));
}

TEST(JsonReader, ValuesInsideAPayloadAreCheckedButNotRecorded) {
  JsonDocument document;
  const JsonValue& object = *document.read(R"({"payload":{"a":[1]},"b":[2]})").value();
  EXPECT_EQ(children_of(object), (Children{{R"("payload")", R"({"a":[1]})"}, {R"("b")", "[2]"}}));
  EXPECT_EQ(object.count, 4U);
  EXPECT_FALSE(document.read(R"({"payload":[01]})"));
}

TEST(JsonReader, TooManyValuesAreRefusedOutsideOfAPayload) {
  std::string array = "[1";
  for (std::size_t i = 1; i < kMaxJsonValues; ++i) array += ",1";
  array += "]";
  JsonDocument document;
  EXPECT_TRUE(
      document.read(array).error().message.starts_with("not valid JSON: more than 1000000"));
  EXPECT_TRUE(document.read("{\"payload\":" + array + "}"));
}

TEST(JsonReader, UnescapeUndoesEveryEscape) {
  EXPECT_EQ(unescape(R"("")"), "");
  EXPECT_EQ(unescape(R"("plain")"), "plain");
  EXPECT_EQ(unescape(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(unescape(R"("\u0041\u00e9\u20AC\uD83D\uDE00!")"),
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80!");
  EXPECT_EQ(unescape(R"("\u0000")"), std::string(1, '\0'));
}

/// True if Boost.JSON accepts a text. Boost.JSON converts numbers, so it refuses an exponent that
/// is too large for it, although the grammar allows it. The texts below have no such exponent.
bool boost_accepts(std::string_view text) {
  boost::json::parser parser;
  boost::json::error_code error;
  parser.write(text.data(), text.size(), error);
  return !error;
}

/// Makes up to three changes: each replaces, inserts or removes a few bytes, or repeats a piece.
std::string mutate(std::string text, Rng& rng) {
  constexpr std::string_view kPieces = "{}[],:\"\\/ \n01-+.eEtfnu\x01\x80\xC3\xA9\xF0";
  for (std::uint32_t changes = rng.below(4); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = rng.below(static_cast<std::uint32_t>(text.size()));
    switch (rng.below(4)) {
      case 0:
        text[at] = kPieces[rng.below(static_cast<std::uint32_t>(kPieces.size()))];
        break;
      case 1:
        text.erase(at, 1 + rng.below(3));
        break;
      case 2:
        text.insert(at, 1, kPieces[rng.below(static_cast<std::uint32_t>(kPieces.size()))]);
        break;
      default:
        text.insert(at, text.substr(rng.below(static_cast<std::uint32_t>(text.size())), 6));
    }
  }
  return text;
}

TEST(JsonReader, AgreesWithBoostJsonOnMutatedTexts) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const std::vector<std::string> texts{
      R"({"queue":"a","payload":{"x":[1,2.5,-0,1e4,"\u00e9"]},"delay":"30s"})",
      R"([true,false,null,"",{},[],[[1]],0.5E-3,"\ud83d\ude00\\\"\/"])",
      "{ \"h\xC3\xA9\" : [ \"\xF0\x9F\x98\x80\" , \"\xE2\x82\xAC\" ] }", "-12.75",
      R"("\b\f\n\r\t")"};
  int accepted = 0;
  for (int round = 0; round < 300'000; ++round) {
    const std::string text =
        mutate(texts[rng.below(static_cast<std::uint32_t>(texts.size()))], rng);
    const bool ours = read_json(text).has_value();
    ASSERT_EQ(ours, boost_accepts(text)) << testing::PrintToString(text);
    accepted += ours ? 1 : 0;
  }
  EXPECT_GT(accepted, 50'000);  // the test sees both valid and invalid texts
  EXPECT_LT(accepted, 250'000);
}

}  // namespace
}  // namespace detent::json

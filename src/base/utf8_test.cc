#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace detent {
namespace {

TEST(Utf8, EveryCodePointThatIsWrittenIsReadBackWhole) {
  for (std::uint32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code_point);
    ASSERT_EQ(utf8_character_size(text), text.size()) << code_point;
  }
}

TEST(Utf8, OtherBytesAreNotACharacter) {
  for (const char* text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF",      // stray and overlong
                           "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",          // overlong
                           "\xED\xA0\x80", "\xED\xBF\xBF",              // surrogates
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",      // above U+10FFFF
                           "\xFE", "\xFF", "\xE2\x82", "\xF0\x9F\x98",  // not bytes; cut off
                           "\xE2\x28\xA1", "\xE2\x82\x28"}) {           // wrong continuation
    EXPECT_EQ(utf8_character_size(text), 0U) << testing::PrintToString(std::string(text));
  }
  EXPECT_EQ(utf8_character_size(""), 0U);
}

TEST(Utf8, OnlyTheFirstCharacterCounts) {
  EXPECT_EQ(utf8_character_size("a\xFF"), 1U);
  EXPECT_EQ(utf8_character_size("\xC3\xA9\xFF"), 2U);
}

}  // namespace
}  // namespace detent

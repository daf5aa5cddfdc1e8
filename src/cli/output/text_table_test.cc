#include "cli/output/text_table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace detent::cli {
namespace {

std::string shown(std::vector<Row> rows, std::size_t columns,
                  std::initializer_list<std::size_t> cuts) {
  std::ostringstream out;
  show_table(out, std::move(rows), columns, cuts);
  return out.str();
}

TEST(TextTable, WidthsAreThoseOfATerminal) {
  EXPECT_EQ(width_of(""), 0U);
  EXPECT_EQ(width_of("abc"), 3U);
  EXPECT_EQ(width_of("h\xC3\xA9"), 2U);                 // é
  EXPECT_EQ(width_of("\xE6\x97\xA5\xE6\x9C\xAC"), 4U);  // two Japanese characters
  EXPECT_EQ(width_of("e\xCC\x81"), 1U) << "the accent goes onto the e";
  EXPECT_EQ(width_of("\xF0\x9F\x98\x80"), 2U);  // an emoji
  EXPECT_EQ(width_of("\xFF\xC3"), 2U) << "no UTF-8";
}

TEST(TextTable, WhatIsCutEndsInAnEllipsisAndIsStillUtf8) {
  EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to("abcdef", 5), "abcd\xE2\x80\xA6");
  EXPECT_EQ(cut_to("abcdef", 1), "\xE2\x80\xA6");
  EXPECT_EQ(cut_to("\xC3\xA9\xC3\xA9\xC3\xA9", 2), "\xC3\xA9\xE2\x80\xA6");
  // A wide character that does not fit completely is left out.
  EXPECT_EQ(cut_to("\xE6\x97\xA5\xE6\x9C\xAC", 3), "\xE6\x97\xA5\xE2\x80\xA6");
  EXPECT_EQ(cut_to("\xE6\x97\xA5\xE6\x9C\xAC", 2), "\xE2\x80\xA6");
}

TEST(TextTable, ColumnsLineUpWhateverTheCharacters) {
  EXPECT_EQ(shown({{"A", "B"}, {"h\xC3\xA9", "1"}, {"\xE6\x97\xA5", "2"}}, 0, {}),
            "A   B\nh\xC3\xA9  1\n\xE6\x97\xA5  2\n");
}

TEST(TextTable, CutsTheFirstColumnNamedThenTheNextUntilItFits) {
  const std::vector<Row> rows{{"NAME", "N", "TEXT"},
                              {"a-rather-long-name", "1", std::string(40, 'x')}};
  EXPECT_EQ(shown(rows, 0, {2, 0}), shown(rows, 100, {2, 0}));
  EXPECT_EQ(shown(rows, 40, {2, 0}),
            "NAME                N  TEXT\na-rather-long-name  1  xxxxxxxxxxxxxxxx\xE2\x80\xA6\n");
  EXPECT_EQ(shown(rows, 25, {2, 0}),
            "NAME          N  TEXT\na-rather-lo\xE2\x80\xA6  1  xxxxxxx\xE2\x80\xA6\n");
  // A column is not cut below eight, and only the given columns are cut. Then lines are cut.
  EXPECT_EQ(shown(rows, 30, {2}),
            "NAME                N  TEXT\na-rather-long-name  1  xxxxxx\xE2\x80\xA6\n");
  EXPECT_EQ(shown(rows, 20, {2}),
            "NAME               \xE2\x80\xA6\na-rather-long-name \xE2\x80\xA6\n");
}

}  // namespace
}  // namespace detent::cli

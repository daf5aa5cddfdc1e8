// Tests the suggestions for mistyped words.
#include "cli/output/suggestion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace detent::cli {
namespace {

TEST(Suggestion, IsTheKnownWordThatIsFewestEditsAway) {
  const std::vector<std::string> known{"get", "put", "list", "lease"};
  EXPECT_EQ(suggestion("gett", known), "; did you mean 'get'?");
  EXPECT_EQ(suggestion("lst", known), "; did you mean 'list'?");
  EXPECT_EQ(suggestion("leaze", known), "; did you mean 'lease'?");
}

TEST(Suggestion, IsNothingWhenMoreThanHalfWouldHaveToChange) {
  const std::vector<std::string> known{"get", "put"};
  EXPECT_EQ(suggestion("frobnicate", known), "");
  EXPECT_EQ(suggestion("xy", known), "");
  EXPECT_EQ(suggestion("", known), "");
  EXPECT_EQ(suggestion("get", {}), "");
}

TEST(Suggestion, HyphensBeforeAnOptionDoNotCount) {
  const std::vector<std::string> known{"--by", "--delay"};
  EXPECT_EQ(suggestion("-delay", known), "; did you mean '--delay'?");
  EXPECT_EQ(suggestion("--x", known), "");
}

}  // namespace
}  // namespace detent::cli

#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detent/internal/value_or.h"

namespace detent {
namespace {

Error not_found(std::string message) {
  return Error{.code = ErrorCode::not_found, .message = std::move(message), .field = "id"};
}

Result<int> half(int value) {
  if (value % 2 != 0) return not_found("odd");
  return value / 2;
}

Result<int> quarter(int value) {
  ASSIGN_OR_RETURN(const int halved, half(value));
  return half(halved);
}

Result<void> must_be_even(int value) {
  TRY(half(value));
  return ok();
}

TEST(Result, HoldsAValueOrAnError) {
  ASSERT_TRUE(half(4).has_value());
  EXPECT_EQ(*half(4), 2);
  ASSERT_FALSE(half(3).has_value());
  EXPECT_EQ(half(3).error(), not_found("odd"));
}

TEST(Result, AssignOrReturnPassesTheErrorOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(7).error().message, "odd");
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Result, TryReturnsOnlyOnError) {
  EXPECT_TRUE(must_be_even(2).has_value());
  EXPECT_EQ(must_be_even(1).error().field, "id");
}

TEST(Result, HoldsMoveOnlyValues) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto use = [&]() -> Result<int> {
    ASSIGN_OR_RETURN(const auto pointer, make());
    return *pointer;
  };
  EXPECT_EQ(use().value(), 7);
}

// ValueOr is the common base of the results in public headers.
using Words = internal::ValueOr<std::vector<std::string>, Error>;

TEST(ValueOr, ItsValueCanBeUsedInPlaceAndMovedOut) {
  Words words{{"one"}};
  words.value().emplace_back("two");
  words->push_back("three");
  (*words).front() = "1";
  const Words& unchanged = words;
  EXPECT_EQ(unchanged->size(), 3u);
  EXPECT_EQ((*unchanged).front(), "1");
  EXPECT_EQ(unchanged.value().back(), "three");
  const std::vector<std::string> taken = *std::move(words);
  EXPECT_EQ(taken.size(), 3u);
}

TEST(ValueOrDeathTest, UsingAMissingValueOrErrorStopsTheProcess) {
  Words none{not_found("odd")};
  EXPECT_DEATH(none->clear(), "has_value");
  EXPECT_DEATH((*none).clear(), "has_value");
  EXPECT_DEATH(none.value().clear(), "has_value");
}

TEST(Error, ContextGoesInFrontAndKeepsCodeAndField) {
  const Error error = with_context("open store", not_found("no such file"));
  EXPECT_EQ(error.message, "open store: no such file");
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.field, "id");
}

TEST(ErrorCode, EachHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::internal) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace detent

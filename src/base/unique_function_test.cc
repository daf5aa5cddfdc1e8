#include "detent/unique_function.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace detent {
namespace {

TEST(UniqueFunction, HoldsWhatCanOnlyBeMoved) {
  UniqueFunction<int(int)> add = [base = std::make_unique<int>(40)](int more) {
    return *base + more;
  };
  EXPECT_EQ(add(2), 42);
}

TEST(UniqueFunction, IsEmptyWhenDefaultConstructedOrMovedFrom) {
  UniqueFunction<void()> empty;
  EXPECT_FALSE(empty);
  UniqueFunction<void()> full = [] {};
  EXPECT_TRUE(full);
  UniqueFunction<void()> taken = std::move(full);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(full);  // NOLINT(bugprone-use-after-move): the state after a move is the promise
}

TEST(UniqueFunction, KeepsStateBetweenCalls) {
  UniqueFunction<int()> count = [n = 0]() mutable { return ++n; };
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(count(), 2);
}

TEST(UniqueFunction, TakesAnLvalueByCopyAndArgumentsByReference) {
  int calls = 0;
  auto bump = [&calls](int& value) { ++value, ++calls; };
  UniqueFunction<void(int&)> function = bump;
  int value = 1;
  function(value);
  bump(value);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(calls, 2);
}

TEST(UniqueFunction, DestroysItsCallableOnce) {
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = alive;
  {
    UniqueFunction<void()> function = [held = std::move(alive)] {};
    UniqueFunction<void()> moved = std::move(function);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(UniqueFunctionDeathTest, CallingAnEmptyOneStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  UniqueFunction<void()> empty;
  EXPECT_DEATH(empty(), "check failed: target_ != nullptr");
}

}  // namespace
}  // namespace detent

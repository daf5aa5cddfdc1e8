#include "c/timer_numbers.h"

#include <gtest/gtest.h>

namespace detent::c {
namespace {

TEST(TimerNumbers, AnOldIdNamesNoTimer) {
  TimerNumbers<> numbers;
  EXPECT_EQ(numbers.next(), 0u);
  const std::uint64_t old = numbers.take(7);
  EXPECT_EQ(numbers.data_of(*numbers.find(old)), 7u);
  numbers.give_back(0);
  EXPECT_EQ(numbers.next(), 0u);
  const std::uint64_t now = numbers.take(8);
  EXPECT_NE(old, now);
  EXPECT_FALSE(numbers.find(old));
  EXPECT_EQ(numbers.data_of(*numbers.find(now)), 8u);
}

TEST(TimerNumbers, ZeroAndUnknownIdsNameNoTimer) {
  TimerNumbers<> numbers;
  EXPECT_FALSE(numbers.find(0));
  numbers.next();
  EXPECT_FALSE(numbers.find(std::uint64_t{1} << 32 | 5));
  numbers.take(1);
  EXPECT_FALSE(numbers.find(0));
}

TEST(TimerNumbers, ANumberIsRetiredAfterItsLastUse) {
  TimerNumbers<2> numbers;
  for (int use = 1; use <= 2; ++use) {
    EXPECT_EQ(numbers.next(), 0u);
    numbers.take(0);
    numbers.give_back(0);
  }
  EXPECT_EQ(numbers.next(), 1u);
}

}  // namespace
}  // namespace detent::c

#include "base/log/log_pace.h"

#include <gtest/gtest.h>

#include <chrono>

namespace detent {
namespace {

using namespace std::chrono_literals;

TEST(LogPace, AContinuingProblemIsLoggedImmediatelyAndThenOnceAMinute) {
  LogPace pace;
  int told = 0;
  for (MonotonicTime now; now < MonotonicTime() + 3min; now += 500ms) {
    if (pace.is_worth_a_line("the name is taken", now)) ++told;
  }
  EXPECT_EQ(told, 3);
}

TEST(LogPace, AnotherCauseIsLoggedImmediately) {
  LogPace pace;
  const MonotonicTime start;
  EXPECT_TRUE(pace.is_worth_a_line("the name is taken", start));
  EXPECT_TRUE(pace.is_worth_a_line("connection refused", start + 1ms));
  EXPECT_FALSE(pace.is_worth_a_line("connection refused", start + 59s));
  EXPECT_TRUE(pace.is_worth_a_line("connection refused", start + 61s));
}

TEST(LogPace, ANumberMakesNoOtherCause) {
  LogPace pace;
  const MonotonicTime start;
  EXPECT_TRUE(pace.is_worth_a_line("the lease runs out in 9500 ms", start));
  EXPECT_FALSE(pace.is_worth_a_line("the lease runs out in 750 ms", start + 9s));
}

}  // namespace
}  // namespace detent

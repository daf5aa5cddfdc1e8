#include "task/lateness.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using std::chrono::nanoseconds;

TEST(Lateness, TheMainCauseIsTheLargestPartAndTheFirstOfEqualOnes) {
  EXPECT_EQ(main_cause({nanoseconds{1}, nanoseconds{2}, nanoseconds{9}, nanoseconds{3}}),
            LatenessCause::limit);
  EXPECT_EQ(main_cause({nanoseconds{0}, nanoseconds{2}, nanoseconds{2}, nanoseconds{1}}),
            LatenessCause::engine);
  EXPECT_EQ(main_cause({}), LatenessCause::before_start);
}

TEST(Lateness, EachCauseHasAName) {
  EXPECT_EQ(to_string(LatenessCause::before_start), "before_start");
  EXPECT_EQ(to_string(LatenessCause::engine), "engine");
  EXPECT_EQ(to_string(LatenessCause::limit), "limit");
  EXPECT_EQ(to_string(LatenessCause::worker), "worker");
}

}  // namespace
}  // namespace detent

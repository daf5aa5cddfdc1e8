#include "task/due_bin.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr WallTime kNow{milliseconds{1'767'323'045'678}};  // 2026-01-02T03:04:05.678Z

TEST(DueBin, IsTheMinuteOfATaskThatIsDueWithin400Days) {
  const DueBin bin = due_bin_of(kNow, kNow);
  EXPECT_EQ(bin, (DueBin{.width = DueBin::Width::minute, .number = 29'455'384}));
  EXPECT_EQ(begin_of(bin), WallTime{milliseconds{1'767'323'040'000}});  // 03:04:00
  EXPECT_EQ(width_of(bin), minutes{1});
  EXPECT_EQ(due_bin_of(kNow + hours{24 * 400} - milliseconds{1}, kNow).width,
            DueBin::Width::minute);
}

TEST(DueBin, IsTheDayOfATaskThatIsDueLater) {
  const DueBin bin = due_bin_of(kNow + hours{24 * 400}, kNow);
  EXPECT_EQ(bin, (DueBin{.width = DueBin::Width::day, .number = 20'455 + 400}));
  EXPECT_EQ(begin_of(bin), WallTime{std::chrono::sys_days{std::chrono::year{2027} / 2 / 6}});
  EXPECT_EQ(width_of(bin), hours{24});
}

TEST(DueBin, ATaskThatWasDueBeforeItsCreationIsInAMinuteBin) {
  EXPECT_EQ(due_bin_of(WallTime{}, kNow), (DueBin{.width = DueBin::Width::minute, .number = 0}));
  EXPECT_EQ(due_bin_of(WallTime{milliseconds{-1}}, kNow).number, -1);
}

TEST(DueBin, EndsWhereTheNextBinBegins) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  constexpr std::uint64_t kEnd = 253'402'300'800'000;  // year 10 000
  for (int i = 0; i < 20'000; ++i) {
    const auto instant = [&] {
      return WallTime{milliseconds{(rng.next() >> rng.below(64)) % kEnd}};
    };
    const WallTime due_at = instant();
    const DueBin bin = due_bin_of(due_at, instant());
    ASSERT_LE(begin_of(bin), due_at);
    ASSERT_LT(due_at, begin_of(bin) + width_of(bin));
    ASSERT_EQ(begin_of({bin.width, bin.number + 1}), begin_of(bin) + width_of(bin));
  }
}

}  // namespace
}  // namespace detent

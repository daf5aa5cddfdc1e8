// Ticks within the slack: the roundest tick, and the least loaded of a few ticks.
#include "runtime/dates/slack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/test_seed.h"

namespace detent::internal {
namespace {

constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

/// The tick with the most trailing zero bits, found by trying all ticks.
Tick roundest(Tick first, Tick last) {
  Tick best = first;
  for (Tick tick = first;; ++tick) {
    if (std::countr_zero(tick) > std::countr_zero(best)) best = tick;
    if (tick == last) return best;
  }
}

TEST(CoalescedTick, IsTheRoundestOfEverySmallWindow) {
  for (Tick tick = 0; tick < 300; ++tick) {
    for (Tick slack = 0; slack < 300; ++slack) {
      ASSERT_EQ(coalesced_tick(tick, slack), roundest(tick, tick + slack)) << tick << "+" << slack;
    }
  }
}

TEST(CoalescedTick, IsTheRoundestOfEveryWindowAtTheEndOfTicks) {
  for (Tick back = 0; back < 200; ++back) {
    for (Tick slack = 0; slack < 300; ++slack) {
      const Tick tick = kLastTick - back;
      const Tick last = slack > back ? kLastTick : tick + slack;
      ASSERT_EQ(coalesced_tick(tick, slack), roundest(tick, last)) << "-" << back << "+" << slack;
    }
  }
  EXPECT_EQ(coalesced_tick(1, kLastTick), Tick{1} << 63);
  EXPECT_EQ(coalesced_tick(0, kLastTick), 0u);
  EXPECT_EQ(coalesced_tick(kLastTick, kLastTick), kLastTick);
}

TEST(CoalescedTick, WithoutSlackIsTheTick) {
  for (const Tick tick : {Tick{0}, Tick{1}, Tick{1000}, Tick{1} << 63, kLastTick}) {
    EXPECT_EQ(coalesced_tick(tick, 0), tick);
  }
}

TEST(CoalescedTick, NeverLeavesTheWindowNorMissesARounderTickInIt) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int i = 0; i < 200'000; ++i) {
    const Tick tick = rng.next() >> rng.below(64);
    const Tick slack = rng.next() >> rng.below(64);
    const Tick chosen = coalesced_tick(tick, slack);
    const Tick last = end_of_window(tick, slack);
    ASSERT_GE(chosen, tick);
    ASSERT_LE(chosen, last);
    if (chosen == 0) continue;
    // Rounder ticks are multiples of twice its lowest bit. The nearest of them are one lowest bit
    // away on each side.
    const Tick bit = chosen & (~chosen + 1);
    ASSERT_TRUE(chosen - bit < tick);
    ASSERT_TRUE(chosen + bit > last || chosen + bit == 0);
  }
}

TEST(CoalescedTick, WindowsThatOverlapShareWakeUps) {
  std::set<Tick> wake_ups;
  for (Tick tick = 10'000; tick < 20'000; tick += 7) wake_ups.insert(coalesced_tick(tick, 1'000));
  EXPECT_LE(wake_ups.size(), 30u) << "of 1429 timers";
}

TEST(ValleyMap, NeverLeavesTheWindow) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  ValleyMap valleys(10);
  for (int i = 0; i < 100'000; ++i) {
    const Tick tick = rng.next() >> rng.below(64);
    const Tick slack = rng.next() >> rng.below(64);
    const Tick placed = valleys.place(tick, slack, rng);
    ASSERT_GE(placed, tick);
    ASSERT_LE(placed, end_of_window(tick, slack));
  }
  valleys.place(0, kLastTick, rng);  // any tick at all
  EXPECT_EQ(valleys.place(5, 0, rng), 5u);
  EXPECT_EQ(valleys.place(kLastTick, 100, rng), kLastTick);
}

TEST(ValleyMap, TakesTheEmptierOfTwoBins) {
  Rng rng(1);
  ValleyMap valleys(10);
  for (int i = 0; i < 1'000; ++i) valleys.place(100, 9, rng);
  EXPECT_EQ(valleys.timers_at(100), 1'000u);
  int in_the_valley = 0;
  for (int i = 0; i < 1'000; ++i) in_the_valley += valleys.place(100, 19, rng) >= 110 ? 1 : 0;
  EXPECT_GE(in_the_valley, 890) << "four choices miss a half of the window one time in 16";
  EXPECT_EQ(valleys.timers_at(100) + valleys.timers_at(119), 2'000u);
}

/// The number of timers in the fullest bin of 10 ticks.
std::uint64_t fullest_bin(const std::vector<Tick>& placed) {
  std::map<Tick, std::uint64_t> bins;
  std::uint64_t fullest = 0;
  for (const Tick tick : placed) fullest = std::max(fullest, ++bins[tick / 10]);
  return fullest;
}

struct Fullest {
  std::uint64_t without_slack;
  std::uint64_t at_random;
  std::uint64_t in_valleys;
};

/// 100 000 timers with a slack of 1000 ticks, on random deadlines that are multiples of `apart`.
Fullest fullest_bins(Tick deadline_count, Tick apart, Rng& rng) {
  ValleyMap valleys(10);
  std::vector<Tick> deadlines;
  std::vector<Tick> random;
  std::vector<Tick> placed;
  for (int i = 0; i < 100'000; ++i) {
    const Tick deadline = 5'000 + apart * (rng.next() % deadline_count);
    deadlines.push_back(deadline);
    random.push_back(deadline + rng.next() % 1'001);
    placed.push_back(valleys.place(deadline, 1'000, rng));
  }
  const std::uint64_t in_valleys = fullest_bin(placed);
  const auto is_fullest = [&](Tick tick) { return valleys.timers_at(tick) == in_valleys; };
  EXPECT_TRUE(std::any_of(placed.begin(), placed.end(), is_fullest));
  return {fullest_bin(deadlines), fullest_bin(random), in_valleys};
}

TEST(ValleyMap, ManyTimersWithOneDeadlineAreSpreadEvenly) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const Fullest fullest = fullest_bins(1, 0, rng);
  EXPECT_EQ(fullest.without_slack, 100'000u);
  EXPECT_GT(fullest.at_random, 1'030u) << "100 bins of 1000 ± 32";
  EXPECT_LT(fullest.in_valleys, 1'010u);
}

TEST(ValleyMap, FillsTheValleysBetweenPeaks) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const Fullest fullest = fullest_bins(20, 700, rng);  // windows overlap in three of ten parts
  EXPECT_GT(fullest.without_slack, 4'500u);
  EXPECT_GT(fullest.at_random, 110u) << "100 ± 10 where windows overlap, else 50";
  EXPECT_LT(fullest.in_valleys, 80u) << "70 if it were even";
}

TEST(ValleyMap, CountsLikeAMap) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (const Tick bin_width : {Tick{1}, Tick{10}, Tick{1} << 40}) {
    ValleyMap valleys(bin_width);
    std::map<Tick, std::uint64_t> model;
    std::vector<Tick> placed;
    for (int i = 0; i < 60'000; ++i) {
      const bool grows = i / 10'000 % 2 == 0;
      if (placed.empty() || rng.below(10) < (grows ? 8u : 2u)) {
        const Tick tick = rng.below(3'000) * bin_width;
        placed.push_back(valleys.place(tick, rng.below(3) * bin_width, rng));
        ++model[placed.back() / bin_width];
      } else {
        std::swap(placed[rng.below(static_cast<std::uint32_t>(placed.size()))], placed.back());
        valleys.remove(placed.back());
        const auto bin = model.find(placed.back() / bin_width);
        if (--bin->second == 0) model.erase(bin);
        placed.pop_back();
      }
      ASSERT_EQ(valleys.bin_count(), model.size());
      const Tick asked = rng.below(3'000);
      const auto bin = model.find(asked);
      ASSERT_EQ(valleys.timers_at(asked * bin_width), bin == model.end() ? 0 : bin->second);
    }
  }
}

TEST(ValleyMap, GivesItsMemoryBack) {
  Rng rng(1);
  ValleyMap valleys(10);
  std::vector<Tick> placed;
  for (Tick i = 0; i < 100'000; ++i) placed.push_back(valleys.place(i * 10, 1'000, rng));
  EXPECT_GT(valleys.bin_count(), 30'000u);
  EXPECT_LE(valleys.capacity(), 8 * valleys.bin_count());
  for (const Tick tick : placed) {
    valleys.remove(tick);
    EXPECT_LE(valleys.capacity(), std::max<std::size_t>(8, 8 * valleys.bin_count()));
  }
  EXPECT_EQ(valleys.bin_count(), 0u);
  EXPECT_EQ(valleys.capacity(), 8u);
}

TEST(ValleyMap, ManyTimersInOneBinTakeTheMemoryOfOneBin) {
  Rng rng(1);
  ValleyMap valleys(1'000);
  for (int i = 0; i < 10'000; ++i) valleys.place(5'000, 999, rng);
  EXPECT_EQ(valleys.bin_count(), 1u);
  EXPECT_EQ(valleys.capacity(), 8u);
}

TEST(ValleyMapDeathTest, ATimerThatWasNotPlacedCannotBeRemoved) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ValleyMap(0), "bin_width > 0");
  Rng rng(1);
  ValleyMap valleys(10);
  valleys.place(100, 0, rng);
  valleys.remove(109);
  EXPECT_DEATH(valleys.remove(100), "timers > 0");
}

}  // namespace
}  // namespace detent::internal

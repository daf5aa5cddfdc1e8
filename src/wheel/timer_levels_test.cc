#include "detent/internal/timer_levels.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace detent::internal {
namespace {

constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

void take_next(TimerLevels& levels, LinkChains& into) {
  const TimerLevels::Slot slot = *levels.next();
  levels.take(slot, slot.start, into);
}

static_assert(TimerLevels::level_of(0, 0) == 0);
static_assert(TimerLevels::level_of(0, 63) == 0);
static_assert(TimerLevels::level_of(0, 64) == 1);
static_assert(TimerLevels::level_of(63, 64) == 1, "the next tick may be on the next level");
static_assert(TimerLevels::level_of(64, 127) == 0);
static_assert(TimerLevels::level_of(0, kLastTick) == 10);
static_assert(TimerLevels::digit(kLastTick, 10) == 15, "the top digit has four bits");

TEST(TimerLevels, LevelIsThatOfTheHighestDigitThatDiffers) {
  for (unsigned level = 0; level < TimerLevels::kLevelCount; ++level) {
    const Tick unit = Tick{1} << (level * TimerLevels::kDigitBits);
    EXPECT_EQ(TimerLevels::level_of(0, unit), level);
    EXPECT_EQ(TimerLevels::level_of(unit - 1, unit), level);
    if (level > 0) {
      EXPECT_EQ(TimerLevels::level_of(0, unit - 1), level - 1);
    }
  }
}

TEST(TimerLevels, NextIsTheEarliestSlotOfAnyLevel) {
  TimerLevels levels(100);
  std::array<Link, 4> links;
  levels.insert(links[0], 70'000, Spread::one_chain);
  levels.insert(links[1], 300, Spread::one_chain);
  levels.insert(links[2], 103, Spread::one_chain);
  levels.insert(links[3], 100, Spread::one_chain);

  EXPECT_EQ(levels.next()->start, 100u);
  LinkChains taken;
  take_next(levels, taken);
  EXPECT_EQ(levels.next()->start, 103u);
  take_next(levels, taken);
  EXPECT_EQ(levels.next()->level, 1u);
  EXPECT_EQ(levels.next()->start, 256u) << "the slot of 300 covers 256 to 319";
  take_next(levels, taken);
  EXPECT_EQ(levels.base(), 256u);
  EXPECT_EQ(levels.next()->start, 69'632u) << "17 × 64², the slot of 70000 on level 2";
  levels.check_invariants();
}

TEST(TimerLevels, LastTickIsInTheLastSlot) {
  TimerLevels levels(0);
  Link link;
  levels.insert(link, kLastTick, Spread::one_chain);

  EXPECT_EQ(levels.next()->level, 10u);
  EXPECT_EQ(levels.next()->index, 15u);
  EXPECT_EQ(levels.next()->start, Tick{15} << 60);
}

TEST(TimerLevels, EmptiedSlotIsNoLongerNext) {
  TimerLevels levels(0);
  Link near;
  Link far;
  levels.insert(near, 5, Spread::one_chain);
  levels.insert(far, 5'000, Spread::one_chain);

  levels.note_emptied(unlink(near));
  EXPECT_EQ(levels.next()->start, 4'096u);
  levels.note_emptied(unlink(far));
  EXPECT_FALSE(levels.next().has_value());
  EXPECT_TRUE(levels.empty());
  levels.check_invariants();
}

TEST(TimerLevels, EmptiedListOfSomeoneElseChangesNothing) {
  TimerLevels levels(0);
  TimerLevels others(0);
  Link ours;
  Link theirs;
  Link loose;
  LinkList list;
  levels.insert(ours, 5, Spread::one_chain);
  others.insert(theirs, 5, Spread::one_chain);
  list.push_back(loose);

  levels.note_emptied(unlink(theirs));
  levels.note_emptied(unlink(loose));

  EXPECT_EQ(levels.next()->start, 5u);
  levels.check_invariants();
}

TEST(TimerLevels, SpreadLinksAreTakenAllAndLeaveTheSlotEmptyOnlyWhenAllAreGone) {
  TimerLevels levels(0);
  std::array<Link, 20> links;
  for (Link& link : links) levels.insert(link, 1'000, Spread::over_all_chains);
  levels.check_invariants();
  for (std::size_t i = 0; i < 10; ++i) levels.note_emptied(unlink(links[i]));
  levels.check_invariants();
  EXPECT_EQ(levels.next()->start, 960u);

  LinkChains taken;
  take_next(levels, taken);
  EXPECT_TRUE(levels.empty());
  std::size_t count = 0;
  while (taken.pop() != nullptr) ++count;
  EXPECT_EQ(count, 10u);
}

TEST(TimerLevels, OnlyLinkOfASlot) {
  TimerLevels levels(0);
  std::array<Link, 3> links;
  for (Link& link : links) levels.insert(link, 1'000, Spread::over_all_chains);
  EXPECT_EQ(levels.only_link(*levels.next()), nullptr);
  levels.note_emptied(unlink(links[0]));
  EXPECT_EQ(levels.only_link(*levels.next()), nullptr);
  levels.note_emptied(unlink(links[2]));
  EXPECT_EQ(levels.only_link(*levels.next()), &links[1]);
  levels.insert(links[0], 1'001, Spread::one_chain);
  levels.insert(links[2], 1'001, Spread::one_chain);
  levels.note_emptied(unlink(links[1]));
  EXPECT_EQ(levels.only_link(*levels.next()), nullptr) << "two in one chain";
}

TEST(TimerLevels, SlotsStayInOrderWhenTheBaseMoves) {
  TimerLevels levels(0);
  std::array<Link, 2> links;
  levels.insert(links[0], 200, Spread::one_chain);
  levels.set_base(150);
  levels.insert(links[1], 190, Spread::one_chain);

  EXPECT_EQ(levels.next()->start, 190u);
  levels.check_invariants();
}

}  // namespace
}  // namespace detent::internal

#include "detent/internal/level_map.h"

#include <gtest/gtest.h>

#include <limits>

namespace detent::internal {
namespace {

constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

static_assert(LevelMap<6>::level_of(0, 0) == 0);
static_assert(LevelMap<6>::level_of(0, 63) == 0);
static_assert(LevelMap<6>::level_of(0, 64) == 1);
static_assert(LevelMap<6>::level_of(63, 64) == 1, "the next tick may be on the next level");
static_assert(LevelMap<6>::level_of(64, 127) == 0);
static_assert(LevelMap<6>::level_of(0, kLastTick) == 10);
static_assert(LevelMap<6>::digit(kLastTick, 10) == 15, "the top digit has four bits");
static_assert(LevelMap<8>::level_of(0, kLastTick) == 7);
static_assert(LevelMap<8>::digit(kLastTick, 7) == 255);

template <class Map>
class LevelMapOf : public testing::Test {};
using Maps = testing::Types<LevelMap<1>, LevelMap<2>, LevelMap<4>, LevelMap<6>, LevelMap<8>>;
TYPED_TEST_SUITE(LevelMapOf, Maps);

template <class Map>
unsigned occupy(Map& map, Tick tick) {
  const unsigned slot = map.slot_of(tick);
  map.set_occupied(slot);
  return slot;
}

TYPED_TEST(LevelMapOf, LevelIsThatOfTheHighestDigitThatDiffers) {
  using Map = TypeParam;
  for (unsigned level = 0; level < Map::kLevelCount; ++level) {
    const Tick unit = Tick{1} << (level * (64 / Map::kLevelCount + (64 % Map::kLevelCount != 0)));
    EXPECT_EQ(Map::level_of(0, unit), level);
    EXPECT_EQ(Map::level_of(unit - 1, unit), level);
    if (level > 0) {
      EXPECT_EQ(Map::level_of(0, unit - 1), level - 1);
    }
  }
}

TYPED_TEST(LevelMapOf, SlotOfATickCoversTheTick) {
  for (const Tick base : {Tick{0}, Tick{100}, Tick{1} << 40, kLastTick - 70'000}) {
    const TypeParam map(base);
    for (Tick delay = 0; delay < 70'000; delay = delay * 3 / 2 + 1) {
      const auto slot = map.slot(map.slot_of(base + delay));
      EXPECT_LE(slot.start, base + delay);
      EXPECT_GE(slot.last(), base + delay);
    }
  }
}

TYPED_TEST(LevelMapOf, NextIsTheEarliestSlotOfAnyLevel) {
  TypeParam map(100);
  EXPECT_TRUE(map.empty());
  EXPECT_FALSE(map.next());
  for (const Tick tick : {Tick{70'000}, Tick{300}, Tick{103}, Tick{100}}) occupy(map, tick);
  Tick last = 0;
  for (const Tick tick : {Tick{100}, Tick{103}, Tick{300}, Tick{70'000}}) {
    const auto next = map.next();
    ASSERT_TRUE(next);
    EXPECT_LE(next->start, tick);
    EXPECT_GE(next->last(), tick);
    EXPECT_GE(next->start, last);
    last = next->start;
    map.check_invariants();
    map.clear_occupied(next->number);
    map.set_base(next->start);
  }
  EXPECT_TRUE(map.empty());
}

TYPED_TEST(LevelMapOf, LastTickIsInTheLastSlot) {
  TypeParam map(0);
  const unsigned slot = occupy(map, kLastTick);
  ASSERT_TRUE(map.next());
  EXPECT_EQ(map.next()->number, slot);
  EXPECT_EQ(map.next()->last(), kLastTick);
  map.set_base(map.next()->start);
  map.clear_occupied(slot);
  map.set_base(kLastTick);
  EXPECT_EQ(map.slot(map.slot_of(kLastTick)).start, kLastTick);
}

TYPED_TEST(LevelMapOf, LevelIsOccupiedUntilItsLastSlotIsNot) {
  using Map = TypeParam;
  Map map(0);
  for (unsigned slot = 1; slot < Map::kSlotsPerLevel; ++slot) map.set_occupied(slot);
  for (unsigned slot = Map::kSlotsPerLevel - 1; slot > 0; --slot) {
    EXPECT_FALSE(map.empty());
    EXPECT_EQ(map.next()->number, 1u);
    map.check_invariants();
    map.clear_occupied(slot);
  }
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace detent::internal

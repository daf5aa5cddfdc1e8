#include "base/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/test_seed.h"

namespace detent {
namespace {

/// Counts the live values, to find values that are destroyed twice or never.
struct Life {
  static inline int alive = 0;
  Life() { ++alive; }
  ~Life() { --alive; }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
};

struct Thing {
  std::uint32_t index;
  std::uint64_t mark = 0;
  Life life{};
};

constexpr std::uint32_t kChunk = Slab<Thing>::kChunkSize;

TEST(Slab, FindsOnlyValuesByTheirIndex) {
  Slab<Thing> slab;
  EXPECT_EQ(slab.find(0), nullptr);
  Thing& thing = slab.emplace();
  EXPECT_EQ(slab.find(thing.index), &thing);
  EXPECT_EQ(&slab[thing.index], &thing);
  EXPECT_EQ(slab.find(thing.index + 1), nullptr);
  EXPECT_EQ(slab.find(kChunk), nullptr);
  EXPECT_EQ(slab.find(~std::uint32_t{0}), nullptr);
}

TEST(Slab, AnErasedValueIsDestroyedAndIsNotFound) {
  Slab<Thing> slab;
  const std::uint32_t index = slab.emplace().index;
  ASSERT_EQ(Life::alive, 1);
  slab.erase(index);
  EXPECT_EQ(Life::alive, 0);
  EXPECT_EQ(slab.find(index), nullptr);
  EXPECT_TRUE(slab.empty());
}

TEST(Slab, DestroysItsValuesWhenItEnds) {
  {
    Slab<Thing> slab;
    for (std::uint32_t i = 0; i < 3 * kChunk; ++i) slab.emplace();
    for (std::uint32_t i = 0; i < 3 * kChunk; i += 2) slab.erase(i);
    ASSERT_EQ(Life::alive, static_cast<int>(3 * kChunk / 2));
  }
  EXPECT_EQ(Life::alive, 0);
}

TEST(Slab, AValueInAReusedSlotIsNew) {
  Slab<Thing> slab;
  Thing& first = slab.emplace();
  const std::uint32_t index = first.index;
  first.mark = 7;
  slab.erase(index);
  const Thing& second = slab.emplace();
  EXPECT_EQ(second.index, index);
  EXPECT_EQ(second.mark, 0u);
}

TEST(Slab, FreesAllEmptyChunksExceptOne) {
  Slab<Thing> slab;
  for (int i = 0; i < 100'000; ++i) slab.emplace();
  EXPECT_EQ(slab.allocated_chunks(), (100'000 + kChunk - 1) / kChunk);
  slab.for_each([&](Thing& thing) { slab.erase(thing.index); });
  EXPECT_EQ(slab.allocated_chunks(), 1u);
  EXPECT_EQ(slab.find(99'999), nullptr) << "its chunk is gone, its index must still be safe";
}

// The purpose of the kept chunk: creating and erasing a single value never allocates. The position
// of the kept chunk among the freed chunks must not matter.
TEST(Slab, TheKeptChunkIsUsedFirst) {
  Slab<Thing> slab;
  for (std::uint32_t i = 0; i < 10 * kChunk; ++i) slab.emplace();
  slab.for_each([&](Thing& thing) { slab.erase(thing.index); });
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t index = slab.emplace().index;
    EXPECT_LT(index, kChunk) << "the first chunk was the first to become empty";
    slab.erase(index);
    EXPECT_EQ(slab.allocated_chunks(), 1u);
  }
}

TEST(Slab, VisitsInTheOrderOfIndices) {
  Slab<Thing> slab;
  for (std::uint32_t i = 0; i < 5 * kChunk; ++i) slab.emplace();
  for (std::uint32_t i = kChunk; i < 3 * kChunk; ++i) slab.erase(i);
  std::vector<std::uint32_t> visited;
  slab.for_each([&](Thing& thing) { visited.push_back(thing.index); });
  EXPECT_EQ(visited.size(), slab.size());
  EXPECT_EQ(std::ranges::adjacent_find(visited, std::greater_equal{}), visited.end());
}

// Compares a slab with a map while it fills and empties several times. Values never move, no value
// is lost, and indices stay below the largest number of values.
TEST(Slab, AgreesWithAMapUnderRandomUse) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  Slab<Thing> slab;
  std::map<std::uint32_t, Thing*> model;
  std::uint32_t most = 0;  // the largest number of values at one time
  for (unsigned step = 0; step < 50'000; ++step) {
    const bool filling = (step / 2'000) % 2 == 0;
    if (rng.below(10) < (filling ? 8u : 2u) || model.empty()) {
      Thing& thing = slab.emplace();
      thing.mark = step;
      ASSERT_TRUE(model.emplace(thing.index, &thing).second) << "the index is in use";
      most = std::max(most, static_cast<std::uint32_t>(model.size()));
      ASSERT_LT(thing.index, (most + kChunk - 1) / kChunk * kChunk);
    } else {
      const auto victim = model.lower_bound(rng.below(model.rbegin()->first + 1));
      slab.erase(victim->first);
      model.erase(victim);
    }
    const std::uint32_t index = rng.below(most + 2 * kChunk);
    const auto expected = model.find(index);
    ASSERT_EQ(slab.find(index), expected == model.end() ? nullptr : expected->second);
    ASSERT_EQ(slab.size(), model.size());
    if (step % 500 == 0) slab.check_invariants();
  }
  std::set<std::uint64_t> marks;
  slab.for_each([&](Thing& thing) {
    ASSERT_EQ(model.at(thing.index), &thing);
    marks.insert(thing.mark);
    slab.erase(thing.index);
  });
  EXPECT_EQ(marks.size(), model.size());
  EXPECT_EQ(Life::alive, 0);
  slab.check_invariants();
}

TEST(SlabDeathTest, AnIndexWithoutAValueStopsTheProcess) {
  Slab<Thing> slab;
  const std::uint32_t index = slab.emplace().index;
  slab.erase(index);
  EXPECT_DEATH(slab[index].mark = 1, "check failed");
  EXPECT_DEATH(slab.erase(index), "check failed");
}

}  // namespace
}  // namespace detent

#include "runtime/timer_slab.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/test_seed.h"

namespace detent::internal {
namespace {

TEST(TimerSlab, FindsAnEntryByItsWholeNameOnly) {
  TimerSlab slab;
  TimerEntry& entry = slab.allocate();
  const TimerId id = entry.id;
  EXPECT_EQ(slab.find(id), &entry);
  EXPECT_EQ(slab.find({.index = id.index, .generation = id.generation + 1}), nullptr);
  EXPECT_EQ(slab.find({.index = id.index + 1, .generation = id.generation}), nullptr);
  EXPECT_EQ(slab.find({.index = 1'000'000, .generation = id.generation}), nullptr);
  EXPECT_EQ(slab.find({}), nullptr);
}

TEST(TimerSlab, AnIndexUsedAgainHasAnotherGeneration) {
  TimerSlab slab;
  std::set<std::uint64_t> generations;
  TimerId first;
  for (int i = 0; i < 1000; ++i) {
    TimerEntry& entry = slab.allocate();
    if (i == 0) first = entry.id;
    EXPECT_EQ(entry.id.index, first.index);
    EXPECT_TRUE(generations.insert(entry.id.generation).second);
    slab.release(entry);
    EXPECT_EQ(slab.find(first), nullptr);
  }
}

TEST(TimerSlab, GivesMemoryBackButForOneChunk) {
  TimerSlab slab;
  std::vector<TimerEntry*> entries;
  for (int i = 0; i < 100'000; ++i) entries.push_back(&slab.allocate());
  const TimerId last = entries.back()->id;
  EXPECT_EQ(slab.allocated_chunks(), (100'000 + TimerSlab::kChunkSize - 1) / TimerSlab::kChunkSize);
  for (TimerEntry* entry : entries) slab.release(*entry);
  EXPECT_EQ(slab.size(), 0u);
  EXPECT_EQ(slab.allocated_chunks(), 1u);
  EXPECT_EQ(slab.find(last), nullptr) << "its chunk is gone, its name must still be safe";
}

// Against a map from generation to entry, through many cycles of filling and emptying.
TEST(TimerSlab, AgreesWithAMapUnderRandomUse) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  TimerSlab slab;
  std::map<std::uint64_t, TimerEntry*> model;
  std::vector<TimerId> released;
  for (int step = 0; step < 50'000; ++step) {
    const bool filling = (step / 2'000) % 2 == 0;
    if (rng.below(10) < (filling ? 8u : 2u) || model.empty()) {
      TimerEntry& entry = slab.allocate();
      ASSERT_TRUE(model.emplace(entry.id.generation, &entry).second);
    } else {
      auto victim = model.lower_bound(rng.next() % (model.rbegin()->first + 1));
      released.push_back(victim->second->id);
      slab.release(*victim->second);
      model.erase(victim);
    }
    ASSERT_EQ(slab.size(), model.size());
    if (!released.empty()) {
      ASSERT_EQ(slab.find(released[rng.next() % released.size()]), nullptr);
    }
  }
  std::size_t visited = 0;
  slab.for_each([&](TimerEntry& entry) {
    ++visited;
    ASSERT_EQ(model.at(entry.id.generation), &entry);
    slab.release(entry);
  });
  EXPECT_EQ(visited, model.size());
  EXPECT_LE(slab.allocated_chunks(), 1u);
}

}  // namespace
}  // namespace detent::internal

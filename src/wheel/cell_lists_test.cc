#include "detent/internal/cell_lists.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::internal {
namespace {

struct Owners {
  using Name = std::uint32_t;
  CellNumber& cell_of(Name name) noexcept { return cells[name]; }
  CellNumber find(Name name) const noexcept { return cells[name]; }
  Name release(Name name, Tick) noexcept { return name; }

  std::vector<CellNumber> cells = std::vector<CellNumber>(100'000, kNoCell);
};

constexpr unsigned kListCount = 5;
using Lists = CellLists<Owners, kListCount>;

std::set<std::uint32_t> names_of(Lists& lists, unsigned list) {
  std::set<std::uint32_t> names;
  lists.for_each([&](unsigned in, CellNumber cell, const Lists::Entry& entry) {
    if (in != list) return;
    EXPECT_EQ(lists.owners().find(entry.name), cell);
    EXPECT_TRUE(names.insert(entry.name).second);
  });
  return names;
}

// What LevelStore does to take a timer out.
unsigned take_out(Lists& lists, std::uint32_t name) {
  const CellNumber cell = lists.owners().find(name);
  return lists.remove(cell) ? lists.settle(cell) : Lists::kNoList;
}

void push_range(Lists& lists, unsigned list, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t name = from; name < to; ++name) lists.push(list, {name * Tick{10}, name});
}

TEST(Occupancy, CountsAndFindsItsBits) {
  Occupancy occupied;
  for (unsigned bit = 0; bit < Occupancy::kCapacity; ++bit) {
    EXPECT_FALSE(occupied.full());
    EXPECT_EQ(occupied.add(), bit);
    EXPECT_EQ(occupied.count(), bit + 1);
  }
  EXPECT_TRUE(occupied.full());
  occupied.remove(20);
  occupied.remove(55);
  EXPECT_FALSE(occupied.full());
  EXPECT_TRUE(occupied.contains(19));
  EXPECT_FALSE(occupied.contains(20));
  EXPECT_TRUE(occupied.contains(21));
  EXPECT_EQ(occupied.count(), Occupancy::kCapacity - 2);
  EXPECT_EQ(occupied.add(), 20u) << "the lowest hole";
  EXPECT_EQ(occupied.first(), 0u);
  occupied.remove(0);
  EXPECT_EQ(occupied.first(), 1u);
}

TEST(CellLists, PushSaysWhetherTheListWasEmpty) {
  Lists lists;
  EXPECT_TRUE(lists.empty(2));
  EXPECT_TRUE(lists.push(2, {7, 1}));
  EXPECT_FALSE(lists.push(2, {7, 2}));
  EXPECT_FALSE(lists.empty(2));
  EXPECT_TRUE(lists.push(3, {7, 3}));
  lists.check_invariants();
}

TEST(CellLists, SettleNamesTheListThatIsEmptyNow) {
  Lists lists;
  lists.push(2, {7, 1});
  lists.push(2, {7, 2});
  EXPECT_EQ(take_out(lists, 1), Lists::kNoList);
  EXPECT_EQ(take_out(lists, 2), 2u);
  EXPECT_TRUE(lists.empty(2));
}

TEST(CellLists, OnlyDeadlineIsThatOfALoneCell) {
  Lists lists;
  EXPECT_FALSE(lists.only_deadline(0));
  lists.push(0, {70, 1});
  EXPECT_EQ(lists.only_deadline(0), Tick{70});
  push_range(lists, 0, 2, 200);
  EXPECT_FALSE(lists.only_deadline(0));
  for (std::uint32_t name = 1; name < 199; ++name) take_out(lists, name);
  EXPECT_EQ(lists.only_deadline(0), Tick{1'990});
}

TEST(CellLists, HolesAreFilledBeforeMemoryGrows) {
  Lists lists;
  push_range(lists, 0, 0, 50'000);
  const std::size_t bytes = lists.allocated_bytes();
  Rng random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t name = random.below(50'000);
    take_out(lists, name);
    lists.push(0, {5, name});
  }
  lists.check_invariants();
  EXPECT_LE(lists.allocated_bytes(), bytes * 2);
  EXPECT_EQ(names_of(lists, 0).size(), 50'000u);
}

TEST(CellLists, MemoryIsGivenBackWhenAQuarterIsInUse) {
  Lists lists;
  push_range(lists, 0, 0, 100'000);
  const std::size_t most = lists.allocated_bytes();
  EXPECT_GE(most, 100'000 * sizeof(Lists::Entry));
  for (std::uint32_t name = 0; name < 99'990; ++name) take_out(lists, name);
  lists.check_invariants();
  EXPECT_LE(lists.allocated_bytes(), most / 3) << "one block in use, and four kept";
  for (std::uint32_t name = 99'990; name < 100'000; ++name) take_out(lists, name);
  push_range(lists, 1, 0, 100'000);
  EXPECT_EQ(lists.allocated_bytes(), most) << "the numbers of freed blocks are used again";
  lists.check_invariants();
}

TEST(CellLists, ReservedMemoryIsKept) {
  Lists lists;
  lists.reserve(100'000);
  lists.check_invariants();
  const std::size_t reserved = lists.allocated_bytes();
  push_range(lists, 0, 0, 100'000);
  EXPECT_EQ(lists.allocated_bytes(), reserved);
  for (std::uint32_t name = 0; name < 100'000; ++name) take_out(lists, name);
  EXPECT_EQ(lists.allocated_bytes(), reserved);
  lists.check_invariants();
}

TEST(CellLists, AppendMovesEverything) {
  Lists lists;
  push_range(lists, 0, 0, 1'000);
  push_range(lists, 1, 1'000, 1'100);
  lists.append(1, 0);
  EXPECT_TRUE(lists.empty(0));
  EXPECT_EQ(names_of(lists, 1).size(), 1'100u);
  lists.check_invariants();
}

TEST(CellLists, AppendOfManySmallListsFillsChunks) {
  Lists lists;
  for (std::uint32_t name = 0; name < 10'000; ++name) {
    lists.push(0, {5, name});
    lists.append(1, 0);
  }
  lists.check_invariants();
  EXPECT_EQ(names_of(lists, 1).size(), 10'000u);
  EXPECT_LE(lists.allocated_bytes(), 2 * 10'000 * sizeof(Lists::Entry));
}

TEST(CellLists, DrainStopsAtItsLimit) {
  Lists lists;
  push_range(lists, 0, 0, 300);
  std::set<std::uint32_t> seen;
  const auto see = [&](const Lists::Entry& entry) { seen.insert(entry.name); };
  EXPECT_EQ(lists.drain(0, 0, see), 0u);
  EXPECT_EQ(lists.drain(0, 130, see), 130u);
  EXPECT_EQ(names_of(lists, 0).size(), 170u);
  EXPECT_EQ(lists.drain(0, 1'000, see), 170u);
  EXPECT_EQ(seen.size(), 300u);
  EXPECT_TRUE(lists.empty(0));
}

TEST(CellLists, VisitorMayCancelTheRestOfTheChunkAndMore) {
  Lists lists;
  push_range(lists, 0, 0, 200);
  std::set<std::uint32_t> seen;
  lists.drain(0, 1'000, [&](const Lists::Entry& entry) {
    if (seen.empty()) {  // all but the last ten go
      for (std::uint32_t name = 0; name < 190; ++name) {
        if (name != entry.name) take_out(lists, name);
      }
    }
    seen.insert(entry.name);
    lists.push(1, {1, entry.name});  // may get the memory that was freed
  });
  EXPECT_EQ(seen.size(), 11u);
  EXPECT_EQ(names_of(lists, 1), seen);
  lists.check_invariants();
}

TEST(CellLists, AgreeWithSetsWhateverIsDone) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  Lists lists;
  std::array<std::set<std::uint32_t>, kListCount> model;
  std::vector<unsigned> where(20'000, kListCount);
  for (int i = 0; i < 200'000; ++i) {
    const auto count = static_cast<std::uint32_t>(where.size());
    const std::uint32_t name = random.below(random.below(2) == 0 ? 300 : count);
    unsigned& list = where[name];
    if (list == kListCount) {
      list = random.below(kListCount);
      EXPECT_EQ(lists.push(list, {name, name}), model[list].empty());
      model[list].insert(name);
    } else {
      model[list].erase(name);
      EXPECT_EQ(take_out(lists, name), model[list].empty() ? list : Lists::kNoList);
      list = kListCount;
    }
    if (i % 10'000 == 0) lists.check_invariants();
  }
  for (unsigned list = 0; list < kListCount; ++list) EXPECT_EQ(names_of(lists, list), model[list]);
}

}  // namespace
}  // namespace detent::internal

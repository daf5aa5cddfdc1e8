#include "detent/internal/cell_lists.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "wheel/test_no_pages.h"

namespace detent::internal {
namespace {

constexpr std::size_t kMostNames = 300'000;

struct Owners {
  using Name = std::uint32_t;
  CellNumber& cell_of(Name name) noexcept { return cells[name]; }
  CellNumber find(Name name) const noexcept { return cells[name]; }
  Name release(Name name, Tick) noexcept { return name; }

  std::vector<CellNumber> cells = std::vector<CellNumber>(kMostNames, kNoCell);
};

constexpr unsigned kListCount = 5;
#if defined(__linux__)
using Lists = CellLists<Owners, kListCount, MappedPages>;
#else
using Lists = CellLists<Owners, kListCount>;
#endif

std::set<std::uint32_t> names_of(Lists& lists, unsigned list) {
  std::set<std::uint32_t> names;
  lists.for_each([&](unsigned in, CellNumber cell, const Lists::Entry& entry) {
    if (in != list) return;
    EXPECT_EQ(lists.owners().find(entry.name), cell);
    EXPECT_TRUE(names.insert(entry.name).second);
  });
  return names;
}

// Takes a timer out in the same way as LevelStore.
unsigned take_out(Lists& lists, std::uint32_t name) {
  const CellNumber cell = lists.owners().find(name);
  return lists.remove(cell) ? lists.settle(cell) : Lists::kNoList;
}

void push_range(Lists& lists, unsigned list, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t name = from; name < to; ++name) lists.push(list, {name * Tick{10}, name});
}

TEST(Occupancy, CountsAndFindsItsBits) {
  Occupancy occupied;
  for (unsigned i = 0; i < Occupancy::kCapacity; ++i) {
    EXPECT_FALSE(occupied.full());
    EXPECT_EQ(occupied.add(), Occupancy::kFirst + i);
    EXPECT_EQ(occupied.count(), i + 1);
  }
  EXPECT_TRUE(occupied.full());
  occupied.remove(20);
  occupied.remove(63);
  EXPECT_FALSE(occupied.full());
  EXPECT_TRUE(occupied.contains(19));
  EXPECT_FALSE(occupied.contains(20));
  EXPECT_TRUE(occupied.contains(21));
  EXPECT_EQ(occupied.count(), Occupancy::kCapacity - 2);
  EXPECT_EQ(occupied.add(), 20u) << "the lowest hole";
  EXPECT_EQ(occupied.add(), 63u);
  EXPECT_TRUE(occupied.full());
  EXPECT_EQ(occupied.first(), 8u);
  occupied.remove(8);
  EXPECT_EQ(occupied.first(), 9u);
  for (unsigned bit = 9; bit < 64; ++bit) occupied.remove(bit);
  EXPECT_EQ(occupied.count(), 0u);
  EXPECT_EQ(occupied.bits(), 0u);
}

TEST(CellLists, PushReturnsWhetherTheListWasEmpty) {
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

TEST(CellLists, FewTimersTakeLittleMemory) {
  constexpr std::uint32_t kFull = Occupancy::kCapacity;
  Lists lists;
  EXPECT_EQ(lists.allocated_bytes(), 1'024u);
  lists.push(0, {1, 0});
  EXPECT_EQ(lists.allocated_bytes(), 2'048u);
  push_range(lists, 0, 1, kFull + 1);
  EXPECT_EQ(lists.allocated_bytes(), 4'096u);
  lists.check_invariants();
  push_range(lists, 0, kFull + 1, 63 * kFull);
  EXPECT_LE(lists.allocated_bytes(), 65'536u);
  push_range(lists, 0, 63 * kFull, 64 * kFull);
  EXPECT_EQ(lists.allocated_bytes(), 2 * 65'536u);
  lists.check_invariants();
  EXPECT_EQ(names_of(lists, 0).size(), 64 * kFull);
}

TEST(CellLists, ReservingForFewTakesLittleMemory) {
  Lists lists;
  lists.reserve(100);
  lists.check_invariants();
  const std::size_t reserved = lists.allocated_bytes();
  EXPECT_LE(reserved, 4'096u);
  push_range(lists, 0, 0, 100);
  EXPECT_EQ(lists.allocated_bytes(), reserved);
  lists.check_invariants();
}

TEST(CellLists, MemoryIsGivenBackWhenAQuarterIsInUse) {
  Lists lists;
  push_range(lists, 0, 0, 100'000);
  const std::size_t most = lists.allocated_bytes();
  EXPECT_GE(most, 100'000 * sizeof(Lists::Entry));
  for (std::uint32_t name = 0; name < 99'990; ++name) take_out(lists, name);
  lists.check_invariants();
  EXPECT_LE(lists.allocated_bytes(), most / 3) << "one block in use, and eight kept";
  for (std::uint32_t name = 99'990; name < 100'000; ++name) take_out(lists, name);
  push_range(lists, 1, 0, 100'000);
  EXPECT_EQ(lists.allocated_bytes(), most) << "the numbers of freed blocks are used again";
  lists.check_invariants();
}

#if defined(__linux__)
TEST(CellLists, TheKernelGetsFreedMemoryBack) {
  Lists lists;
  push_range(lists, 0, 0, 100'000);
  const std::size_t most = lists.mapped_bytes();
  EXPECT_GE(most, 100'000 * sizeof(Lists::Entry));
  for (std::uint32_t name = 0; name < 100'000; ++name) take_out(lists, name);
  EXPECT_LE(lists.mapped_bytes(), most / 2);
}

// Only whole large pages are worth giving back. The rest of the cells lies in one or two of them.
TEST(CellLists, LargePagesAreGivenBackWhole) {
  Lists lists;
  push_range(lists, 0, 0, kMostNames);
  lists.check_invariants();
  EXPECT_GE(lists.allocated_bytes(), kMostNames * sizeof(Lists::Entry));
  EXPECT_LE(lists.mapped_bytes(), lists.allocated_bytes());
  constexpr std::uint32_t kLeft = 20'000;
  for (std::uint32_t name = 0; name < kMostNames - kLeft; ++name) take_out(lists, name);
  EXPECT_EQ(names_of(lists, 0).size(), kLeft) << "those in a page with empty blocks are unharmed";
  for (std::uint32_t name = kMostNames - kLeft; name < kMostNames; ++name) take_out(lists, name);
  lists.check_invariants();
  EXPECT_LE(lists.allocated_bytes(), 2 * kHugePage);
  EXPECT_LE(lists.mapped_bytes(), 2 * kHugePage);
  push_range(lists, 1, 0, kMostNames);
  lists.check_invariants();
  EXPECT_EQ(names_of(lists, 1).size(), kMostNames);
}
#endif

TEST(CellLists, ALittleMemoryIsKeptForNewCells) {
  Lists lists;
  push_range(lists, 0, 0, 20'000);
  const std::size_t bytes = lists.allocated_bytes();
  for (std::uint32_t name = 0; name < 20'000; ++name) take_out(lists, name);
  EXPECT_EQ(lists.allocated_bytes(), bytes);
}

// The cells lie on the heap up to 128 KiB. After that, memory runs out.
TEST(CellLists, PreparingReportsThatThereIsNoMemoryAndChangesNothing) {
  CellLists<Owners, kListCount, NoPages> lists;
  std::uint32_t count = 0;
  while (count < kMostNames && lists.try_prepare()) {
    lists.push(count % 2, {1, count});
    ++count;
  }
  EXPECT_GT(count, 1'000u);
  EXPECT_LT(count, 8'192u);
  lists.check_invariants();
  EXPECT_FALSE(lists.try_prepare());
  for (std::uint32_t name = 0; name < count; ++name) {
    const CellNumber cell = lists.owners().find(name);
    if (lists.remove(cell)) lists.settle(cell);
  }
  EXPECT_TRUE(lists.try_prepare()) << "chunks are free";
  lists.check_invariants();
}

TEST(CellLists, StartOfReturnsTheGivenStartOfTheList) {
  Lists lists;
  for (std::uint32_t name = 0; name < 200; ++name) lists.push(0, {name, name}, 7);
  lists.push(1, {5, 200});
  for (std::uint32_t name = 0; name < 200; ++name) {
    ASSERT_EQ(lists.start_of(lists.owners().find(name)), 7u);
  }
  EXPECT_EQ(lists.start_of(lists.owners().find(200)), Lists::kNoStart);
  for (std::uint32_t name = 0; name < 200; ++name) take_out(lists, name);
  lists.push(0, {9, 0}, 8);
  EXPECT_EQ(lists.start_of(lists.owners().find(0)), 8u) << "it was empty in between";
}

TEST(CellLists, ChunksWithRoomAreFilledBeforeNewChunksAreUsed) {
  Lists lists;
  push_range(lists, 0, 0, 10 * Occupancy::kCapacity);  // ten full chunks
  std::uint32_t name = 10 * Occupancy::kCapacity;
  for (std::uint32_t chunk = 0; chunk < 10; ++chunk) {
    for (std::uint32_t i = 0; i < 30; ++i) take_out(lists, chunk * Occupancy::kCapacity + i);
    // Nine holes of each chunk are filled. The other holes are filled later, after those of all
    // chunks.
    for (std::uint32_t i = 0; i < 9; ++i) lists.push(0, {1, name++});
  }
  const std::set<std::uint32_t> before = names_of(lists, 0);
  std::set<CellNumber> chunks;
  lists.for_each([&](unsigned, CellNumber cell, const auto&) { chunks.insert(cell / 64); });
  ASSERT_EQ(chunks.size(), 10u);
  for (std::uint32_t i = 0; i < 10 * 21; ++i) lists.push(0, {1, name++});
  lists.for_each([&](unsigned, CellNumber cell, const auto&) { chunks.insert(cell / 64); });
  EXPECT_EQ(chunks.size(), 10u);
  lists.push(0, {1, name++});
  lists.for_each([&](unsigned, CellNumber cell, const auto&) { chunks.insert(cell / 64); });
  EXPECT_EQ(chunks.size(), 11u);
  lists.check_invariants();
}

// A chunk that has just become full is still in front when another chunk comes to the front.
TEST(CellLists, AFullChunkDoesNotHideChunksWithRoom) {
  constexpr std::uint32_t kFull = Occupancy::kCapacity;
  constexpr std::uint32_t kLess = 24;  // the number of removals that brings a chunk to the front
  Lists lists;
  push_range(lists, 0, 0, 3 * kFull);
  const auto thin = [&](std::uint32_t chunk) {
    for (std::uint32_t i = 0; i < kLess; ++i) take_out(lists, chunk * kFull + i);
  };
  thin(0);
  thin(1);
  push_range(lists, 0, kFull, kFull + kLess);  // the second chunk is full again
  thin(2);
  push_range(lists, 0, 0, kLess);
  push_range(lists, 0, 2 * kFull, 2 * kFull + kLess);
  std::set<CellNumber> chunks;
  lists.for_each([&](unsigned, CellNumber cell, const auto&) { chunks.insert(cell / 64); });
  EXPECT_EQ(chunks.size(), 3u);
  EXPECT_EQ(names_of(lists, 0).size(), 3 * kFull);
}

TEST(CellLists, PourStopsAtItsLimitAndMovesTheRestLater) {
  Lists lists;
  push_range(lists, 0, 0, 300);
  const auto move = [&](const Lists::Entry& entry) { lists.push(1 + entry.name % 3, entry); };
  EXPECT_EQ(lists.pour(0, 0, move), 0u);
  EXPECT_EQ(lists.pour(0, 130, move), 130u);
  lists.check_invariants();
  EXPECT_EQ(names_of(lists, 0).size(), 170u);
  EXPECT_EQ(lists.pour(0, 1'000, move), 170u);
  lists.check_invariants();
  EXPECT_TRUE(lists.empty(0));
  EXPECT_EQ(names_of(lists, 2).size(), 100u);
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
    if (seen.empty()) {  // removes all cells except the last ten and this one
      for (std::uint32_t name = 0; name < 190; ++name) {
        if (name != entry.name) take_out(lists, name);
      }
    }
    seen.insert(entry.name);
    lists.push(1, {1, entry.name});  // may get the freed memory
  });
  EXPECT_EQ(seen.size(), 11u);
  EXPECT_EQ(names_of(lists, 1), seen);
  lists.check_invariants();
}

TEST(CellLists, AgreeWithSetsAfterRandomSteps) {
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

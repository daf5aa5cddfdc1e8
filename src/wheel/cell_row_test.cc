#include "detent/internal/cell_row.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace detent::internal {
namespace {

constexpr ChunkSize kSmall[] = {ChunkSize::one_line, ChunkSize::two_lines, ChunkSize::four_lines};
constexpr ChunkSize kSizes[] = {ChunkSize::whole_row, ChunkSize::one_line, ChunkSize::two_lines,
                                ChunkSize::four_lines};

std::vector<unsigned> chunks_of(ChunkSize size) {
  std::vector<unsigned> chunks;
  for (unsigned chunk = CellRow::first_chunk(size); chunk < CellRow::kPlaces;
       chunk += CellRow::places_of(size)) {
    chunks.push_back(chunk);
  }
  return chunks;
}

// Fills a chunk, and returns its cells in the order in which they were filled.
std::vector<unsigned> fill(CellRow& row, unsigned chunk) {
  std::vector<unsigned> cells;
  while (row.free(chunk) != 0) {
    cells.push_back(CellRow::lowest(row.free(chunk)));
    row.add(cells.back());
  }
  return cells;
}

TEST(CellRow, IsDividedIntoChunksOfItsSize) {
  EXPECT_EQ(chunks_of(ChunkSize::one_line).size(), 14u);
  EXPECT_EQ(chunks_of(ChunkSize::two_lines).size(), 7u);
  EXPECT_EQ(chunks_of(ChunkSize::four_lines).size(), 3u);
  EXPECT_EQ(chunks_of(ChunkSize::whole_row), std::vector<unsigned>{0});
  for (const ChunkSize size : kSizes) {
    CellRow row(size);
    EXPECT_EQ(row.size(), size);
    EXPECT_EQ(row.count(), 0u);
    EXPECT_EQ(chunks_of(size).back() + CellRow::places_of(size), CellRow::kPlaces);
  }
}

TEST(CellRow, AChunkHasAHeaderAndCells) {
  constexpr std::size_t kCells[] = {56, 3, 7, 15};
  for (const ChunkSize size : kSizes) {
    CellRow row(size);
    unsigned count = 0;
    for (const unsigned chunk : chunks_of(size)) {
      const std::vector<unsigned> cells = fill(row, chunk);
      count += static_cast<unsigned>(cells.size());
      EXPECT_EQ(cells.size(), kCells[static_cast<unsigned>(size)]);
      EXPECT_GT(cells.front(), chunk) << "the first place is the header";
      EXPECT_EQ(cells.front(), chunk + CellRow::first_cell(size));
      EXPECT_EQ(cells.back(), chunk + CellRow::places_of(size) - 1);
      for (const unsigned cell : cells) EXPECT_EQ(row.chunk_of(cell), chunk);
      EXPECT_EQ(std::popcount(row.occupied(chunk)), static_cast<int>(cells.size()));
    }
    EXPECT_EQ(row.count(), count);
    EXPECT_EQ(row.size(), size) << "the count stays beside the size";
  }
}

TEST(CellRow, ChunksOfARowDoNotTouchEachOther) {
  for (const ChunkSize size : kSmall) {
    CellRow row(size);
    const std::vector<unsigned> chunks = chunks_of(size);
    for (const unsigned chunk : chunks) fill(row, chunk);
    const std::uint64_t last = row.occupied(chunks.back());
    const std::uint64_t first = row.occupied(chunks[0]);
    row.remove(first, static_cast<unsigned>(std::popcount(first)));
    EXPECT_EQ(row.occupied(chunks[0]), 0u);
    EXPECT_EQ(row.occupied(chunks.back()), last);
    EXPECT_EQ(row.free(chunks[1]), 0u);
  }
}

TEST(CellRow, TheLowestHoleIsFilledFirst) {
  CellRow row(ChunkSize::whole_row);
  fill(row, 0);
  row.remove(20);
  row.remove(63);
  EXPECT_EQ(row.count(), 54u);
  EXPECT_EQ(fill(row, 0), (std::vector<unsigned>{20, 63}));
  EXPECT_EQ(CellRow::lowest(row.occupied(0)), 8u);
}

TEST(CellRow, AWholeRowNeedsSettlingAt32CellsAndAtNone) {
  CellRow row(ChunkSize::whole_row);
  fill(row, 0);
  for (unsigned cell = 8; cell < 64; ++cell) {
    row.remove(cell);
    EXPECT_EQ(row.needs_settling(cell), row.count() == 32 || row.count() == 0) << row.count();
  }
}

TEST(CellRow, ASmallChunkNeedsSettlingWhenItIsEmpty) {
  for (const ChunkSize size : kSmall) {
    CellRow row(size);
    for (const unsigned chunk : chunks_of(size)) fill(row, chunk);
    for (const unsigned chunk : chunks_of(size)) {
      while (row.occupied(chunk) != 0) {
        const unsigned cell = CellRow::lowest(row.occupied(chunk));
        row.remove(cell);
        EXPECT_EQ(row.needs_settling(cell), row.occupied(chunk) == 0);
      }
    }
    EXPECT_EQ(row.count(), 0u);
    EXPECT_EQ(row.size(), size);
  }
}

}  // namespace
}  // namespace detent::internal

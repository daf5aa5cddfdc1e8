// CellRow: which cells of a row are occupied, how many, and how the row is divided into chunks. All
// of this is in one word.
//
// A row has 64 places of 16 bytes, and all of its chunks have one size. The first place of a chunk
// is its header; the others are cells:
//
//     one line       4 places, so  3 cells; 14 chunks in a row
//     two lines      8 places, so  7 cells;  7 chunks in a row
//     four lines    16 places, so 15 cells;  3 chunks in a row
//     whole row     64 places, and 56 cells
//
// So a slot with one timer takes one line of the cache, and a slot with thousands takes memory that
// is full of cells. The word has one bit for each cell. No cell has one of the places 0 to 7, so
// the lowest byte is free for the count of occupied cells (6 bits) and the size (2 bits). One
// addition clears a bit and updates the count. A population count takes a dozen instructions on
// processors without a special instruction.
//
// Whole rows have a branch of their own where speed matters: most timers of a large wheel are in
// whole rows, and few timers of a small wheel are. The other sizes are looked up in small tables,
// because the processor could not predict a branch for each of them. Read next:
// internal/cell_lists.h, whose lists consist of these chunks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace detent::internal {

/// The size of a chunk.
enum class ChunkSize : std::uint8_t { whole_row, one_line, two_lines, four_lines };

/// The word of one row. A *place* is a number within the row, 0 to 63. A chunk is named by its
/// first place.
class CellRow {
 public:
  static constexpr unsigned kPlaces = 64;
  static constexpr unsigned kMostCells = 56;  // of a row, and of a chunk of a whole row

  /// Makes a row without occupied cells.
  explicit CellRow(ChunkSize size = ChunkSize::whole_row) noexcept
      : word_(std::uint64_t{static_cast<std::uint8_t>(size)} << kSizeShift) {}

  /// Returns the number of places of a chunk.
  static constexpr unsigned places_of(ChunkSize size) noexcept {
    return size == ChunkSize::whole_row ? kPlaces : 2u << static_cast<unsigned>(size);
  }
  /// Returns the first chunk of a row. The next chunks follow without gaps, up to the end.
  static constexpr unsigned first_chunk(ChunkSize size) noexcept {
    return size == ChunkSize::whole_row ? 0 : std::max(8u, places_of(size));
  }

  /// Returns the number of places from a chunk to its first cell.
  static constexpr unsigned first_cell(ChunkSize size) noexcept {
    return size == ChunkSize::whole_row ? 8 : 1;
  }

  ChunkSize size() const noexcept { return static_cast<ChunkSize>(index()); }
  bool is_whole() const noexcept { return lowest_byte() < kDivided; }
  /// Returns true if this is a whole row with a free cell.
  bool is_whole_with_room() const noexcept { return lowest_byte() < kMostCells; }
  /// Returns the number of occupied cells of the row.
  unsigned count() const noexcept { return lowest_byte() % kDivided; }

  /// Returns the chunk of a cell.
  unsigned chunk_of(unsigned cell) const noexcept { return cell & kChunkBits[index()]; }
  /// Returns all places of cells of a chunk, one bit for each.
  std::uint64_t cells_of(unsigned chunk) const noexcept { return kCells[index()] << chunk; }
  /// Returns the places of the occupied cells of a chunk.
  std::uint64_t occupied(unsigned chunk) const noexcept { return word_ & cells_of(chunk); }
  /// Returns the places of the free cells of a chunk.
  std::uint64_t free(unsigned chunk) const noexcept { return ~word_ & cells_of(chunk); }
  /// Returns the places of the occupied cells among `cells`.
  std::uint64_t occupied_among(std::uint64_t cells) const noexcept { return word_ & cells; }

  /// Occupies the lowest free cell of a whole row with room. Returns its place.
  unsigned add_to_whole() noexcept {
    const unsigned cell = lowest(~word_ & kCells[0]);
    add(cell);
    return cell;
  }
  /// Requires: the cell is free.
  void add(unsigned cell) noexcept { word_ += (std::uint64_t{1} << cell) + 1; }
  /// Requires: the cell is occupied.
  void remove(unsigned cell) noexcept {
    word_ += ~(std::uint64_t{1} << cell);  // this adds −2^cell − 1
  }
  /// Removes the cells whose bits are set in `cells`; `count` is their number. Requires: these
  /// cells are occupied.
  void remove(std::uint64_t cells, unsigned count) noexcept { word_ -= cells + count; }

  /// Call this after `remove`. Returns true if the chunk of the cell is empty, or if it is a whole
  /// row with 32 cells left.
  bool needs_settling(unsigned cell) const noexcept {
    if (is_whole()) return count() % kReuseAt == 0;
    return occupied(chunk_of(cell)) == 0;
  }

  /// Returns the lowest place of a set that is not empty.
  static unsigned lowest(std::uint64_t places) noexcept {
    if (places == 0) __builtin_unreachable();  // avoids a check for zero
    return static_cast<unsigned>(std::countr_zero(places));
  }

 private:
  static constexpr unsigned kSizeShift = 6;
  static constexpr unsigned kDivided = 1u << kSizeShift;  // lowest byte of an empty divided row

  static constexpr unsigned kReuseAt = 32;
  static_assert(kMostCells < 2 * kReuseAt, "a multiple of it is it, or none left");

  // For each size: the cells of the chunk at place 0, and the bits of a place that name its chunk.
  static constexpr std::array<std::uint64_t, 4> kCells{~std::uint64_t{0xFF}, 0xE, 0xFE, 0xFFFE};
  static constexpr std::array<unsigned, 4> kChunkBits{0, 0x3C, 0x38, 0x30};

  unsigned index() const noexcept { return lowest_byte() >> kSizeShift; }
  unsigned lowest_byte() const noexcept { return static_cast<std::uint8_t>(word_); }

  std::uint64_t word_;
};

}  // namespace detent::internal

// CellMemory: the memory of cells. It is one array in rows of 64 places; some rows are free.
//
// Rows are taken one at a time: the lowest free row of a block of 64 rows that was used
// recently. The memory in use thus stays together. The first block grows by a few rows at a time,
// so that a wheel with few timers is small. If all rows of a block are free, the block is empty
// and its memory may go back to the kernel. This happens if fewer than a quarter of the blocks are
// in use; a few empty blocks are always kept. Read next: internal/cell_lists.h, whose lists consist
// of chunks of these rows, and internal/flat_array.h, the array.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "detent/check.h"
#include "detent/internal/cell_row.h"
#include "detent/internal/flat_array.h"

namespace detent::internal {

/// The number of a cell, which its owner keeps: row × 64 + the place in the row, 8 to 63.
using CellNumber = std::uint32_t;
inline constexpr CellNumber kNoCell = 0;  // no cell has a place below 8; the value of new memory

/// The number of a row.
using RowNumber = std::uint32_t;
/// This row is in use from the beginning, and is never free.
inline constexpr RowNumber kFirstRow = 0;

/// Cells of type `Cell`, accessed by number. Thread-compatible. Not movable.
///
/// Only `take` allocates, as FlatArray::grow does: first 1 KiB. New cells have any value. The
/// kernel provides a page when it is first written. Each operation is O(1) amortised unless its
/// comment says otherwise.
///
/// Invariants (check_invariants()):
///
/// - A block is in one of four states. Full: all rows are in use. Open: some rows are free.
///   Empty: all rows are free, and it may have memory. Bare: all rows are free, and it has no
///   memory. kFirstRow counts as in use, so the first block is never empty.
/// - The number of empty blocks is limited: to three times the blocks in use (without the first
///   block), to seven, or to the number of reserved blocks, whichever is largest.
/// - kept_ counts the blocks of each large page that are not bare. Once the cells are in large
///   pages, a block keeps its memory until all blocks of its page are bare.
template <class Cell, class Large = LargePages>
class CellMemory {
 public:
  CellMemory() {
    open_block();
    take();  // kFirstRow
  }
  CellMemory(const CellMemory&) = delete;
  CellMemory& operator=(const CellMemory&) = delete;

  Cell& operator[](CellNumber cell) noexcept { return cells_[cell]; }
  const Cell& operator[](CellNumber cell) const noexcept { return cells_[cell]; }

  /// Returns the number of rows, in use or free, numbered from 0.
  std::size_t row_count() const noexcept {
    return std::min(blocks_.size() * kBlockRows, cells_.size() / CellRow::kPlaces);
  }

  /// Returns a free row and marks it as in use. Cells may move.
  RowNumber take() noexcept {
    if (open_.empty()) open_block();
    const std::uint32_t number = open_.back();
    Block& block = blocks_[number];
    const RowNumber row = first_free(number);
    block.free &= block.free - 1;
    if (block.free == 0) open_.pop_back();
    if (end_of(row) > cells_.size()) [[unlikely]]
      cells_.grow(end_of(row));
    return row;
  }

  /// Allocates the memory of the next `take`. Returns false if there is no memory; rows in use
  /// are then unchanged.
  [[nodiscard]] bool try_prepare() noexcept {
    if (open_.empty() && empty_.empty()) {
      if (bare_.empty() && blocks_.size() == kMostBlocks) return false;
      if (!try_allocate([this] { allocate_block(); })) return false;
    }
    const std::uint32_t number = open_.empty() ? empty_.back() : open_.back();
    return cells_.try_grow(end_of(first_free(number)));
  }

  /// Frees a row. Requires: the row is in use.
  void free(RowNumber row) noexcept {
    const std::uint32_t number = row / kBlockRows;
    Block& block = blocks_[number];
    if (block.free == 0) add_open(number);
    block.free |= std::uint64_t{1} << (row % kBlockRows);
    if (block.free == kAllFree) close_block(number);
  }

  /// Allocates and keeps memory for `count` cells in full rows. O(count).
  void reserve(std::size_t count) noexcept {
    const std::size_t rows = count / CellRow::kMostCells + 2;  // with kFirstRow
    cells_.grow(rows * CellRow::kPlaces);
    const std::size_t more_blocks = (rows - 1) / kBlockRows;
    reserved_ = std::max(reserved_, more_blocks);
    if (more_blocks != 0) cells_.touch(0, kBlockSize);
    while (blocks_.size() - 1 - bare_.size() < more_blocks) {
      allocate_block();
      cells_.touch(std::size_t{empty_.back()} * kBlockSize, kBlockSize);
    }
  }

  /// Returns the number of allocated bytes; the kernel holds at most this many. O(blocks).
  std::size_t allocated_bytes() const noexcept {
    if (!cells_.is_huge()) {
      const std::size_t blocks = blocks_.size() - bare_.size();
      return std::min(blocks * kBlockBytes, cells_.size() * sizeof(Cell));
    }
    const auto pages =
        std::count_if(kept_.begin(), kept_.end(), [](unsigned kept) { return kept != 0; });
    return kHugePage * static_cast<std::size_t>(pages);
  }
  /// Returns the number of bytes that the kernel holds now, in addition to the heap. O(pages).
  std::size_t mapped_bytes() const noexcept { return cells_.mapped_bytes(); }

  /// Stops the process if an invariant is broken, or if `in_use` does not name exactly the rows
  /// in use. Rows beyond the end of `in_use` must be free. O(rows).
  void check_invariants(const std::vector<bool>& in_use) const noexcept {
    DETENT_CHECK(in_use.size() <= row_count());
    std::size_t full = 0;
    std::vector<unsigned> kept(kept_.size(), 0);
    for (std::uint32_t number = 0; number < blocks_.size(); ++number) {
      full += blocks_[number].free == 0 ? 1u : 0u;
      ++kept[number / kBlocksPerPage];
    }
    for (RowNumber row = 0; row < row_count(); ++row) {
      const bool is_free = (blocks_[row / kBlockRows].free >> row % kBlockRows & 1) != 0;
      const bool is_used = row < in_use.size() && in_use[row];
      DETENT_CHECK(is_free != (is_used || row == kFirstRow));
    }
    DETENT_CHECK(full + open_.size() + empty_.size() + bare_.size() == blocks_.size());
    DETENT_CHECK(empty_.size() <= std::max(3 * (full + open_.size() - 1), reserved_));
    for (std::uint32_t index = 0; index < open_.size(); ++index) {
      const Block& block = blocks_[open_[index]];
      DETENT_CHECK(block.open_index == index && block.free != 0 && block.free != kAllFree);
    }
    for (const std::uint32_t number : empty_) DETENT_CHECK(blocks_[number].free == kAllFree);
    for (const std::uint32_t number : bare_) {
      DETENT_CHECK(blocks_[number].free == kAllFree);
      --kept[number / kBlocksPerPage];
    }
    DETENT_CHECK(std::equal(kept.begin(), kept.end(), kept_.begin(), kept_.end()));
  }

 private:
  static constexpr unsigned kBlockRows = 64;
  static constexpr unsigned kBlockSize = kBlockRows * CellRow::kPlaces;  // cells
  static constexpr std::size_t kBlockBytes = kBlockSize * sizeof(Cell);
  static constexpr unsigned kBlocksPerPage = kHugePage / kBlockBytes;
  static constexpr unsigned kKeptBlocks = 7;  // returning and requesting memory are system calls
  static constexpr std::uint64_t kAllFree = ~std::uint64_t{0};
  static constexpr std::size_t kMostBlocks = std::numeric_limits<CellNumber>::max() / kBlockSize;

  // Rows that are allocated together.
  struct Block {
    std::uint64_t free = kAllFree;  // one bit per row
    std::uint32_t open_index = 0;   // index in open_, if the block is open
  };

  RowNumber first_free(std::uint32_t number) const noexcept {
    return number * kBlockRows + static_cast<unsigned>(std::countr_zero(blocks_[number].free));
  }
  // Returns the number of cells that the array needs to contain this row.
  static constexpr std::size_t end_of(RowNumber row) noexcept {
    return (std::size_t{row} + 1) * CellRow::kPlaces;
  }

  // Finds a block with free rows: an empty block, a bare block, or a new block. Throws
  // std::bad_alloc, as the next two functions do; the state is then unchanged.
  void open_block() {
    if (empty_.empty()) allocate_block();
    add_open(empty_.back());
    empty_.pop_back();
  }

  void allocate_block() {
    if (bare_.empty()) add_block();
    const std::uint32_t number = bare_.back();
    ++kept_[number / kBlocksPerPage];
    empty_.push_back(number);
    bare_.pop_back();
  }

  // Moves a block to the empty blocks, and returns memory to the kernel if too many blocks are
  // empty.
  void close_block(std::uint32_t number) noexcept {
    const std::uint32_t index = blocks_[number].open_index;
    open_[index] = open_.back();
    blocks_[open_[index]].open_index = index;
    open_.pop_back();
    empty_.push_back(number);
    const std::size_t in_use = blocks_.size() - 1 - empty_.size() - bare_.size();
    while (empty_.size() > std::max(3 * in_use, reserved_)) {
      give_back(empty_.back());
      bare_.push_back(empty_.back());
      empty_.pop_back();
    }
  }

  // Returns the memory of a block to the kernel. With large pages, returns the page when no block
  // of the page needs it.
  void give_back(std::uint32_t number) noexcept {
    const std::uint32_t page = number / kBlocksPerPage;
    --kept_[page];
    if (!cells_.is_huge()) {
      cells_.give_back(std::size_t{number} * kBlockSize, kBlockSize);
    } else if (kept_[page] == 0) {
      constexpr std::size_t kPageSize = kHugePage / sizeof(Cell);
      cells_.give_back(page * kPageSize, kPageSize);
    }
  }

  void add_open(std::uint32_t number) noexcept {
    blocks_[number].open_index = static_cast<std::uint32_t>(open_.size());
    open_.push_back(number);
  }

  void add_block() {
    const auto number = static_cast<std::uint32_t>(blocks_.size());
    DETENT_CHECK(number < kMostBlocks);
    kept_.resize(number / kBlocksPerPage + 1);
    for (auto* const numbers : {&open_, &empty_, &bare_}) {  // so that freeing never allocates
      if (numbers->capacity() <= number) numbers->reserve(2 * (std::size_t{number} + 1));
    }
    blocks_.emplace_back();  // last, because no later step can fail
    bare_.push_back(number);
  }

  FlatArray<Cell, Large, NewMemory::any> cells_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> kept_;  // one count per large page
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> empty_;
  std::vector<std::uint32_t> bare_;
  std::size_t reserved_ = kKeptBlocks;  // blocks that keep their memory, without the first
};

}  // namespace detent::internal

// The memory of cells: one array in chunks of 64 places, of which some are free.
//
// Chunks are taken one at a time, the lowest free one of a block of 64 that was used of late, so
// that the memory in use stays together. The first block comes a few chunks at a time, so that a
// wheel of few timers is light. When all chunks of a block are free, its memory may go back to the
// kernel: while fewer than a quarter of the blocks are in use, but for a few. Read next:
// internal/cell_lists.h, whose lists are made of these chunks, and internal/flat_array.h, the
// array.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "detent/check.h"
#include "detent/internal/flat_array.h"
#include "detent/internal/occupancy.h"

namespace detent::internal {

/// The number of a cell, which its owner keeps: chunk × 64 + its place in the chunk, 8 … 63.
using CellNumber = std::uint32_t;
inline constexpr CellNumber kNoCell = 0;  // in no chunk, and what memory is at first

/// The number of a chunk. kNoChunk is none: nobody may touch its cells.
using ChunkNumber = std::uint32_t;
inline constexpr ChunkNumber kNoChunk = 0;
inline constexpr unsigned kNumbersPerChunk = 64;  // the first Occupancy::kFirst are not used

/// Cells, each an `Entry`, by number. Thread-compatible. Not movable. `take` allocates: 2 KiB at
/// first, twice as much each time up to 64 KiB, then 64 KiB at a time, of which the kernel gives
/// the pages that are written. Nothing else allocates; each operation is O(1) amortised unless it
/// says otherwise.
///
/// Invariants (check_invariants()):
///  1. A block is open (some of its chunks are free), empty (all are, and it may have memory), bare
///     (all are, and it has none), or all of its chunks are in use. kNoChunk counts as in use, so
///     that the first block is never empty.
///  2. Besides the first and those in use, three times as many blocks are empty at most, or seven,
///     or as many as were reserved.
///  3. kept_ counts the blocks of each large page that are not bare. Once the cells are in large
///     pages, a block keeps its memory until all of its page are bare.
template <class Entry, class Large = LargePages>
class CellMemory {
 public:
  CellMemory() {
    open_block();
    take();  // kNoChunk
  }
  CellMemory(const CellMemory&) = delete;
  CellMemory& operator=(const CellMemory&) = delete;

  Entry& operator[](CellNumber cell) noexcept { return cells_[cell]; }
  const Entry& operator[](CellNumber cell) const noexcept { return cells_[cell]; }

  /// How many chunks there are, in use or free, numbered from 0.
  std::size_t chunk_count() const noexcept {
    return std::min(blocks_.size() * kBlockChunks, cells_.size() / kNumbersPerChunk);
  }

  /// Returns: a free chunk, which is in use from now on. Cells may move.
  ChunkNumber take() noexcept {
    if (open_.empty()) open_block();
    const std::uint32_t number = open_.back();
    Block& block = blocks_[number];
    const ChunkNumber chunk = first_free(number);
    block.free &= block.free - 1;
    if (block.free == 0) open_.pop_back();
    if (end_of(chunk) > cells_.size()) [[unlikely]]
      cells_.grow(end_of(chunk));
    return chunk;
  }

  /// Allocates what the next `take` needs. Returns: false when there is no memory for it; chunks in
  /// use are then as they were.
  [[nodiscard]] bool try_prepare() noexcept {
    if (open_.empty() && empty_.empty()) {
      if (bare_.empty() && blocks_.size() == kMostBlocks) return false;
      try {
        allocate_block();
      } catch (const std::bad_alloc&) {
        return false;
      }
    }
    const std::uint32_t number = open_.empty() ? empty_.back() : open_.back();
    return cells_.try_grow(end_of(first_free(number)));
  }

  /// Frees a chunk. Requires: it is in use.
  void free(ChunkNumber chunk) noexcept {
    const std::uint32_t number = chunk / kBlockChunks;
    Block& block = blocks_[number];
    if (block.free == 0) add_open(number);
    block.free |= std::uint64_t{1} << (chunk % kBlockChunks);
    if (block.free == kAllFree) close_block(number);
  }

  /// Allocates memory for `count` cells in full chunks, and keeps it. O(count).
  void reserve(std::size_t count) noexcept {
    const std::size_t chunks = count / Occupancy::kCapacity + 2;  // with kNoChunk
    cells_.grow(chunks * kNumbersPerChunk);
    const std::size_t more_blocks = (chunks - 1) / kBlockChunks;
    reserved_ = std::max(reserved_, more_blocks);
    if (more_blocks != 0) cells_.touch(0, kBlockSize);
    while (blocks_.size() - 1 - bare_.size() < more_blocks) {
      allocate_block();
      cells_.touch(std::size_t{empty_.back()} * kBlockSize, kBlockSize);
    }
  }

  /// Bytes that are allocated now, so that the kernel may hold as many. O(blocks).
  std::size_t allocated_bytes() const noexcept {
    if (!cells_.is_huge()) {
      const std::size_t blocks = blocks_.size() - bare_.size();
      return std::min(blocks * kBlockBytes, cells_.size() * sizeof(Entry));
    }
    const auto pages =
        std::count_if(kept_.begin(), kept_.end(), [](unsigned kept) { return kept != 0; });
    return kHugePage * static_cast<std::size_t>(pages);
  }
  /// Bytes that the kernel does hold, beside what comes from the heap. O(pages).
  std::size_t mapped_bytes() const noexcept { return cells_.mapped_bytes(); }

  /// Stops the process unless the invariants hold and exactly the chunks that `in_use` names are
  /// in use; chunks beyond its end are free. O(chunks).
  void check_invariants(const std::vector<bool>& in_use) const noexcept {
    DETENT_CHECK(in_use.size() <= chunk_count());
    std::size_t full = 0;
    std::vector<unsigned> kept(kept_.size(), 0);
    for (std::uint32_t number = 0; number < blocks_.size(); ++number) {
      full += blocks_[number].free == 0 ? 1u : 0u;
      ++kept[number / kBlocksPerPage];
    }
    for (ChunkNumber chunk = 0; chunk < chunk_count(); ++chunk) {
      const bool is_free = (blocks_[chunk / kBlockChunks].free >> chunk % kBlockChunks & 1) != 0;
      const bool is_used = chunk < in_use.size() && in_use[chunk];
      DETENT_CHECK(is_free != (is_used || chunk == kNoChunk));
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
  static constexpr unsigned kBlockChunks = 64;
  static constexpr unsigned kBlockSize = kBlockChunks * kNumbersPerChunk;  // cells
  static constexpr std::size_t kBlockBytes = kBlockSize * sizeof(Entry);
  static constexpr unsigned kBlocksPerPage = kHugePage / kBlockBytes;
  static constexpr unsigned kKeptBlocks = 7;  // since to give back and to get anew are system calls
  static constexpr std::uint64_t kAllFree = ~std::uint64_t{0};
  static constexpr std::size_t kMostBlocks = std::numeric_limits<CellNumber>::max() / kBlockSize;

  // Chunks that are allocated together.
  struct Block {
    std::uint64_t free = kAllFree;  // a bit a chunk
    std::uint32_t open_index = 0;   // where in open_ it is, if it is
  };

  ChunkNumber first_free(std::uint32_t number) const noexcept {
    return number * kBlockChunks + static_cast<unsigned>(std::countr_zero(blocks_[number].free));
  }
  // How many cells there must be for this chunk to have all of its own.
  static constexpr std::size_t end_of(ChunkNumber chunk) noexcept {
    return (std::size_t{chunk} + 1) * kNumbersPerChunk;
  }

  // Finds a block with free chunks: an empty one, one that has no memory, or a new one. Throws
  // std::bad_alloc, as the next two do; all is then as it was.
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

  // Puts an empty block aside, and gives memory back when too much is empty.
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

  // Gives the memory of a block back or, in large pages, that of a page when no block needs it.
  void give_back(std::uint32_t number) noexcept {
    const std::uint32_t page = number / kBlocksPerPage;
    --kept_[page];
    if (!cells_.is_huge()) {
      cells_.give_back(std::size_t{number} * kBlockSize, kBlockSize);
    } else if (kept_[page] == 0) {
      constexpr std::size_t kPageSize = kHugePage / sizeof(Entry);
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
    blocks_.emplace_back();  // last: nothing after it can fail
    bare_.push_back(number);
  }

  FlatArray<Entry, Large> cells_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> kept_;  // by large page
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> empty_;
  std::vector<std::uint32_t> bare_;
  std::size_t reserved_ = kKeptBlocks;  // so many, besides the first, keep their memory
};

}  // namespace detent::internal

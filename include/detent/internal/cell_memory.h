// CellMemory: the memory of cells. It is one array in chunks of 64 places; some chunks are free.
//
// Chunks are taken one at a time: the lowest free chunk of a block of 64 chunks that was used
// recently. The memory in use thus stays together. The first block grows by a few chunks at a time,
// so that a wheel with few timers is small. If all chunks of a block are free, the block is empty
// and its memory may go back to the kernel. This happens if fewer than a quarter of the blocks are
// in use; a few empty blocks are always kept. Read next: internal/cell_lists.h, whose lists consist
// of these chunks, and internal/flat_array.h, the array.
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

/// The number of a cell, which its owner keeps: chunk × 64 + the place in the chunk, 8 to 63.
using CellNumber = std::uint32_t;
inline constexpr CellNumber kNoCell = 0;  // in no chunk; the value of new memory

/// The number of a chunk. kNoChunk means no chunk, and its cells must not be used.
using ChunkNumber = std::uint32_t;
inline constexpr ChunkNumber kNoChunk = 0;
inline constexpr unsigned kNumbersPerChunk = 64;  // the first Occupancy::kFirst are unused

/// Cells of type `Entry`, accessed by number. Thread-compatible. Not movable.
///
/// Only `take` allocates: first 2 KiB, then twice as much each time up to 64 KiB, then 64 KiB at a
/// time. The kernel provides a page when it is first written. Each operation is O(1) amortised
/// unless its comment says otherwise.
///
/// Invariants (check_invariants()):
///
/// - A block is in one of four states. Full: all chunks are in use. Open: some chunks are free.
///   Empty: all chunks are free, and it may have memory. Bare: all chunks are free, and it has no
///   memory. kNoChunk counts as in use, so the first block is never empty.
/// - The number of empty blocks is limited: to three times the blocks in use (without the first
///   block), to seven, or to the number of reserved blocks, whichever is largest.
/// - kept_ counts the blocks of each large page that are not bare. Once the cells are in large
///   pages, a block keeps its memory until all blocks of its page are bare.
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

  /// Returns the number of chunks, in use or free, numbered from 0.
  std::size_t chunk_count() const noexcept {
    return std::min(blocks_.size() * kBlockChunks, cells_.size() / kNumbersPerChunk);
  }

  /// Returns a free chunk and marks it as in use. Cells may move.
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

  /// Allocates the memory of the next `take`. Returns false if there is no memory; chunks in use
  /// are then unchanged.
  [[nodiscard]] bool try_prepare() noexcept {
    if (open_.empty() && empty_.empty()) {
      if (bare_.empty() && blocks_.size() == kMostBlocks) return false;
      if (!try_allocate([this] { allocate_block(); })) return false;
    }
    const std::uint32_t number = open_.empty() ? empty_.back() : open_.back();
    return cells_.try_grow(end_of(first_free(number)));
  }

  /// Frees a chunk. Requires: the chunk is in use.
  void free(ChunkNumber chunk) noexcept {
    const std::uint32_t number = chunk / kBlockChunks;
    Block& block = blocks_[number];
    if (block.free == 0) add_open(number);
    block.free |= std::uint64_t{1} << (chunk % kBlockChunks);
    if (block.free == kAllFree) close_block(number);
  }

  /// Allocates and keeps memory for `count` cells in full chunks. O(count).
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

  /// Returns the number of allocated bytes; the kernel holds at most this many. O(blocks).
  std::size_t allocated_bytes() const noexcept {
    if (!cells_.is_huge()) {
      const std::size_t blocks = blocks_.size() - bare_.size();
      return std::min(blocks * kBlockBytes, cells_.size() * sizeof(Entry));
    }
    const auto pages =
        std::count_if(kept_.begin(), kept_.end(), [](unsigned kept) { return kept != 0; });
    return kHugePage * static_cast<std::size_t>(pages);
  }
  /// Returns the number of bytes that the kernel holds now, in addition to the heap. O(pages).
  std::size_t mapped_bytes() const noexcept { return cells_.mapped_bytes(); }

  /// Stops the process if an invariant is broken, or if `in_use` does not name exactly the chunks
  /// in use. Chunks beyond the end of `in_use` must be free. O(chunks).
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
  static constexpr unsigned kKeptBlocks = 7;  // returning and requesting memory are system calls
  static constexpr std::uint64_t kAllFree = ~std::uint64_t{0};
  static constexpr std::size_t kMostBlocks = std::numeric_limits<CellNumber>::max() / kBlockSize;

  // Chunks that are allocated together.
  struct Block {
    std::uint64_t free = kAllFree;  // one bit per chunk
    std::uint32_t open_index = 0;   // index in open_, if the block is open
  };

  ChunkNumber first_free(std::uint32_t number) const noexcept {
    return number * kBlockChunks + static_cast<unsigned>(std::countr_zero(blocks_[number].free));
  }
  // Returns the number of cells that the array needs to contain this chunk.
  static constexpr std::size_t end_of(ChunkNumber chunk) noexcept {
    return (std::size_t{chunk} + 1) * kNumbersPerChunk;
  }

  // Finds a block with free chunks: an empty block, a bare block, or a new block. Throws
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
    blocks_.emplace_back();  // last, because no later step can fail
    bare_.push_back(number);
  }

  FlatArray<Entry, Large> cells_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> kept_;  // one count per large page
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> empty_;
  std::vector<std::uint32_t> bare_;
  std::size_t reserved_ = kKeptBlocks;  // blocks that keep their memory, without the first
};

}  // namespace detent::internal

// Unordered lists of timers in cells: what makes TimerWheel and DenseWheel fast with many timers.
//
// A linked list of timers costs a cache miss a timer to walk and up to three to unlink. Here a
// timer is a *cell*, its deadline and its owner in 16 bytes, and a list is a ring of *chunks* of 56
// cells with an occupancy word each:
//
//     list ──► chunk 7                    chunk 2                    chunk 9
//              occupied …0111011          occupied 11…1              occupied 11…1
//              cells    [d,o][d,o]        cells    [d,o] × 56        cells    [d,o] × 56
//
// To add is to fill the first chunk with room, to remove is to clear a bit, to walk is to read
// memory in order, the next chunk fetched meanwhile. What is in the list is touched only to be told
// its place: the owner keeps the number of its cell and is told when the cell moves. A wheel never
// needs order within a slot, which is what this gives up.
//
// Chunks with room stand first. A full one goes to the end; one that has lost enough comes back to
// the front, so holes fill up again. Chunks come in blocks of 64, and an empty block is freed.
//
// Read next: internal/level_store.h, which makes a wheel of these lists.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "detent/check.h"
#include "detent/tick.h"

namespace detent::internal {

/// The number of a cell, which its owner keeps: chunk × 64 + its place in the chunk.
using CellNumber = std::uint32_t;
inline constexpr CellNumber kNoCell = std::numeric_limits<CellNumber>::max();

/// Which of a chunk's cells are occupied: a bit each, and their count in the top byte, so that to
/// clear a bit is also to count it.
class Occupancy {
 public:
  static constexpr unsigned kCapacity = 56;

  unsigned count() const noexcept { return static_cast<unsigned>(word_ >> kCapacity); }
  bool full() const noexcept { return word_ >= kCapacity * kOne; }
  void fill() noexcept { word_ = kCapacity * kOne | (kOne - 1); }
  bool contains(unsigned bit) const noexcept { return (word_ >> bit & 1) != 0; }

  /// Sets the lowest clear bit. Requires: not full. Returns: which.
  unsigned add() noexcept {
    const auto bit = static_cast<unsigned>(std::countr_zero(~word_ | kOne));
    word_ = (word_ | (word_ + 1)) + kOne;
    return bit;
  }
  /// Clears a bit. Requires: it is set.
  void remove(unsigned bit) noexcept { word_ -= kOne | std::uint64_t{1} << bit; }
  /// The lowest bit that is set. Requires: there is one.
  unsigned first() const noexcept { return static_cast<unsigned>(std::countr_zero(word_ | kOne)); }
  /// All bits that are set.
  std::uint64_t bits() const noexcept { return word_ & (kOne - 1); }

 private:
  // One in the count. (Or-ed in, it also tells the compiler that there is a bit to be found.)
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kCapacity;

  std::uint64_t word_ = 0;
};

/// Where the owners of cells are. `Name` is how an owner is called, small and cheap to copy;
/// `cell_of(name)` is where it keeps the number of its cell, `find(name)` that number;
/// `release(name, deadline)` says that its timer is no longer pending, and returns what a callback
/// is called with.
template <class O>
concept CellOwners = requires(O& owners, typename O::Name name, Tick deadline) {
  { owners.cell_of(name) } -> std::same_as<CellNumber&>;
  { owners.find(name) } -> std::same_as<CellNumber>;
  owners.release(name, deadline);
};

/// `kListCount` lists that share their memory. Thread-compatible. Not movable.
///
/// Each operation is O(1) amortised; `push` allocates 64 KiB at a time, nothing else allocates.
/// Full chunks take 18 bytes a timer, and cancelling leaves at most 20 holes in one of 56. A list
/// has a chunk of 1 KiB at least, so lists of few timers take more.
///
/// Invariants (check_invariants()):
///  1. A chunk is in the ring of one list, occupied, or free, with no bit set.
///  2. The owner of each occupied cell has its number, and no other owner has.
///  3. A block has memory when one of its chunks is in use; besides those, three times as many
///     blocks may have, and one.
template <CellOwners Owners, unsigned kListCount>
class CellLists {
 public:
  static_assert(kListCount < std::numeric_limits<std::uint16_t>::max());
  using Name = typename Owners::Name;
  using List = unsigned;
  using Place = CellNumber;
  static constexpr bool kKeepsOrder = false;
  static constexpr List kNoList = kListCount;

  /// A timer taken out, or looked at.
  struct Entry {
    Tick deadline;
    Name name;
  };

  CellLists() {
    heads_.fill(kNoChunk);
    add_block();  // kNoChunk's, which never gets memory
    bare_.clear();
    blocks_[0].free = 0;
    occupied_[kNoChunk].fill();
  }
  CellLists(const CellLists&) = delete;
  CellLists& operator=(const CellLists&) = delete;

  bool empty(List list) const noexcept { return heads_[list] == kNoChunk; }
  /// How many cells a list has. O(its chunks).
  std::size_t count(List list) const noexcept {
    std::size_t cells = 0;
    for_each_chunk(list, [&](ChunkNumber chunk) { cells += occupied_[chunk].count(); });
    return cells;
  }

  /// Adds a cell and tells its owner, if the list has a chunk with room.
  /// Returns: false when it has none.
  bool try_push(List list, const Entry& entry) noexcept {
    const ChunkNumber chunk = heads_[list];
    if (occupied_[chunk].full()) [[unlikely]]
      return false;
    fill_cell(chunk, entry);
    if (occupied_[chunk].full()) [[unlikely]]
      heads_[list] = links_[chunk].next;
    return true;
  }

  /// Adds a cell and tells its owner. Returns: whether the list was empty.
  bool push(List list, const Entry& entry) noexcept {
    if (try_push(list, entry)) return false;
    const bool was_empty = empty(list);
    fill_cell(add_chunk(list), entry);
    return was_empty;
  }

  /// Takes a cell out. Its owner keeps the stale number.
  /// Returns: whether `settle(cell)` must be called now.
  bool remove(CellNumber cell) noexcept {
    Occupancy& occupied = occupied_[cell / kNumbersPerChunk];
    occupied.remove(cell % kNumbersPerChunk);
    return occupied.count() == kReuseAt || occupied.count() == 0;
  }

  /// What is left to do after `remove`, rarely: frees the cell's chunk when it is empty, else moves
  /// it to the front. Returns: the list, when it is empty now, else kNoList.
  List settle(CellNumber cell) noexcept {
    const ChunkNumber chunk = cell / kNumbersPerChunk;
    const List list = list_of_[chunk];
    if (occupied_[chunk].count() == 0) {
      remove_chunk(chunk);
      return empty(list) ? list : kNoList;
    }
    if (heads_[list] != chunk) {
      unlink(chunk);
      link_first(list, chunk);
    }
    return kNoList;
  }

  /// Takes out at most `limit` cells, one by one, and calls visit(const Entry&) with each. It may
  /// add and remove timers, but not add to this list. Returns: how many.
  template <class Visit>
  std::size_t drain(List list, std::size_t limit, Visit&& visit) {
    std::size_t left = limit;
    while (left != 0 && !empty(list)) {
      const ChunkNumber chunk = heads_[list];
      const Entry* const cells = &at(chunk * kNumbersPerChunk);
      do {
        Occupancy& occupied = occupied_[chunk];
        const unsigned first = occupied.first();
        const Entry entry = cells[first];
        occupied.remove(first);
        if (occupied.count() == 0) [[unlikely]] {
          remove_chunk(chunk);
          prefetch(list);
        }
        --left;
        visit(entry);
      } while (left != 0 && heads_[list] == chunk);
    }
    return limit - left;
  }

  /// Says that the timer that was taken out is no longer pending.
  decltype(auto) release(const Entry& entry) noexcept {
    return owners_.release(entry.name, entry.deadline);
  }

  /// Fetches what `drain` needs first: the first chunk's owners and the second's cells.
  void prefetch(List list) noexcept {
    if (occupied_.size() <= kCachedChunks) return;
    const ChunkNumber first = heads_[list];
    if (first == kNoChunk) return;
    prefetch_owners(first);
    prefetch_cells(links_[first].next);
  }

  /// Moves all of `from` to `into`: chunks that are half full as they are, cells of others one by
  /// one, so that many small lists do not become one of many chunks. O(chunks of `from`).
  void append(List into, List from) noexcept {
    while (heads_[from] != kNoChunk) {
      const ChunkNumber chunk = heads_[from];
      const unsigned count = occupied_[chunk].count();
      if (count < Occupancy::kCapacity / 2) {
        drain(from, count, [&](const Entry& entry) { push(into, entry); });
      } else {
        unlink(chunk);
        link_first(into, chunk);
      }
    }
  }

  /// The cell of that number. Requires: it is occupied.
  Entry& at(CellNumber cell) noexcept {
    return blocks_[cell / kBlockSize].cells[cell % kBlockSize];
  }
  const Entry& at(CellNumber cell) const noexcept {
    return blocks_[cell / kBlockSize].cells[cell % kBlockSize];
  }

  Owners& owners() noexcept { return owners_; }
  const Owners& owners() const noexcept { return owners_; }

  /// The list in which an occupied cell is.
  List list_of(CellNumber cell) const noexcept { return list_of_[cell / kNumbersPerChunk]; }

  /// Allocates memory for `count` cells in full chunks, and keeps it. O(count).
  void reserve(std::size_t count) {
    reserved_ = std::max(reserved_, count / (kBlockChunks * Occupancy::kCapacity) + 1);
    while (blocks_.size() - 1 - bare_.size() < reserved_) allocate_block();
  }

  /// Returns: the deadline of the list's only cell; empty when it has none or several.
  std::optional<Tick> only_deadline(List list) const noexcept {
    const ChunkNumber chunk = heads_[list];
    if (chunk == kNoChunk || links_[chunk].next != chunk) return std::nullopt;
    if (occupied_[chunk].count() != 1) return std::nullopt;
    return at(chunk * kNumbersPerChunk + occupied_[chunk].first()).deadline;
  }

  /// Calls visit(list, CellNumber, const Entry&) for each cell. O(lists + chunks).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (List list = 0; list < kListCount; ++list) {
      for_each_chunk(list, [&](ChunkNumber chunk) {
        for_each_cell(chunk, [&](CellNumber cell) { visit(list, cell, at(cell)); });
      });
    }
  }

  /// Bytes of cells that are allocated now.
  std::size_t allocated_bytes() const noexcept {
    std::size_t blocks = 0;
    for (const Block& block : blocks_) blocks += block.cells != nullptr ? 1u : 0u;
    return blocks * kBlockSize * sizeof(Entry);
  }

  /// Stops the process unless the invariants hold. O(lists + chunks).
  void check_invariants() const noexcept {
    std::vector<bool> in_use(occupied_.size(), false);
    for (List list = 0; list < kListCount; ++list) {
      for_each_chunk(list, [&](ChunkNumber chunk) {
        DETENT_CHECK(list_of_[chunk] == list && !in_use[chunk] && occupied_[chunk].count() != 0);
        DETENT_CHECK(std::popcount(occupied_[chunk].bits()) ==
                     static_cast<int>(occupied_[chunk].count()));
        DETENT_CHECK(links_[links_[chunk].next].previous == chunk);
        in_use[chunk] = true;
      });
    }
    for_each([this](List, CellNumber cell, const Entry& entry) {
      DETENT_CHECK(owners_.find(entry.name) == cell);
    });
    for (ChunkNumber chunk = kBlockChunks; chunk < in_use.size(); ++chunk) {
      const Block& block = blocks_[chunk / kBlockChunks];
      const bool is_free = (block.free >> (chunk % kBlockChunks) & 1) != 0;
      DETENT_CHECK(is_free != in_use[chunk]);
      DETENT_CHECK(in_use[chunk] ? block.cells != nullptr : occupied_[chunk].count() == 0);
    }
    check_blocks();
  }

 private:
  using ChunkNumber = std::uint32_t;
  static constexpr ChunkNumber kNoChunk = 0;  // always full, so that an empty list has no room
  static constexpr unsigned kNumbersPerChunk = 64;  // the last eight are not used
  static constexpr unsigned kReuseAt = 36;          // cells left in a chunk that comes to the front
  static constexpr unsigned kBlockChunks = 64;
  static constexpr unsigned kBlockSize = kBlockChunks * kNumbersPerChunk;  // cells
  static constexpr std::size_t kCachedChunks = 256;  // so many fit in the caches
  static constexpr std::uint64_t kAllFree = ~std::uint64_t{0};

  // A chunk's neighbours in the ring of a list. Stale while it is free.
  struct Links {
    ChunkNumber previous;
    ChunkNumber next;
  };
  // Chunks that are allocated together.
  struct Block {
    std::unique_ptr<Entry[]> cells;  // null: given back
    std::uint64_t free = kAllFree;   // a bit a chunk
    std::uint32_t open_index = 0;    // where in open_ it is, if it is
  };

  void check_blocks() const noexcept {
    std::size_t full = 0;
    for (const Block& block : blocks_) full += block.free == 0 ? 1u : 0u;
    DETENT_CHECK(full + open_.size() + empty_.size() + bare_.size() == blocks_.size());
    full -= 1;  // kNoChunk's
    DETENT_CHECK(empty_.size() <= std::max(3 * (full + open_.size()) + 1, reserved_));
    for (std::uint32_t index = 0; index < open_.size(); ++index) {
      const Block& block = blocks_[open_[index]];
      DETENT_CHECK(block.open_index == index && block.free != 0 && block.free != kAllFree);
    }
    for (const std::uint32_t number : empty_) DETENT_CHECK(blocks_[number].free == kAllFree);
    for (const std::uint32_t number : bare_) DETENT_CHECK(blocks_[number].cells == nullptr);
  }

  void fill_cell(ChunkNumber chunk, const Entry& entry) noexcept {
    const CellNumber cell = chunk * kNumbersPerChunk + occupied_[chunk].add();
    at(cell) = entry;
    owners_.cell_of(entry.name) = cell;
  }

  ChunkNumber add_chunk(List list) noexcept {
    if (open_.empty()) open_block();
    const std::uint32_t number = open_.back();
    Block& block = blocks_[number];
    const auto place = static_cast<unsigned>(std::countr_zero(block.free));
    block.free &= block.free - 1;
    if (block.free == 0) open_.pop_back();
    const ChunkNumber chunk = number * kBlockChunks + place;
    link_first(list, chunk);
    return chunk;
  }

  // Unlinks and frees an empty chunk.
  [[gnu::noinline]] void remove_chunk(ChunkNumber chunk) noexcept {
    unlink(chunk);
    const std::uint32_t number = chunk / kBlockChunks;
    Block& block = blocks_[number];
    if (block.free == 0) add_open(number);
    block.free |= std::uint64_t{1} << (chunk % kBlockChunks);
    if (block.free == kAllFree) close_block(number);
  }

  // Finds a block with free chunks: an empty one, one that has no memory, or a new one.
  void open_block() noexcept {
    if (empty_.empty()) allocate_block();
    add_open(empty_.back());
    empty_.pop_back();
  }

  void allocate_block() {
    if (bare_.empty()) add_block();
    blocks_[bare_.back()].cells = std::make_unique<Entry[]>(kBlockSize);
    empty_.push_back(bare_.back());
    bare_.pop_back();
  }

  // Puts an empty block aside. Gives memory back while less than a quarter of it is in use.
  void close_block(std::uint32_t number) noexcept {
    const std::uint32_t index = blocks_[number].open_index;
    open_[index] = open_.back();
    blocks_[open_[index]].open_index = index;
    open_.pop_back();
    empty_.push_back(number);
    const std::size_t in_use = blocks_.size() - 1 - empty_.size() - bare_.size();
    while (empty_.size() > std::max(3 * in_use + 1, reserved_)) {
      blocks_[empty_.back()].cells.reset();
      bare_.push_back(empty_.back());
      empty_.pop_back();
    }
  }

  void add_open(std::uint32_t number) noexcept {
    blocks_[number].open_index = static_cast<std::uint32_t>(open_.size());
    open_.push_back(number);
  }

  void add_block() noexcept {
    const auto number = static_cast<std::uint32_t>(blocks_.size());
    DETENT_CHECK(number < kNoCell / kBlockSize);
    blocks_.emplace_back();
    occupied_.resize(occupied_.size() + kBlockChunks);
    for (auto* const numbers : {&open_, &empty_, &bare_}) {  // so that removing never allocates
      if (numbers->capacity() < blocks_.size()) numbers->reserve(2 * blocks_.size());
    }
    list_of_.resize(occupied_.size());
    links_.resize(occupied_.size());
    bare_.push_back(number);
  }

  void link_first(List list, ChunkNumber chunk) noexcept {
    const ChunkNumber head = heads_[list];
    heads_[list] = chunk;
    list_of_[chunk] = static_cast<std::uint16_t>(list);
    if (head == kNoChunk) {
      links_[chunk] = {.previous = chunk, .next = chunk};
      return;
    }
    const ChunkNumber last = links_[head].previous;
    links_[chunk] = {.previous = last, .next = head};
    links_[last].next = chunk;
    links_[head].previous = chunk;
  }

  void unlink(ChunkNumber chunk) noexcept {
    const auto [previous, next] = links_[chunk];
    ChunkNumber& head = heads_[list_of_[chunk]];
    if (next == chunk) {
      head = kNoChunk;
      return;
    }
    links_[previous].next = next;
    links_[next].previous = previous;
    if (head == chunk) head = next;
  }

  void prefetch_cells(ChunkNumber chunk) noexcept {
    constexpr unsigned kCellsPerLine = 4;
    for (std::uint64_t bits = occupied_[chunk].bits(); bits != 0;) {
      const auto line = static_cast<unsigned>(std::countr_zero(bits)) & ~(kCellsPerLine - 1);
      __builtin_prefetch(&at(chunk * kNumbersPerChunk + line));
      bits &= ~(std::uint64_t{15} << line);
    }
  }

  void prefetch_owners(ChunkNumber chunk) noexcept {
    for_each_cell(chunk, [this](CellNumber cell) {
      __builtin_prefetch(&owners_.cell_of(at(cell).name), /*for writing:*/ 1);
    });
  }

  template <class Visit>
  void for_each_cell(ChunkNumber chunk, Visit&& visit) const {
    for (std::uint64_t bits = occupied_[chunk].bits(); bits != 0; bits &= bits - 1) {
      visit(chunk * kNumbersPerChunk + static_cast<unsigned>(std::countr_zero(bits)));
    }
  }

  template <class Visit>
  void for_each_chunk(List list, Visit&& visit) const {
    const ChunkNumber first = heads_[list];
    if (first == kNoChunk) return;
    ChunkNumber chunk = first;
    do {
      visit(chunk);
      chunk = links_[chunk].next;
    } while (chunk != first);
  }

  Owners owners_;
  std::array<ChunkNumber, kListCount> heads_;
  // By chunk. Apart, so that the two that nearly every call needs stay in the caches.
  std::vector<Occupancy> occupied_;
  std::vector<std::uint16_t> list_of_;  // stale while the chunk is free
  std::vector<Links> links_;            // likewise
  // The chunks' memory. A block is in one of the lists below it, or all of its chunks are in use.
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> open_;   // some chunks are free
  std::vector<std::uint32_t> empty_;  // all are, and it has memory
  std::vector<std::uint32_t> bare_;   // it has no memory
  std::size_t reserved_ = 0;          // blocks that keep their memory
};

}  // namespace detent::internal

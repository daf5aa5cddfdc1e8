// CellLists: unordered lists of timers in cells. They make TimerWheel and DenseWheel fast with many
// timers.
//
// In a linked list each step costs a cache miss, and unlinking a timer costs up to three. Here a
// timer is a *cell* of 16 bytes with its deadline and its owner. A list is a ring of *chunks*, each
// with 56 cells and an occupancy word:
//
//     list ──► chunk 7                    chunk 2                    chunk 9
//              occupied …0111011          occupied 11…1              occupied 11…1
//              cells    [d,o][d,o]        cells    [d,o] × 56        cells    [d,o] × 56
//
// Adding a timer fills the first chunk that has room. Removing a timer clears a bit. Walking over a
// list reads memory in order, and prefetches the next chunk. Each owner stores the number of its
// cell. A list writes to an owner only when its cell moves. The lists give up the order of timers,
// because a wheel never needs an order within a slot.
//
// Chunks with room are first in the ring. A full chunk goes to the end. A chunk that has lost
// enough timers returns to the front, so holes are filled again. All cells are in one array
// (internal/cell_memory.h), so that the number of a cell is its index.
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
#include <new>
#include <optional>
#include <vector>

#include "detent/check.h"
#include "detent/internal/cell_memory.h"
#include "detent/internal/occupancy.h"
#include "detent/tick.h"

namespace detent::internal {

/// The owners of cells. `Name` names an owner; it is small and cheap to copy. `cell_of(name)` is
/// the variable in which the owner keeps the number of its cell, and `find(name)` returns this
/// number. `release(name, deadline)` marks the timer as not pending, and returns the argument for
/// the callback.
template <class O>
concept CellOwners = requires(O& owners, typename O::Name name, Tick deadline) {
  { owners.cell_of(name) } -> std::same_as<CellNumber&>;
  { owners.find(name) } -> std::same_as<CellNumber>;
  owners.release(name, deadline);
};

/// `kListCount` lists that share their memory. Thread-compatible. Not movable.
///
/// Each operation is O(1) amortised. Only `push` may allocate, as CellMemory documents. Full chunks
/// take 18 bytes per timer. Cancelling leaves at most 24 holes in a chunk of 56 cells. A list has
/// at least one chunk of 1 KiB, so lists of few timers take more memory per timer.
///
/// Invariants (check_invariants()):
///
/// - A chunk is in the ring of one list and occupied, or it is free and no bit is set.
/// - The owner of each occupied cell has its number, and no other owner has.
/// - All chunks of a list have the same start_of_.
template <CellOwners Owners, unsigned kListCount, class Large = LargePages>
class CellLists {
 public:
  using Name = typename Owners::Name;
  using List = unsigned;
  using Place = CellNumber;
  static constexpr bool kKeepsOrder = false;
  static constexpr List kNoList = kListCount;
  static constexpr Tick kNoStart = std::numeric_limits<Tick>::max();

  /// A timer that was removed or is visited. It takes 16 bytes, also where addresses have 32 bits.
  struct alignas(8) Entry {
    Tick deadline;
    Name name;
  };

  CellLists() {
    heads_.fill(kNoChunk);
    add_rows();
    occupied_[kNoChunk].fill();  // so that an empty list has no room
  }
  CellLists(const CellLists&) = delete;
  CellLists& operator=(const CellLists&) = delete;

  bool empty(List list) const noexcept { return heads_[list] == kNoChunk; }
  /// Returns the number of cells of a list. O(chunks of the list).
  std::size_t count(List list) const noexcept {
    std::size_t cells = 0;
    for_each_chunk(list, [&](ChunkNumber chunk) { cells += occupied_[chunk].count(); });
    return cells;
  }

  /// Adds a cell and tells its owner, if the first chunk of the list has room. Returns false if it
  /// has no room.
  bool try_push(List list, const Entry& entry) noexcept {
    const ChunkNumber chunk = heads_[list];
    if (occupied_[chunk].full()) [[unlikely]]
      return false;
    fill_cell(chunk, entry);
    return true;
  }

  /// Adds a cell and tells its owner. `start` is the value of start_of(); it must be the same for
  /// all cells of a list. Returns true if the list was empty.
  bool push(List list, const Entry& entry, Tick start = kNoStart) noexcept {
    pass_full(list);
    if (try_push(list, entry)) return false;
    const bool was_empty = empty(list);
    const ChunkNumber chunk = add_chunk(list);
    start_of_[chunk] = start;
    fill_cell(chunk, entry);
    return was_empty;
  }

  /// Returns true if the next `push` finds room in a chunk of this list.
  bool has_room(List list) const noexcept {
    const ChunkNumber head = heads_[list];
    if (!occupied_[head].full()) return true;
    return head != kNoChunk && !occupied_[links_[head].next].full();
  }
  /// Returns the list of a cell. Requires: the cell is occupied.
  List list_of(CellNumber cell) const noexcept { return links_[cell / kNumbersPerChunk].list; }

  /// Allocates the memory of the next `push`, in case it finds no room. Returns false if there is
  /// no memory; the lists are then unchanged.
  [[nodiscard]] bool try_prepare() noexcept {
    return cells_.try_prepare() && try_allocate([this] { add_rows(); });
  }

  /// Removes a cell. Its owner keeps the old number. Returns true if the caller must call
  /// `settle(cell)` now.
  bool remove(CellNumber cell) noexcept {
    Occupancy& occupied = occupied_[cell / kNumbersPerChunk];
    occupied.remove(cell % kNumbersPerChunk);
    return occupied.count() % kReuseAt == 0;
  }

  /// Does the rare rest of `remove`: frees the chunk of the cell if it is empty, otherwise moves it
  /// to the front. Returns the list if it is empty now, otherwise kNoList.
  List settle(CellNumber cell) noexcept {
    const ChunkNumber chunk = cell / kNumbersPerChunk;
    const List list = links_[chunk].list;
    if (occupied_[chunk].count() == 0) {
      remove_chunk(chunk);
      return empty(list) ? list : kNoList;
    }
    pass_full(list);
    if (heads_[list] != chunk) {
      unlink(chunk);
      link_first(list, chunk);
    }
    return kNoList;
  }

  /// Removes at most `limit` cells, one by one, and calls visit(const Entry&) with each. `visit`
  /// may add and remove timers, but not add to this list. Returns the number of removed cells.
  template <class Visit>
  std::size_t drain(List list, std::size_t limit, Visit&& visit) {
    std::size_t left = limit;
    while (left != 0 && !empty(list)) {
      const ChunkNumber chunk = heads_[list];
      do {
        Occupancy& occupied = occupied_[chunk];
        const unsigned first = occupied.first();
        const Entry entry = cells_[chunk * kNumbersPerChunk + first];
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

  /// As `drain`, for a `visit` that only adds timers to other lists. Because no other code reads
  /// this list during the call, the occupancy word stays in a register and is stored once per
  /// chunk.
  template <class Visit>
  std::size_t pour(List list, std::size_t limit, Visit&& visit) {
    std::size_t left = limit;
    while (left != 0 && !empty(list)) {
      const ChunkNumber chunk = heads_[list];
      Occupancy occupied = occupied_[chunk];
      while (left != 0 && occupied.count() != 0) {
        const unsigned first = occupied.first();
        const Entry entry = cells_[chunk * kNumbersPerChunk + first];
        occupied.remove(first);
        --left;
        visit(entry);
      }
      occupied_[chunk] = occupied;
      if (occupied.count() != 0) break;
      remove_chunk(chunk);
      prefetch(list);
    }
    return limit - left;
  }

  /// Marks a removed timer as not pending.
  decltype(auto) release(const Entry& entry) noexcept {
    return owners_.release(entry.name, entry.deadline);
  }

  /// Prefetches the memory that `drain` needs first: the owners of the first chunk and the cells of
  /// the second chunk.
  void prefetch(List list) noexcept {
    if (occupied_.size() <= kCachedChunks) return;
    const ChunkNumber first = heads_[list];
    if (first == kNoChunk) return;
    prefetch_owners(first);
    prefetch_cells(links_[first].next);
  }

  /// Moves all cells of `from` to `into`. Chunks that are at least half full are moved as a whole,
  /// other cells one by one. Many small lists therefore do not become one list of many nearly empty
  /// chunks. O(chunks of `from`).
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

  /// Returns the cell with this number. Requires: the cell is occupied.
  Entry& at(CellNumber cell) noexcept { return cells_[cell]; }
  const Entry& at(CellNumber cell) const noexcept { return cells_[cell]; }

  Owners& owners() noexcept { return owners_; }
  const Owners& owners() const noexcept { return owners_; }

  /// Returns the `start` that the first push to an empty list gave, for the list of an occupied
  /// cell. Returns kNoStart if that push gave no start.
  Tick start_of(CellNumber cell) const noexcept { return start_of_[cell / kNumbersPerChunk]; }

  /// Allocates and keeps memory for `count` cells in full chunks. O(count).
  void reserve(std::size_t count) {
    cells_.reserve(count);
    add_rows();
  }

  /// Returns the deadline of the only cell of a list; std::nullopt if the list has no cell or
  /// several.
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

  /// Returns the number of allocated bytes for cells; the kernel holds at most this many.
  /// O(chunks).
  std::size_t allocated_bytes() const noexcept { return cells_.allocated_bytes(); }
  /// Returns the number of bytes that the kernel holds now, in addition to the heap. O(pages).
  std::size_t mapped_bytes() const noexcept {
    std::size_t owners = 0;
    if constexpr (requires { owners_.mapped_bytes(); }) owners = owners_.mapped_bytes();
    return owners + cells_.mapped_bytes();
  }

  /// Stops the process if an invariant is broken. O(lists + chunks).
  void check_invariants() const noexcept {
    std::vector<bool> in_use(occupied_.size(), false);
    for (List list = 0; list < kListCount; ++list) {
      for_each_chunk(list, [&](ChunkNumber chunk) {
        DETENT_CHECK(links_[chunk].list == list);
        DETENT_CHECK(!in_use[chunk] && occupied_[chunk].count() != 0);
        DETENT_CHECK(start_of_[chunk] == start_of_[heads_[list]]);
        DETENT_CHECK(std::popcount(occupied_[chunk].bits()) ==
                     static_cast<int>(occupied_[chunk].count()));
        DETENT_CHECK(links_[links_[chunk].next].previous == chunk);
        in_use[chunk] = true;
      });
    }
    for_each([this](List, CellNumber cell, const Entry& entry) {
      DETENT_CHECK(owners_.find(entry.name) == cell);
    });
    for (ChunkNumber chunk = 1; chunk < in_use.size(); ++chunk) {
      DETENT_CHECK(in_use[chunk] || occupied_[chunk].count() == 0);
    }
    cells_.check_invariants(in_use);
  }

 private:
  static constexpr unsigned kReuseAt = 32;  // a chunk with this many cells left moves to the front
  static_assert(std::has_single_bit(kReuseAt) && Occupancy::kCapacity < 2 * kReuseAt,
                "a multiple of it is it, or none left");
  static constexpr std::size_t kCachedChunks = 256;  // this number of chunks fits in the caches

  // The list of a chunk, and its neighbours in the ring. Stale while the chunk is free.
  struct Links {
    List list;
    ChunkNumber previous;
    ChunkNumber next;
  };
  // Moves a full chunk from the front of a list to its end.
  void pass_full(List list) noexcept {
    const ChunkNumber head = heads_[list];
    if (head != kNoChunk && occupied_[head].full()) heads_[list] = links_[head].next;
  }

  void fill_cell(ChunkNumber chunk, const Entry& entry) noexcept {
    const CellNumber cell = chunk * kNumbersPerChunk + occupied_[chunk].add();
    cells_[cell] = entry;
    owners_.cell_of(entry.name) = cell;
  }

  ChunkNumber add_chunk(List list) noexcept {
    const ChunkNumber chunk = cells_.take();
    if (chunk >= occupied_.size()) [[unlikely]]
      add_rows();
    link_first(list, chunk);
    return chunk;
  }

  // Unlinks and frees an empty chunk.
  [[gnu::noinline]] void remove_chunk(ChunkNumber chunk) noexcept {
    unlink(chunk);
    cells_.free(chunk);
  }

  // Adds rows for new chunks to the arrays below. Reserves an eighth more than needed, because
  // doubling would cost one byte per timer. Throws std::bad_alloc. occupied_ grows last, because
  // its size says which chunks have rows.
  void add_rows() {
    const std::size_t chunks = cells_.chunk_count();
    if (occupied_.capacity() < chunks) {
      start_of_.reserve(chunks + chunks / 8);
      links_.reserve(chunks + chunks / 8);
      occupied_.reserve(chunks + chunks / 8);
    }
    start_of_.resize(chunks);
    links_.resize(chunks);
    occupied_.resize(chunks);
  }

  void link_first(List list, ChunkNumber chunk) noexcept {
    const ChunkNumber head = heads_[list];
    heads_[list] = chunk;
    if (head == kNoChunk) {
      links_[chunk] = {.list = list, .previous = chunk, .next = chunk};
      return;
    }
    const ChunkNumber last = links_[head].previous;
    links_[chunk] = {.list = list, .previous = last, .next = head};
    links_[last].next = chunk;
    links_[head].previous = chunk;
  }

  void unlink(ChunkNumber chunk) noexcept {
    const auto [list, previous, next] = links_[chunk];
    ChunkNumber& head = heads_[list];
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
  CellMemory<Entry, Large> cells_;
  // One row per chunk. Separate arrays, so that the two that nearly every call needs stay in the
  // caches.
  std::vector<Occupancy> occupied_;
  std::vector<Tick> start_of_;  // stale while the chunk is free
  std::vector<Links> links_;    // stale while the chunk is free
};

}  // namespace detent::internal

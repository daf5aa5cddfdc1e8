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
// the front, so holes fill up again. All cells are one array (internal/cell_memory.h), so that a
// number leads to its cell at once.
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
/// Each operation is O(1) amortised; `push` may allocate, as CellMemory says, nothing else does.
/// Full chunks take 18 bytes a timer, and cancelling leaves at most 24 holes in one of 56. A list
/// has a chunk of 1 KiB at least, so lists of few timers take more.
///
/// Invariants (check_invariants()):
///  1. A chunk is in the ring of one list, occupied, or free, with no bit set.
///  2. The owner of each occupied cell has its number, and no other owner has.
///  3. All chunks of a list have the same start_of_.
template <CellOwners Owners, unsigned kListCount, class Large = LargePages>
class CellLists {
 public:
  using Name = typename Owners::Name;
  using List = unsigned;
  using Place = CellNumber;
  static constexpr bool kKeepsOrder = false;
  static constexpr List kNoList = kListCount;
  static constexpr Tick kNoStart = std::numeric_limits<Tick>::max();

  /// A timer taken out, or looked at.
  struct Entry {
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
  /// How many cells a list has. O(its chunks).
  std::size_t count(List list) const noexcept {
    std::size_t cells = 0;
    for_each_chunk(list, [&](ChunkNumber chunk) { cells += occupied_[chunk].count(); });
    return cells;
  }

  /// Adds a cell and tells its owner, if the list's first chunk has room.
  /// Returns: false when it has none.
  bool try_push(List list, const Entry& entry) noexcept {
    const ChunkNumber chunk = heads_[list];
    if (occupied_[chunk].full()) [[unlikely]]
      return false;
    fill_cell(chunk, entry);
    return true;
  }

  /// Adds a cell and tells its owner. `start` is for start_of(), the same for all of a list.
  /// Returns: whether the list was empty.
  bool push(List list, const Entry& entry, Tick start = kNoStart) noexcept {
    pass_full(list);
    if (try_push(list, entry)) return false;
    const bool was_empty = empty(list);
    const ChunkNumber chunk = add_chunk(list);
    start_of_[chunk] = start;
    fill_cell(chunk, entry);
    return was_empty;
  }

  /// Whether the next `push` finds room in a chunk that the list has.
  bool has_room(List list) const noexcept {
    const ChunkNumber head = heads_[list];
    if (!occupied_[head].full()) return true;
    return head != kNoChunk && !occupied_[links_[head].next].full();
  }
  /// The list of a cell. Requires: it is occupied.
  List list_of(CellNumber cell) const noexcept { return links_[cell / kNumbersPerChunk].list; }

  /// Allocates what the next `push` needs if it finds no room. Returns: false when there is no
  /// memory for it; the lists are then as they were.
  [[nodiscard]] bool try_prepare() noexcept {
    if (!cells_.try_prepare()) return false;
    try {
      add_rows();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  /// Takes a cell out. Its owner keeps the stale number.
  /// Returns: whether `settle(cell)` must be called now.
  bool remove(CellNumber cell) noexcept {
    Occupancy& occupied = occupied_[cell / kNumbersPerChunk];
    occupied.remove(cell % kNumbersPerChunk);
    return occupied.count() % kReuseAt == 0;
  }

  /// What is left to do after `remove`, rarely: frees the cell's chunk when it is empty, else moves
  /// it to the front. Returns: the list, when it is empty now, else kNoList.
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

  /// Takes out at most `limit` cells, one by one, and calls visit(const Entry&) with each. It may
  /// add and remove timers, but not add to this list. Returns: how many.
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

  /// As `drain`, for a `visit` that only puts timers into other lists: nobody looks at this one
  /// meanwhile, so that what is left of it need not be in memory after each.
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
  Entry& at(CellNumber cell) noexcept { return cells_[cell]; }
  const Entry& at(CellNumber cell) const noexcept { return cells_[cell]; }

  Owners& owners() noexcept { return owners_; }
  const Owners& owners() const noexcept { return owners_; }

  /// What the first push to an empty list said of it, for the list in which an occupied cell is;
  /// kNoStart when it said nothing.
  Tick start_of(CellNumber cell) const noexcept { return start_of_[cell / kNumbersPerChunk]; }

  /// Allocates memory for `count` cells in full chunks, and keeps it. O(count).
  void reserve(std::size_t count) {
    cells_.reserve(count);
    add_rows();
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

  /// Bytes of cells that are allocated now, so that the kernel may hold as many. O(their chunks).
  std::size_t allocated_bytes() const noexcept { return cells_.allocated_bytes(); }
  /// Bytes that the kernel does hold, beside what comes from the heap. O(pages).
  std::size_t mapped_bytes() const noexcept {
    std::size_t owners = 0;
    if constexpr (requires { owners_.mapped_bytes(); }) owners = owners_.mapped_bytes();
    return owners + cells_.mapped_bytes();
  }

  /// Stops the process unless the invariants hold. O(lists + chunks).
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
  static constexpr unsigned kReuseAt = 32;  // cells left in a chunk that comes to the front
  static_assert(std::has_single_bit(kReuseAt) && Occupancy::kCapacity < 2 * kReuseAt,
                "a multiple of it is it, or none left");
  static constexpr std::size_t kCachedChunks = 256;  // so many fit in the caches

  // A chunk's list, and its neighbours in the ring of it. Stale while it is free.
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

  // Makes what is kept of each chunk as long as there are chunks, and an eighth longer: to double
  // it would cost a byte a timer. Throws std::bad_alloc. occupied_ is last, because its size says
  // for which chunks there are rows.
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
  // By chunk. Apart, so that the two that nearly every call needs stay in the caches.
  std::vector<Occupancy> occupied_;
  std::vector<Tick> start_of_;  // stale while the chunk is free
  std::vector<Links> links_;    // likewise
};

}  // namespace detent::internal

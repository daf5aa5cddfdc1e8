// CellLists: unordered lists of timers in cells. They make TimerWheel and DenseWheel fast with few
// timers and with many.
//
// In a linked list each step costs a cache miss, and unlinking a timer costs up to three. Here a
// timer is a *cell* of 16 bytes with its deadline and its owner. Cells are in *chunks*, and the
// size of a chunk fits the load of its list (internal/cell_row.h):
//
//     few timers    one chunk of one line (3 cells), two lines (7) or four lines (15). If it is
//                   full, its cells move to a chunk of the next size. It keeps this size until it
//                   is empty
//     many timers   a ring of whole rows, each with 56 cells and an occupancy word
//
//     list ──► row 7                      row 2                      row 9
//              occupied …0111011          occupied 11…1              occupied 11…1
//              cells    [d,o][d,o]        cells    [d,o] × 56        cells    [d,o] × 56
//
// Adding a timer fills the first chunk that has room. Removing a timer clears a bit. Walking over a
// list reads memory in order, and prefetches the next chunk. Each owner stores the number of its
// cell. A list writes to an owner only when its cell moves. The lists give up the order of timers,
// because a wheel never needs an order within a slot.
//
// Rows with room are first in the ring. A full row goes to the end. A row that has lost enough
// timers returns to the front, so holes are filled again. All cells are in one array
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
#include "detent/internal/cell_row.h"
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
/// Each operation is O(1) amortised. Only `push` may allocate, as CellMemory documents. A list of
/// one to three timers takes 73 bytes. Whole rows that are full take 18 bytes per timer. Cancelling
/// leaves at most 24 holes in a row of 56 cells. A divided row becomes free when all its chunks
/// are free, but a few are kept.
///
/// Invariants (check_invariants()):
///
/// - A chunk is in one list and has cells, or it is free and no bit is set. A list has whole rows
///   only, or a single chunk. A list without a start has whole rows only.
/// - The owner of each occupied cell has its number, and no other owner has.
/// - All rows of a list have the same start_of_.
/// - The free small chunks are exactly the chunks without cells of divided rows. The first row is
///   divided.
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
    add_heads(0);
    add_rows();
    divide(kFirstRow, ChunkSize::one_line);
  }
  CellLists(const CellLists&) = delete;
  CellLists& operator=(const CellLists&) = delete;

  /// Requires: the list got a cell before, or is one of the first 64 lists.
  bool empty(List list) const noexcept { return heads_[list] == kNoChunk; }
  /// Returns the number of cells of a list. O(chunks of the list).
  std::size_t count(List list) const noexcept {
    std::size_t cells = 0;
    for_each_chunk(list, [&](Chunk chunk) {
      cells += static_cast<std::size_t>(std::popcount(occupied(chunk)));
    });
    return cells;
  }

  /// Adds a cell and tells its owner, if the first chunk of the list is a row with room. Returns
  /// false if it is not.
  bool try_push(List list, const Entry& entry) noexcept {
    if (list >= head_count_) [[unlikely]]
      return false;
    const Chunk chunk = heads_[list];  // if there is none: in the first row, which is divided
    CellRow& row = row_of(chunk);
    if (!row.is_whole_with_room()) [[unlikely]]
      return false;
    fill_cell(chunk + row.add_to_whole(), entry);
    return true;
  }
  /// As `try_push`, for a first chunk of any size.
  bool try_push_small(List list, const Entry& entry) noexcept {
    if (list >= head_count_) return false;
    const Chunk chunk = heads_[list];
    if (chunk == kNoChunk) return false;
    const std::uint64_t cells = free(chunk);
    if (cells == 0) return false;
    add_to(chunk, cells, entry);
    return true;
  }

  /// Adds a cell and tells its owner. `start_of()` returns the start of the list; it must be the
  /// same for all cells of a list. Returns true if the list was empty.
  template <std::invocable StartOf>
  bool push(List list, const Entry& entry, const StartOf& start_of) noexcept {
    return push_to(list, entry, first_size_, start_of);
  }
  /// As the other `push`, for a list without a start: it has whole rows only.
  bool push(List list, const Entry& entry) noexcept {
    return push_to(list, entry, ChunkSize::whole_row, [] { return kNoStart; });
  }

  /// Returns true if the next `push` finds room in a chunk of this list.
  bool has_room(List list) const noexcept {
    const Chunk head = list < head_count_ ? heads_[list] : kNoChunk;
    if (head == kNoChunk) return false;
    return free(head) != 0 || (row_of(head).is_whole() && free(next_of(head)) != 0);
  }
  /// Returns the list of a cell. Requires: the cell is occupied.
  List list_of(CellNumber cell) const noexcept { return links(chunk_of(cell)).list; }

  /// Allocates the memory of the next `push` to a list, in case it finds no room. Returns false if
  /// there is no memory; the lists are then unchanged.
  [[nodiscard]] bool try_prepare(List list) noexcept {
    return cells_.try_prepare() && try_allocate([&] {
             add_rows();
             prepare_head(list);
           });
  }

  /// Removes a cell. Its owner keeps the old number. Returns true if the caller must call
  /// `settle(cell)` now.
  bool remove(CellNumber cell) noexcept {
    CellRow& row = row_of(cell);
    row.remove(cell % CellRow::kPlaces);
    return row.needs_settling(cell % CellRow::kPlaces);
  }

  /// Does the rest of `remove`: frees the chunk of the cell if it is empty; moves a row with room
  /// to the front. Returns the list if it is empty now, otherwise kNoList.
  List settle(CellNumber cell) noexcept {
    const Chunk chunk = chunk_of(cell);
    const List list = links(chunk).list;
    if (occupied(chunk) == 0) {
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
      const Chunk chunk = heads_[list];
      const std::uint64_t cells = row_of(chunk).cells_of(chunk % CellRow::kPlaces);
      do {
        CellRow& row = row_of(chunk);
        const unsigned place = CellRow::lowest(row.occupied_among(cells));
        const Entry entry = at(first_of_row(chunk) + place);
        row.remove(place);
        if (row.occupied_among(cells) == 0) [[unlikely]] {
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
  /// this list during the call, the cells are marked as removed once per chunk. A long list is
  /// divided among a level of 256 finer lists, so these begin with chunks of the size that they
  /// will need.
  template <class Visit>
  std::size_t pour(List list, std::size_t limit, Visit&& visit) {
    first_size_ = first_size_after(list);
    std::size_t left = limit;
    while (left != 0 && !empty(list)) {
      const Chunk chunk = heads_[list];
      const std::uint64_t before = occupied(chunk);
      const std::size_t left_before = left;
      std::uint64_t cells = before;
      for (; left != 0 && cells != 0; cells &= cells - 1) {
        const Entry entry = at(first_of_row(chunk) + CellRow::lowest(cells));
        --left;
        visit(entry);
      }
      row_of(chunk).remove(before & ~cells, static_cast<unsigned>(left_before - left));
      if (cells != 0) break;
      remove_chunk(chunk);
      prefetch(list);
    }
    first_size_ = ChunkSize::one_line;
    return limit - left;
  }

  /// Marks a removed timer as not pending.
  decltype(auto) release(const Entry& entry) noexcept {
    return owners_.release(entry.name, entry.deadline);
  }

  /// Prefetches the memory that `drain` needs first: the owners of the first chunk and the cells of
  /// the second chunk.
  void prefetch(List list) noexcept {
    if (rows_.size() <= kCachedRows) return;
    const Chunk first = heads_[list];
    if (first == kNoChunk) return;
    prefetch_owners(first);
    if (row_of(first).is_whole()) prefetch_cells(next_of(first));
  }

  /// Moves all cells of `from` to `into`. Rows that are at least half full are moved as a whole,
  /// other cells one by one. Many small lists therefore do not become one list of many nearly empty
  /// rows. Requires: the start of both lists is kNoStart. O(chunks of `from`).
  void append(List into, List from) {
    prepare_head(into);
    while (!empty(from)) {
      const Chunk chunk = heads_[from];
      const unsigned count = row_of(chunk).count();
      if (count < CellRow::kMostCells / 2) {
        drain(from, count, [&](const Entry& entry) { push(into, entry); });
      } else {
        unlink(chunk);
        link_first(into, chunk);
      }
    }
  }

  /// Returns the cell with this number. Requires: the cell is occupied.
  Entry& at(CellNumber cell) noexcept { return cells_[cell].entry; }
  const Entry& at(CellNumber cell) const noexcept { return cells_[cell].entry; }

  Owners& owners() noexcept { return owners_; }
  const Owners& owners() const noexcept { return owners_; }

  /// Stores a new deadline in an occupied cell, if the start of its list is not after this
  /// deadline. In a whole row, this writes to the cell without reading it. In other chunks, the
  /// deadline must also not be before the old deadline. Returns false if it changes nothing.
  bool move_in_place(CellNumber cell, Tick deadline) noexcept {
    if (deadline < start_of_[row_number(cell)]) {
      if (row_of(cell).is_whole() || deadline < at(cell).deadline) return false;
    }
    at(cell).deadline = deadline;
    return true;
  }

  /// Allocates and keeps memory for `count` cells in full rows. O(count).
  void reserve(std::size_t count) {
    cells_.reserve(count);
    add_rows();
    if (count >= kManyCells) expects_rows_ = true;
  }

  /// Returns the deadline of the only cell of a list; std::nullopt if the list has no cell or
  /// several.
  std::optional<Tick> only_deadline(List list) const noexcept {
    const Chunk chunk = heads_[list];
    if (chunk == kNoChunk) return std::nullopt;
    if (row_of(chunk).is_whole() && next_of(chunk) != chunk) return std::nullopt;
    const std::uint64_t cells = occupied(chunk);
    if ((cells & (cells - 1)) != 0) return std::nullopt;  // std::has_single_bit counts all bits
    return at(first_of_row(chunk) + CellRow::lowest(cells)).deadline;
  }

  /// Calls visit(list, CellNumber, const Entry&) for each cell. O(lists + chunks).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (List list = 0; list < head_count_; ++list) {
      for_each_chunk(list, [&](Chunk chunk) {
        for_each_cell(chunk, [&](CellNumber cell) { visit(list, cell, at(cell)); });
      });
    }
  }

  /// Returns the number of allocated bytes for cells; the kernel holds at most this many.
  /// O(rows).
  std::size_t allocated_bytes() const noexcept { return cells_.allocated_bytes(); }
  /// Returns the number of bytes that the kernel holds now, in addition to the heap. O(pages).
  std::size_t mapped_bytes() const noexcept {
    std::size_t owners = 0;
    if constexpr (requires { owners_.mapped_bytes(); }) owners = owners_.mapped_bytes();
    return owners + cells_.mapped_bytes();
  }

  /// Stops the process if an invariant is broken. O(lists + rows).
  void check_invariants() const noexcept {
    std::vector<unsigned> cells(rows_.size(), 0);  // in lists
    for (List list = 0; list < head_count_; ++list) {
      for_each_chunk(list, [&](Chunk chunk) {
        DETENT_CHECK(links(chunk).list == list);
        DETENT_CHECK(occupied(chunk) != 0);
        DETENT_CHECK(row_of(chunk).is_whole() || next_of(chunk) == chunk);
        DETENT_CHECK(start_of_[row_number(chunk)] == start_of_[row_number(heads_[list])]);
        DETENT_CHECK(links(next_of(chunk)).previous == chunk);
        cells[row_number(chunk)] += static_cast<unsigned>(std::popcount(occupied(chunk)));
      });
    }
    for_each([this](List, CellNumber cell, const Entry& entry) {
      DETENT_CHECK(owners_.find(entry.name) == cell);
    });
    for (RowNumber row = 0; row < rows_.size(); ++row) {
      DETENT_CHECK(rows_[row].count() == cells[row]);
    }
    check_free_chunks();
  }

 private:
  // The first place of a chunk: row × 64 + its place in the row. There is no chunk 0: the first row
  // is divided into small chunks, which begin at place 8.
  using Chunk = CellNumber;
  static constexpr Chunk kNoChunk = 0;
  static constexpr std::size_t kCachedRows = 256;  // this number of rows fits in the caches
  static constexpr unsigned kSizes = 4;
  static constexpr unsigned kHeadStep = 64;
  static constexpr std::size_t kKeptRows = 3;  // of free small chunks of one size
  // A list with this number of rows is divided into lists of about 9 or 2 timers.
  static constexpr std::uint32_t kRowsForRows = 40;
  static constexpr std::uint32_t kRowsForFourLines = 10;
  // With this number of timers, most lists have rows.
  static constexpr std::size_t kManyCells = 5'000;

  // The header of a chunk.
  struct Links {
    Chunk next;          // in the ring of its list, or in the list of free chunks
    Chunk previous;      // likewise
    List list;           // stale while the chunk is free
    std::uint32_t rank;  // of a whole row: about the number of rows of the list
  };
  union Cell {
    Entry entry;
    Links links;
  };
  static_assert(sizeof(Entry) == 16 && sizeof(Cell) == 16);

  static RowNumber row_number(CellNumber cell) noexcept { return cell / CellRow::kPlaces; }
  static CellNumber first_of_row(CellNumber cell) noexcept {
    return cell & ~(CellRow::kPlaces - 1);
  }
  CellRow& row_of(CellNumber cell) noexcept { return rows_[row_number(cell)]; }
  const CellRow& row_of(CellNumber cell) const noexcept { return rows_[row_number(cell)]; }
  Chunk chunk_of(CellNumber cell) const noexcept {
    return first_of_row(cell) + row_of(cell).chunk_of(cell % CellRow::kPlaces);
  }
  std::uint64_t occupied(Chunk chunk) const noexcept {
    return row_of(chunk).occupied(chunk % CellRow::kPlaces);
  }
  std::uint64_t free(Chunk chunk) const noexcept {
    return row_of(chunk).free(chunk % CellRow::kPlaces);
  }
  Links& links(Chunk chunk) noexcept { return cells_[chunk].links; }
  const Links& links(Chunk chunk) const noexcept { return cells_[chunk].links; }
  Chunk next_of(Chunk chunk) const noexcept { return links(chunk).next; }

  // ---- Cells.

  void fill_cell(CellNumber cell, const Entry& entry) noexcept {
    at(cell) = entry;
    owners_.cell_of(entry.name) = cell;
  }

  // Fills the first free cell of a chunk.
  void add_to(Chunk chunk, std::uint64_t free, const Entry& entry) noexcept {
    const unsigned place = CellRow::lowest(free);
    row_of(chunk).add(place);
    fill_cell(first_of_row(chunk) + place, entry);
  }

  template <class Visit>
  void for_each_cell(Chunk chunk, Visit&& visit) const {
    for (std::uint64_t cells = occupied(chunk); cells != 0; cells &= cells - 1) {
      visit(first_of_row(chunk) + CellRow::lowest(cells));
    }
  }

  // ---- Chunks of a list.

  template <class StartOf>
  bool push_to(List list, const Entry& entry, ChunkSize first_size,
               const StartOf& start_of) noexcept {
    prepare_head(list);
    const Chunk head = heads_[list];
    if (head == kNoChunk) {
      const Chunk chunk = begin(list, first_size, start_of);
      const unsigned place = CellRow::first_cell(first_size) + chunk % CellRow::kPlaces;
      row_of(chunk).add(place);
      fill_cell(first_of_row(chunk) + place, entry);
      return true;
    }
    if (free(head) == 0) make_room(list, start_of);
    add_to(heads_[list], free(heads_[list]), entry);
    return false;
  }

  // Gives a list a head, if it never had one. Most lists are never used: a wheel has timers on two
  // or three of its levels. Throws std::bad_alloc.
  void prepare_head(List list) {
    if (list >= head_count_) [[unlikely]]
      add_heads(list);
  }
  [[gnu::noinline]] void add_heads(List list) {
    const List count = std::min((list / kHeadStep + 1) * kHeadStep, kListCount);
    heads_.reserve(count);
    heads_.resize(count);
    head_count_ = count;
  }

  // Makes a new chunk the only chunk of a list.
  template <class StartOf>
  Chunk begin(List list, ChunkSize size, const StartOf& start_of) noexcept {
    const Chunk chunk = size == ChunkSize::whole_row ? take_row(start_of()) : take_chunk(size);
    links(chunk) = {.next = chunk, .previous = chunk, .list = list, .rank = 0};
    heads_[list] = chunk;
    return chunk;
  }

  // Gives a list whose first chunk is full a first chunk with room. The cells of a small chunk move
  // to a chunk of the next size.
  template <class StartOf>
  [[gnu::noinline]] void make_room(List list, const StartOf& start_of) noexcept {
    const Chunk full = heads_[list];
    const ChunkSize size = row_of(full).size();
    if (size == ChunkSize::whole_row) {
      pass_full(list);
      if (free(heads_[list]) == 0) add_row(list, start_of());
      return;
    }
    begin(list, size_after(size), start_of);
    for_each_cell(full,
                  [&](CellNumber cell) { add_to(heads_[list], free(heads_[list]), at(cell)); });
    const std::uint64_t cells = occupied(full);
    row_of(full).remove(cells, static_cast<unsigned>(std::popcount(cells)));
    free_chunk(full);
  }

  // Adds a row at the front of a list of rows.
  void add_row(List list, Tick start) noexcept {
    const Chunk chunk = take_row(start);
    const Links& first = links(heads_[list]);
    links(chunk).rank = std::max(first.rank, links(first.previous).rank) + 1;
    link_first(list, chunk);
  }

  // Moves a full row from the front of a list to its end.
  void pass_full(List list) noexcept {
    const Chunk head = heads_[list];
    if (free(head) == 0) heads_[list] = next_of(head);
  }

  void link_first(List list, Chunk chunk) noexcept {
    const Chunk head = heads_[list];
    heads_[list] = chunk;
    Links& own = links(chunk);
    own.list = list;
    if (head == kNoChunk) {
      own.next = own.previous = chunk;
      return;
    }
    own.next = head;
    own.previous = links(head).previous;
    links(own.previous).next = chunk;
    links(head).previous = chunk;
  }

  void unlink(Chunk chunk) noexcept {
    const auto [next, previous, list, rank] = links(chunk);
    if (next == chunk) {
      heads_[list] = kNoChunk;
      return;
    }
    links(previous).next = next;
    links(next).previous = previous;
    if (heads_[list] == chunk) heads_[list] = next;
  }

  // Unlinks and frees an empty chunk.
  void remove_chunk(Chunk chunk) noexcept {
    if (row_of(chunk).is_whole()) return remove_row(chunk);
    heads_[links(chunk).list] = kNoChunk;
    free_chunk(chunk);
  }
  [[gnu::noinline]] void remove_row(Chunk chunk) noexcept {
    unlink(chunk);
    cells_.free(row_number(chunk));
  }

  template <class Visit>
  void for_each_chunk(List list, Visit&& visit) const {
    const Chunk first = heads_[list];
    if (first == kNoChunk) return;
    Chunk chunk = first;
    do {
      visit(chunk);
      chunk = next_of(chunk);
    } while (chunk != first);
  }

  // ---- Memory of chunks.

  Chunk take_row(Tick start) noexcept {
    const RowNumber row = cells_.take();
    if (row >= rows_.size()) [[unlikely]]
      add_rows();
    rows_[row] = CellRow(ChunkSize::whole_row);
    start_of_[row] = start;
    return row * CellRow::kPlaces;
  }

  // Takes the chunk that was freed last: its memory is probably in the caches.
  Chunk take_chunk(ChunkSize size) noexcept {
    Chunk& first = free_[static_cast<unsigned>(size)];
    if (first == kNoChunk) [[unlikely]]
      divide(row_number(take_row(kNoStart)), size);
    const Chunk chunk = first;
    first = next_of(chunk);
    if (first != kNoChunk) links(first).previous = kNoChunk;
    --free_count_[static_cast<unsigned>(size)];
    return chunk;
  }

  // Divides an empty row into free chunks.
  [[gnu::noinline]] void divide(RowNumber row, ChunkSize size) noexcept {
    rows_[row] = CellRow(size);
    start_of_[row] = kNoStart;
    const unsigned step = CellRow::places_of(size);
    for (unsigned place = CellRow::kPlaces; place > CellRow::first_chunk(size);) {
      place -= step;
      add_free(row * CellRow::kPlaces + place, size);
    }
  }

  // Frees an empty small chunk, and perhaps its row.
  void free_chunk(Chunk chunk) noexcept {
    const CellRow row = row_of(chunk);
    add_free(chunk, row.size());
    if (row.count() == 0) [[unlikely]]
      free_divided(row_number(chunk));
  }

  // Frees a row whose chunks are all free, unless there are few other free chunks of this size.
  [[gnu::noinline]] void free_divided(RowNumber number) noexcept {
    const ChunkSize size = rows_[number].size();
    const unsigned step = CellRow::places_of(size);
    const unsigned chunks = (CellRow::kPlaces - CellRow::first_chunk(size)) / step;
    if (number == kFirstRow || free_count_[static_cast<unsigned>(size)] < kKeptRows * chunks)
      return;
    for (unsigned place = CellRow::first_chunk(size); place < CellRow::kPlaces; place += step) {
      remove_free(number * CellRow::kPlaces + place, size);
    }
    rows_[number] = CellRow();
    cells_.free(number);
  }

  void add_free(Chunk chunk, ChunkSize size) noexcept {
    Chunk& first = free_[static_cast<unsigned>(size)];
    links(chunk).next = first;
    links(chunk).previous = kNoChunk;
    if (first != kNoChunk) links(first).previous = chunk;
    first = chunk;
    ++free_count_[static_cast<unsigned>(size)];
  }

  void remove_free(Chunk chunk, ChunkSize size) noexcept {
    const auto [next, previous, list, rank] = links(chunk);
    if (next != kNoChunk) links(next).previous = previous;
    if (previous != kNoChunk) {
      links(previous).next = next;
    } else {
      free_[static_cast<unsigned>(size)] = next;
    }
    --free_count_[static_cast<unsigned>(size)];
  }

  ChunkSize size_after(ChunkSize size) const noexcept {
    if (size == ChunkSize::four_lines || expects_rows_) return ChunkSize::whole_row;
    return static_cast<ChunkSize>(static_cast<unsigned>(size) + 1);
  }

  // The size with which a finer list begins when the timers of a coarse list are divided among 256
  // lists.
  ChunkSize first_size_after(List list) const noexcept {
    const Chunk head = heads_[list];
    if (head == kNoChunk || !row_of(head).is_whole()) return ChunkSize::one_line;
    const std::uint32_t rows = links(head).rank;
    if (rows >= kRowsForRows) return ChunkSize::whole_row;
    return rows >= kRowsForFourLines ? ChunkSize::four_lines : ChunkSize::one_line;
  }

  // Adds elements for new rows to the arrays below. Reserves an eighth more than needed, because
  // doubling would cost one byte per timer. Throws std::bad_alloc. rows_ grows last, because its
  // size says which rows have elements.
  void add_rows() {
    const std::size_t rows = cells_.row_count();
    if (rows_.capacity() < rows) {
      start_of_.reserve(rows + rows / 8);
      rows_.reserve(rows + rows / 8);
    }
    start_of_.resize(rows);
    rows_.resize(rows);
  }

  // ---- Prefetching.

  void prefetch_cells(Chunk chunk) noexcept {
    constexpr unsigned kCellsPerLine = 4;
    __builtin_prefetch(&links(chunk));
    for (std::uint64_t cells = occupied(chunk); cells != 0;) {
      const auto line = static_cast<unsigned>(std::countr_zero(cells)) & ~(kCellsPerLine - 1);
      __builtin_prefetch(&cells_[first_of_row(chunk) + line]);
      cells &= ~(std::uint64_t{15} << line);
    }
  }

  void prefetch_owners(Chunk chunk) noexcept {
    for_each_cell(chunk, [this](CellNumber cell) {
      __builtin_prefetch(&owners_.cell_of(at(cell).name), /*for writing:*/ 1);
    });
  }

  // Stops the process if the free chunks are not exactly those of divided rows without cells.
  void check_free_chunks() const noexcept {
    std::vector<bool> in_use(rows_.size(), false);
    std::array<std::size_t, kSizes> free{};
    for (RowNumber row = 0; row < rows_.size(); ++row) {
      const ChunkSize size = rows_[row].size();
      in_use[row] = rows_[row].count() != 0 || !rows_[row].is_whole();
      if (rows_[row].is_whole()) continue;
      for (unsigned place = CellRow::first_chunk(size); place < CellRow::kPlaces;
           place += CellRow::places_of(size)) {
        if (rows_[row].occupied(place) == 0) ++free[static_cast<unsigned>(size)];
      }
    }
    for (unsigned size = 0; size < kSizes; ++size) {
      std::size_t listed = 0;
      Chunk previous = kNoChunk;
      for (Chunk chunk = free_[size]; chunk != kNoChunk; chunk = next_of(chunk)) {
        DETENT_CHECK(occupied(chunk) == 0 && links(chunk).previous == previous);
        DETENT_CHECK(row_of(chunk).size() == static_cast<ChunkSize>(size));
        previous = chunk;
        ++listed;
      }
      DETENT_CHECK(listed == free[size] && listed == free_count_[size]);
    }
    cells_.check_invariants(in_use);
  }

  Owners owners_;
  std::vector<Chunk> heads_;  // grows in steps, see prepare_head()
  List head_count_ = 0;       // its size
  CellMemory<Cell, Large> cells_;
  // One element per row. Separate arrays, so that the one that nearly every call needs stays in the
  // caches.
  std::vector<CellRow> rows_;
  std::vector<Tick> start_of_;  // kNoStart for a divided row; stale while the row is free
  // For each size: the first free chunk, and the number of free chunks. Whole rows are in cells_.
  std::array<Chunk, kSizes> free_{};
  std::array<std::size_t, kSizes> free_count_{};
  ChunkSize first_size_ = ChunkSize::one_line;  // of a list that was empty
  bool expects_rows_ = false;                   // the next size after one line is a whole row
};

}  // namespace detent::internal

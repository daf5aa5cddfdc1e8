// DenseWheel: a TimerWheel for timers that already have a number. It is the fastest queue of this
// library.
//
// A connection has its number, an entry of a slab its index, an entity its id. A DenseWheel names
// timers by such numbers, so timers are not part of the caller's objects. The wheel never reads or
// writes an object of the caller. Scheduling, cancelling, cascading and firing stay within the
// wheel's own compact memory.
//
//     detent::DenseWheel wheel;                            // let a tick be a millisecond
//     wheel.schedule(connection, wheel.now() + 30'000);    // arm, or move
//     wheel.postpone(connection, wheel.now() + 60'000);    // there was traffic: later
//     wheel.advance(60'000, [&](std::uint32_t number) {    // time has passed
//       close(sockets[number]);
//     });
//
// Numbers should be dense: the wheel keeps four bytes for every number up to the largest number
// that it was given. A wrong number from outside could therefore cost 16 GB. Give the wheel a
// maximum (`DenseWheel wheel({.max_count = 100'000})`), and it refuses numbers beyond it. In all
// other respects it is a TimerWheel, with the same contract, levels, cells and code.
//
// Cost (docs/internals/wheel.md has measurements in nanoseconds): as TimerWheel, with one cache
// miss less per operation. Memory: 18 bytes per timer in a full slot, and 4 bytes per number. A
// slot that is not empty takes at least 1 KiB. A wheel takes 17 KB, and 20 KB with one timer. On
// Linux a large wheel gives back memory that its cells no longer need.
//
// Source: timers as rows of flat arrays are from Agrona's DeadlineTimerWheel. Read first:
// detent/timer_wheel.h.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/internal/cell_lists.h"
#include "detent/internal/flat_array.h"
#include "detent/internal/level_store.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent {

/// A callable that takes the number of each due timer. It must not throw.
template <class F>
concept IndexCallback = std::invocable<F&, std::uint32_t>;

/// A slot that holds timers, and their number.
struct WheelSlot {
  unsigned level;     // 0 is the finest
  unsigned index;     // position within its level
  Tick first;         // first tick of the slot
  Tick last;          // last tick of the slot
  std::size_t count;  // number of timers; a postponed timer may be due after `last`

  friend bool operator==(const WheelSlot&, const WheelSlot&) = default;
};

/// Options of a DenseWheel.
struct DenseWheelOptions {
  /// The initial time of the wheel.
  Tick now = 0;
  /// Timers have numbers below this maximum; the wheel refuses other numbers. The table of numbers
  /// takes at most four bytes for each number below the maximum, and its size is rounded up to a
  /// power of two.
  std::size_t max_count = std::numeric_limits<std::size_t>::max();
};

/// The result of `try_schedule`.
enum class TryScheduleResult : std::uint8_t {
  scheduled,
  beyond_maximum,  // the number is not below max_count; the wheel is unchanged
  out_of_memory,   // an allocation failed; the timer is unchanged
};

namespace internal {

/// The table from timer numbers to their cells.
template <class Large>
class IndexOwners {
 public:
  using Name = std::uint32_t;

  CellNumber& cell_of(Name index) noexcept { return cells_[index]; }
  Name release(Name index, Tick) noexcept {
    cells_[index] = kNoCell;
    return index;
  }

  /// Returns the cell of the timer, or kNoCell.
  CellNumber find(Name index) const noexcept { return index < size_ ? cells_[index] : kNoCell; }

  /// Prefetches the entry of a timer that will be used soon.
  void fetch(Name index) const noexcept {
    if (index < size_) __builtin_prefetch(&cells_[index], /*for writing:*/ 1);
  }

  /// Returns the number of timer numbers with memory; never more than max_count().
  std::size_t size() const noexcept { return size_; }
  std::size_t max_count() const noexcept { return max_count_; }
  /// Requires: the table is empty.
  void set_max_count(std::size_t count) noexcept { max_count_ = count; }
  /// Grows the table to at least `count` numbers. Requires: count <= max_count().
  void grow(std::size_t count) noexcept {
    cells_.grow(count);
    note_size();
  }
  /// As grow. Returns false if there is no memory; the table is then unchanged.
  [[nodiscard]] bool try_grow(std::size_t count) noexcept {
    if (!cells_.try_grow(count)) return false;
    note_size();
    return true;
  }
  /// Makes the kernel provide the memory of the first `count` numbers now. Requires: count <=
  /// size().
  void touch(std::size_t count) noexcept { cells_.touch(0, count); }
  std::size_t mapped_bytes() const noexcept { return cells_.mapped_bytes(); }

 private:
  void note_size() noexcept { size_ = std::min(cells_.size(), max_count_); }

  FlatArray<CellNumber, Large> cells_;  // new memory is zero, which is kNoCell
  std::size_t size_ = 0;                // size of cells_, at most max_count_
  std::size_t max_count_ = std::numeric_limits<std::size_t>::max();
};

/// A hierarchical timing wheel whose timers are numbers 0, 1, 2 … that the caller chooses.
/// Thread-compatible. Neither copyable nor movable. A callback must not destroy or advance its own
/// wheel. If an allocation fails, the process ends, except in `try_schedule`.
///
/// A level has 2^kDigitBits slots. DenseWheel uses 8 bits; tests use fewer bits to try every case.
/// `Large` provides the memory of large arrays; tests let it run out.
template <unsigned kDigitBits, class Large = LargePages>
class IndexWheel {
 public:
  /// A timer and its deadline, for scheduling many timers in one call.
  struct Timer {
    std::uint32_t index;
    Tick deadline;
  };

  /// No limit for one call of `advance`.
  static constexpr std::size_t npos = kNoLimit;

  /// Makes an empty wheel. O(1).
  explicit IndexWheel(Tick now = 0) noexcept : passes_(now), store_(now) {}
  explicit IndexWheel(const DenseWheelOptions& options) noexcept : IndexWheel(options.now) {
    owners().set_max_count(options.max_count);
  }
  ~IndexWheel() { DETENT_CHECK(!passes_.advancing()); }
  IndexWheel(const IndexWheel&) = delete;
  IndexWheel& operator=(const IndexWheel&) = delete;

  /// Schedules the timer, or moves it if it is pending, with the rules of TimerWheel::schedule.
  /// Returns false if the number is not below max_count(); the wheel is then unchanged. Amortised
  /// O(1).
  bool schedule(std::uint32_t index, Tick deadline) noexcept;

  /// As `schedule`, but cheaper if it moves a pending timer to a later deadline: it only stores the
  /// deadline. For any other timer or deadline it does what `schedule` does. Amortised O(1).
  bool postpone(std::uint32_t index, Tick deadline) noexcept;

  /// As `schedule`, but if an allocation fails, returns out_of_memory instead of ending the
  /// process. The timer is then unchanged.
  ///
  /// The call allocates nothing in two cases. The timer is pending and stays in its slot. Or the
  /// table of numbers already has this number (from `reserve`, or because this number or a larger
  /// one was scheduled before), and the new slot has room. Depending on its settings
  /// (vm.overcommit_memory), Linux may grant more memory than exists; then this function cannot
  /// detect the shortage. `advance` can also need memory when it moves timers to finer slots, so
  /// leave some memory free. Amortised O(1).
  TryScheduleResult try_schedule(std::uint32_t index, Tick deadline) noexcept;

  /// Cancels the timer. Returns true if it was pending; it will not fire. Returns false if it was
  /// not pending. O(1).
  bool cancel(std::uint32_t index) noexcept;

  /// Cancels many timers, one after the other. Returns the number of timers that were pending. The
  /// call prefetches the memory of the next timers, so that cache misses overlap. O(timers).
  std::size_t cancel(std::span<const std::uint32_t> indices) noexcept;
  /// Schedules many timers in the same way. Returns the number of accepted timers; it refuses
  /// numbers that are not below max_count(). Amortised O(timers).
  std::size_t schedule(std::span<const Timer> timers) noexcept;

  /// Returns true from `schedule` until the timer fires or is cancelled. Inside its own callback a
  /// timer is not pending, unless the callback scheduled it again. O(1).
  bool is_pending(std::uint32_t index) const noexcept { return owners().find(index) != kNoCell; }

  /// Returns the deadline of a pending timer. Requires: is_pending(index). O(1).
  Tick deadline_of(std::uint32_t index) const noexcept {
    DETENT_CHECK(is_pending(index));
    return store_.lists().at(owners().find(index)).deadline;
  }

  /// Reserves memory for `count` pending timers with numbers below `count` in full slots, and keeps
  /// it. Scheduling these timers then needs fewer allocations, or none. Slots with few timers can
  /// need more memory than this. Requires: count <= max_count(). O(count).
  void reserve(std::size_t count) {
    DETENT_CHECK(count <= max_count());
    owners().grow(count);
    owners().touch(count);
    store_.lists().reserve(count);
  }

  /// Returns the number of bytes that the wheel has directly from the kernel, in addition to its
  /// memory on the heap. Counts only pages that the kernel has provided. Arrays below 128 KiB are
  /// on the heap. With AddressSanitizer or LeakSanitizer, and on systems other than Linux, all
  /// arrays are on the heap, and the result is 0. For people to look at. O(pages of 4 KiB).
  std::size_t mapped_bytes() const noexcept { return store_.lists().mapped_bytes(); }

  /// As TimerWheel::next_wakeup. O(1).
  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }

  /// As TimerWheel::advance, but calls `on_fire(std::uint32_t index)`.
  template <IndexCallback OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  /// Returns the last finished tick; inside a callback, the target tick of the pass.
  Tick now() const noexcept { return passes_.now(); }

  /// Returns the maximum from the options: all numbers are below it.
  std::size_t max_count() const noexcept { return owners().max_count(); }

  /// Returns the number of pending timers. O(1).
  std::size_t size() const noexcept { return store_.size(); }
  /// Returns size() == 0.
  bool empty() const noexcept { return size() == 0; }

  static constexpr unsigned kSlotsPerLevel = 1u << kDigitBits;
  /// Calls `visit(const WheelSlot&)` for each slot that holds timers, the earliest slot first. For
  /// people to look at. A timer that was already due when it was scheduled is in no slot. O(slots +
  /// timers / 56), because a wheel keeps up to 56 timers of a slot in one block.
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    store_.for_each_slot([&visit](const auto& slot, std::size_t count) {
      visit(WheelSlot{.level = slot.level,
                      .index = slot.number % kSlotsPerLevel,
                      .first = slot.start,
                      .last = slot.last(),
                      .count = count});
    });
  }

  /// For tests: stops the process if an invariant of the wheel is broken. O(size() + slots).
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 private:
  static constexpr std::size_t kFetchAhead = 16;  // prefetch distance of calls with many timers
  template <unsigned kListCount>
  using Lists = CellLists<IndexOwners<Large>, kListCount, Large>;

  IndexOwners<Large>& owners() noexcept { return store_.lists().owners(); }
  const IndexOwners<Large>& owners() const noexcept { return store_.lists().owners(); }

  // Not inlined, because it is rare: inlining would make the callers save registers.
  [[gnu::noinline]] bool reschedule(std::uint32_t index, Tick deadline) noexcept {
    if (index >= max_count()) return false;
    if (!cancel(index)) owners().grow(std::size_t{index} + 1);
    store_.add({deadline, index}, passes_.end());
    return true;
  }

  QueuePasses passes_;
  LevelStore<Lists, kDigitBits> store_;
};

template <unsigned kDigitBits, class Large>
bool IndexWheel<kDigitBits, Large>::schedule(std::uint32_t index, Tick deadline) noexcept {
  const bool is_idle = index < owners().size() && owners().cell_of(index) == kNoCell;
  if (!is_idle) [[unlikely]]
    return reschedule(index, deadline);
  store_.add({deadline, index}, passes_.end());
  return true;
}

template <unsigned kDigitBits, class Large>
bool IndexWheel<kDigitBits, Large>::postpone(std::uint32_t index, Tick deadline) noexcept {
  const CellNumber cell = owners().find(index);
  if (cell != kNoCell && deadline > passes_.end()) [[likely]] {
    if (store_.move_in_place(cell, deadline)) return true;
  }
  return reschedule(index, deadline);
}

template <unsigned kDigitBits, class Large>
TryScheduleResult IndexWheel<kDigitBits, Large>::try_schedule(std::uint32_t index,
                                                              Tick deadline) noexcept {
  if (index >= max_count()) return TryScheduleResult::beyond_maximum;
  if (!owners().try_grow(std::size_t{index} + 1)) return TryScheduleResult::out_of_memory;
  auto& lists = store_.lists();
  const unsigned list = store_.list_for(deadline, passes_.end());
  const CellNumber cell = owners().find(index);
  const bool is_in_list = cell != kNoCell && lists.list_of(cell) == list;
  if (is_in_list && !passes_.in_pass()) {  // in a pass the timer may be about to fire
    lists.at(cell).deadline = deadline;
    return TryScheduleResult::scheduled;
  }
  const bool has_room = !is_in_list && lists.has_room(list);
  if (!has_room && !lists.try_prepare()) return TryScheduleResult::out_of_memory;
  schedule(index, deadline);
  return TryScheduleResult::scheduled;
}

template <unsigned kDigitBits, class Large>
bool IndexWheel<kDigitBits, Large>::cancel(std::uint32_t index) noexcept {
  const CellNumber cell = owners().find(index);
  if (cell == kNoCell) return false;
  owners().release(index, 0);
  return store_.remove(cell);
}

template <unsigned kDigitBits, class Large>
std::size_t IndexWheel<kDigitBits, Large>::cancel(std::span<const std::uint32_t> indices) noexcept {
  const std::size_t before = size();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kFetchAhead < indices.size()) owners().fetch(indices[i + kFetchAhead]);
    cancel(indices[i]);
  }
  return before - size();
}

template <unsigned kDigitBits, class Large>
std::size_t IndexWheel<kDigitBits, Large>::schedule(std::span<const Timer> timers) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (i + kFetchAhead < timers.size()) owners().fetch(timers[i + kFetchAhead].index);
    if (schedule(timers[i].index, timers[i].deadline)) ++count;
  }
  return count;
}

}  // namespace internal

/// The wheel of numbers for general use, with levels of 256 slots. IndexWheel documents each
/// operation.
class DenseWheel final : public internal::IndexWheel<8> {
 public:
  using IndexWheel::IndexWheel;
};

}  // namespace detent

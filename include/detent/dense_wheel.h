// DenseWheel: TimerWheel for timers that have a number anyway, and the fastest of the family.
//
// A connection has its number, an entry of a slab its index, an entity its id. A DenseWheel names
// timers by such numbers instead of living in the user's objects: it then never touches an object,
// so that scheduling, cancelling, cascading and firing stay within the wheel's own dense memory.
//
//     detent::DenseWheel wheel;                            // let a tick be a millisecond
//     wheel.schedule(connection, wheel.now() + 30'000);    // arm, or move
//     wheel.postpone(connection, wheel.now() + 60'000);    // there was traffic: later
//     wheel.advance(60'000, [&](std::uint32_t number) {    // time has passed
//       close(sockets[number]);
//     });
//
// Numbers should be dense: the wheel keeps four bytes for every number up to the largest it was
// given. A number that may be wrong, because it comes from outside, could so cost 16 GB: give the
// wheel a maximum (`DenseWheel wheel({.max_count = 100'000})`), and it refuses numbers beyond it.
// Otherwise it is TimerWheel: the same contract, levels and cells, the same code.
//
// Cost (docs/internals/wheel.md has nanoseconds): as TimerWheel, with one cache miss less each;
// 18 bytes a timer in a full slot, 1 KiB at least for a slot that is not empty, 4 a number; 17 KB a
// wheel, 20 with one timer. On Linux large ones give back what cells no longer need.
//
// Timers as rows of flat arrays: Agrona's DeadlineTimerWheel. Read first: detent/timer_wheel.h.
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

/// Something to call with the number of each timer that is due. It must not throw.
template <class F>
concept IndexCallback = std::invocable<F&, std::uint32_t>;

/// A slot of a wheel that holds timers, and how many.
struct WheelSlot {
  unsigned level;     // 0 is the finest
  unsigned index;     // in its level
  Tick first;         // the ticks it covers: the first and
  Tick last;          // the last
  std::size_t count;  // a postponed timer may be due later than its slot

  friend bool operator==(const WheelSlot&, const WheelSlot&) = default;
};

/// What a DenseWheel starts with.
struct DenseWheelOptions {
  /// The tick that the wheel is at.
  Tick now = 0;
  /// Timers have numbers below this. The wheel refuses others, and keeps at most four bytes for
  /// each of so many, rounded up to a power of two.
  std::size_t max_count = std::numeric_limits<std::size_t>::max();
};

/// What `try_schedule` has done.
enum class TryScheduleResult : std::uint8_t {
  scheduled,
  beyond_maximum,  // the number is not below max_count
  out_of_memory,
};

namespace internal {

/// The cells of timers that are numbers.
template <class Large>
class IndexOwners {
 public:
  using Name = std::uint32_t;

  CellNumber& cell_of(Name index) noexcept { return cells_[index]; }
  Name release(Name index, Tick) noexcept {
    cells_[index] = kNoCell;
    return index;
  }

  /// Returns: the number of the timer's cell, or kNoCell.
  CellNumber find(Name index) const noexcept { return index < size_ ? cells_[index] : kNoCell; }

  /// Says that the timer will be named soon.
  void fetch(Name index) const noexcept {
    if (index < size_) __builtin_prefetch(&cells_[index], /*for writing:*/ 1);
  }

  /// How many numbers there is room for; never more than max_count().
  std::size_t size() const noexcept { return size_; }
  std::size_t max_count() const noexcept { return max_count_; }
  /// Requires: there is room for none yet.
  void set_max_count(std::size_t count) noexcept { max_count_ = count; }
  /// Makes room for at least so many. Requires: count <= max_count().
  void grow(std::size_t count) noexcept {
    cells_.grow(count);
    note_size();
  }
  /// The same. Returns: false when there is no memory for it; nothing has changed then.
  [[nodiscard]] bool try_grow(std::size_t count) noexcept {
    if (!cells_.try_grow(count)) return false;
    note_size();
    return true;
  }
  /// Has the memory of the first `count` at hand. Requires: there is room for them.
  void touch(std::size_t count) noexcept { cells_.touch(0, count); }
  std::size_t mapped_bytes() const noexcept { return cells_.mapped_bytes(); }

 private:
  void note_size() noexcept { size_ = std::min(cells_.size(), max_count_); }

  FlatArray<CellNumber, Large> cells_;  // memory is kNoCell at first
  std::size_t size_ = 0;                // of cells_, as far as numbers go
  std::size_t max_count_ = std::numeric_limits<std::size_t>::max();
};

/// A hierarchical timing wheel whose timers are numbers 0, 1, 2 … that the caller chooses.
/// Thread-compatible. Neither copyable nor movable. It must not be destroyed, nor advanced, from
/// inside a callback of its own. Running out of memory ends the process, except in `try_schedule`.
///
/// Levels have 2^kDigitBits slots: DenseWheel's, or few, so that tests can try every case. Large
/// rows are in `Large`; tests let it run out.
template <unsigned kDigitBits, class Large = LargePages>
class IndexWheel {
 public:
  /// What `schedule` takes for many timers at once.
  struct Timer {
    std::uint32_t index;
    Tick deadline;
  };

  /// No limit to what one `advance` does.
  static constexpr std::size_t npos = kNoLimit;

  explicit IndexWheel(Tick now = 0) noexcept : passes_(now), store_(now) {}
  explicit IndexWheel(const DenseWheelOptions& options) noexcept : IndexWheel(options.now) {
    owners().set_max_count(options.max_count);
  }
  ~IndexWheel() { DETENT_CHECK(!passes_.advancing()); }
  IndexWheel(const IndexWheel&) = delete;
  IndexWheel& operator=(const IndexWheel&) = delete;

  /// Arms the timer, or moves it if it is pending; what TimerWheel::schedule says holds here.
  /// Amortised O(1). Returns: false when the number is not below max_count(): nothing has changed
  /// then.
  bool schedule(std::uint32_t index, Tick deadline) noexcept;

  /// As `schedule`, and cheaper when it moves a pending timer to later: one store.
  bool postpone(std::uint32_t index, Tick deadline) noexcept;

  /// As `schedule`, and when the system grants no memory for it, it says so instead of ending the
  /// process. The timer is then as it was. A timer needs no memory if it stays in its slot, or if
  /// its number is known and its new slot has room. Linux may grant more than there is, as its
  /// settings say (vm.overcommit_memory); then nobody is told. `advance` can need memory too, for
  /// timers that it moves to finer slots: leave it some.
  TryScheduleResult try_schedule(std::uint32_t index, Tick deadline) noexcept;

  /// Disarms the timer.
  /// Returns: true when it was pending and so will not fire; false when there was nothing to do.
  bool cancel(std::uint32_t index) noexcept;

  /// The same for many timers, one after the other. What one needs is fetched while those before it
  /// are worked on, so that cache misses overlap. Returns: how many were pending.
  std::size_t cancel(std::span<const std::uint32_t> indices) noexcept;
  /// Schedules many timers, likewise. Returns: how many it took; it refuses those whose numbers are
  /// not below max_count().
  std::size_t schedule(std::span<const Timer> timers) noexcept;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending(std::uint32_t index) const noexcept { return owners().find(index) != kNoCell; }

  /// Returns: its deadline. Requires: is_pending(index).
  Tick deadline_of(std::uint32_t index) const noexcept {
    DETENT_CHECK(is_pending(index));
    return store_.lists().at(owners().find(index)).deadline;
  }

  /// Makes room for `count` pending timers in full slots, numbered below `count`, which is kept:
  /// scheduling them allocates less, or nothing. Requires: count <= max_count(). O(count).
  void reserve(std::size_t count) {
    DETENT_CHECK(count <= max_count());
    owners().grow(count);
    owners().touch(count);
    store_.lists().reserve(count);
  }

  /// Returns: bytes of pages that the kernel holds for the timers, beside what comes from the heap:
  /// little on Linux, but all while they are few, under a sanitizer, and on other systems. For
  /// people to see: O(them / 4 KiB).
  std::size_t mapped_bytes() const noexcept { return store_.lists().mapped_bytes(); }

  /// As TimerWheel::next_wakeup.
  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }

  /// As TimerWheel::advance, with `on_fire(std::uint32_t index)`.
  template <IndexCallback OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  /// Returns: the last tick that is finished; inside a callback the tick the pass goes to.
  Tick now() const noexcept { return passes_.now(); }

  /// Returns: the maximum it was given: numbers are below it.
  std::size_t max_count() const noexcept { return owners().max_count(); }

  /// Returns: how many timers are pending.
  std::size_t size() const noexcept { return store_.size(); }
  bool empty() const noexcept { return size() == 0; }

  static constexpr unsigned kSlotsPerLevel = 1u << kDigitBits;
  /// Calls `visit(const WheelSlot&)` for each slot that holds timers, earliest first; for people to
  /// see. Timers that were due when they were scheduled are in none. O(slots + timers / 56).
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

  /// Stops the process unless every invariant of its parts holds. For tests: O(size() + slots).
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 private:
  static constexpr std::size_t kFetchAhead = 16;  // timers, by the calls that take many
  template <unsigned kListCount>
  using Lists = CellLists<IndexOwners<Large>, kListCount, Large>;

  IndexOwners<Large>& owners() noexcept { return store_.lists().owners(); }
  const IndexOwners<Large>& owners() const noexcept { return store_.lists().owners(); }

  // Not inlined, like all that is rare: it would make the callers save their registers.
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
  if (is_in_list && !passes_.in_pass()) {  // in a pass it may be about to fire
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

/// The wheel of numbers to use: levels of 256 slots. What IndexWheel says of each operation holds.
class DenseWheel final : public internal::IndexWheel<8> {
 public:
  using IndexWheel::IndexWheel;
};

}  // namespace detent

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
// given. Otherwise it is TimerWheel: the same contract, levels and cells, the same code.
//
// Cost (docs/internals/wheel.md has nanoseconds): as TimerWheel, with one cache miss less each;
// 18 bytes a timer in a full slot, 1 KiB at least for a slot that is not empty, 4 a number; 17 KB a
// wheel, 20 with one timer. On Linux large ones give back what cells no longer need.
//
// Timers as rows of flat arrays: Agrona's DeadlineTimerWheel. Read first: detent/timer_wheel.h.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
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

namespace internal {

/// The cells of timers that are numbers.
class IndexOwners {
 public:
  using Name = std::uint32_t;

  CellNumber& cell_of(Name index) noexcept { return cells_[index]; }
  Name release(Name index, Tick) noexcept {
    cells_[index] = kNoCell;
    return index;
  }

  /// Returns: the number of the timer's cell, or kNoCell.
  CellNumber find(Name index) const noexcept {
    return index < cells_.size() ? cells_[index] : kNoCell;
  }

  /// Says that the timer will be named soon.
  void fetch(Name index) const noexcept {
    if (index < cells_.size()) __builtin_prefetch(&cells_[index], /*for writing:*/ 1);
  }

  /// How many numbers there is room for.
  std::size_t size() const noexcept { return cells_.size(); }
  /// Makes room for at least so many.
  void grow(std::size_t count) noexcept { cells_.grow(count); }
  /// Has the memory of the first `count` at hand. Requires: there is room for them.
  void touch(std::size_t count) noexcept { cells_.touch(0, count); }
  std::size_t mapped_bytes() const noexcept { return cells_.mapped_bytes(); }

 private:
  FlatArray<CellNumber> cells_;  // memory is kNoCell at first
};

/// A hierarchical timing wheel whose timers are numbers 0, 1, 2 … that the caller chooses.
/// Thread-compatible. Neither copyable nor movable. It must not be destroyed, nor advanced, from
/// inside a callback of its own. Running out of memory ends the process.
///
/// Levels have 2^kDigitBits slots: DenseWheel's, or few, so that tests can try every case.
template <unsigned kDigitBits>
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
  ~IndexWheel() { DETENT_CHECK(!passes_.advancing()); }
  IndexWheel(const IndexWheel&) = delete;
  IndexWheel& operator=(const IndexWheel&) = delete;

  /// Arms the timer, or moves it if it is pending; what TimerWheel::schedule says holds here.
  /// Amortised O(1). Returns: true always.
  bool schedule(std::uint32_t index, Tick deadline) noexcept;

  /// As `schedule`, and cheaper when it moves a pending timer to later: one store.
  bool postpone(std::uint32_t index, Tick deadline) noexcept;

  /// Disarms the timer.
  /// Returns: true when it was pending and so will not fire; false when there was nothing to do.
  bool cancel(std::uint32_t index) noexcept;

  /// The same for many timers, one after the other. What one needs is fetched while those before it
  /// are worked on, so that cache misses overlap. Returns: how many were pending.
  std::size_t cancel(std::span<const std::uint32_t> indices) noexcept;
  /// Schedules many timers, likewise.
  void schedule(std::span<const Timer> timers) noexcept;

  /// Returns: whether it is scheduled and has neither fired nor been cancelled. False inside its
  /// own callback until scheduled again.
  bool is_pending(std::uint32_t index) const noexcept { return owners().find(index) != kNoCell; }

  /// Returns: its deadline. Requires: is_pending(index).
  Tick deadline_of(std::uint32_t index) const noexcept {
    DETENT_CHECK(is_pending(index));
    return store_.lists().at(owners().find(index)).deadline;
  }

  /// Makes room for `count` pending timers in full slots, numbered below `count`, which is kept:
  /// scheduling them allocates less, or nothing. O(count).
  void reserve(std::size_t count) {
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
  using Lists = CellLists<IndexOwners, kListCount>;

  IndexOwners& owners() noexcept { return store_.lists().owners(); }
  const IndexOwners& owners() const noexcept { return store_.lists().owners(); }

  // Not inlined, like all that is rare: it would make the callers save their registers.
  [[gnu::noinline]] bool reschedule(std::uint32_t index, Tick deadline) noexcept {
    if (!cancel(index)) {
      const std::size_t count = std::size_t{index} + 1;
      DETENT_CHECK(count != 0);  // of the largest number where addresses have 32 bits
      owners().grow(count);
    }
    store_.add({deadline, index}, passes_.end());
    return true;
  }

  QueuePasses passes_;
  LevelStore<Lists, kDigitBits> store_;
};

template <unsigned kDigitBits>
bool IndexWheel<kDigitBits>::schedule(std::uint32_t index, Tick deadline) noexcept {
  const bool is_idle = index < owners().size() && owners().cell_of(index) == kNoCell;
  if (!is_idle) [[unlikely]]
    return reschedule(index, deadline);
  store_.add({deadline, index}, passes_.end());
  return true;
}

template <unsigned kDigitBits>
bool IndexWheel<kDigitBits>::postpone(std::uint32_t index, Tick deadline) noexcept {
  const CellNumber cell = owners().find(index);
  if (cell != kNoCell && deadline > passes_.end()) [[likely]] {
    if (store_.move_in_place(cell, deadline)) return true;
  }
  return reschedule(index, deadline);
}

template <unsigned kDigitBits>
bool IndexWheel<kDigitBits>::cancel(std::uint32_t index) noexcept {
  const CellNumber cell = owners().find(index);
  if (cell == kNoCell) return false;
  owners().release(index, 0);
  return store_.remove(cell);
}

template <unsigned kDigitBits>
std::size_t IndexWheel<kDigitBits>::cancel(std::span<const std::uint32_t> indices) noexcept {
  const std::size_t before = size();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kFetchAhead < indices.size()) owners().fetch(indices[i + kFetchAhead]);
    cancel(indices[i]);
  }
  return before - size();
}

template <unsigned kDigitBits>
void IndexWheel<kDigitBits>::schedule(std::span<const Timer> timers) noexcept {
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (i + kFetchAhead < timers.size()) owners().fetch(timers[i + kFetchAhead].index);
    schedule(timers[i].index, timers[i].deadline);
  }
}

}  // namespace internal

/// The wheel of numbers to use: levels of 256 slots. What IndexWheel says of each operation holds.
class DenseWheel final : public internal::IndexWheel<8> {
 public:
  using IndexWheel::IndexWheel;
};

}  // namespace detent

// LevelStore: keeps the timers of a hierarchical wheel. It has a list for each slot of each level,
// and moves timers between them. TimerWheel, DenseWheel and FifoTimerWheel are LevelStores with
// different lists.
//
//     schedule ──► waiting ──► admitted ─┐ to_place         ┌─► slots of one tick ──► to_fire
//          │                             ├────────► place ──┤                            │
//          └───────► slots (future) ─────┘  (a coarse slot  └─► overdue slots            ▼
//                                            cascades)                                on_fire
//
// The current batch stays in its list. This is possible because no timer is added to a slot that
// the base has entered. A slot is therefore taken by storing its number. Read first: level_map.h
// (the slots), queue_passes.h (the caller of this class).
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "detent/check.h"
#include "detent/internal/level_map.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent::internal {

/// A PassStore of levels with 2^kDigitBits slots each. `ListsOf<n>` keeps timers in n lists, as
/// CellLists and LinkLists do. Owns no timer. Thread-compatible. Each operation is O(1), plus the
/// timers that it hands out, unless its comment says otherwise.
///
/// Invariants:
///
/// - The bit of a slot in its map is set exactly when its list is not empty. Exception: the bit of
///   the current batch is clear.
/// - Timers in a slot have deadlines at or after its start. (move_in_place may have set a deadline
///   beyond its end.)
/// - Outside a pass the overdue slots, the batch and the admitted list are empty.
template <template <unsigned kListCount> class ListsOf, unsigned kDigitBits>
class LevelStore {
  using Map = LevelMap<kDigitBits>;
  // List numbers: first the future slots, then the overdue slots, then three lists that exchange
  // their roles.
  static constexpr unsigned kOverdue = Map::kSlotCount;
  static constexpr unsigned kRoles = 2 * Map::kSlotCount;
  static constexpr unsigned kListCount = kRoles + 3;
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

 public:
  using Lists = ListsOf<kListCount>;
  using Entry = typename Lists::Entry;
  using Place = typename Lists::Place;

  explicit LevelStore(Tick now) noexcept : future_(now) {}

  // ---- For the wheel.

  std::size_t size() const noexcept { return size_; }

  /// Adds a timer. If it is due at or before `pass_end`, the end of the running or last pass, it
  /// waits for the next pass.
  void add(const Entry& entry, Tick pass_end) noexcept {
    ++size_;
    if (entry.deadline <= pass_end) [[unlikely]]
      return add_waiting(entry);
    if constexpr (Lists::kKeepsOrder) {
      // Behind the timers of the same tick that are not placed yet.
      if (batch_ == Batch::to_place && !batch_empty()) {
        lists_.push(batch_list_, entry);
        return;
      }
    }
    insert_in(future_, 0, entry);
  }

  /// Removes a timer from any list. Returns true, so that the rare case is a tail call.
  bool remove(Place place) noexcept {
    --size_;
    if (lists_.remove(place)) [[unlikely]]
      return settle(place);
    return true;
  }

  /// Stores a new deadline in the cell of a timer, if its slot starts no later than this deadline.
  /// The timer is placed again when time reaches the slot. Reads and writes only the cell and the
  /// start of the slot. Requires: `deadline` is after the running pass. Returns false if the
  /// deadline is before the start of the slot.
  bool move_in_place(Place place, Tick deadline) noexcept {
    if (deadline < lists_.start_of(place)) return false;
    lists_.at(place).deadline = deadline;
    return true;
  }

  /// Returns the list in which `add` would put a timer.
  unsigned list_for(Tick deadline, Tick pass_end) const noexcept {
    return deadline <= pass_end ? waiting_ : future_.slot_of(deadline);
  }

  bool nothing_waits() const noexcept { return lists_.empty(waiting_); }

  /// Returns the next tick that can have work for the future timers. The tick is early if a coarse
  /// slot holds several timers, or if a timer was postponed. Requires: there is a future timer.
  /// (Not inlined, so that its callers can be inlined: g++ returns a std::optional through memory.)
  [[gnu::noinline]] Tick next_wakeup() const noexcept {
    const typename Map::Slot slot = *future_.next();
    if (slot.level == 0) return slot.start;
    const auto only = lists_.only_deadline(slot.number);
    return only ? std::min(*only, slot.last()) : slot.start;
  }

  /// Calls `visit(const Slot&, count)` for each future slot that holds timers, the earliest slot
  /// first. O(slots + timers / 56).
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (unsigned number = 0; number < Map::kSlotCount; ++number) {
      if (future_.is_occupied(number)) visit(future_.slot(number), lists_.count(number));
    }
  }

  Lists& lists() noexcept { return lists_; }
  const Lists& lists() const noexcept { return lists_; }

  /// Stops the process if an invariant is broken. O(slots + timers).
  void check_invariants() const noexcept {
    lists_.check_invariants();
    future_.check_invariants();
    overdue_.check_invariants();
    for (unsigned slot = 0; slot < Map::kSlotCount; ++slot) {
      check_slot(future_, slot, slot);
      check_slot(overdue_, slot, slot + kOverdue);
    }
    std::size_t count = 0;
    lists_.for_each([this, &count](unsigned list, auto, const Entry& entry) {
      ++count;
      if (list >= kRoles || list == batch_list_) return;
      const Tick start =
          list < kOverdue ? future_.slot(list).start : overdue_.slot(list - kOverdue).start;
      DETENT_CHECK(entry.deadline >= start);
    });
    DETENT_CHECK(count == size_);
  }
  /// Stops the process unless all waiting and admitted timers are due at or before `end`.
  /// O(timers).
  void check_waiting(Tick end) const noexcept {
    lists_.for_each([this, end](unsigned list, auto, const Entry& entry) {
      if (list == waiting_ || list == admitted_) DETENT_CHECK(entry.deadline <= end);
    });
  }
  void check_no_pass() const noexcept {
    DETENT_CHECK(overdue_.empty() && batch_empty() && lists_.empty(admitted_));
  }

  // ---- For QueuePasses; PassStore documents each function.

  Tick base() const noexcept { return future_.base(); }
  /// Also ends the pass: timers that later enter the slot of the batch belong to a later pass.
  void set_base(Tick base) noexcept {
    future_.set_base(base);
    batch_list_ = placed_;
  }

  void admit() noexcept {
    if (lists_.empty(waiting_)) return;
    if (lists_.empty(admitted_)) return std::swap(waiting_, admitted_);
    lists_.append(admitted_, waiting_);
  }

  void begin_pass() noexcept {
    if (lists_.empty(admitted_)) return;
    overdue_.set_base(0);
    std::swap(admitted_, placed_);
    start_batch(Batch::to_place, placed_);
  }

  Batch batch() const noexcept { return batch_; }
  bool batch_empty() const noexcept { return lists_.empty(batch_list_); }

  template <class Visit>
  std::size_t drain(std::size_t limit, Visit&& visit) {
    return lists_.drain(batch_list_, limit, visit);
  }

  std::size_t place_batch(std::size_t limit) {
    return lists_.pour(batch_list_, limit, [this](const Entry& entry) { place(entry); });
  }

  void place(const Entry& entry) noexcept {
    if (entry.deadline >= future_.base()) {
      insert_in(future_, 0, entry);
    } else {
      insert_in(overdue_, kOverdue, entry);
    }
  }

  decltype(auto) release(const Entry& entry) noexcept {
    --size_;
    return lists_.release(entry);
  }

  std::optional<Tick> next_start() const noexcept {
    const auto slot = future_.next();
    return slot ? std::optional(slot->start) : std::nullopt;
  }

  bool nothing_due(Tick end) noexcept {
    if (end < quiet_until_) return true;
    if (quiet_until_ != 0 || !nothing_waits()) return false;  // has_next() will check
    return note_quiet(future_.next(), end);
  }

  bool has_next(Tick end) noexcept {
    const bool is_overdue = !overdue_.empty();
    const auto slot = is_overdue ? overdue_.next() : future_.next();
    if (!is_overdue && note_quiet(slot, end)) return false;
    next_ = *slot;
    next_list_ = slot->number + (is_overdue ? kOverdue : 0);
    return true;
  }

  // The timers of a one-tick slot fire, and the timers of a coarser slot are placed in finer slots.
  // A single timer in a slot fires immediately, because no other timer is due before it.
  void take_next(Tick end) noexcept {
    Map& map = next_list_ < kOverdue ? future_ : overdue_;
    map.clear_occupied(next_.number);
    map.set_base(next_.start);
    if (next_.level == 0) return start_batch(Batch::to_fire, next_list_);
    const auto only = lists_.only_deadline(next_list_);
    if (!only || *only > std::min(next_.last(), end)) {
      return start_batch(Batch::to_place, next_list_);
    }
    map.set_base(*only);
    start_batch(Batch::to_fire, next_list_);
  }

 private:
  void insert_in(const Map& map, unsigned first_list, const Entry& entry) noexcept {
    if (!lists_.try_push(first_list + map.slot_of(entry.deadline), entry)) [[unlikely]]
      grow(first_list, entry);
  }

  // Not inlined, because they are rare: inlining would make each caller save registers.
  [[gnu::noinline]] void add_waiting(Entry entry) noexcept {
    quiet_until_ = 0;
    lists_.push(waiting_, entry);
  }
  [[gnu::noinline]] void grow(unsigned first_list, Entry entry) noexcept {
    Map& map = first_list == kOverdue ? overdue_ : future_;
    const unsigned slot = map.slot_of(entry.deadline);
    const Tick start = first_list == kOverdue ? kNever : map.slot(slot).start;
    if (!lists_.push(first_list + slot, entry, start)) return;
    quiet_until_ = 0;
    map.set_occupied(slot);
  }
  [[gnu::noinline]] bool settle(Place place) noexcept {
    const unsigned emptied = lists_.settle(place);
    if (emptied < kOverdue) {
      future_.clear_occupied(emptied);
    } else if (emptied < kRoles) {
      overdue_.clear_occupied(emptied - kOverdue);
    }
    return true;
  }

  // Returns true if `slot`, the next slot of the future, starts after `end`. Then remembers its
  // start.
  bool note_quiet(const std::optional<typename Map::Slot>& slot, Tick end) noexcept {
    if (slot && slot->start <= end) return false;
    quiet_until_ = slot && nothing_waits() ? slot->start : 0;
    return true;
  }

  void start_batch(Batch batch, unsigned list) noexcept {
    batch_ = batch;
    batch_list_ = list;
    lists_.prefetch(list);
  }

  void check_slot(const Map& map, unsigned slot, unsigned list) const noexcept {
    const bool holds_timers = !lists_.empty(list) && list != batch_list_;
    DETENT_CHECK(map.is_occupied(slot) == holds_timers);
  }

  std::size_t size_ = 0;
  Map future_;
  Map overdue_{0};  // in a pass: timers due before the base of the future, to be sorted
  Lists lists_;
  // No timer waits and no slot starts before this tick; 0: unknown.
  Tick quiet_until_ = 0;
  // The result of has_next().
  typename Map::Slot next_{};
  unsigned next_list_ = 0;
  Batch batch_ = Batch::to_place;
  unsigned batch_list_ = kRoles;  // list of the current batch: a slot's list, or placed_
  unsigned placed_ = kRoles;
  unsigned admitted_ = kRoles + 1;  // timers due when scheduled, before the last call began
  unsigned waiting_ = kRoles + 2;   // timers due when scheduled, since the last call began
};

}  // namespace detent::internal

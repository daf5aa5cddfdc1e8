// SlotStore: keeps the timers of a queue made of slots. A slot is a list of timers that are due at
// the same tick, or close to each other.
//
//     schedule ──► waiting ──► admitted ──► place ──► sorted (overdue) ──► on_fire
//          └────────► slots ──┬─────────────►┘                                │
//                             └── a slot of one number ──────────────────────►┘
//
// Time is divided into spans of slot_width ticks, numbered from 0. Number k is due at tick k ×
// slot_width. A deadline belongs to the first number that is due at or after the deadline. The
// class `Slots` works with numbers only: it knows the slot of a number, and the next slot
// (slot_levels.h, ring_slots.h). SlotStore does everything else. It keeps the timers that wait for
// the next pass, the overdue timers and the current batch. A timer is overdue if it was due before
// its pass began, or if a long jump passes it. Read first: queue_passes.h, which calls this class.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "detent/internal/link_levels.h"
#include "detent/internal/link_list.h"
#include "detent/internal/linked_timer.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent::internal {

/// Counts slot widths since tick 0.
using SlotNumber = std::uint64_t;

/// Converts between ticks and slot numbers. The last number may be due before its multiple of the
/// width, at the last tick. Every deadline therefore has a number. A value type.
class SlotWidth {
 public:
  /// Requires: ticks > 0.
  explicit constexpr SlotWidth(Tick ticks) noexcept : ticks_(ticks) {}

  /// Returns the width in ticks.
  constexpr Tick ticks() const noexcept { return ticks_; }

  /// Returns the first number that is due at or after `deadline`.
  constexpr SlotNumber number_of(Tick deadline) const noexcept {
    if (ticks_ == 1) return deadline;
    return deadline / ticks_ + (deadline % ticks_ == 0 ? 0 : 1);
  }
  /// Returns the tick at which `number` is due.
  constexpr Tick due_at(SlotNumber number) const noexcept {
    return number > kLastTick / ticks_ ? kLastTick : number * ticks_;
  }
  /// Returns the last number that is due at or before `tick`.
  constexpr SlotNumber last_number(Tick tick) const noexcept {
    return tick == kLastTick ? number_of(tick) : tick / ticks_;
  }

 private:
  static constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

  Tick ticks_;
};

/// The container for the future timers of a SlotStore. Its slots hold numbers above reached().
///
///     reached(), set_reached(n)   set_reached requires that every held number is above n
///     insert(link, n)             puts a link into the slot of n, which is above reached()
///     note_emptied(sentinel)      called when unlinking left this list empty; the list may also
///                                 belong to another container
///     nothing_within(n)           returns true if no batch starts at or before n
///     next_start()                returns the number at which the next batch starts, or an earlier
///                                 number
///     seek(n)                     returns true if a batch starts at or before n; may move
///                                 reached() up to the start of the batch
///     take(n, into)               moves this batch to `into`; returns its start and its use. May
///                                 take several batches that start at or before n as one, to place
///                                 them. Requires: seek(n) returned true
///     for_each(visit)             calls visit(Link&) for every link, in an unspecified order
///     check_invariants(number_of) number_of(link) returns the number of a link
template <class S>
concept TimerSlots = requires(S& slots, const S& unchanged, Link& link, LinkList& list,
                              SlotNumber number) {
  { unchanged.reached() } -> std::same_as<SlotNumber>;
  { unchanged.nothing_within(number) } -> std::same_as<bool>;
  { unchanged.next_start() } -> std::same_as<std::optional<SlotNumber>>;
  { slots.seek(number) } -> std::same_as<bool>;
  { slots.take(number, list).start } -> std::convertible_to<SlotNumber>;
  { slots.take(number, list).batch } -> std::convertible_to<Batch>;
  slots.set_reached(number);
  slots.insert(link, number);
  slots.note_emptied(&list.sentinel());
  unchanged.for_each([](Link&) {});
  unchanged.check_invariants([](const Link&) { return SlotNumber{}; });
};

/// Returns the index of the slot whose first member is the list with this sentinel. Returns
/// slots.size() or more if the sentinel belongs to no slot of `slots`.
template <class Slot>
std::size_t index_of_list(const std::vector<Slot>& slots, const Link* sentinel) noexcept {
  // Compares integers, because C++ does not define < between pointers into different arrays.
  const auto offset =
      reinterpret_cast<std::uintptr_t>(sentinel) - reinterpret_cast<std::uintptr_t>(slots.data());
  return offset / sizeof(Slot);
}

/// A PassStore of slots. Owns no timer. Not movable. Thread-compatible. Each operation is O(1),
/// plus the cost of the slots and of the timers that it hands out.
///
/// Invariants:
///
/// - The slots hold numbers above reached(), each in its slot.
/// - Outside a pass, sorted_, the batch and admitted_ are empty. reached() is then the last number
///   that is due at or before base().
template <class Slots>
class SlotStore {
 public:
  using Timer = LinkedTimer<SlotStore>;
  /// `deadline` is the tick at which the timer is due: its own deadline, rounded up to a slot.
  struct Entry {
    Tick deadline;
    Timer* timer;
  };

  /// `span` is the longest accepted delay in ticks. `for_slots` are the constructor arguments of
  /// the slots.
  template <class... Arguments>
  SlotStore(Tick now, SlotWidth width, Tick span, Arguments&&... for_slots)
      : width_(width), span_(span), slots_(std::forward<Arguments>(for_slots)...), base_(now) {
    static_assert(TimerSlots<Slots>);
    slots_.set_reached(width_.last_number(now));
  }
  /// Cancels every timer. O(timers + slots).
  ~SlotStore() {
    for_each([](Timer& timer) { timer.queue_ = nullptr; });
  }
  SlotStore(const SlotStore&) = delete;
  SlotStore& operator=(const SlotStore&) = delete;

  const Slots& slots() const noexcept { return slots_; }
  SlotWidth width() const noexcept { return width_; }
  /// Returns the timer of a link, for code that walks over the slots.
  static const Timer& timer_of(const Link& link) noexcept { return Timer::of(link); }

  // ---- For the queue; QueueStore documents each function.

  Tick span() const noexcept { return span_; }
  std::size_t size() const noexcept { return size_; }
  bool nothing_waits() const noexcept { return waiting_.empty(); }

  bool accepts(Tick now, Tick deadline) const noexcept {
    return deadline <= now || deadline - now <= span_;
  }

  void schedule(Timer& timer, Tick deadline, Tick pass_end) noexcept {
    if (timer.queue_ != nullptr) {
      DETENT_CHECK(timer.queue_ == this);
      take_out(timer);
    } else {
      timer.queue_ = this;
      ++size_;
    }
    timer.deadline_ = deadline;
    const SlotNumber number = width_.number_of(deadline);
    if (width_.due_at(number) > pass_end) {
      slots_.insert(timer.link_, number);
    } else {
      waiting_.push_back(timer.link_);
    }
  }

  bool cancel(Timer& timer) noexcept {
    if (timer.queue_ == nullptr) return false;
    DETENT_CHECK(timer.queue_ == this);
    take_out(timer);
    timer.queue_ = nullptr;
    --size_;
    return true;
  }

  Tick next_wakeup() const noexcept { return *next_start(); }

  void check_invariants() const noexcept {
    sorted_.check_invariants();
    slots_.check_invariants([this](const Link& link) { return number_of(Timer::of(link)); });
    std::size_t count = 0;
    for_each([this, &count](const Timer& timer) {
      DETENT_CHECK(timer.queue_ == this);
      ++count;
    });
    DETENT_CHECK(count == size_);
  }
  void check_waiting(Tick end) const noexcept {
    for (const LinkList* list : {&waiting_, &admitted_}) {
      for_each_link(*list,
                    [this, end](Link& link) { DETENT_CHECK(due_at(Timer::of(link)) <= end); });
    }
  }
  void check_no_pass() const noexcept {
    DETENT_CHECK(sorted_.empty() && batch_list_.empty() && admitted_.empty());
    DETENT_CHECK(slots_.reached() == width_.last_number(base_));
  }

  // ---- For QueuePasses; PassStore documents each function.

  Tick base() const noexcept { return base_; }
  void set_base(Tick base) noexcept {
    base_ = base;
    slots_.set_reached(width_.last_number(base));
  }

  void admit() noexcept { admitted_.append(waiting_); }
  void begin_pass() noexcept {
    sorted_.reset();
    batch_list_.append(admitted_);
    batch_ = Batch::to_place;
  }

  Batch batch() const noexcept { return batch_; }
  bool batch_empty() const noexcept { return batch_list_.empty(); }

  template <class Visit>
  std::size_t drain(std::size_t limit, Visit&& visit) {
    std::size_t count = 0;
    for (; count < limit && !batch_empty(); ++count) {
      Timer& timer = Timer::of(batch_list_.pop_front());
      visit(Entry{due_at(timer), &timer});
    }
    return count;
  }

  std::size_t place_batch(std::size_t limit) {
    return drain(limit, [this](const Entry& entry) { place(entry); });
  }

  void place(const Entry& entry) noexcept {
    const SlotNumber number = number_of(*entry.timer);
    if (number > slots_.reached()) {
      slots_.insert(entry.timer->link_, number);
    } else {
      sorted_.insert(entry.timer->link_, entry.deadline);
    }
  }

  Timer& release(const Entry& entry) noexcept {
    --size_;
    entry.timer->queue_ = nullptr;
    return *entry.timer;
  }

  std::optional<Tick> next_start() const noexcept {
    // A coarse slot of sorted_ can start before the base, but it holds timers that are due at the
    // base or later.
    if (!sorted_.empty()) return std::max(sorted_.next_start(), base_);
    const std::optional<SlotNumber> number = slots_.next_start();
    return number ? std::optional(width_.due_at(*number)) : std::nullopt;
  }

  bool nothing_due(Tick end) const noexcept {
    return nothing_waits() && slots_.nothing_within(width_.last_number(end));
  }
  bool has_next(Tick end) noexcept {
    return !sorted_.empty() || slots_.seek(width_.last_number(end));
  }

  void take_next(Tick end) noexcept {
    if (!sorted_.empty()) return take_sorted();
    const auto taken = slots_.take(width_.last_number(end), batch_list_);
    base_ = std::max(base_, width_.due_at(taken.start));
    batch_ = taken.batch;
  }

 private:
  SlotNumber number_of(const Timer& timer) const noexcept {
    return width_.number_of(timer.deadline_);
  }
  Tick due_at(const Timer& timer) const noexcept { return width_.due_at(number_of(timer)); }

  // The timers of a one-tick slot fire. A coarser slot is sorted further. A single timer in a slot
  // fires immediately, because no other timer is due before it.
  void take_sorted() noexcept {
    const LinkLevels::Slot slot = sorted_.take(batch_list_);
    const Link& list = batch_list_.sentinel();
    const bool is_alone = list.next == list.prev;
    const Tick start = is_alone ? due_at(Timer::of(*list.next)) : slot.start;
    batch_ = is_alone || slot.level == 0 ? Batch::to_fire : Batch::to_place;
    base_ = std::max(base_, start);  // overdue timers leave the base at the start of the pass
  }

  void take_out(Timer& timer) noexcept {
    const Link* const emptied = unlink(timer.link_);
    if (emptied == nullptr) return;
    sorted_.note_emptied(emptied);
    slots_.note_emptied(emptied);
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    const auto visit_link = [&visit](Link& link) { visit(Timer::of(link)); };
    slots_.for_each(visit_link);
    sorted_.for_each(visit_link);
    for (const LinkList* list : {&batch_list_, &waiting_, &admitted_}) {
      for_each_link(*list, visit_link);
    }
  }

  // Constant after construction.
  SlotWidth width_;
  Tick span_;

  Slots slots_;
  LinkLevels sorted_;    // in a pass: timers overdue at its start, or passed by a long jump
  LinkList batch_list_;  // the current batch
  LinkList waiting_;     // due when scheduled, since the last call began
  LinkList admitted_;    // due when scheduled, before the last call
  Batch batch_ = Batch::to_place;

  std::size_t size_ = 0;
  Tick base_;
};

}  // namespace detent::internal
